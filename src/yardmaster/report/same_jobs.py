"""The same jobs under several schedulers, as columns: what a contrast of schedules is drawn from.

The columns come from schedules at hand or from the tables of a run directory; either way they are
those that `metrics.per_job` defines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.metrics import per_job
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import BoolArray, FloatArray, Workload

MEASURES = ("jct_s", "wait_s", "bounded_slowdown")
"""What is known of every job and drawn as distributions."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What one scheduler did with the jobs.

    Attributes:
        name: the scheduler's name, or the run's where two runs have the same scheduler.
        columns: measure → (jobs,) NaN for jobs that did not finish.
        counts: (jobs,) which jobs were submitted and could be placed, finished or not.
        failed: jobs that lost their nodes too often.
    """

    name: str
    columns: dict[str, FloatArray]
    counts: BoolArray
    failed: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all jobs that count finished: else averages leave out the slowest."""
        return not self.failed and not bool(np.isnan(self.columns["jct_s"][self.counts]).any())

    @property
    def finished(self) -> int:
        """How many jobs finished."""
        return int(np.count_nonzero(~np.isnan(self.columns["jct_s"])))


@dataclass(frozen=True, slots=True, eq=False)
class SameJobs:
    """One workload and what each scheduler did with it."""

    workload: Workload
    sides: tuple[Side, ...]

    def __post_init__(self) -> None:
        """Refuse columns that are not of these jobs."""
        for side in self.sides:
            if len(side.counts) != len(self.workload):
                raise YardmasterError(
                    f"{side.name} has {len(side.counts):,} jobs, the workload"
                    f" {len(self.workload):,}: they are not of the same workload."
                )


def side_of(schedule: Schedule, name: str | None = None) -> Side:
    """Return the columns of a schedule."""
    columns = {
        "jct_s": per_job.jct_s(schedule),
        "wait_s": per_job.wait_s(schedule),
        "bounded_slowdown": per_job.bounded_slowdown(schedule),
    }
    never = np.isin(schedule.outcome, (Outcome.UNPLACEABLE, Outcome.NOT_SUBMITTED))
    failed = schedule.count(Outcome.FAILED)
    return Side(schedule.scheduler if name is None else name, columns, ~never, failed)


def same_jobs(schedules: Sequence[Schedule]) -> SameJobs:
    """Return the columns of several schedules of one workload."""
    return SameJobs(schedules[0].workload, tuple(side_of(schedule) for schedule in schedules))
