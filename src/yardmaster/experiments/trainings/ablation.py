"""What each part of MetaDQN is worth: the same training without it, from several seeds.

Parts are left out of the training, not switched off afterwards. Every chooser then runs the same
jobs, of seeds that no training saw, through the experiment suite; `results.parquet` has two columns
more, `variant` and `training_seed`, and `yardmaster report` does the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.document import Regimes, Suite
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.measuring import MIXED
from yardmaster.experiments.suite.run import SuiteResult, run_suite
from yardmaster.experiments.training.config import Layer, TrainConfig, config_from
from yardmaster.experiments.training.folder import refuse_dry_overwrite
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
from yardmaster.schedulers.meta.choosers import META_PREFIX

if TYPE_CHECKING:
    import polars as pl

    from yardmaster.envs.choosing.task import ChoosingTask

WHOLE = "full"
TASK_OF_FAMILY = {
    "rlmetadqn": "regimes",
    "hard": "hard-regimes",
    "drift": "drifting-regimes",
}
"""Which task is trained on for a family of regimes."""
METRIC_OF_REWARD = {"jct": "jct_gap", "p95": "p95_gap", "mixed": "mixed_gap"}
"""What the best chooser of a training is chosen by: the same for all variants, whose rewards
differ."""
OBJECTIVES = ("mean_jct_s", "p95_jct_s", "mean_bounded_slowdown", MIXED)
"""What the distance to the best fixed scheduler is told of."""
EVALUATIONS = 12
"""Looks at the validation episodes during a training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationOptions:
    """What is left open of the study."""

    family: str = "rlmetadqn"
    reward: str = "mixed"
    seeds: int = 5
    """Trainings of each variant."""
    steps: int | None = None
    """Environment steps of a training; by default what the learner's settings say."""
    test_seeds: int = 4
    """Workloads drawn from every regime for the evaluation."""
    variants: tuple[str, ...] = ()
    """Only these besides the whole; empty: all."""
    tables: Mapping[str, Any] | None = None
    """Changes of all trainings, as `train --config` takes them."""

    def __post_init__(self) -> None:
        from yardmaster.envs.choosing.rewards import choosing_reward_of

        if self.family not in TASK_OF_FAMILY:
            raise unknown("family to ablate on", self.family, TASK_OF_FAMILY)
        choosing_reward_of(self.reward)
        for name in ("seeds", "test_seeds"):
            if getattr(self, name) < 1:
                raise YardmasterError(f"{name} must be at least 1, got {getattr(self, name)}.")


@dataclass(frozen=True, slots=True)
class AblationResult:
    """What came of an ablation."""

    folder: Path
    trainings: TrainingsResult
    runs: SuiteResult | None
    """The evaluation; None if somebody asked to stop before it, or only an estimate was wanted."""
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything was tried."""
        return self.trainings.is_complete and self.runs is not None and self.runs.is_complete


def variants_of(task: ChoosingTask) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """Return what differs in each variant as tables, and notes on those that make no sense.

    Args:
        task: what the whole is trained on.
    """
    weights = dict(_weights(task))
    found: dict[str, dict[str, Any]] = {
        WHOLE: {},
        "no regime embedding": {"task": {"past": 0}, "learner": {"network": {"arch": "mlp"}}},
        "no replay balancing": {"learner": {"balanced": False}},
        "no target network": {"learner": {"target_network": False}},
        "no job ages": {"task": {"ages": False}},
    }
    notes = []
    for name, term in (("no deadline penalty", "late"), ("no energy term", "energy")):
        if weights.get(term):
            rest = {key: weight for key, weight in weights.items() if key != term}
            found[name] = {"task": {"reward": rest}}
        else:
            notes.append(f"{name} is left out: the reward has no term {term!r} to begin with.")
    too_many = _why_not_told(task)
    if too_many is None:
        found["labels given"] = {"task": {"labelled": True}}
    else:
        notes.append(f"labels given is left out: {too_many}")
    return found, tuple(notes)


def _weights(task: ChoosingTask) -> Mapping[str, float]:
    from yardmaster.envs.choosing.rewards import choosing_reward_of

    return choosing_reward_of(task.reward).weights


def _why_not_told(task: ChoosingTask) -> str | None:
    """Return why a chooser cannot be told the labels of all regimes; None if it can."""
    from yardmaster.envs.choosing.episodes import ChoosingEpisodes

    try:
        ChoosingEpisodes(task.changed(labelled=True), "val")
    except YardmasterError as error:
        return str(error)
    return None


def ablation_plan(folder: Path, options: AblationOptions) -> tuple[Plan, tuple[str, ...]]:
    """Return the trainings of an ablation, and notes on what is left out.

    Raises:
        YardmasterError: if the options make no sense.
    """
    base = _base(options)
    layers = [Layer(base, "the ablation"), Layer(options.tables or {}, "the configuration")]
    whole = config_from(layers)
    found, notes = variants_of(_choosing_task(whole))
    for name in options.variants:
        if name not in found:
            why_not = [note for note in notes if note.startswith(f"{name} is left out")]
            raise YardmasterError(why_not[0]) if why_not else unknown("variant", name, found)
    kept = {
        name: tables
        for name, tables in found.items()
        if name == WHOLE or not options.variants or name in options.variants
    }
    # Each variant changes the resolved configuration: the reward's weights as they were.
    plan = Plan(folder, tuple(trainings_of(kept, range(options.seeds), layers)))
    return plan, () if options.variants else notes


def _base(options: AblationOptions) -> dict[str, Any]:
    train: dict[str, Any] = {
        "metric": METRIC_OF_REWARD.get(options.reward, "returns"),
        "against": [],
        "threads": 1,
        "tensorboard": False,
    }
    task = {"preset": TASK_OF_FAMILY[options.family], "reward": options.reward}
    usual = config_from([Layer({"task": task}, "the ablation")]).train.steps
    steps = options.steps or usual
    train |= {"steps": steps, "eval_every": max(steps // EVALUATIONS, 1)}
    return {"task": task, "learner": {"name": "meta-dqn"}, "train": train}


def _choosing_task(config: TrainConfig) -> ChoosingTask:
    return cast("ChoosingTask", config.task)


def ablation_suite(plan: Plan, test_seeds: int) -> Suite:
    """Return the experiment in which all choosers of a plan are tried."""
    from yardmaster.envs.episodes import FIRST_SEED

    task = _choosing_task(plan.trainings[0].config)
    choosers = [scheduler_of(plan, one) for one in plan.trainings]
    return Suite(
        name="ablation",
        description="MetaDQN, and MetaDQN without one of its parts, each trained several times",
        schedulers=(*task.sight.menu, *choosers),
        seeds=test_seeds,
        first_seed=FIRST_SEED["report"],  # which no training draws from
        objectives=OBJECTIVES,
        regimes=tuple(_tables(task)),
    )


def _tables(task: ChoosingTask) -> Iterator[Regimes]:
    from yardmaster.workloads.regimes import regimes

    for family in task.families:
        names = tuple(one.name for one in regimes(family) if one.name in task.regimes)
        if names or not task.regimes:
            yield Regimes(family=family, names=names or None)


def scheduler_of(plan: Plan, training: Training) -> str:
    """Return the chooser of a training in the scheduler language."""
    return f"{META_PREFIX}{plan.path(training).resolve()}"


def described(plan: Plan) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return what adds `variant` and `training_seed` to a table of results.

    Choosers are called after their training there, wherever the folder lies.
    """
    known = {scheduler_of(plan, one): one for one in plan.trainings}

    def more(table: pl.DataFrame) -> pl.DataFrame:
        import polars as pl

        found = [known.get(name) for name in table["scheduler"].to_list()]
        names = [
            name if one is None else f"{META_PREFIX}{one.name}"
            for name, one in zip(table["scheduler"].to_list(), found, strict=True)
        ]
        variants = [None if one is None else one.variant for one in found]
        seeds = [None if one is None else one.seed for one in found]
        place = table.columns.index("seed") + 1
        table = table.with_columns(pl.Series("scheduler", names, dtype=pl.String))
        table = table.insert_column(place, pl.Series("variant", variants, dtype=pl.String))
        return table.insert_column(place + 1, pl.Series("training_seed", seeds, dtype=pl.Int64))

    return more


