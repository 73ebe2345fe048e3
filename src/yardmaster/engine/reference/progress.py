"""The SimPy reference: how a job's work gets done, saved and lost.

Work is counted in seconds of the reference GPU. A segment first spends its *overhead* (saving and
restoring) without progress; from its *origin* on it does `rate` of work per second. The work left
is booked only when the rate changes or the job stops: *settling*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from yardmaster.engine.conditions import Conditions
from yardmaster.engine.reference.clock import Moment
from yardmaster.engine.reference.floor import Holding
from yardmaster.engine.reference.rules import Gang
from yardmaster.model.schedule import Cause


@dataclass(slots=True)
class Job:
    """One job's work, from its arrival to its end."""

    gang: Gang
    duration_s: float
    """Work of the whole job."""
    expected_s: float
    """The same as the scheduler believes it."""
    left_s: float
    """Work left when it was last settled."""
    saved_s: float
    """Work left according to its newest checkpoint."""
    overhead_s: float = 0.0
    """Seconds without progress at its next start."""
    rounds: int = 0
    """Starts so far."""
    held_s: float = 0.0
    """Seconds of its ended segments."""
    failures: int = 0
    """Times it has lost a node."""

    def expected_left_s(self, left_s: float) -> float:
        """Work the scheduler believes is left when so much really is."""
        return max(self.expected_s - (self.duration_s - left_s), 0.0)

    def queue_value_s(self, restore_s: float) -> float:
        """Seconds on the reference GPU that the scheduler expects of its next start."""
        if self.rounds == 0:
            return self.expected_s
        return self.expected_left_s(self.left_s) + restore_s


@dataclass(slots=True, eq=False)
class Run:
    """One job on its GPUs, from start to end: a segment of the schedule."""

    job: Job
    holding: Holding
    start_s: float
    overhead_s: float
    """Seconds without progress at the beginning."""
    origin_s: float = field(init=False)
    """When it begins to make progress."""
    updated_s: float = field(init=False)
    """When it was last settled."""
    last_save_s: float = field(init=False)
    """Newest checkpoint of this segment known at the last settling."""
    rate: float = math.nan
    due_s: float = math.nan
    """When it will end if nothing changes."""
    expected_end_s: float = math.nan
    """When the scheduler believes that it will."""
    alarm: Moment | None = None
    """Rings at `due_s`."""
    end_s: float = math.nan
    cause: Cause = Cause.CUT
    wasted_s: float = math.nan

    def __post_init__(self) -> None:
        self.origin_s = self.start_s + self.overhead_s
        self.updated_s = self.start_s
        self.last_save_s = self.origin_s

    @property
    def row(self) -> int:
        """The job's row."""
        return self.job.gang.row

    @property
    def size(self) -> int:
        """GPUs held; a fractional job counts one."""
        return sum(self.holding.plan.values())

    @property
    def begin_s(self) -> float:
        """From when on work has not been booked yet."""
        return max(self.updated_s, self.origin_s)

    def has_run(self, now_s: float, quantum_s: float) -> bool:
        """Whether it may be stopped: it has run for a quantum, and at least a while."""
        return self.start_s < now_s and now_s - self.start_s >= quantum_s

    def left_at(self, at_s: float) -> float:
        """Work left at some second after the last settling."""
        if at_s <= self.begin_s:
            return self.job.left_s
        return max(self.job.left_s - self.rate * (at_s - self.begin_s), 0.0)

    def new_save_s(self, at_s: float, every_s: float) -> float | None:
        """Second of the newest checkpoint by then, if none so new has been booked yet."""
        if math.isinf(every_s) or at_s <= self.origin_s:
            return None
        count = math.floor((at_s - self.origin_s) / every_s)
        save_s = self.origin_s + count * every_s
        return save_s if count >= 1 and save_s > self.begin_s else None

    def settle(self, now_s: float, every_s: float) -> None:
        """Book the newest checkpoint and the work done until now."""
        save_s = self.new_save_s(now_s, every_s)
        if save_s is not None:
            left_s = self.job.left_s - self.rate * (save_s - self.begin_s)
            self.job.saved_s, self.last_save_s = max(left_s, 0.0), save_s
        self.job.left_s = self.left_at(now_s)
        self.updated_s = now_s

    def unsaved_s(self, now_s: float, last_save_s: float) -> float:
        """Seconds of work that would be lost by stopping now."""
        return max(now_s - max(last_save_s, self.origin_s), 0.0)

    def stop(self, now_s: float, conditions: Conditions, *, saves: bool) -> None:
        """Stop before the end; without saving, work since the last checkpoint is lost."""
        job = self.job
        self.settle(now_s, conditions.every_s)
        self.wasted_s = self.overhead_until(now_s)
        if saves:
            job.saved_s = job.left_s
            job.overhead_s = conditions.save_s + conditions.restore_s
        else:
            self.wasted_s = self.wasted_s + self.unsaved_s(now_s, self.last_save_s)
            job.left_s = job.saved_s
            job.overhead_s = conditions.restore_s
        if job.left_s == job.duration_s:  # there is nothing to restore
            job.overhead_s = 0.0

    def overhead_until(self, now_s: float) -> float:
        """Seconds of overhead spent by then."""
        return min(self.overhead_s, now_s - self.start_s)
