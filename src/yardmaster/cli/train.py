"""`yardmaster train`: a policy learns to schedule, or a chooser which scheduler to trust."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from yardmaster.cli.console import LINE_EVERY_S, remark, say, say_json
from yardmaster.cli.options import JsonOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.experiments.training import Progress, TrainConfig, TrainResult

    Show = Callable[[Progress], None]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """What is learned, by whom and how long: options that win over a file."""

    config: Annotated[
        Path | None,
        Parameter(
            help="A TOML file with tables [task], [learner], [learner.network], [train], and for"
            " many workloads and clusters at once [[scenes]]."
        ),
    ] = None
    task: Annotated[
        str | None,
        Parameter(help="A ready task: default, …; of choosing schedulers: regimes, …."),
    ] = None
    workload: Annotated[
        str | None,
        Parameter(name=["--workload", "-w"], help="Where jobs come from, in place of the task's."),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(name=["--cluster", "-c"], help="The machines, in place of the task's."),
    ] = None
    jobs: Annotated[int | None, Parameter(help="Jobs of an episode.")] = None
    load: Annotated[float | None, Parameter(help="Offered load: 0.9 keeps 90 % busy.")] = None
    window: Annotated[int | None, Parameter(help="Waiting jobs that the policy sees.")] = None
    information: Annotated[
        Literal["clairvoyant", "estimate", "blind"] | None,
        Parameter(
            help="What it sees of run times: the true ones (the default tasks), the users'"
            " estimates, or nothing. A live cluster knows no true ones."
        ),
    ] = None
    lookahead: Annotated[
        str | None, Parameter(help="What it sees of GPUs to come: off, per_gpu, sorted or cdf.")
    ] = None
    reward: Annotated[
        str | None, Parameter(help="What it is rewarded for: wait, jct, bounded_slowdown, ….")
    ] = None
    families: Annotated[
        str | None, Parameter(help="Families of regimes to choose schedulers in, by commas.")
    ] = None
    regimes: Annotated[
        str | None, Parameter(help="Of those only these regimes, separated by commas.")
    ] = None
    menu: Annotated[
        str | None, Parameter(help="Schedulers to choose from, separated by commas.")
    ] = None
    learner: Annotated[
        str | None,
        Parameter(help="ppo, d3qn, rainbow or sac; meta-dqn, the default for choosing schedulers."),
    ] = None
    preset: Annotated[str | None, Parameter(help="Ready settings of the learner.")] = None
    policy_arch: Annotated[
        str | None, Parameter(help="Network: mlp, kernel, self-attention, cross-attention, regime.")
    ] = None
    steps: Annotated[int | None, Parameter(help="Environment steps in all.")] = None
    envs: Annotated[int | None, Parameter(help="Environments that step together.")] = None
    seed: Annotated[
        int | None, Parameter(help="Seed of weights, exploration and training episodes.")
    ] = None
    warm_start: Annotated[
        str | None, Parameter(help="Heuristic to imitate before learning begins: sjf+easy, ….")
    ] = None
    eval_every: Annotated[int | None, Parameter(help="Environment steps between evaluations.")] = (
        None
    )
    eval_episodes: Annotated[
        int | None, Parameter(help="Validation episodes; with scenes, of each.")
    ] = None
    metric: Annotated[
        str | None, Parameter(help="What the best policy is chosen by: returns, jct_s, ….")
    ] = None
    against: Annotated[
        str | None, Parameter(help="Heuristics to compare with, separated by commas.")
    ] = None
    patience: Annotated[
        int | None, Parameter(help="Stop after so many evaluations without a new best.")
    ] = None
    checkpoint_every: Annotated[
        str | None, Parameter(help="Steps between checkpoints, or seconds such as 300s.")
    ] = None
    threads: Annotated[
        int | None, Parameter(help="Threads; by default one per core, one for choosers.")
    ] = None
    device: Annotated[
        Literal["cpu", "cuda"] | None,
        Parameter(help="Where the network is; with cuda and ppo or meta-dqn the environments too."),
    ] = None
    tensorboard: Annotated[
        bool | None, Parameter(help="Event files; by default where tensorboardX is installed.")
    ] = None

    def tables(self) -> dict[str, Any]:
        """Return what was given as the tables of a file, without the file itself."""
        task = (
            "workload", "cluster", "jobs", "load", "window", "information", "lookahead", "reward",
        )  # fmt: skip
        train = (
            "steps", "envs", "seed", "warm_start", "eval_every", "eval_episodes", "metric",
            "patience", "checkpoint_every", "threads", "device", "tensorboard",
        )  # fmt: skip
        return _given(
            {
                "task": {"preset": self.task}
                | {name: getattr(self, name) for name in task}
                | {name: names(getattr(self, name)) for name in ("families", "regimes", "menu")},
                "learner": {
                    "name": self.learner,
                    "preset": self.preset,
                    "network": {"arch": self.policy_arch},
                },
                "train": {name: getattr(self, name) for name in train}
                | {"against": names(self.against)},
            }
        )


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without options that were not given, and tables of only such."""
    kept = {
        key: _given(value) if isinstance(value, Mapping) else value for key, value in table.items()
    }
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def names(text: str | None) -> list[str] | None:
    """Split `sjf, sjf+easy` into names."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def train(
    *,
    options: LearningOptions = LearningOptions(),  # noqa: B008  (frozen)
    resume: Annotated[
        Path | None,
        Parameter(help="Go on with the run in this folder; only --steps may be given as well."),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Run folder; by default a new one in runs/."),
    ] = None,
    overwrite: Annotated[
        bool, Parameter(negative="", help="Replace an existing run folder at --out.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a policy; Ctrl-C stops it after the update at hand, and --resume goes on.

    Options win over the file. Everything is written to the run folder while training goes on.
    """
    from yardmaster.experiments import training
    from yardmaster.experiments.training.folder import RunFolder, default_path

    config = options.config
    if resume is not None:
        _refuse_beside_resume(options, out=out, overwrite=overwrite)
        folder = RunFolder(resume)
        folder.refuse_if_not_run()
        config = folder.config
    plan = training.read_config(config, options.tables())
    path = resume or out or default_path("train", plan.learner, plan.short_name)
    with showing(quiet=quiet) as show:
        result = training.train(
            plan,
            out=path,
            resume=resume is not None,
            overwrite=overwrite,
            announce=None if quiet else remark,
            on_progress=show,
        )
    draw(path)
    _tell(result, plan, json=json, quiet=quiet)


