"""`yardmaster whatif`: capacity questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import announce, progress, remark
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
    UntilOption,
    WorkloadOption,
)

if TYPE_CHECKING:
    from yardmaster.experiments.plan import Plan


def whatif(
    *,
    scheduler: Annotated[
        str, Parameter(name=["--scheduler", "-s"], help="Who decides (see `list orders`).")
    ] = "fifo+easy",
    workload: WorkloadOption = "venus-like",
    cluster: ClusterOption = "demo",
    add: Annotated[
        tuple[str, ...], Parameter(help="More nodes, such as '4x A100:8'; may be repeated.")
    ] = (),
    remove: Annotated[
        tuple[str, ...], Parameter(help="Fewer nodes, such as '2x V100'; the last of that type.")
    ] = (),
    nodes: Annotated[
        tuple[str, ...],
        Parameter(
            allow_leading_hyphen=True,
            help="More or fewer of the commonest nodes: +4 or -2; of a pool, GPUs.",
        ),
    ] = (),
    replace: Annotated[
        tuple[str, ...], Parameter(help="Some nodes for others: '8x V100=4x H100:8'.")
    ] = (),
    quota: Annotated[
        tuple[str, ...],
        Parameter(help="A tenant's guaranteed GPUs, and perhaps a limit: vc1=64 or vc1=64:96."),
    ] = (),
    scale_load: Annotated[
        tuple[float, ...], Parameter(help="The same jobs submitted so many times as fast: 1.2.")
    ] = (),
    together: Annotated[
        bool, Parameter(negative="", help="All changes at once instead of each alone.")
    ] = False,
    sweep: Annotated[
        str | None,
        Parameter(help="A curve: nodes=-4..8:2, nodes:A100:8=0..8 or load=0.8..1.4:0.1."),
    ] = None,
    target: Annotated[
        str | None,
        Parameter(help="Find the fewest extra nodes that reach this: 'mean_wait_s<600'."),
    ] = None,
    target_node: Annotated[
        str | None, Parameter(help="The kind of those nodes, such as A100:8; else the commonest.")
    ] = None,
    objective: Annotated[
        str, Parameter(help="Metric of differences and curves (see `list metrics`).")
    ] = "mean_wait_s",
    seeds: Annotated[
        int | None,
        Parameter(help="Generated workloads to pair over (default 8; a file is always one)."),
    ] = None,
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    until_s: UntilOption = None,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the same jobs on a changed cluster, and say what the change would bring."""
    from yardmaster.cli.planning import make_plan
    from yardmaster.workloads.sources import is_generated

    plan = make_plan(
        command="whatif",
        workload=workload,
        cluster=cluster,
        schedulers=(scheduler,),
        jobs=jobs,
        load=load,
        seed=seed,
        seeds=(8 if is_generated(workload) else 1) if seeds is None else seeds,
        objective=objective,
        until_s=until_s,
        whatif={
            "add": add, "remove": remove, "nodes": nodes, "replace": replace, "quota": quota,
            "scale_load": scale_load, "together": together, "sweep": sweep, "target": target,
            "target_node": target_node,
        },
    )  # fmt: skip
    _answer(plan, out, "json" if json else format, overwrite=overwrite, quiet=quiet)


def _answer(plan: Plan, out: Path | None, style: str, *, overwrite: bool, quiet: bool) -> None:
    """Simulate everything, write a run directory, and print the answer."""
    from yardmaster.cli.printing import print_table
    from yardmaster.experiments.questions import run_whatif
    from yardmaster.experiments.run_directory import (
        command_line,
        default_path,
        new_run_directory,
    )
    from yardmaster.report.question_pages import write_whatif_page
    from yardmaster.report.whatif import headline, whatif_table

    samples = plan.make_workloads(plan.make_cluster())
    path = out or default_path(plan)
    with (
        new_run_directory(path, overwrite=overwrite) as folder,
        progress(quiet=quiet) as report,
    ):
        told = None if quiet else announce
        found = run_whatif(plan, samples, folder, progress=report, announce=told)
        write_whatif_page(found, folder, command=command_line())
    print_table(whatif_table(found), style, quiet=quiet)
    if not quiet and style == "table":
        remark(f"\n{headline(found)}\nReport: {path / 'report.html'}")
