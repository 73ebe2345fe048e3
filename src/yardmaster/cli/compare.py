"""`yardmaster compare`: several schedulers on the same jobs."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import announce, progress, remark
from yardmaster.cli.options import (
    ClusterOption,
    CompatibilityOption,
    EngineOption,
    FormatOption,
    JobsOption,
    JsonOption,
    LoadOption,
    OutOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    UntilOption,
    WorkloadOption,
)


def compare(
    *,
    schedulers: Annotated[
        str,
        Parameter(
            name=["--schedulers", "-s"],
            help="Names separated by commas; 'default' for a sensible dozen that fits the cluster"
            " and the policies that come along, 'all' for every order under its own discipline.",
        ),
    ] = "default",
    workload: WorkloadOption = "venus-like",
    cluster: ClusterOption = "demo",
    seeds: Annotated[
        int | None,
        Parameter(help="Generated workloads to pair over (default 8; a file is always one)."),
    ] = None,
    objective: Annotated[str, Parameter(help="Metric to rank by (see `list metrics`).")] = (
        "mean_jct_s"
    ),
    baseline: Annotated[
        str | None, Parameter(help="Scheduler that differences refer to; by default the first.")
    ] = None,
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    until_s: UntilOption = None,
    engine: EngineOption = "core",
    compatibility: CompatibilityOption = "none",
    why: Annotated[
        bool,
        Parameter(negative="", show=False, help="Reasons are written by `simulate --why`."),
    ] = False,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run schedulers on the same jobs, print a table with paired intervals, write a report."""
    from yardmaster.cli.planning import make_plan
    from yardmaster.cli.printing import print_table
    from yardmaster.experiments.execution import run_comparison
    from yardmaster.experiments.run_directory import (
        command_line,
        default_path,
        new_run_directory,
    )
    from yardmaster.report.html import write_report
    from yardmaster.report.tables import comparison_table
    from yardmaster.report.verdict import headline
    from yardmaster.workloads.sources import is_generated

    _refuse_reasons(are_wanted=why)
    plan = make_plan(
        command="compare",
        workload=workload,
        cluster=cluster,
        schedulers=_named(schedulers),
        jobs=jobs,
        load=load,
        seed=seed,
        seeds=(8 if is_generated(workload) else 1) if seeds is None else seeds,
        objective=objective,
        baseline=baseline,
        until_s=until_s,
        engine=engine,
        compatibility=compatibility,
    )
    machines = plan.make_cluster()
    samples = plan.make_workloads(machines)
    if schedulers == "default":
        from yardmaster.experiments.line_up import default_schedulers

        fitting = default_schedulers(
            samples, machines, engine=plan.engine, compatibility=plan.compatibility
        )
        plan = plan.model_copy(update={"schedulers": fitting})
    path = out or default_path(plan)
    with (
        new_run_directory(path, overwrite=overwrite) as folder,
        progress(quiet=quiet) as report,
    ):
        told = None if quiet else announce
        result = run_comparison(plan, samples, folder, progress=report, announce=told)
        write_report(result, folder / "report.html", command=command_line())
    style = "json" if json else format
    print_table(comparison_table(result), style, quiet=quiet)
    if not quiet and style == "table":
        remark(f"\n{headline(result)}\nReport: {path / 'report.html'}")


def _refuse_reasons(*, are_wanted: bool) -> None:
    """Point people who ask why to the command that says it."""
    if are_wanted:
        from yardmaster.errors import YardmasterError

        raise YardmasterError(
            "compare writes no reasons: `yardmaster simulate -s policy:PATH --why` does, for one"
            " policy at a time."
        )


def _named(schedulers: str) -> tuple[str, ...]:
    from yardmaster.cli.planning import split_names
    from yardmaster.experiments.line_up import DEFAULT_SCHEDULERS
    from yardmaster.schedulers.orders import ORDERS

    if schedulers == "default":
        return DEFAULT_SCHEDULERS
    return tuple(ORDERS) if schedulers == "all" else split_names(schedulers)