def run_ablation(
    folder: Path,
    options: AblationOptions,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    only_estimate: bool = False,
    announce: Announce | None = None,
    progress: Progress | None = None,
    run_progress: Progress | None = None,
) -> AblationResult:
    """Train every variant that the folder does not hold yet, and try all of them.

    Args:
        folder: where the study lives; one that was interrupted goes on.
        options: what is left open.
        workers: processes; by default one for each processor.
        overwrite: take the place of another study in the folder.
        only_estimate: say what there is to do and how long it will take, and do no more.
        announce: told in sentences what happens.
        progress: told how many environment steps of the trainings are done.
        run_progress: told how many runs of the evaluation are made.

    Raises:
        YardmasterError: if a name is unknown, or the folder holds something else.
    """
    refuse_dry_overwrite(overwrite=overwrite, only_estimate=only_estimate)
    say = announce or (lambda _news: None)
    plan, notes = ablation_plan(folder, options)
    for note in notes:
        say(note)
    suite = ablation_suite(plan, options.test_seeds)
    count = workers or len(os.sched_getaffinity(0))
    trained = _trained(
        plan, suite, count, say, progress, overwrite=overwrite, only_estimate=only_estimate
    )
    lost = {name for name, _ in trained.failures}
    left = tuple(one for one in plan.trainings if one.name not in lost)
    if only_estimate or not trained.is_complete or not left:
        return AblationResult(folder, trained, None, notes)
    runs = run_suite(
        ablation_suite(Plan(folder, left), options.test_seeds),
        folder,
        workers=workers,
        overwrite=True,  # whether the folder is ours was looked at before the trainings
        announce=announce,
        progress=run_progress,
        described=described(plan),
    )
    return AblationResult(folder, trained, runs, notes)


def _trained(
    plan: Plan,
    suite: Suite,
    workers: int,
    say: Announce,
    progress: Progress | None,
    *,
    overwrite: bool,
    only_estimate: bool,
) -> TrainingsResult:
    """Carry out the trainings in the folder of the experiment, which nobody else may use."""
    place = SuiteFolder(plan.folder)
    with place.held(), asked_to_stop(say, work="the updates under way") as is_stopped:
        plan.refuse_others(overwrite=overwrite)
        place.take_up(suite, overwrite=overwrite or _differs_in_choosers_only(place, suite))
        plan.take_up()
        expected_s = estimate(plan, workers, say)
        if only_estimate:
            return only_expected(plan, expected_s)
        return train_all(
            plan,
            workers=workers,
            is_stopped=is_stopped,
            announce=say,
            progress=progress,
            estimate_s=expected_s,
        )


def _differs_in_choosers_only(place: SuiteFolder, suite: Suite) -> bool:
    """Whether the experiment in a folder is this one, but for trainings that had failed."""
    if not place.document.is_file():
        return False
    return place.suite().with_changes(schedulers=suite.schedulers) == suite
