"""Judging trained policies: the same episodes for every player, whoever they are.

Policies and schedulers play the first episodes of each set (`val`, `report`); the sets share
nothing with each other or with what policies were trained on. Of a file that no policy was trained
on, the whole is one set: `all`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.envs.episodes import PARTS, Episodes, Split
from yardmaster.envs.rewards import reward_of
from yardmaster.envs.scene_mix import Place, SceneMix
from yardmaster.envs.task import TASKS, Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.contest import (
    LEAST_UNITS,
    MEANS_OVER_FINISHED,
    Contest,
    Entry,
)
from yardmaster.experiments.players import (
    Announce,
    How,
    Policy,
    played,
    player_of,
    simulated,
    skipping,
)
from yardmaster.experiments.training.about import provenance
from yardmaster.experiments.training.evaluation import (
    HIGHER_IS_BETTER,
    WELL_KNOWN,
    Choose,
    Scores,
    default_opponents,
)
from yardmaster.experiments.training.folder import write_json
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import IntArray, Workload
from yardmaster.names import unknown

if TYPE_CHECKING:
    from yardmaster.envs.scene_parts import LaidOutScenes

Progress = Callable[[str, int, int], None]
"""(who plays now, players done, players in all)."""

SPLITS: tuple[Split, ...] = ("val", "report")
METRIC_OF_REWARD = {"jct": "jct_s", "bounded_slowdown": "bounded_slowdown"}
"""What players without returns are judged by; `wait_s` for every other reward."""
RESULTS = ("evaluation.json", "episodes.parquet", "evaluation.svg")
"""Files of a folder with results."""


def task_of(policies: Sequence[Policy], changes: Mapping[str, Any]) -> Task | SceneMix:
    """Return what to play: the first policy's own task or a named one, with some values changed.

    Args:
        policies: who plays; what they see stays what they were trained to see.
        changes: settings of a `Task`; `task` names a ready one.

    Raises:
        YardmasterError: if no task is named and no policy says what it was trained on.
    """
    values = dict(changes)
    if "task" in values:
        if values["task"] in CHOOSING_TASKS:
            raise YardmasterError(
                f"{values['task']} is a task of choosing schedulers; `evaluate` is about picking"
                " jobs. Choosers are schedulers: compare them as meta:PATH."
            )
        return TASKS[values.pop("task")].changed(**values)
    trained_on = [policy.task for policy in policies if policy.task is not None]
    if not trained_on:
        raise YardmasterError(
            f"{policies[0].name} does not say what it was trained on; name a task with --task."
        )
    own = trained_on[0]
    if isinstance(own, SceneMix) and not values.keys() <= {"jobs", "reward"}:
        if not {"workload", "cluster"} <= values.keys():
            raise YardmasterError(
                f"{policies[0].name} was trained on {own.words()}. To play something else, name"
                " --workload and --cluster both."
            )
        load = None if _is_file(values["workload"]) else 1.0
        own = own.task_at(own.places[0]).changed(load=load)
    return own.changed(**values)


def _is_file(workload: str) -> bool:
    from yardmaster.workloads.sources import is_generated

    return not is_generated(workload)


def evaluate(
    policies: Sequence[Policy],
    task: Task | SceneMix,
    *,
    against: Sequence[str] | None = None,
    splits: Sequence[str] | None = None,
    episodes: int = 60,
    metric: str | None = None,
    size: int = 64,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Contest:
    """Let policies and schedulers play the same episodes.

    Args:
        policies: at least one.
        task: what is played; each policy sees it as it was trained to, schedulers as the first one.
            Of scenes, each has sets of its own.
        against: schedulers by name; by default the well-known ones.
        splits: sets of episodes: `val`, `report`, `train`, `all`; see `sets_for`.
        episodes: how many of each set; of a whole file no more than it has.
        metric: what players are judged by; by default `returns`, or, where somebody has none, the
            metric that the reward is about.
        size: environments at a time.
        progress: told who plays.
        announce: told when something must be compiled first.

    Raises:
        YardmasterError: if a name is unknown, or a player cannot play the task.
    """
    _refuse(policies, splits, episodes, metric)
    splits = sets_for(policies, task) if splits is None else splits
    task, episodes, cut = _within_file(task, splits, episodes)
    boards = _boards(
        task,
        policies[0].sight,
        cast("Sequence[Split]", splits),
        count=episodes,
        size=size,
        announce=announce,
    )
    names = _opponents(against, boards[0].episodes.task, metric)
    metric = metric or _metric_for(names, boards[0])
    turns: list[tuple[str, Callable[[], Entry]]] = [
        *((policy.name, partial(_policy, policy, boards)) for policy in policies),
        *((name, partial(_opponent, name, boards)) for name in names),
    ]
    entries: list[Entry] = []
    for name, turn in turns:
        if progress is not None:
            progress(name, len(entries), len(turns))
        entries.append(turn())
    if progress is not None:
        progress("done", len(turns), len(turns))
    contest = Contest(
        task=words_of(task),
        metric=metric,
        episodes=episodes,
        units={board.split: units_of(board.episodes, episodes) for board in boards},
        entries=tuple(_told_apart(entries)),
    )
    return replace(contest, notes=(*cut, *_notes(contest, policies, task)))


def sets_for(policies: Sequence[Policy], task: Task | SceneMix) -> tuple[Split, ...]:
    """Return the sets to judge on: `val` and `report`, or all of a file nobody was trained on."""
    is_known = any(one.task is not None and _same_jobs(one.task, task) for one in policies)
    return SPLITS if is_known or _is_generated(task) else ("all",)


def tasks_in(task: Task | SceneMix) -> tuple[Task, ...]:
    """Return the tasks of scenes, one each; of a task itself."""
    if isinstance(task, SceneMix):
        return tuple(map(task.task_at, task.places))
    return (task,)


def _is_generated(task: Task | SceneMix) -> bool:
    """Whether there is no end of jobs; of scenes, in all of them."""
    return all(
        not isinstance(one.workload, Workload) and not _is_file(one.workload)
        for one in tasks_in(task)
    )


def _same_jobs(trained_on: Task | SceneMix, task: Task | SceneMix) -> bool:
    """Whether two tasks, or any two of their scenes, take their windows from the same trace."""
    return any(_same_trace(one, other) for one in tasks_in(trained_on) for other in tasks_in(task))


def _same_trace(trained_on: Task, task: Task) -> bool:
    """Whether two tasks take their windows from the same trace; in doubt they do."""
    mine, theirs = trained_on.workload, task.workload
    if isinstance(mine, Workload) or isinstance(theirs, Workload):
        return mine is theirs
    if _is_generated(trained_on) or _is_generated(task):
        return mine == theirs
    one, other = Path(mine), Path(theirs)
    if one.is_file() and other.is_file():
        return cmp(one, other, shallow=False)
    return one.name == other.name  # the file of then is gone, or not a file


def _within_file(
    task: Task | SceneMix, splits: Sequence[str], episodes: int
) -> tuple[Task | SceneMix, int, tuple[str, ...]]:
    """Return task and number of episodes as a whole file allows, and what was changed."""
    if isinstance(task, SceneMix) and "all" in splits:
        raise YardmasterError(
            "Of scenes a part was trained on: there is no `all` of them. Use val or report, or name"
            " --workload and --cluster."
        )
    if isinstance(task, SceneMix) or "all" not in splits or _is_generated(task):
        return task, episodes, ()
    from yardmaster.workloads.sources import load_workload

    source = task.workload
    jobs = len(source if isinstance(source, Workload) else load_workload(source))
    length = min(task.jobs, jobs)
    notes = [] if length == task.jobs else [f"the file has {jobs} jobs: it is one episode"]
    if tuple(splits) == ("all",):
        episodes = min(episodes, jobs - length + 1)
    return replace(task, jobs=length), episodes, tuple(notes)


def _metric_for(names: Sequence[str], board: _Board) -> str:
    """Return what everybody can be judged by: simulated schedulers have no returns."""
    if all(player_of(name, board.episodes) is not None for name in names):
        return "returns"
    reward = board.task.reward
    return METRIC_OF_REWARD.get(reward, "wait_s") if isinstance(reward, str) else "wait_s"


def _refuse(
    policies: Sequence[Policy], splits: Sequence[str] | None, episodes: int, metric: str | None
) -> None:
    """Complain, before anybody plays, about what makes no sense."""
    if not policies:
        raise YardmasterError("There is no policy to evaluate: name a run folder or a file.")
    if episodes < 1:
        raise YardmasterError(f"episodes must be at least 1, got {episodes}.")
    if metric is not None and metric not in HIGHER_IS_BETTER:
        raise unknown("metric", metric, HIGHER_IS_BETTER)
    if splits is None:
        return
    if not splits:
        raise YardmasterError("There is no set of episodes to play: name val, report or all.")
    for split in splits:
        if split not in PARTS:
            raise unknown("set of episodes", split, PARTS)


class _Board:
    """One set of episodes, as each player sees it."""

    def __init__(
        self,
        task: Task,
        sight: Sight,
        split: Split,
        *,
        count: int,
        size: int,
        announce: Announce | None,
    ) -> None:
        self.task = task
        self.split: Split = split
        self.count = count
        self.size = size
        self.announce = announce
        self.unit_s = sight.time_unit_s
        self._seen: dict[Sight, Episodes] = {}
        self.episodes = self.seen(sight)
        """As heuristics see them."""

    def seen(self, sight: Sight) -> Episodes:
        """Return the episodes under a sight; rewards are measured in the same unit under all."""
        if sight not in self._seen:
            reward = reward_of(self.task.reward)
            if reward.unit_s is None:
                reward = replace(reward, unit_s=self.unit_s)
            task = replace(self.task, sight=sight, measured_unit=False, reward=reward)
            self._seen[sight] = Episodes(task, self.split)
        return self._seen[sight]

    def played(self, choose: Choose, episodes: Episodes) -> Scores:
        """Let somebody play them."""
        return played(choose, episodes, self.count, size=self.size, announce=self.announce)


class _SceneBoard(_Board):
    """One set of episodes of one scene."""

    def __init__(
        self,
        scenes: LaidOutScenes,
        place: Place,
        sight: Sight,
        split: Split,
        *,
        count: int,
        size: int,
        announce: Announce | None,
    ) -> None:
        self._scenes, self._place, self._set = scenes, place, split
        task = scenes.mix.task_at(place)
        super().__init__(task, sight, split, count=count, size=size, announce=announce)
        self.split = cast("Split", f"{split} {place.name}")

    def seen(self, sight: Sight) -> Episodes:
        """Return the episodes under a sight; rewards are scaled alike under all."""
        if sight not in self._seen:
            found = self._scenes.held_out(self._place, self._set, sight)
            self._seen[sight] = cast("Episodes", found)  # as good as those
        return self._seen[sight]


def _boards(
    task: Task | SceneMix,
    sight: Sight,
    splits: Sequence[Split],
    *,
    count: int,
    size: int,
    announce: Announce | None,
) -> list[_Board]:
    if isinstance(task, Task):
        return [
            _Board(task, sight, split, count=count, size=size, announce=announce)
            for split in splits
        ]
    from yardmaster.envs.scene_parts import lay_out

    scenes = lay_out(task, announce)
    return [
        _SceneBoard(scenes, place, sight, split, count=count, size=size, announce=announce)
        for split in splits
        for place in task.places
    ]


def _opponents(against: Sequence[str] | None, task: Task, metric: str | None) -> list[str]:
    """Return the schedulers to play; all names are checked before anybody does."""
    if against is None:
        against = default_opponents(task) if metric in (None, "returns") else WELL_KNOWN
    names = list(dict.fromkeys(against))
    for name in names:
        skipping(name)
    return names


def _policy(policy: Policy, boards: Sequence[_Board]) -> Entry:
    scores: dict[str, Scores] = {
        board.split: board.played(policy.choose, board.seen(policy.sight)) for board in boards
    }
    return Entry(policy.name, "policy", policy.information.value, scores)


def _opponent(name: str, boards: Sequence[_Board]) -> Entry:
    """Let a scheduler play every set, in the environment if it can."""
    scheduler = skipping(name)
    # Every set has a player of its own: dice must not depend on what was played before.
    players = [player_of(name, board.episodes) for board in boards]
    scores: dict[str, Scores] = {
        board.split: simulated(scheduler, board.episodes, board.count, announce=board.announce)
        if player is None
        else board.played(player, board.episodes)
        for board, player in zip(boards, players, strict=True)
    }
    how: How = "simulated" if players[0] is None else "played"
    return Entry(str(scheduler), how, scheduler.information.value, scores)


def _told_apart(entries: Sequence[Entry]) -> list[Entry]:
    """Return players with names of their own."""
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        seen[entry.name] = seen.get(entry.name, 0) + 1
        number = seen[entry.name]
        found.append(entry if number == 1 else replace(entry, name=f"{entry.name} ({number})"))
    return found


def units_of(episodes: Episodes, count: int) -> IntArray:
    """Return which unit each of the first episodes belongs to.

    Generated episodes are a unit each. Of a trace's windows, one that shares no job with the first
    window of any unit begins a unit of its own; all others join the first unit they overlap.
    """
    if _is_generated(episodes.task):
        return np.arange(count)
    firsts: list[set[Any]] = []
    units = np.zeros(count, dtype=np.int64)
    for number in range(count):
        jobs = set(episodes.workload(number).id.tolist())
        shared = (unit for unit, window in enumerate(firsts) if not jobs.isdisjoint(window))
        units[number] = next(shared, len(firsts))
        if units[number] == len(firsts):
            firsts.append(jobs)
    return units


def words_of(task: Task | SceneMix) -> str:
    """Say which jobs are scheduled on which cluster."""
    if isinstance(task, SceneMix):
        return f"{task.jobs} jobs, one of {len(task.places)} scenes"
    jobs = task.workload.name if isinstance(task.workload, Workload) else task.workload
    cluster = task.cluster.name if isinstance(task.cluster, Cluster) else task.cluster
    load = "" if task.load is None else f" at load {task.load:g}"
    return f"{task.jobs} jobs of {jobs}{load} on {cluster}"


def _notes(contest: Contest, policies: Sequence[Policy], task: Task | SceneMix) -> tuple[str, ...]:
    notes = [
        f"the {contest.episodes} windows of {split} overlap; they make"
        f" {_counted(count, 'unit')} of windows that mostly share jobs with each other"
        for split in contest.splits
        if (count := contest.units_in(split)) < contest.episodes
    ]
    few = min(map(contest.units_in, contest.splits))
    if few < LEAST_UNITS:
        more = "more --episodes"
        if not _is_generated(task):
            more = "shorter episodes (--jobs) or a longer file"
        notes.append(
            f"{_counted(few, 'unit')}: too few for an interval, which needs {LEAST_UNITS}; {more}"
            " make more"
        )
    if "all" in contest.splits:
        known = [one.name for one in policies if one.task and _same_jobs(one.task, task)]
        if known:
            notes.append(
                f"{', '.join(known)} was trained on the first 60 % of these jobs and chosen on the"
                " next 20 %: on ALL it is no fair judgement, use report"
            )
    others = [one.name for one in policies if one.task and not _knows(one.task, task)]
    if others:
        notes.append(f"{', '.join(others)} was trained on other jobs or machines")
    outside = [entry.name for entry in contest.entries if entry.how == "simulated"]
    if outside and contest.metric == "returns":
        notes.append(
            "what is simulated outside the environment has no returns: for"
            f" {', '.join(outside)} use --metric wait_s"
        )
    if contest.metric in MEANS_OVER_FINISHED:
        left = [e.name for e in contest.entries if any(map(e.left_jobs, contest.splits))]
        if left:
            notes.append(
                f"{', '.join(left)} left jobs unfinished; {contest.metric} covers finished jobs"
                " only, so there is no verdict"
            )
    return tuple(notes)


def _counted(number: int, thing: str) -> str:
    """Write `1 unit`, `2 units`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _knows(trained_on: Task | SceneMix, task: Task | SceneMix) -> bool:
    """Whether all that is played was trained on; a load, if it lies in the range of a scene."""
    if isinstance(trained_on, SceneMix) and isinstance(task, Task):
        return any(
            _jobs(trained_on.task_at(place)) == _jobs(replace(task, load=None))
            and _is_within(task.load, place.load)
            for place in trained_on.places
        )
    return set(map(_jobs, tasks_in(task))) <= set(map(_jobs, tasks_in(trained_on)))


