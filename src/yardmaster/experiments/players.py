"""Who plays episodes: trained policies from their files, and schedulers by name.

A scheduler plays in the environment, with the same window and the same choices as the policies,
where it can; where it does more than pick jobs it is simulated on the same jobs, without any
window. Both are scored by the same definitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking import compilation
from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.places import Score
from yardmaster.engine.picking.sight import Sight
from yardmaster.engine.state import Discipline
from yardmaster.envs.batch import EnvironmentBatch, open_batch
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Episodes, score_of
from yardmaster.envs.experts import Expert, expert
from yardmaster.envs.playing import Choose, play
from yardmaster.envs.scene_mix import SceneMix
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER, Scores
from yardmaster.experiments.training.folder import RunFolder
from yardmaster.metrics.per_job import is_finished
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.schedulers.language import (
    POLICY_PREFIX,
    Scheduler,
    parse_scheduler,
    policy_path,
)
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import Information
from yardmaster.workloads.files import missing

if TYPE_CHECKING:
    from yardmaster.schedulers.learned.policy import LearnedPolicy

How = Literal["policy", "played", "simulated"]
"""A policy in the environment, a heuristic in the environment, a scheduler without one."""

Announce = Callable[[str], None]
"""Told when something must be compiled first."""

COMPILE_ABOVE_JOBS = 10_000
"""Above this many jobs in all, loading the compiled core pays."""

_INFORMATION = {
    "clairvoyant": Information.CLAIRVOYANT,
    "estimate": Information.ESTIMATE_BASED,
    "blind": Information.BLIND,
}


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A trained policy, ready to play greedily."""

    name: str
    sight: Sight
    """What it was trained to see; its time unit is that of the training episodes."""
    choose: Choose
    task: Task | SceneMix | None = None
    """What it was trained on, where its file says so."""

    @property
    def information(self) -> Information:
        """What it knows of run times before jobs have run."""
        return _INFORMATION[self.sight.information]


def read_policy(path: Path) -> Policy:
    """Read a policy: the folder of a training run (its best), a checkpoint, or a policy file.

    `policy:NAME` stands for one that comes with Yardmaster.

    Raises:
        YardmasterError: if there is none, or it cannot be used.
    """
    if str(path).startswith(POLICY_PREFIX):
        return replace(_of_file(policy_path(str(path).removeprefix(POLICY_PREFIX))), name=str(path))
    if path.is_dir():
        folder = RunFolder(path)
        folder.refuse_if_not_run()
        if not folder.best.is_file():
            raise YardmasterError(f"{path} has no best policy yet: it was never evaluated.")
        return replace(_of_checkpoint(folder.best), name=path.resolve().name)
    if not path.exists():
        raise missing(path)
    if path.suffix == ".pt":
        return _of_checkpoint(path)
    if path.suffix == ".npz":
        return _of_file(path)
    raise YardmasterError(
        f"{path} is no policy: name the folder of a training run, a checkpoint (.pt) or a policy"
        " file (.npz)."
    )


def _name(path: Path) -> str:
    """Return what to call a policy in a file: with its run, if it lies in the folder of one."""
    parents = [parent for parent in path.resolve().parents if RunFolder(parent).is_run()]
    return f"{parents[0].name}/{path.stem}" if parents else path.stem


def _of_checkpoint(path: Path) -> Policy:
    from yardmaster.agents.checkpoint import CheckpointError, read_checkpoint
    from yardmaster.agents.learners import LEARNERS, greedy
    from yardmaster.experiments.training.config import Layer, config_from

    checkpoint = read_checkpoint(path)
    config = config_from([Layer(checkpoint.config, str(path))])
    if isinstance(config.task, ChoosingTask):
        raise _chooses(path.parents[1] if path.parent.name == "checkpoints" else path)
    # Of scenes only what is seen matters here; their files may be gone.
    is_many = isinstance(config.task, SceneMix)
    seen = Task(load=1.0, sight=config.task.sight, measured_unit=False) if is_many else config.task
    batch = open_batch(cast("Task", seen), size=1, compiled=False)
    learner = LEARNERS[checkpoint.learner].build(batch, config.settings, config.train.seed)
    try:
        learner.network.load_state_dict(checkpoint.state["network"])
    except (KeyError, RuntimeError):  # torch lists every weight
        raise CheckpointError(
            f"{path}: its weights do not fit its network; another version may have written it."
        ) from None
    return Policy(_name(path), batch.task.sight, greedy(learner.network), config.task)


def _of_file(path: Path) -> Policy:
    from yardmaster.schedulers.learned.policy import load_policy
    from yardmaster.schedulers.learned.weights_file import PolicyFileError

    try:
        policy = load_policy(path)
    except PolicyFileError:
        if _is_chooser(path):
            raise _chooses(path) from None
        raise
    return Policy(
        _name(path), policy.sight, compiled_choice(policy), _trained_on(policy.file.about)
    )


def _trained_on(about: Mapping[str, Any]) -> Task | SceneMix | None:
    table, scenes = about.get("task"), about.get("scenes")
    if not isinstance(table, dict):
        return None
    return SceneMix.from_tables(table, scenes) if scenes else Task.from_table(table)


