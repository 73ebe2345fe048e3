"""`yardmaster whatif`: capacity questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    UntilOption,
    WorkloadOption,
)

if TYPE_CHECKING:
    from yardmaster.experiments.plan import Plan
    from yardmaster.experiments.whatif_changes import Change
    from yardmaster.experiments.whatif_rows import WhatIf
    from yardmaster.model.workload import Workload
    from yardmaster.report.tables import Table


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
            allow_leading_hyphen=True, help="More or fewer of the commonest nodes: +4 or -2."
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
        command="compare",
        workload=workload,
        cluster=cluster,
        schedulers=(scheduler,),
        jobs=jobs,
        load=load,
        seed=seed,
        seeds=(8 if is_generated(workload) else 1) if seeds is None else seeds,
        objective=objective,
        until_s=until_s,
    )
    asked = _Question(add, remove, nodes, replace, quota, scale_load, sweep, target, target_node)
    path, table, answer = asked.put(plan, out, together=together, overwrite=overwrite, quiet=quiet)
    _show(path, table, answer, "json" if json else format, quiet=quiet)


@dataclass(frozen=True, slots=True)
class _Question:
    """What could be different, as it was typed."""

    add: tuple[str, ...]
    remove: tuple[str, ...]
    nodes: tuple[str, ...]
    replace: tuple[str, ...]
    quota: tuple[str, ...]
    scale_load: tuple[float, ...]
    sweep: str | None
    target: str | None
    target_node: str | None

    def changes(self, workloads: Sequence[Workload]) -> list[Change]:
        """Return every change that was named."""
        from yardmaster.experiments import whatif_changes as make

        return [
            *map(make.adding, self.add),
            *map(make.removing, self.remove),
            *map(make.resizing, self.nodes),
            *map(make.replacing, self.replace),
            *(make.changing_quota(text, workloads) for text in self.quota),
            *map(make.scaling_load, self.scale_load),
        ]

    def put(
        self, plan: Plan, out: Path | None, *, together: bool, overwrite: bool, quiet: bool
    ) -> tuple[Path, Table, str]:
        """Simulate everything, write a run directory, and return the answer."""
        from yardmaster.experiments import whatif as experiment
        from yardmaster.experiments import whatif_changes as make
        from yardmaster.experiments.question_directory import fresh_path
        from yardmaster.experiments.run_directory import new_run_directory
        from yardmaster.model.reshape import parse_nodes
        from yardmaster.report.whatif import headline, whatif_table

        machines = plan.make_cluster()
        samples = plan.make_workloads(machines)
        changes = self.changes(samples)
        started = datetime.now(UTC)
        path = out or fresh_path("whatif", plan.workload)
        with (
            new_run_directory(path, overwrite=overwrite) as folder,
            progress(quiet=quiet) as report,
        ):
            found = experiment.whatif(
                samples,
                machines,
                plan.schedulers[0],
                [make.combined(changes)] if together and changes else changes,
                sweep=make.sweeping(self.sweep, machines) if self.sweep else None,
                target=make.reading_target(self.target) if self.target else None,
                target_nodes=parse_nodes(self.target_node) if self.target_node else None,
                objective=plan.objective,
                seed=plan.seed,
                until_s=plan.cut_s,
                progress=report,
                announce=None if quiet else remark,
            )
            self._write(folder, plan, samples, found, started)
        return path, whatif_table(found), headline(found)

    def _write(
        self, folder: Path, plan: Plan, samples: list[Workload], found: WhatIf, started: datetime
    ) -> None:
        from yardmaster.experiments.question_directory import write_question
        from yardmaster.experiments.run_directory import command_line
        from yardmaster.report.page import write_figures, write_page
        from yardmaster.report.whatif import definitions, headline, whatif_table
        from yardmaster.report.whatif_figures import whatif_figures

        write_question(
            folder,
            plan.model_dump() | asdict(self) | {"command": "whatif"},
            samples,
            [{"change": run.scheduler, "workload": run.workload} | run.summary
             for run in found.runs],
            fingerprints={f"{run.scheduler} on {run.workload}": run.fingerprint
                          for run in found.runs},
            notes=found.notes,
            started=started,
        )  # fmt: skip
        table, figures = whatif_table(found), whatif_figures(found)
        write_figures(folder / "figures", figures)
        write_page(
            folder / "report.html",
            eyebrow="What if",
            lead=headline(found),
            table=table,
            figures=figures,
            definitions=definitions(found),
            command=command_line(),
        )


def _show(path: Path, table: Table, answer: str, style: str, *, quiet: bool) -> None:
    from yardmaster.cli.printing import print_table

    print_table(table, style)
    if not quiet and style == "table":
        remark(f"\n{answer}\nReport: {path / 'report.html'}")
