"""What lookahead is worth: what is seen of GPUs to come, by the network that sees it.

Every mode with every architecture is trained from several seeds, and plays the same REPORT episodes
once, in the end. The folder:

```
trainings.toml              the configuration of every training
trainings/MODE-ARCH-SEED/   its run folder; report.json there: what its policy scored on REPORT
lookahead.parquet           one row per training and REPORT episode
```
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.config import Layer, TrainConfig
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER, Scores
from yardmaster.experiments.training.folder import read_json, refuse_dry_overwrite, write_json
from yardmaster.experiments.training.interruption import asked_to_stop
from yardmaster.experiments.trainings.plan import Plan, Training, trainings_of
from yardmaster.experiments.trainings.running import (
    Announce,
    Progress,
    TrainingsResult,
    estimate,
    only_expected,
    train_all,
)
from yardmaster.names import unknown
from yardmaster.workloads.files import whole_file

if TYPE_CHECKING:
    import polars as pl

    from yardmaster.envs.task import Task

MODES = ("off", "per_gpu", "sorted", "cdf")
"""What is seen of GPUs to come."""
ARCHITECTURES = ("mlp", "kernel", "cross-attention")
PPO: Mapping[str, Any] = {
    "steps_per_update": 16_384,
    "learning_rate": 1e-3,
    "entropy": 0.003,
    "entropy_end": 0.0,
}
"""Settings of PPO that were chosen on VAL."""
PPO_TRAIN: Mapping[str, Any] = {"envs": 256}
EVALUATIONS = 12
"""Looks at the validation episodes during a training."""
EVAL_EPISODES = 30
"""Validation episodes of such a look; the final evaluation plays more."""
STEPS = 400_000
EPISODES = 60
RESULTS = "lookahead.parquet"
SCORES = "report.json"
"""What a training's policy made of the REPORT episodes, in its run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookaheadOptions:
    """What is left open of the study."""

    task: str = "gpu-optimizer"
    metric: str = "returns"
    seeds: int = 3
    """Trainings of each."""
    steps: int = STEPS
    """Environment steps of a training."""
    episodes: int = EPISODES
    """REPORT episodes."""
    modes: tuple[str, ...] = MODES
    architectures: tuple[str, ...] = ARCHITECTURES
    tables: Mapping[str, Any] | None = None
    """Changes of all trainings, as `train --config` takes them."""

    def __post_init__(self) -> None:
        from yardmaster.envs.task import TASKS

        if self.task not in TASKS:
            raise unknown("task of picking jobs", self.task, TASKS)
        for name, known in (("modes", MODES), ("architectures", ARCHITECTURES)):
            for one in getattr(self, name):
                if one not in known:
                    raise unknown(name.removesuffix("s"), one, known)
        if self.metric not in HIGHER_IS_BETTER:
            raise unknown("metric", self.metric, HIGHER_IS_BETTER)
        for name in ("seeds", "steps", "episodes"):
            if getattr(self, name) < 1:
                raise YardmasterError(f"{name} must be at least 1, got {getattr(self, name)}.")


@dataclass(frozen=True, slots=True)
class LookaheadResult:
    """What came of the study."""

    folder: Path
    trainings: TrainingsResult
    has_results: bool
    """Whether the table was written: not if somebody asked to stop before."""


def variant(mode: str, arch: str) -> str:
    """Return the name of a combination."""
    return f"{mode}-{arch}"