def _refuse_beside_resume(options: LearningOptions, *, out: Path | None, overwrite: bool) -> None:
    """Complain about options that a resumed run would have to ignore."""
    from yardmaster.errors import YardmasterError

    is_more = replace(options, steps=None) != LearningOptions()
    if is_more or out is not None or overwrite:
        raise YardmasterError(
            "A resumed run does what it was begun with: beside --resume, only --steps can be given."
        )


def draw(path: Path) -> None:
    """Draw the curve of a run, if it got as far as having one."""
    if (path / "curve.csv").is_file() and (path / "run.json").is_file():
        from yardmaster.report.training import write_picture

        write_picture(path)


def _tell(result: TrainResult, plan: TrainConfig, *, json: bool, quiet: bool) -> None:
    """Print what came of the run; leave with 130 if it was interrupted."""
    best = None if result.best is None else result.best.record()
    if json:
        say_json(
            {
                "folder": str(result.folder),
                "status": result.status,
                "steps": result.steps,
                "seconds": result.seconds,
                "best": best,
                "heuristics": result.heuristics,
                "warnings": list(result.warnings),
            }
            | ({"scenes": result.scenes} if result.scenes else {})
        )
    else:
        say("\n".join([summary(result, plan.train.metric), *advice(result, plan)]))
    if result.status == "interrupted":
        if not quiet:
            remark(f"Go on with: yardmaster train --resume {result.folder}")
        sys.exit(130)


