"""A moment on a cluster: who has run, who runs since when, and who waits.

A snapshot holds what an operator knows at that moment and nothing else. In particular it holds no
run time of a job that has not ended: the durations of its job table are what jobs have run so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import COLUMN_NAMES, BoolArray, FloatArray, IntArray, Labels
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import Workload

_MISSING = {"milli_gpu": 1000, "max_gpus_per_node": 0, "min_gpus": 0, "max_gpus": 0, "priority": 0}
"""What a new job's columns hold where they cannot hold NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What is known at one moment.

    Attributes:
        now_s: the moment, on the jobs' clock.
        jobs: jobs submitted by then; `duration_s` is what each has run so far.
        ended: (jobs,) whether the job has ended; then its duration is its whole run time.
        since_s: (jobs,) start of the current run, NaN if it does not run.
        holdings: (n, 3) row of a running job, a node, and how many GPUs it holds there; empty
            if nobody knows where jobs run.
        cluster: the machines.
        scheduler: who decides, in the scheduler language.
    """

    now_s: float
    jobs: Workload
    ended: BoolArray
    since_s: FloatArray
    holdings: IntArray
    cluster: Cluster
    scheduler: str

    @property
    def running(self) -> IntArray:
        """Rows of the jobs that run."""
        return np.flatnonzero(~np.isnan(self.since_s))

    @property
    def queued(self) -> IntArray:
        """Rows of the jobs that wait, first submitted first."""
        return np.flatnonzero(np.isnan(self.since_s) & ~self.ended)

    @property
    def history_s(self) -> float:
        """Seconds from the first submission to now."""
        return self.now_s - float(self.jobs.submit_s[0])

    def row_of(self, job: str) -> int:
        """Return the row of a waiting job.

        Raises:
            YardmasterError: if there is no such job, or it does not wait.
        """
        rows = np.flatnonzero(self.jobs.id.astype(np.str_) == job)
        if not len(rows):
            raise YardmasterError(f"No job {job!r} was submitted by second {self.now_s:g}.")
        row = int(rows[0])
        if self.ended[row]:
            raise YardmasterError(f"Job {job!r} has ended by second {self.now_s:g}.")
        if not np.isnan(self.since_s[row]):
            raise YardmasterError(
                f"Job {job!r} runs since second {self.since_s[row]:g}; it does not wait."
            )
        return row


def snapshot_of(schedule: Schedule, now_s: float) -> Snapshot:
    """Return what was known at a moment of a schedule.

    Jobs that can never be placed are left out: they do not wait for anything.

    Raises:
        YardmasterError: if nothing was submitted by then, or the schedule ends before.
    """
    there = (schedule.workload.submit_s <= now_s) & (schedule.outcome != Outcome.UNPLACEABLE)
    if not there.any():
        raise YardmasterError(f"No job was submitted by second {now_s:g}.")
    rows = np.flatnonzero(there)
    begin = schedule.segment_start_s
    # Who was cut off goes on: the cut is the end of the simulation, not of the job.
    end = np.where(schedule.segment_cause == Cause.CUT, np.inf, schedule.segment_end_s)
    jobs = len(schedule.workload)
    ran_s = np.maximum(np.minimum(end, now_s) - begin, 0.0)
    held_s = np.zeros(jobs)
    np.add.at(held_s, schedule.segment_job, ran_s)
    current = np.flatnonzero((begin <= now_s) & (end > now_s))
    since_s = np.full(jobs, np.nan)
    since_s[schedule.segment_job[current]] = begin[current]
    return Snapshot(
        now_s=now_s,
        jobs=_so_far(schedule.workload, held_s).select(rows),
        ended=(schedule.end_s <= now_s)[rows],
        since_s=since_s[rows],
        holdings=_holdings(schedule, current, rows),
        cluster=schedule.cluster,
        scheduler=schedule.scheduler,
    )


def _so_far(workload: Workload, held_s: FloatArray) -> Workload:
    """Return the jobs with what they have run in place of what they will run."""
    return replace(workload, duration_s=held_s, status=Labels.missing(len(workload)))


def _holdings(schedule: Schedule, segments: IntArray, rows: IntArray) -> IntArray:
    """Return who holds how many GPUs of which node, in order of start."""
    node_of = schedule.cluster.gpu_node
    found = [np.zeros((0, 3), dtype=np.int64)]
    row_of = np.full(len(schedule.workload), -1, dtype=np.int64)
    row_of[rows] = np.arange(len(rows))
    for segment in segments.tolist():
        nodes, gpus = np.unique(node_of[schedule.gpus_of(segment)], return_counts=True)
        row = np.full(len(nodes), row_of[schedule.segment_job[segment]])
        found.append(np.stack([row, nodes, gpus], axis=1))
    return np.concatenate(found)


def with_newcomer(snapshot: Snapshot, *, gpus: int, estimate_s: float = np.nan) -> Snapshot:
    """Return the snapshot with one more job, called `new`, submitted now.

    Args:
        snapshot: the moment.
        gpus: GPUs of the new job.
        estimate_s: run time its owner expects; NaN if not said.

    Raises:
        YardmasterError: if jobs here carry estimates and the new one has none.
    """
    jobs, now_s = snapshot.jobs, snapshot.now_s
    if gpus < 1:
        raise YardmasterError(f"A job needs at least 1 GPU, got {gpus}.")
    if jobs.has_estimates and not estimate_s > 0:
        raise YardmasterError("Jobs here carry estimates: say with --hours how long yours runs.")
    new = {"submit_s": now_s, "duration_s": 0.0, "estimate_s": estimate_s,
           "gpus": gpus}  # fmt: skip
    columns: dict[str, Any] = {}
    for name in COLUMN_NAMES:
        value = getattr(jobs, name)
        if isinstance(value, Labels):
            columns[name] = Labels(np.append(value.codes, np.int32(-1)), value.names)
        elif name == "id":
            columns[name] = np.append(value.astype(np.str_), np.array(["new"]))
        else:
            missing = _MISSING.get(name, np.nan)
            columns[name] = np.append(value, np.asarray(new.get(name, missing), value.dtype))
    return replace(
        snapshot,
        jobs=Workload.of(name=jobs.name, notes=jobs.notes, **columns),
        ended=np.append(snapshot.ended, np.bool_(0)),
        since_s=np.append(snapshot.since_s, np.nan),
    )


def waiting_at(schedule: Schedule, times_s: FloatArray) -> IntArray:
    """Return how many jobs wait for their first start at each time."""
    placeable = schedule.outcome != Outcome.UNPLACEABLE
    submitted = np.sort(schedule.workload.submit_s[placeable])
    started = np.sort(schedule.start_s[placeable & ~np.isnan(schedule.start_s)])
    came = np.searchsorted(submitted, times_s, side="right")
    return np.asarray(came - np.searchsorted(started, times_s, side="right"), dtype=np.int64)


def typical_moment(schedule: Schedule) -> float:
    """Return a submission in the later half of the schedule that meets a queue of median length.

    Raises:
        YardmasterError: if nobody waits there.
    """
    times = np.unique(schedule.workload.submit_s)
    later = times[times >= (times[0] + times[-1]) / 2]
    queues = waiting_at(schedule, later)
    if not queues.any():
        raise YardmasterError(
            "Nobody waits in the later half of this workload, so there is no typical queue;"
            " give --now-s, or raise the load."
        )
    median = np.median(queues[queues > 0])
    distance = np.where(queues > 0, np.abs(queues - median), np.inf)
    best = np.flatnonzero(distance == distance.min())
    return float(later[best[len(best) // 2]])
