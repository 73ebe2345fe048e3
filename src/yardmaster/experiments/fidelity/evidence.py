"""What the causes of a difference are looked for in, and what is found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from yardmaster.experiments.fidelity.occupancy import (
    ROUNDING,
    Occupancy,
    recorded_occupancy,
    simulated_occupancy,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import BoolArray, FloatArray, Workload

CauseName = Literal["room", "size", "order", "held", "caps", "drains", "latency", "warm-up"]


class Owner(NamedTuple):
    """A user or a tenant who seems to be limited."""

    kind: Literal["user", "tenant"]
    name: str
    unit: Literal["GPUs", "jobs"]
    limit: float
    """What they held at most at once."""
    jobs: int
    """Jobs that waited while there was room for them."""
    waited_s: float
    """Seconds these jobs waited with room, over what the simulation has."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that can set a simulation apart from a record, looked for in this one.

    Attributes:
        name: what it is.
        is_found: whether the record shows clear signs of it.
        share: of all differences |simulated − recorded|, the share it may explain directly, at
            most; NaN where that cannot be computed. Shares of different causes overlap.
        numbers: what was measured, by name, with the unit at the end of the name.
        periods_s: (begin, end) of the spans of time in question.
        owners: the users or tenants in question.
    """

    name: CauseName
    is_found: bool
    share: float = math.nan
    numbers: Mapping[str, float] = field(default_factory=dict)
    periods_s: tuple[tuple[float, float], ...] = ()
    owners: tuple[Owner, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A record and the simulation held against it.

    Attributes:
        workload: the jobs.
        cluster: the machines simulated.
        record: who held and who waited in the record.
        replay: the same in the simulation.
        recorded_s: (jobs,) recorded waits, NaN where unknown.
        simulated_s: (jobs,) simulated waits, NaN for jobs that never started.
        with_room_s: (jobs,) the part of the recorded wait while enough GPUs for the job were free.
        simulated_with_room_s: (jobs,) the same of the simulated wait.
        warm_up_ends_s: jobs submitted before this second are warm-up.
    """

    workload: Workload
    cluster: Cluster
    record: Occupancy
    replay: Occupancy
    recorded_s: FloatArray
    simulated_s: FloatArray
    with_room_s: FloatArray
    simulated_with_room_s: FloatArray
    warm_up_ends_s: float

    @classmethod
    def of(cls, schedule: Schedule, warm_up_ends_s: float) -> Evidence:
        """Gather the evidence from a schedule and its workload's recorded waits."""
        workload = schedule.workload
        record = recorded_occupancy(workload, schedule.cluster)
        replay = simulated_occupancy(schedule)
        return cls(
            workload=workload,
            cluster=schedule.cluster,
            record=record,
            replay=replay,
            recorded_s=workload.recorded_wait_s,
            simulated_s=schedule.start_s - workload.submit_s,
            with_room_s=record.waited_with_room_s(),
            simulated_with_room_s=replay.waited_with_room_s(),
            warm_up_ends_s=warm_up_ends_s,
        )

    @property
    def is_compared(self) -> BoolArray:
        """(jobs,) both waits are known."""
        return np.isfinite(self.recorded_s) & np.isfinite(self.simulated_s)

    @property
    def counts(self) -> BoolArray:
        """(jobs,) both waits are known, and the job came after the warm-up."""
        return self.is_compared & (self.workload.submit_s >= self.warm_up_ends_s)

    @property
    def missing_s(self) -> FloatArray:
        """(jobs,) seconds that the record waits longer than the simulation; 0 if not counted."""
        longer_s = np.maximum(self.recorded_s - self.simulated_s, 0.0)
        return np.where(self.counts, longer_s, 0.0)

    @property
    def waited_s(self) -> float:
        """Seconds all counted jobs waited in the record together."""
        return float(self.recorded_s[self.counts].sum())

    def extra_with_room_s(self, latency_s: float) -> FloatArray:
        """Return (jobs,) waiting with room beyond the simulation's and a latency; 0 as above."""
        extra_s = self.with_room_s - self.simulated_with_room_s - latency_s
        return np.where(self.counts, np.maximum(extra_s, 0.0), 0.0)

    def share(self, explained_s: FloatArray) -> float:
        """Return the share of all differences that (jobs,) seconds of extra wait may explain."""
        apart_s = float(np.abs(self.simulated_s - self.recorded_s)[self.counts].sum())
        if apart_s == 0:
            return 0.0
        return float(np.minimum(self.missing_s, explained_s).sum()) / apart_s

    def after_warm_up(self, occupancy: Occupancy) -> BoolArray:
        """Return (moments,) those after the warm-up."""
        return np.asarray(occupancy.moments_s >= self.warm_up_ends_s)

    def found_room_and_nobody(self) -> BoolArray:
        """Return (jobs,) those that, in the record, came to a machine with room and no queue."""
        record = self.record
        at_once = record.went == record.came
        others = record.waiting[record.came] - np.where(at_once, 0, 1)
        used = record.used[record.came] - np.where(at_once, record.wants, 0.0)
        has_room = used + record.wants <= record.gpus + ROUNDING
        return np.asarray(self.counts & (others == 0) & has_room)
