"""`yardmaster experiment ablation` and `lookahead`: many trainings, judged together."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from yardmaster.cli.console import complain, progress, remark
from yardmaster.cli.options import FormatOption, JsonOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.experiments.compare import Progress
    from yardmaster.experiments.trainings.ablation import AblationResult
    from yardmaster.experiments.trainings.running import TrainingsResult

NAMED = 4
"""Trainings that are named where many are alike."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """Options that all studies of trainings share."""

    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="Folder of the study; one that was interrupted goes on. By default"
            " runs/experiment-NAME.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        Parameter(help="A TOML file as `train --config` takes it: changes of all trainings."),
    ] = None
    workers: Annotated[
        int | None, Parameter(help="Trainings at a time; by default one for each processor.")
    ] = None
    overwrite: Annotated[
        bool,
        Parameter(
            negative="",
            help="Take the place of another study in the folder; trainings that both have in"
            " common are kept.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        Parameter(negative="", help="Only say how many trainings there are and how long it takes."),
    ] = False
    format: FormatOption = "table"
    json: JsonOption = False
    quiet: QuietOption = False

    @property
    def style(self) -> str:
        """How tables are printed."""
        return "json" if self.json else self.format

    @property
    def remark(self) -> Any:
        """Whom to tell what happens."""
        return remark if self.dry_run or not self.quiet else None

    def tables(self) -> dict[str, Any] | None:
        """Return the tables of the file."""
        from yardmaster.experiments.training.tables import read_tables

        return None if self.config is None else read_tables(self.config)

    @contextmanager
    def place(self, name: str) -> Iterator[Path]:
        """Yield the folder of the study; one that goes away if nothing but an estimate is made."""
        if self.dry_run and self.out is None:
            with tempfile.TemporaryDirectory() as folder:
                yield Path(folder) / "estimate"
        else:
            yield self.out or Path("runs") / f"experiment-{name}"


def ablation(
    *,
    family: Annotated[
        Literal["rlmetadqn", "hard", "drift"], Parameter(help="Regimes to train and test in.")
    ] = "rlmetadqn",
    reward: Annotated[
        str, Parameter(help="What the whole is rewarded for: mixed, jct, p95, ….")
    ] = "mixed",
    seeds: Annotated[int, Parameter(help="Trainings of each variant.")] = 5,
    steps: Annotated[
        int | None, Parameter(help="Environment steps of a training; by default the learner's.")
    ] = None,
    test_seeds: Annotated[
        int, Parameter(help="Workloads drawn from every regime to test choosers on.")
    ] = 4,
    variants: Annotated[
        str | None, Parameter(help="Only these variants beside the whole, separated by commas.")
    ] = None,
    options: StudyOptions = StudyOptions(),  # noqa: B008  (frozen)
) -> None:
    """Train MetaDQN without each of its parts in turn, and test all choosers on the same jobs.

    Trainings that are finished are not made again: a study that was stopped, or killed, goes on
    with the same command. `yardmaster report FOLDER` draws the figures.
    """
    from yardmaster.cli.planning import split_names
    from yardmaster.experiments.trainings.ablation import AblationOptions, run_ablation

    asked = AblationOptions(
        family=family,
        reward=reward,
        seeds=seeds,
        steps=steps,
        test_seeds=test_seeds,
        variants=tuple(split_names(variants)) if variants else (),
        tables=options.tables(),
    )
    with options.place("ablation") as folder, ExitStack() as stack:
        result = run_ablation(
            folder,
            asked,
            workers=options.workers,
            overwrite=options.overwrite,
            only_estimate=options.dry_run,
            announce=options.remark,
            progress=_later(stack, options, "steps"),
            run_progress=_later(stack, options, "runs"),
        )
    if not options.dry_run:
        _leave_if_stopped(result.trainings, folder, is_complete=result.is_complete)
        _tell_ablation(result, options)
        _tell_untrained(result.trainings)
        _leave_if_failed(result.trainings, runs=result.runs.failures if result.runs else ())


def lookahead(
    *,
    task: Annotated[str, Parameter(help="A ready task of picking jobs.")] = "gpu-optimizer",
    metric: Annotated[str, Parameter(help="What counts: returns, wait_s, jct_s, ….")] = "returns",
    seeds: Annotated[int, Parameter(help="Trainings of each combination.")] = 3,
    steps: Annotated[int, Parameter(help="Environment steps of a training.")] = 400_000,
    episodes: Annotated[int, Parameter(help="REPORT episodes that every policy plays.")] = 60,
    modes: Annotated[
        str | None, Parameter(help="Of off, per_gpu, sorted and cdf only these, by commas.")
    ] = None,
    architectures: Annotated[
        str | None, Parameter(help="Of mlp, kernel and cross-attention only these, by commas.")
    ] = None,
    options: StudyOptions = StudyOptions(),  # noqa: B008  (frozen)
) -> None:
    """Train PPO with every mode of lookahead in every architecture; compare on REPORT episodes.

    A study that was stopped, or killed, goes on with the same command.
    """
    from yardmaster.cli.planning import split_names
    from yardmaster.experiments.trainings.lookahead import (
        ARCHITECTURES,
        MODES,
        LookaheadOptions,
        run_lookahead,
    )

    asked = LookaheadOptions(
        task=task,
        metric=metric,
        seeds=seeds,
        steps=steps,
        episodes=episodes,
        modes=tuple(split_names(modes)) if modes else MODES,
        architectures=tuple(split_names(architectures)) if architectures else ARCHITECTURES,
        tables=options.tables(),
    )
    with options.place("lookahead") as folder, ExitStack() as stack:
        result = run_lookahead(
            folder,
            asked,
            workers=options.workers,
            overwrite=options.overwrite,
            only_estimate=options.dry_run,
            announce=options.remark,
            progress=_later(stack, options, "steps"),
        )
    if not options.dry_run:
        _leave_if_stopped(result.trainings, folder, is_complete=result.trainings.is_complete)
        if result.has_results:
            _tell_lookahead(folder, options)
            _tell_untrained(result.trainings)
        _leave_if_failed(result.trainings)


def _later(stack: ExitStack, options: StudyOptions, things: str) -> Progress:
    """Return what shows progress, from its first news on."""
    bar: list[Progress | None] = []

    def report(label: str, done: int, total: int) -> None:
        if not bar:
            stack.close()  # one bar at a time
            bar.append(stack.enter_context(progress(quiet=options.quiet, things=things)))
        if bar[0] is not None:
            bar[0](label, done, total)

    return report


def _leave_if_stopped(trained: TrainingsResult, folder: Path, *, is_complete: bool) -> None:
    """Leave with 130 if somebody asked to stop."""
    if is_complete or (trained.is_complete and trained.failures):
        return
    remark(f"Stopped; what is done is kept. Go on with the same command (--out {folder}).")
    sys.exit(130)


def _leave_if_failed(trained: TrainingsResult, runs: Any = ()) -> None:
    """Say what failed, and leave with 1 if anything did."""
    lines = [f"  - {name}: {reason}" for name, reason in trained.failures]
    lines += [f"  - {failure.cell}: {failure.reason}" for failure in runs]
    if lines:
        complain(f"{len(lines)} failed:\n" + "\n".join(lines))
        sys.exit(1)


def _tell_untrained(trained: TrainingsResult) -> None:
    """Say of which trainings nothing came: what is compared then is the network they began with."""
    names = trained.untrained
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        remark(
            f"In {len(names)} of {trained.trainings} trainings nothing was better than the network"
            f" before its first step ({', '.join(names[:NAMED])}{more}): their rows tell of"
            " untrained networks. Try more --steps."
        )


def _tell_ablation(result: AblationResult, options: StudyOptions) -> None:
    """Print what every part is worth."""
    from yardmaster.cli.printing import print_table
    from yardmaster.experiments.suite.results import read_results
    from yardmaster.report.suite.ablation import ablation as read_ablation
    from yardmaster.report.suite.other_tables import ablation_table

    if result.runs is None:
        return
    found = read_ablation(read_results(result.folder))
    if found is not None:
        print_table(ablation_table(found, found.measures), options.style)
    if not options.quiet:
        remark(
            f"Table: {result.folder / 'results.parquet'}\n"
            f"Figures: yardmaster report {result.folder}"
        )


def _tell_lookahead(folder: Path, options: StudyOptions) -> None:
    """Print the table, and write it with its figure."""
    from yardmaster.cli.printing import print_table
    from yardmaster.report.lookahead import lookahead_table, read_lookahead, write_lookahead_report

    print_table(lookahead_table(read_lookahead(folder)), options.style)
    place = write_lookahead_report(folder)
    if not options.quiet:
        remark(f"Table and figure: {place}")
