"""What is usual in a scene: what terms of rewards come to there under the best of some heuristics.

An hour of waiting is much in one scene and little in another. Divided by what is usual, terms are
worth the same everywhere, and no scene drowns the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from yardmaster.engine.compilation import compile_core
from yardmaster.engine.drawing.jobs import scene_of
from yardmaster.engine.picking.places import Score
from yardmaster.envs.episodes import score_of
from yardmaster.envs.rewards import Reward, reward_of
from yardmaster.envs.scenes import SceneRows, SceneTask, drawn, workload_of
from yardmaster.errors import YardmasterError
from yardmaster.metrics import per_job
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.simulation import simulate

RIVALS: Mapping[str, tuple[str, ...]] = {
    "clairvoyant": ("sjf+easy", "saf+easy", "sjf+skip", "saf+strict"),
    "estimate": tuple(
        f"{name}~estimate" for name in ("sjf+easy", "saf+easy", "sjf+skip", "saf+strict")
    ),
    "blind": ("fifo+skip", "lifo+skip", "smallest-first+skip", "slurm-multifactor+skip"),
}
"""What is known of run times → heuristics the best of which says what is usual."""
USUAL_WINDOWS = 12
"""Training windows of each scene that they play for that."""
MOST_DRAWN = 100_000
"""Episodes looked at for these windows; scenes that lack some are then asked for theirs."""
GAP = "gap_s"
"""Seconds between two submissions: what counts as one where the future is discounted."""


class Told(NamedTuple):
    """What a schedule tells; times are in the reward's unit."""

    schedule: Schedule
    waits: FloatArray
    stays: FloatArray
    """From submission to end."""
    busy: float
    """Time that all GPUs together would need for the work."""
    span: float
    """From the first submission to the last end."""

    @classmethod
    def of(cls, schedule: Schedule, unit_s: float) -> Told:
        """Read a schedule."""
        jobs = schedule.workload
        span_s = float(np.nanmax(schedule.end_s)) - float(jobs.submit_s[0])
        return cls(
            schedule,
            per_job.wait_s(schedule) / unit_s,
            per_job.jct_s(schedule) / unit_s,
            jobs.work_gpu_s / schedule.cluster.gpus / unit_s,
            span_s / unit_s,
        )


TERMS: Mapping[str, Callable[[Told], float]] = {
    "bounded_slowdown": lambda told: score_of(told.schedule, Score.BOUNDED_SLOWDOWN) - 1.0,
    "waiting": lambda told: told.waits.mean(),
    "queue_wait": lambda told: (told.waits**2).sum() / 2.0,
    "slowdown": lambda told: score_of(told.schedule, Score.SLOWDOWN) - 1.0,
    "in_system": lambda told: told.stays.mean(),
    "crowd": lambda told: told.stays.sum(),
    "busy": lambda told: told.busy,
    "idle": lambda told: told.span - told.busy,
}
"""Terms that differ from scene to scene, and what a schedule makes of each."""
COMMON = ("bounded_slowdown", "waiting", "queue_wait")
"""Those asked for where no reward says which."""
_LEAST: Mapping[str, tuple[float, int]] = {
    "bounded_slowdown": (0.05, 0),
    "slowdown": (0.05, 0),
    "queue_wait": (64_800.0, 2),
}
"""What is usual where hardly anybody waits, in seconds to this power; else 30 seconds."""
SCALELESS = ("finished", "work_done", "held_back", "invalid")
"""Terms that are shares, or counts of mistakes: the same everywhere."""


def refuse_unscaled(reward: Reward) -> None:
    """Complain about terms that scenes do not have, or that cannot be made alike.

    Raises:
        YardmasterError: naming the terms, and those there are.
    """
    known = (*TERMS, *SCALELESS)
    bad = [term for term, weight in reward.weights.items() if weight and term not in known]
    if bad:
        raise YardmasterError(
            f"reward: scenes have no {', '.join(bad)}; terms there are: {', '.join(known)}."
        )


def with_usual(
    task: SceneTask, rows: SceneRows, announce: Callable[[str], None] | None = None
) -> tuple[dict[str, dict[str, float]], FloatArray]:
    """Return what the terms of a task's reward come to in each scene, and each scene's gap.

    The gap is the mean time between two submissions, seconds. `announce` is told when the core must
    be compiled first.
    """
    compile_core(announce)
    reward = reward_of(task.reward)
    terms = [term for term, weight in reward.weights.items() if weight and term in TERMS]
    rivals = RIVALS[task.sight.information]
    found = usual_terms(task, rows, rivals, terms, unit_of(task))
    gaps = np.array([max(of_scene.pop(GAP), 1e-9) for of_scene in found.values()])
    return found, gaps


def unit_of(task: SceneTask) -> float:
    """Return the seconds that a task's terms in time are measured in."""
    return reward_of(task.reward).unit_s or task.sight.time_unit_s


def quiet_scenes(task: SceneTask) -> list[str]:
    """Return the scenes in which hardly anybody waits, whoever schedules: they teach nothing."""
    unit_s = unit_of(task)
    return [
        scene
        for scene, terms in task.usual.items()
        if terms and all(value <= _least(term, unit_s) for term, value in terms.items())
    ]


def usual_terms(
    task: SceneTask,
    rows: SceneRows,
    rivals: Sequence[str],
    terms: Iterable[str] = COMMON,
    unit_s: float = 3600.0,
) -> dict[str, dict[str, float]]:
    """Return what terms of rewards come to in each scene under the best heuristic for each.

    Args:
        task: the scenes.
        rows: the same, laid out.
        rivals: the heuristics.
        terms: names of `TERMS`.
        unit_s: seconds that terms in time are measured in.
    """
    windows: dict[int, list[Workload]] = {scene: [] for scene in range(len(rows.names))}
    number = 0
    while min(map(len, windows.values())) < USUAL_WINDOWS:
        scene = scene_of(number, rows.reals, len(rows.names))
        if number >= MOST_DRAWN:  # one that hardly ever comes up would be waited for in vain
            scene = min(windows, key=lambda one: len(windows[one]))
        if len(windows[scene]) < USUAL_WINDOWS:
            one = drawn(rows, task.rules(), number, scene)
            windows[scene].append(workload_of(one.ints, one.reals))
        number += 1
    asked = tuple(terms)
    return {
        rows.names[scene]: _usual(found, task.scenes[scene].machines(), rivals, asked, unit_s)
        for scene, found in windows.items()
    }


def _usual(
    windows: list[Workload],
    cluster: Cluster,
    rivals: Sequence[str],
    terms: Sequence[str],
    unit_s: float,
) -> dict[str, float]:
    found: dict[str, list[float]] = {term: [] for term in terms}
    for rival in rivals:
        schedules = [simulate(window, cluster, rival, compile_core="always") for window in windows]
        told = [Told.of(schedule, unit_s) for schedule in schedules]
        for term in terms:
            found[term].append(float(np.mean([TERMS[term](one) for one in told])))
    usual = {term: max(min(values), _least(term, unit_s)) for term, values in found.items()}
    gaps = [np.diff(window.submit_s).mean() for window in windows]
    return usual | {GAP: float(np.mean(gaps))}


def _least(term: str, unit_s: float) -> float:
    """Return what is usual of a term at least: division by hardly anything would make it huge."""
    least, power = _LEAST.get(term, (30.0, 1))
    return float(least / unit_s**power)