def _is_within(load: float | None, loads: tuple[float, float] | None) -> bool:
    """Whether a load is one that a scene draws; None are a trace's own times."""
    if load is None or loads is None:
        return load is None and loads is None
    return loads[0] <= load <= loads[1]


def _jobs(task: Task) -> tuple[Any, ...]:
    """Return what decides which episodes there are, and on what they run."""
    return task.workload, task.cluster, task.jobs, task.load


def refuse_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Complain, before the long work, about a folder that results cannot go to.

    Raises:
        YardmasterError: if it is a file, or holds anything but results that may be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise YardmasterError(f"Cannot write to {folder}: it is a file.")
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    is_ours = there <= set(RESULTS)
    if there and not (overwrite and is_ours):
        hint = " --overwrite replaces it." if is_ours else ""
        raise YardmasterError(f"{folder} is not empty; choose another place with --out.{hint}")


def write_contest(contest: Contest, folder: Path) -> None:
    """Write `evaluation.json`, and `episodes.parquet` with one row per player and episode."""
    import polars as pl

    folder.mkdir(parents=True, exist_ok=True)
    write_json(
        folder / "evaluation.json",
        provenance()
        | {
            "task": contest.task,
            "metric": contest.metric,
            "episodes": contest.episodes,
            "notes": list(contest.notes),
            "rows": [row for split in contest.splits for row in contest.records(split)],
        },
    )
    parts = [
        pl.DataFrame(dict(entry.scores[split])).with_columns(
            pl.lit(split).alias("set"),
            pl.lit(entry.name).alias("player"),
            pl.lit(entry.how).alias("how"),
            pl.lit(entry.information).alias("information"),
            pl.Series("episode", np.arange(contest.episodes)),
            pl.Series("unit", contest.units[split]),
        )
        for entry in contest.entries
        for split in contest.splits
    ]
    first = ["set", "player", "how", "information", "episode", "unit"]
    table = pl.concat(parts).select(*first, *HIGHER_IS_BETTER)
    table.write_parquet(folder / "episodes.parquet")
