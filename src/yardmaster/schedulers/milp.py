"""The `milp` placement: nodes for many waiting jobs at once, by integer programming (HiGHS).

A placement decides where jobs run, not who goes first. So a pass first finds who starts: going
through the waiting jobs in order, a job starts if *some* placement holds it together with all
those already chosen, whatever `pack` would have done. Weights cannot say that: for 64 jobs in
strict order they would span 2⁶⁴. Most of the time the pack rule finds such a placement; where it
does not, an integer program without an objective is asked. Then one more program finds the best
nodes for the jobs chosen (see `milp_model` for what best means).

Jobs are looked at in batches of those that could start by themselves. If a whole batch starts, the
next is decided on what it left; after the last, whoever still fits is placed by pack, in order.

Equal situations give equal plans, unless a pass hits its time limit. Then the plan is the best one
found so far, and depends on how fast the machine is; `notes` tells how often that happened. Speeds
of GPU types are not looked at, and a job that shares its GPU counts as one that needs all of it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from yardmaster.engine.decisions import Plan, Situation
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import IntArray
from yardmaster.schedulers.milp_model import Weights, place
from yardmaster.schedulers.milp_program import Status
from yardmaster.schedulers.milp_room import Room

BATCH = 64
TIME_LIMIT_S = 0.05


@dataclass(slots=True)
class Counts:
    """How the passes went in which somebody could start."""

    passes: int = 0
    optimal: int = 0
    """Every question was answered to the end."""
    limited: int = 0
    """Out of time, with plans that need not be the best or jobs that might have fitted."""
    fallbacks: int = 0
    """Out of time before there was any plan but that of the pack rule."""
    too_large: int = 0
    """Programs too large to be written down; by the pack rule as well."""
    seconds: list[float] = field(default_factory=list)
    """Real time of each pass."""

    @property
    def total_s(self) -> float:
        """Seconds of all passes together."""
        return sum(self.seconds)

    @property
    def median_s(self) -> float:
        """Seconds of the median pass; 0 if there was none."""
        return median(self.seconds) if self.seconds else 0.0


class MilpDecider:
    """Chooses nodes for a batch of waiting jobs at every pass; an `engine.decisions.Decide`.

    Args:
        batch: jobs decided at once.
        time_limit_s: real time a pass may take for its programs, seconds.
        weights: what makes a good plan.

    Raises:
        YardmasterError: if a setting makes no sense.
    """

    def __init__(
        self,
        *,
        batch: int = BATCH,
        time_limit_s: float = TIME_LIMIT_S,
        weights: Weights | None = None,
    ) -> None:
        if batch < 1:
            raise YardmasterError(f"milp: a batch must have at least 1 job, got {batch}.")
        if not time_limit_s > 0:  # NaN too
            raise YardmasterError(f"milp: the time limit must be positive, got {time_limit_s} s.")
        self.batch = batch
        self.time_limit_s = time_limit_s
        self.weights = weights or Weights()
        self.counts = Counts()
        importlib.import_module("highspy")  # loading it takes longer than a pass may

    def __call__(self, situation: Situation) -> Sequence[tuple[int, Plan]]:
        """Return who starts now and where, in the order of the pass."""
        room = Room(situation)
        waiting = room.fitting(situation.rows)
        if not len(waiting):
            return []
        begin_s = time.perf_counter()
        one_pass = _Pass(room, begin_s + self.time_limit_s, self.weights)
        chosen: dict[int, Plan] = {}
        while len(waiting):
            batch = waiting[: self.batch]
            chosen |= one_pass.decide(batch)
            if any(int(row) not in chosen for row in batch):
                break
            waiting = room.fitting(waiting[self.batch :])
        chosen |= packed(room, [row for row in waiting.tolist() if row not in chosen])
        self._count(one_pass.worst, time.perf_counter() - begin_s)
        return [(row, chosen[row]) for row in situation.rows.tolist() if row in chosen]

    def notes(self) -> tuple[str, ...]:
        """Return what readers of the schedule must know: how often time ran out."""
        counts, notes = self.counts, []
        if hits := counts.limited + counts.fallbacks:
            notes.append(
                f"milp: {hits:,} of {counts.passes:,} passes hit the"
                f" {1000 * self.time_limit_s:g} ms limit; {counts.fallbacks:,} fell back to pack"
            )
        if counts.too_large:
            notes.append(
                f"milp: {counts.too_large:,} of {counts.passes:,} passes were too large for an"
                " integer program and fell back to pack"
            )
        return tuple(notes)

    def _count(self, worst: Status, seconds: float) -> None:
        self.counts.passes += 1
        self.counts.optimal += worst is Status.OPTIMAL
        self.counts.limited += worst is Status.LIMITED
        self.counts.fallbacks += worst is Status.NONE
        self.counts.too_large += worst is Status.TOO_LARGE
        self.counts.seconds.append(seconds)


def packed(room: Room, rows: Sequence[int]) -> dict[int, Plan]:
    """Start whoever still fits, in order, each by the pack rule."""
    chosen: dict[int, Plan] = {}
    refused: set[int] = set()
    for row in rows:
        shape = int(room.situation.shapes.of_job[row])
        plan = None if shape in refused else room.packed(shape)
        if plan is None:
            refused.add(shape)
        else:
            room.take(shape, plan)
            chosen[row] = plan
    return chosen


@dataclass(slots=True)
class _Started:
    """Jobs that can start together, with some plan for each."""

    rows: list[int] = field(default_factory=list)
    shapes: list[int] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)


@dataclass(slots=True)
class _Pass:
    """One scheduling pass under its deadline."""

    room: Room
    deadline_s: float
    weights: Weights
    worst: Status = Status.OPTIMAL

    def decide(self, batch: IntArray) -> dict[int, Plan]:
        """Choose who of the batch starts and where, and take the GPUs."""
        started = self._startable(batch)
        status, plans = self._ask(started.shapes, self.weights)
        self.worst = max(self.worst, status)
        for shape, plan in zip(started.shapes, plans or started.plans, strict=True):
            self.room.take(shape, plan)
        return dict(zip(started.rows, plans or started.plans, strict=True))

    def _startable(self, batch: IntArray) -> _Started:
        """Return the first jobs in order that can start together; nothing is taken yet."""
        before = self.room.left.copy()
        started = _Started()
        refused: dict[tuple[object, ...], int] = {}
        for row in batch.tolist():
            shape = int(self.room.situation.shapes.of_job[row])
            gpus, cap, is_single = self.room.gang(shape)
            # Whoever wants more of the same nodes than somebody refused is refused as well.
            alike = (is_single or cap, self.room.usable(shape).tobytes())
            if gpus < refused.get(alike, gpus + 1) and self._add(started, shape, before):
                started.rows.append(row)
            else:
                refused[alike] = min(gpus, refused.get(alike, gpus))
        self.room.left = before
        return started

    def _add(self, started: _Started, shape: int, before: IntArray) -> bool:
        """Find a plan for one more job, moving those already chosen if need be."""
        plan = self.room.packed(shape)
        if plan is not None:
            self.room.take(shape, plan)
            started.plans.append(plan)
        else:
            plans = self._repacked([*started.shapes, shape], before)
            if not plans:
                return False
            started.plans = plans
        started.shapes.append(shape)
        return True

    def _repacked(self, shapes: list[int], before: IntArray) -> list[Plan]:
        """Place jobs anew on what was left before the batch; no plans if that is impossible."""
        kinds = self.room.situation.shapes
        gpus, is_single = kinds.gpus[shapes], kinds.single[shapes]
        if int(gpus.sum()) > int(before.sum()):
            return []
        now = self.room.left
        self.room.left = before.copy()
        # Gangs over nodes can use what the large jobs within nodes leave, but not the reverse.
        hardest_first = np.lexsort((-gpus, -is_single))
        found = self.room.pack_all([shapes[index] for index in hardest_first])
        if found is not None:
            return [found[place] for place in np.argsort(hardest_first)]
        status, plans = self._ask(shapes, None)
        if status > Status.LIMITED:  # nobody knows whether the job could have started
            self.worst = max(self.worst, Status.LIMITED)
        for shape, plan in zip(shapes, plans, strict=bool(plans)):
            self.room.take(shape, plan)
        if not plans:
            self.room.left = now
        return plans

    def _ask(self, shapes: list[int], weights: Weights | None) -> tuple[Status, list[Plan]]:
        """Ask the integer program, unless there is only one node to choose."""
        if np.count_nonzero(self.room.left) == 1:
            return Status.OPTIMAL, []
        return place(self.room, shapes, weights, self.deadline_s)
