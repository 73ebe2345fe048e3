"""`yardmaster eta`: when will my job start?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import progress, remark
from yardmaster.cli.options import (
    ClusterOption,
    FormatOption,
    JobsOption,
    JsonOption,
    LoadOption,
    OutOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    WorkloadOption,
)

WITH_ESTIMATES, WITHOUT_ESTIMATES = "fifo+easy~estimate", "fifo+skip"
"""Who decides when nobody is named."""


def eta(
    *,
    scheduler: Annotated[
        str | None,
        Parameter(
            name=["--scheduler", "-s"],
            help="Who decides; by default fifo+easy~estimate, or fifo+skip without estimates.",
        ),
    ] = None,
    workload: WorkloadOption = "venus-like",
    cluster: ClusterOption = "demo",
    now_s: Annotated[
        float | None,
        Parameter(help="Moment of asking on the workload's clock; by default a typical queue."),
    ] = None,
    snapshot: Annotated[
        Path | None,
        Parameter(
            help="Who runs and who waits, as CSV: job columns and start_s (or elapsed_s), empty"
            " for waiting jobs. A --workload file is then the past to learn from."
        ),
    ] = None,
    job: Annotated[
        tuple[str, ...], Parameter(help="Id of a waiting job; by default all of them.")
    ] = (),
    gpus: Annotated[int | None, Parameter(help="Ask for a new job with so many GPUs.")] = None,
    hours: Annotated[
        float | None, Parameter(help="Run time that the owner of the new job expects.")
    ] = None,
    simulations: Annotated[int, Parameter(help="Futures to simulate.")] = 200,
    calibrate: Annotated[
        int, Parameter(help="Earlier predictions to learn a correction from; 0 for none.")
    ] = 60,
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict when waiting jobs (or a new one) will start, with an 80 % interval."""
    from yardmaster.cli.planning import make_plan
    from yardmaster.cli.printing import print_table
    from yardmaster.errors import YardmasterError
    from yardmaster.experiments.questions import run_eta
    from yardmaster.experiments.run_directory import (
        command_line,
        default_path,
        new_run_directory,
    )
    from yardmaster.report.eta import eta_table, headline, moment_title
    from yardmaster.report.question_pages import write_eta_page

    if hours is not None and gpus is None:
        raise YardmasterError("--hours says how long a new job runs; it goes with --gpus.")
    plan = make_plan(
        command="eta",
        workload=workload,
        cluster=cluster,
        schedulers=(scheduler or WITHOUT_ESTIMATES,),
        jobs=jobs,
        load=load,
        seed=seed,
        eta={
            "now_s": now_s,
            "snapshot": None if snapshot is None else str(snapshot),
            "job": job,
            "gpus": gpus,
            "hours": hours,
            "simulations": simulations,
            "calibrate": calibrate,
        },
    )
    machines = plan.make_cluster()
    samples = plan.make_workloads(machines) if plan.workload_files else []
    if scheduler is None and snapshot is None and samples[0].has_estimates:
        plan = plan.model_copy(update={"schedulers": (WITH_ESTIMATES,)})
    path = out or default_path(plan)
    with (
        new_run_directory(path, overwrite=overwrite) as folder,
        progress(quiet=quiet) as report,
    ):
        moment, forecast = run_eta(plan, samples, folder, progress=report)
        write_eta_page(moment, forecast, folder, command=command_line())
    style = "json" if json else format
    print_table(eta_table(forecast, title=moment_title(moment)), style, quiet=quiet)
    if not quiet and style == "table":
        remark(f"\n{headline(forecast)}\nReport: {path / 'report.html'}")
