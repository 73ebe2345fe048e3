"""`yardmaster experiment matrix`, `robustness`, `hard` and `run`: many runs, never lost."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from yardmaster.cli.console import complain, progress, remark, say_json
from yardmaster.cli.options import FormatOption, JsonOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.experiments.compare import Progress
    from yardmaster.experiments.suite.document import Suite
    from yardmaster.experiments.suite.run import SuiteResult

FAILURES_SHOWN = 20


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """Options that all experiments share."""

    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="Folder of the experiment; one that was interrupted goes on. By default"
            " runs/experiment-NAME.",
        ),
    ] = None
    schedulers: Annotated[
        str | None,
        Parameter(
            name=["--schedulers", "-s"],
            help="Names separated by commas, in place of the document's.",
        ),
    ] = None
    seeds: Annotated[
        int | None, Parameter(help="Workloads drawn from every regime, in place of the document's.")
    ] = None
    engine: Annotated[
        Literal["local", "ray"],
        Parameter(help="Processes of this machine, or a Ray cluster (the same results)."),
    ] = "local"
    address: Annotated[
        str | None,
        Parameter(
            help="Ray cluster to use, such as 'auto' or HOST:PORT; by default one is started here."
        ),
    ] = None
    workers: Annotated[
        int | None, Parameter(help="Processes to use; by default one for each processor.")
    ] = None
    overwrite: Annotated[
        bool,
        Parameter(
            negative="",
            help="Take the place of another experiment in the folder; runs that both have in common"
            " are kept.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        Parameter(negative="", help="Only say how many runs there are and how long they take."),
    ] = False
    format: FormatOption = "table"
    json: JsonOption = False
    quiet: QuietOption = False


def matrix(*, options: ExperimentOptions = ExperimentOptions()) -> None:  # noqa: B008  (frozen)
    """Run 8 schedulers on RLMetaDQN's 48 regimes with 8 paired seeds: 3,072 runs."""
    _run("matrix", options)


def robustness(*, options: ExperimentOptions = ExperimentOptions()) -> None:  # noqa: B008
    """Run schedulers on disturbed regimes (5 perturbations × 4 severities) and under drift."""
    _run("robustness", options)


def hard(*, options: ExperimentOptions = ExperimentOptions()) -> None:  # noqa: B008
    """Run schedulers where no single heuristic wins: gangs, heavy tails, GPU types, drift."""
    _run("hard", options)


def run(
    document: Annotated[
        str, Parameter(help="A .toml file of factors, or the name of a built-in experiment.")
    ],
    *,
    options: ExperimentOptions = ExperimentOptions(),  # noqa: B008
) -> None:
    """Run every combination of the factors in a document.

    What is known already is not run again: an experiment that was stopped, or killed, goes on with
    the same command, and after a change to one scheduler only its runs are made again.
    """
    _run(document, options)


def _run(source: str, options: ExperimentOptions) -> None:
    from yardmaster.cli.planning import split_names
    from yardmaster.experiments.line_up import parse_schedulers
    from yardmaster.experiments.suite.document import load_suite

    chosen = split_names(options.schedulers) if options.schedulers is not None else None
    if chosen:
        parse_schedulers(chosen)  # a mistake in the command is none of the document's
    suite = load_suite(source).with_changes(schedulers=chosen, seeds=options.seeds)
    if options.dry_run and options.out is None:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            _carried_out(suite, Path(folder) / "estimate", source, options)
        return
    place = options.out or Path("runs") / f"experiment-{_as_file_name(suite.name)}"
    result = _carried_out(suite, place, source, options)
    if not options.dry_run:
        _tell(suite, result, options)


def _as_file_name(name: str) -> str:
    return "".join(mark if mark.isalnum() or mark in "-_" else "-" for mark in name)


def _carried_out(suite: Suite, place: Path, source: str, options: ExperimentOptions) -> SuiteResult:
    from yardmaster.experiments.suite.run import run_suite

    with ExitStack() as stack:
        bar: list[Progress | None] = []

        def report(label: str, done: int, total: int) -> None:
            # Not before the first run: loading or compiling the core would spoil rate and ETA.
            if not bar:
                bar.append(stack.enter_context(progress(quiet=options.quiet, things="runs")))
            if bar[0] is not None:
                bar[0](label, done, total)

        return run_suite(
            suite,
            place,
            source=source,
            engine=options.engine,
            workers=options.workers,
            address=options.address,
            overwrite=options.overwrite,
            only_estimate=options.dry_run,
            progress=report,
            announce=remark if options.dry_run or not options.quiet else None,
        )


def _tell(suite: Suite, result: SuiteResult, options: ExperimentOptions) -> None:
    """Print the standings and what failed; leave with 1 then, and with 130 if interrupted."""
    from yardmaster.cli.experiment.standings import standings_tables
    from yardmaster.cli.printing import print_table
    from yardmaster.experiments.suite.results import read_results
    from yardmaster.experiments.suite.run import duration
    from yardmaster.report.renderers import to_dict

    if not result.is_complete:
        remark(
            f"Stopped after {result.reused + result.made:,} of {result.cells:,} runs, which are"
            f" kept; go on with the same command (--out {result.folder})."
        )
        sys.exit(130)
    results = read_results(result.folder)
    tables = list(standings_tables(results, suite.objectives)) if len(results) else []
    style = "json" if options.json else options.format
    if style == "json":
        say_json({"tables": [to_dict(table) for table in tables]})
    else:
        for table in tables:
            print_table(table, style)
    if not options.quiet:
        rate = f", {result.made / result.seconds:,.0f} a second" if result.made else ""
        remark(
            f"\n{result.made:,} runs made, {result.reused:,} known before, in"
            f" {duration(result.seconds)}{rate}.\nTable: {result.folder / 'results.parquet'}"
        )
    if result.failures:
        _complain(result)
        sys.exit(1)


def _complain(result: SuiteResult) -> None:
    """List the runs that failed."""
    lines = [f"  - {failure.cell}: {failure.reason}" for failure in result.failures]
    more = len(lines) - FAILURES_SHOWN
    shown = lines[:FAILURES_SHOWN] + ([f"  … and {more:,} more"] if more > 0 else [])
    complain(
        f"{len(lines):,} of {result.cells:,} runs failed (all in"
        f" {result.folder / 'failures.json'}):\n" + "\n".join(shown)
    )
