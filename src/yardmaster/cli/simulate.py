"""`yardmaster simulate`: one scheduler on one workload."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark
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


def simulate(
    *,
    scheduler: Annotated[
        str,
        Parameter(
            name=["--scheduler", "-s"],
            help="order+discipline@placement, such as sjf+easy@pack; append ~estimate to read"
            " estimates instead of true durations (see `list`); policy:NAME or policy:PATH is a"
            " trained policy.",
        ),
    ] = "fifo+easy",
    workload: WorkloadOption = "venus-like",
    cluster: ClusterOption = "demo",
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    until_s: UntilOption = None,
    engine: EngineOption = "core",
    compatibility: CompatibilityOption = "none",
    why: Annotated[
        bool,
        Parameter(
            name="--why",
            negative="",
            help="Write every decision of a trained policy (policy:PATH), with all candidates and"
            " their scores, to why.jsonl in the run directory.",
        ),
    ] = False,
    watch: Annotated[
        bool,
        Parameter(
            negative="", help="Play the schedule back in the terminal: GPUs, queue, utilisation."
        ),
    ] = False,
    watch_s: Annotated[
        float, Parameter(name="--watch-s", help="Seconds that playing back takes.")
    ] = 15.0,
    perfetto: Annotated[
        Path | None,
        Parameter(help="Also write a trace for ui.perfetto.dev: .json or .json.gz."),
    ] = None,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run one scheduler on one workload, print every metric, and write a run directory."""
    from yardmaster.cli.planning import make_plan
    from yardmaster.cli.printing import print_table
    from yardmaster.experiments.execution import run_simulation
    from yardmaster.experiments.run_directory import default_path, new_run_directory
    from yardmaster.report.tables import summary_table

    plan = make_plan(
        command="simulate",
        workload=workload,
        cluster=cluster,
        schedulers=(scheduler,),
        jobs=jobs,
        load=load,
        seed=seed,
        until_s=until_s,
        engine=engine,
        compatibility=compatibility,
    )
    _refuse_unshowable(perfetto, watch_s, overwrite=overwrite)
    machines = plan.make_cluster()
    (sample,) = plan.make_workloads(machines)
    path = out or default_path(plan)
    with new_run_directory(path, overwrite=overwrite) as folder:
        schedule, summary = run_simulation(
            plan, sample, folder, announce=None if quiet else remark, why=why
        )
    if perfetto is not None:
        from yardmaster.report.perfetto import write_perfetto

        write_perfetto(schedule, perfetto, overwrite=overwrite)
    if watch:
        from yardmaster.cli import watching

        watching.watch(schedule, seconds=watch_s)
    print_table(summary_table(schedule, summary), "json" if json else format, quiet=quiet)
    if not quiet:
        if why:
            remark(_decisions_in(path / "why.jsonl"))
        remark(f"Run directory: {path}")


def _decisions_in(reasons: Path) -> str:
    """Say how many decisions were written down, and where."""
    with reasons.open("rb") as file:
        count = sum(1 for _line in file)
    return f"{count:,} decision{'' if count == 1 else 's'}: {reasons}"


def _refuse_unshowable(perfetto: Path | None, watch_s: float, *, overwrite: bool) -> None:
    """Complain, before anything is simulated, about what could not be shown afterwards."""
    from yardmaster.errors import YardmasterError
    from yardmaster.workloads.files import refuse_to_replace

    if perfetto is not None:
        refuse_to_replace(perfetto, overwrite=overwrite)
    if not 0 < watch_s < math.inf:
        raise YardmasterError(f"--watch-s must be a number of seconds above 0, not {watch_s:g}.")