def _is_chooser(path: Path) -> bool:
    from yardmaster.schedulers.meta.chooser_file import read_chooser

    with suppress(YardmasterError):
        read_chooser(path)
        return True
    return False


def _chooses(path: Path) -> YardmasterError:
    return YardmasterError(
        f"{path} chooses schedulers and plays no episodes of picking jobs. It is a scheduler"
        f" itself: yardmaster compare --schedulers srpt+skip,meta:{path}, or `yardmaster experiment"
        f" run` with meta:{path} among the schedulers."
    )


def compiled_choice(policy: LearnedPolicy, *, compiled: bool = True) -> Choose:
    """Return a policy file's greedy choice, by the forward pass that replays use."""
    scores = np.zeros(policy.sight.layout().actions, dtype=np.float32)
    scratch = np.zeros(policy.scratch, dtype=np.float32)

    def choose(batch: EnvironmentBatch) -> npt.NDArray[np.int64]:
        is_real = batch.episodes.prepared(0).is_real
        picking = compilation.compiled(is_real=is_real) if compiled else compilation.plain()
        actions = np.zeros(batch.size, dtype=np.int64)
        legal = batch.masks.view(np.int8)
        for row in range(batch.size):
            picking.score_one(
                policy.net, policy.weights, batch.observations[row], legal[row], scores, scratch
            )
            actions[row] = scores.argmax()
        return actions

    return choose


def skipping(name: str) -> Scheduler:
    """Read a scheduler; one named by its order alone passes over jobs that do not fit.

    Raises:
        YardmasterError: if the name makes no sense.
    """
    scheduler = parse_scheduler(name)
    if "+" not in name and scheduler.discipline is Discipline.STRICT:
        return replace(scheduler, discipline=Discipline.SKIP)
    return scheduler


def player_of(name: str, episodes: Episodes) -> Expert | None:
    """Return a scheduler as a player of these episodes; None if it must be simulated.

    It plays only where what it would do is always among the actions: it has the task's placement,
    looks at nothing but the present, and is allowed to wait whenever it wants to.
    """
    scheduler, task = skipping(name), episodes.task
    sight = task.sight
    if scheduler.policy is not None or scheduler.placement.name.lower() != sight.placement:
        return None
    waits = scheduler.discipline is not Discipline.SKIP
    sees_head = sight.noop == "when_blocked" and sight.window_order == scheduler.order.name
    if waits and not (sight.noop == "always" or sees_head):
        return None
    try:
        player = expert(str(scheduler), task)
        trial = EnvironmentBatch(episodes, 1, compiled=False)
        trial.begin(np.zeros(1, dtype=np.int64))
        player(trial)
    except YardmasterError:
        return None
    return player


def played(
    choose: Choose,
    episodes: Episodes,
    count: int,
    *,
    size: int = 64,
    announce: Announce | None = None,
) -> Scores:
    """Play the first episodes of a set in the environment."""
    found = play(
        episodes.task,
        choose,
        split=episodes.split,
        episodes=count,
        size=size,
        prepared=episodes,
        announce=announce,
    )
    return {name: np.asarray(getattr(found, name), dtype=np.float64) for name in HIGHER_IS_BETTER}


def simulated(
    scheduler: Scheduler, episodes: Episodes, count: int, *, announce: Announce | None = None
) -> Scores:
    """Simulate a scheduler on the jobs of the first episodes of a set; it has no returns.

    An episode is cut where the environment cuts it by time; a limit on decisions has no meaning.
    """
    many = count * episodes.task.jobs > COMPILE_ABOVE_JOBS
    rows = []
    for number in range(count):
        # An episode is over at its horizon, and what happens in that very second is not seen.
        horizon_s = float(episodes.prepared(number).facts[at.HORIZON_S])
        schedule = simulate(
            episodes.workload(number),
            episodes.cluster,
            scheduler,
            seed=number,
            until_s=math.nextafter(horizon_s, 0.0) if math.isfinite(horizon_s) else math.inf,
            compile_core="always" if many else "auto",
            announce=announce,
        )
        rows.append(_scores(schedule))
    return {
        name: np.array([row[name] for row in rows], dtype=np.float64) for name in HIGHER_IS_BETTER
    }


def _scores(schedule: Schedule) -> dict[str, Any]:
    """Return the metrics of one episode, by the definitions of `envs.playing.Played`."""
    finished = is_finished(schedule)
    has_any = bool(finished.any())
    scored = {
        "wait_s": Score.WAIT,
        "jct_s": Score.TURNAROUND,
        "bounded_slowdown": Score.BOUNDED_SLOWDOWN,
        "slowdown": Score.SLOWDOWN,
        "utilisation": Score.UTILISATION,
    }
    row = {name: score_of(schedule, score) if has_any else 0.0 for name, score in scored.items()}
    last_s = float(schedule.end_s[finished].max()) if has_any else 0.0
    unfinished = int(np.sum(~finished & (schedule.outcome != Outcome.UNPLACEABLE)))
    return row | {"returns": math.nan, "makespan_s": last_s, "unfinished": unfinished}
