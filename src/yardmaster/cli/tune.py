"""`yardmaster tune`: a sweep for good settings of a learner."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say
from yardmaster.cli.options import FormatOption, JsonOption, QuietOption
from yardmaster.cli.train import LearningOptions, names, showing

if TYPE_CHECKING:
    from yardmaster.experiments.training import TrainConfig
    from yardmaster.experiments.training.tuning import Trial, TuneResult


def tune(
    *,
    trials: Annotated[int, Parameter(help="Training runs in all, earlier ones included.")] = 20,
    vary: Annotated[
        str | None,
        Parameter(help="Settings to vary, separated by commas; by default the learner's space."),
    ] = None,
    show_space: Annotated[
        bool, Parameter(negative="", help="Only say what would be varied, and how far.")
    ] = False,
    options: LearningOptions = LearningOptions(),  # noqa: B008  (frozen)
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="Folder of the sweep; one that is there already goes on. By default in runs/.",
        ),
    ] = None,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search for good settings; --steps is the length of one trial.

    The trials are kept in study.db in the folder, so that a sweep that was stopped goes on. The
    best is written as best.toml, for `train --config`.
    """
    from yardmaster.experiments.training import read_config
    from yardmaster.experiments.training.folder import default_path
    from yardmaster.experiments.training.spaces import space_of

    plan = read_config(options.config, options.tables())
    chosen = names(vary) or []
    if show_space:
        space = space_of(plan.learner, chosen)
        say("\n".join(f"{name}: {part.words()}" for name, part in space.items()))
        return
    path = out or default_path("tune", plan.learner, plan.short_name)
    result = _sweep(plan, path, trials, chosen, quiet=quiet)
    _tell(result, "json" if json else format, quiet=quiet)


def _sweep(
    plan: TrainConfig, path: Path, trials: int, vary: list[str], *, quiet: bool
) -> TuneResult:
    from yardmaster.experiments.training.tuning import tune as sweep

    def ended(trial: Trial) -> None:
        score = "no score" if trial.score is None else f"{trial.score:.5g}"
        remark(f"Trial {trial.number} {trial.state}: {score}")

    with showing(quiet=quiet) as show:
        return sweep(
            plan,
            out=path,
            trials=trials,
            vary=vary,
            announce=None if quiet else remark,
            on_progress=show,
            on_trial=None if quiet else ended,
        )


def _tell(result: TuneResult, style: str, *, quiet: bool) -> None:
    """Print the trials; leave with 130 if the sweep was interrupted."""
    from yardmaster.cli.printing import print_table
    from yardmaster.report.training import trials_table

    print_table(trials_table(result), style)
    if result.best is not None and not quiet:
        remark(f"Train with the best: yardmaster train --config {result.folder / 'best.toml'}")
    if not result.is_complete:
        if not quiet:
            remark(f"Go on with the same options and --out {result.folder}.")
        sys.exit(130)