def summary(result: TrainResult, metric: str) -> str:
    """Say in a few lines how good the policy is, and where it is."""
    lines = [f"{result.folder}: {result.status} after {result.steps:,} steps"]
    if result.best is not None:
        lines.append(
            f"best policy on validation: {metric} {result.best.score:.5g}, at"
            f" {result.best.steps:,} steps"
        )
        for name, means in result.heuristics.items():
            mean, low, high = result.best.differences[name]
            lines.append(
                f"  {_full(name)}: {means[metric]:.5g}; the policy differs by {mean:+.4g}"
                f" [{low:+.4g}, {high:+.4g}]"
            )
        lines += _by_scene(result, metric)
    return "\n".join(lines)


def _by_scene(result: TrainResult, metric: str) -> list[str]:
    """Say of every scene how good the policy is, and the heuristic that is best there."""
    from yardmaster.experiments.training.evaluation import ANY_HIGHER_IS_BETTER

    if result.best is None or not result.best.scenes:
        return []
    best_of = max if ANY_HIGHER_IS_BETTER[metric] else min
    lines = [f"by scene, against the heuristic that is best there ({metric}):"]
    for scene, found in result.best.scenes.items():
        line = f"  {scene}: {found.score:.5g}"
        means = {k: v for k, v in result.scenes.get(scene, {}).items() if not math.isnan(v)}
        if means:
            name = best_of(means, key=lambda one: means[one])
            mean, low, high = found.differences[name]
            line += (
                f"; {_full(name)} {means[name]:.5g}, the policy differs by {mean:+.4g}"
                f" [{low:+.4g}, {high:+.4g}]"
            )
        lines.append(line)
    return lines


def advice(result: TrainResult, plan: TrainConfig) -> list[str]:
    """Say what the reader should know before using the policy, a sentence a line."""
    from yardmaster.envs.choosing.task import ChoosingTask
    from yardmaster.experiments.training.watch import untrained

    lines = []
    if result.best is not None and result.best.steps == 0 and result.steps > 0:
        lines.append(untrained(plan.train.warm_start))
    is_picking = not isinstance(plan.task, ChoosingTask)
    if is_picking and plan.task.sight.information == "clairvoyant":
        lines.append(
            "It reads true run times: for a live cluster train with --information estimate."
        )
    return lines


def _full(name: str) -> str:
    """Return a heuristic's whole name: `sjf` passes over jobs that do not fit, as `sjf+skip`."""
    from yardmaster.errors import YardmasterError
    from yardmaster.experiments.players import skipping

    try:
        return str(skipping(name))
    except YardmasterError:  # a member of a menu
        return name


@contextmanager
def showing(*, quiet: bool) -> Iterator[Show | None]:
    """Show how far training is: a bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _lines()


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                description=words(progress).replace("; ", "\n"),
                completed=progress.steps,
                total=progress.total_steps,
            )

        yield show


def _lines() -> Show:
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_S:
            last = time.monotonic()
            remark(words(progress))

    return show


def words(progress: Progress) -> str:
    """Say how far training is and how good the best policy, in one line."""
    total = progress.total_steps
    text = f"{min(progress.steps, total):,}/{total:,} steps"  # the last update may go beyond
    if not math.isnan(progress.eta_s):
        minutes, seconds = divmod(round(progress.eta_s), 60)
        text += f", {progress.steps_per_s:,.0f}/s, {minutes}:{seconds:02} left"
    if progress.best is not None:
        others = ", ".join(
            f"{_full(name)} {value:.4g}" for name, value in progress.heuristics.items()
        )
        latest = "" if progress.latest is None else f" {progress.latest:.4g} now,"
        text += f"; {progress.metric}{latest} {progress.best:.4g} at best"
        text += f" ({others})" if others else ""
    return text