def lookahead_plan(folder: Path, options: LookaheadOptions) -> Plan:
    """Return the trainings of the study.

    Raises:
        YardmasterError: if a configuration makes no sense.
    """
    common = {
        "task": {"preset": options.task},
        "learner": {"name": "ppo", **PPO},
        "train": {
            **PPO_TRAIN,
            "steps": options.steps,
            "metric": options.metric,
            "against": [],
            "eval_every": max(options.steps // EVALUATIONS, 1),
            "eval_episodes": EVAL_EPISODES,
            "threads": 1,
            "tensorboard": False,
        },
    }
    layers = [Layer(common, "the study"), Layer(options.tables or {}, "the configuration")]
    variants = {
        variant(mode, arch): {"task": {"lookahead": mode}, "learner": {"network": {"arch": arch}}}
        for arch in options.architectures
        for mode in options.modes
    }
    return Plan(folder, tuple(trainings_of(variants, range(options.seeds), layers)))


def run_lookahead(
    folder: Path,
    options: LookaheadOptions,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    only_estimate: bool = False,
    announce: Announce | None = None,
    progress: Progress | None = None,
) -> LookaheadResult:
    """Train and judge every combination that the folder does not hold yet; write the table.

    Args:
        folder: where the study lives; one that was interrupted goes on.
        options: what is left open.
        workers: processes; by default one for each processor.
        overwrite: take the place of another study in the folder.
        only_estimate: say what there is to do and how long it will take, and do no more.
        announce: told in sentences what happens.
        progress: told how many environment steps of the trainings are done.

    Raises:
        YardmasterError: if a name is unknown, or the folder holds something else.
    """
    refuse_dry_overwrite(overwrite=overwrite, only_estimate=only_estimate)
    say = announce or (lambda _news: None)
    plan = lookahead_plan(folder, options)
    count = workers or len(os.sched_getaffinity(0))
    with _held(folder), asked_to_stop(say, work="the updates under way") as is_stopped:
        plan.refuse_others(overwrite=overwrite)
        plan.take_up()
        expected_s = estimate(plan, count, say)
        if only_estimate:
            return LookaheadResult(folder, only_expected(plan, expected_s), has_results=False)
        trained = train_all(
            plan,
            workers=count,
            is_stopped=is_stopped,
            after=partial(judge, options.episodes),
            is_done=partial(_is_judged, plan, options.episodes),
            announce=say,
            progress=progress,
            estimate_s=expected_s,
        )
        lost = {name for name, _ in trained.failures}
        left = [one for one in plan.trainings if one.name not in lost]
        if trained.is_complete and left:
            with whole_file(folder / RESULTS, overwrite=True) as file:
                _table(plan, left, options).write_parquet(file, statistics=False)
    return LookaheadResult(folder, trained, has_results=trained.is_complete and bool(left))


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Make the folder if need be, and keep all other processes out; death lets go of it too."""
    ours = {".lock", "trainings.toml", "trainings", RESULTS, "report"}
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    strange = [name for name in there - ours if not name.endswith(".unfinished")]
    if folder.exists() and (not folder.is_dir() or strange):
        raise YardmasterError(
            f"{folder} already exists and is not the folder of this study; choose another place"
            " with --out."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a", encoding="utf-8")
    except OSError as error:
        raise YardmasterError(f"Cannot write to {folder}: {error.strerror}.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise YardmasterError(f"Another process is at work in {folder}.") from None
        yield


def judge(episodes: int, path: Path, config: TrainConfig) -> None:
    """Let the best policy of a training play the REPORT episodes, and write down its scores."""
    from yardmaster.envs.episodes import Episodes
    from yardmaster.experiments.players import played, read_policy

    policy = read_policy(path)
    task = cast("Task", config.task)
    scores: Scores = played(policy.choose, Episodes(task, "report"), episodes)
    plain = {name: values.tolist() for name, values in scores.items()}
    write_json(path / SCORES, {"episodes": episodes, "scores": plain})


def _is_judged(plan: Plan, episodes: int, training: Training) -> bool:
    path = plan.path(training) / SCORES
    return path.is_file() and read_json(path)["episodes"] == episodes


def _table(plan: Plan, trainings: list[Training], options: LookaheadOptions) -> pl.DataFrame:
    """Return one row per training and episode."""
    import polars as pl

    parts = []
    for one in trainings:
        scores = read_json(plan.path(one) / SCORES)["scores"]
        sight: Any = one.config.task.sight
        parts.append(
            pl.DataFrame(
                {name: np.array(values, dtype=np.float64) for name, values in scores.items()}
            ).with_columns(
                pl.lit(options.task).alias("task"),
                pl.lit(options.metric).alias("metric"),
                pl.lit(sight.lookahead).alias("lookahead"),
                pl.lit(one.config.settings.network.arch).alias("architecture"),
                pl.lit(one.seed, dtype=pl.Int64).alias("training_seed"),
                pl.lit(one.config.train.steps, dtype=pl.Int64).alias("steps"),
                pl.Series("episode", np.arange(options.episodes)),
            )
        )
    first = ["task", "metric", "architecture", "lookahead", "training_seed", "steps", "episode"]
    return pl.concat(parts).select(*first, *HIGHER_IS_BETTER)
