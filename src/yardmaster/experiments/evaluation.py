"""Judging trained policies: the same episodes for every player, whoever they are.

Policies and schedulers play the first episodes of each set (`val`, `report`); the sets share
nothing with each other or with what policies were trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.envs.episodes import FIRST_SEED, Episodes, Split
from yardmaster.envs.rewards import reward_of
from yardmaster.envs.task import TASKS, Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.contest import MEANS_OVER_FINISHED, Contest, Entry
from yardmaster.experiments.players import How, Policy, played, player_of, simulated, skipping
from yardmaster.experiments.training.about import provenance
from yardmaster.experiments.training.evaluation import (
    HIGHER_IS_BETTER,
    WELL_KNOWN,
    Scores,
    default_opponents,
)
from yardmaster.experiments.training.folder import write_json
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import IntArray, Workload
from yardmaster.names import unknown

Progress = Callable[[str, int, int], None]
"""(who plays now, players done, players in all)."""

SPLITS: tuple[Split, ...] = ("val", "report")
RESULTS = ("evaluation.json", "episodes.parquet", "evaluation.svg")
"""Files of a folder with results."""


def task_of(policies: Sequence[Policy], changes: Mapping[str, Any]) -> Task:
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
    return trained_on[0].changed(**values)


def evaluate(
    policies: Sequence[Policy],
    task: Task,
    *,
    against: Sequence[str] | None = None,
    splits: Sequence[str] = SPLITS,
    episodes: int = 60,
    metric: str = "returns",
    size: int = 64,
    progress: Progress | None = None,
) -> Contest:
    """Let policies and schedulers play the same episodes.

    Args:
        policies: at least one.
        task: what is played; each policy sees it as it was trained to, schedulers as the first one.
        against: schedulers by name; by default the well-known ones.
        splits: sets of episodes: `val`, `report` (or `train`).
        episodes: how many of each set.
        metric: what players are judged by.
        size: environments at a time.
        progress: told who plays.

    Raises:
        YardmasterError: if a name is unknown, or a player cannot play the task.
    """
    _refuse(policies, splits, episodes, metric)
    boards = [
        _Board(task, policies[0].sight, cast("Split", split), episodes, size) for split in splits
    ]
    names = _opponents(against, boards[0].episodes.task, metric)
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
    return replace(contest, notes=_notes(contest, policies, task))


def _refuse(policies: Sequence[Policy], splits: Sequence[str], episodes: int, metric: str) -> None:
    """Complain, before anybody plays, about what makes no sense."""
    if not policies:
        raise YardmasterError("There is no policy to evaluate: name a run folder or a file.")
    if episodes < 1:
        raise YardmasterError(f"episodes must be at least 1, got {episodes}.")
    if metric not in HIGHER_IS_BETTER:
        raise unknown("metric", metric, HIGHER_IS_BETTER)
    if not splits:
        raise YardmasterError("There is no set of episodes to play: name val, report or both.")
    for split in splits:
        if split not in FIRST_SEED:
            raise unknown("set of episodes", split, FIRST_SEED)


class _Board:
    """One set of episodes, as each player sees it."""

    def __init__(self, task: Task, sight: Sight, split: Split, count: int, size: int) -> None:
        self.task = task
        self.split: Split = split
        self.count = count
        self.size = size
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


def _opponents(against: Sequence[str] | None, task: Task, metric: str) -> list[str]:
    """Return the schedulers to play; all names are checked before anybody does."""
    if against is None:
        against = default_opponents(task) if metric == "returns" else WELL_KNOWN
    names = list(dict.fromkeys(against))
    for name in names:
        skipping(name)
    return names


def _policy(policy: Policy, boards: Sequence[_Board]) -> Entry:
    scores: dict[str, Scores] = {
        board.split: played(policy.choose, board.seen(policy.sight), board.count, size=board.size)
        for board in boards
    }
    return Entry(policy.name, "policy", policy.information.value, scores)


def _opponent(name: str, boards: Sequence[_Board]) -> Entry:
    """Let a scheduler play every set, in the environment if it can."""
    scheduler = skipping(name)
    # Every set has a player of its own: dice must not depend on what was played before.
    players = [player_of(name, board.episodes) for board in boards]
    scores: dict[str, Scores] = {
        board.split: simulated(scheduler, board.episodes, board.count)
        if player is None
        else played(player, board.episodes, board.count, size=board.size)
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
    from yardmaster.workloads.sources import is_generated

    source = episodes.task.workload
    if not isinstance(source, Workload) and is_generated(source):
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


def words_of(task: Task) -> str:
    """Say which jobs are scheduled on which cluster."""
    jobs = task.workload.name if isinstance(task.workload, Workload) else task.workload
    cluster = task.cluster.name if isinstance(task.cluster, Cluster) else task.cluster
    load = "" if task.load is None else f" at load {task.load:g}"
    return f"{task.jobs} jobs of {jobs}{load} on {cluster}"


def _notes(contest: Contest, policies: Sequence[Policy], task: Task) -> tuple[str, ...]:
    notes = []
    for split, units in contest.units.items():
        if (count := int(units.max()) + 1) < contest.episodes:
            notes.append(
                f"the {contest.episodes} windows of {split} overlap; intervals are over {count}"
                " units of windows that mostly share jobs with each other"
            )
    played_here = _jobs(task)
    others = [one.name for one in policies if one.task and _jobs(one.task) != played_here]
    if others:
        notes.append(f"{', '.join(others)} was trained on other jobs or machines")
    if contest.metric == "returns" and any(entry.how == "simulated" for entry in contest.entries):
        notes.append("what is simulated outside the environment has no returns")
    if contest.metric in MEANS_OVER_FINISHED:
        left = [e.name for e in contest.entries if any(map(e.left_jobs, contest.splits))]
        if left:
            notes.append(
                f"{', '.join(left)} left jobs unfinished; {contest.metric} covers finished jobs"
                " only, so there is no verdict"
            )
    return tuple(notes)


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
