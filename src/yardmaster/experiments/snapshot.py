"""A moment on a cluster: who has run, who runs since when, and who waits.

A snapshot holds what an operator knows at that moment and nothing else. In particular it holds no
run time of a job that has not ended: the durations of its job table are the work done so far, which
is the time run so far wherever GPUs are as fast as the ones that durations were measured on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.pace import share_not_saving, speeds
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
        jobs: jobs submitted by then; `duration_s` is the work each has done so far, in seconds on
            the GPUs that durations were measured on.
        ended: (jobs,) whether the job has ended; then its duration is its whole run time.
        since_s: (jobs,) start of the current run, NaN if it does not run.
        speed: (jobs,) work per second where it runs now; 1 if it does not run.
        holdings: (n, 3) row of a running job, a node, and how many GPUs it holds there; empty
            if nobody knows where jobs run.
        cluster: the machines.
        scheduler: who decides, in the scheduler language.
    """

    now_s: float
    jobs: Workload
    ended: BoolArray
    since_s: FloatArray
    speed: FloatArray
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


def rows_at(schedule: Schedule, now_s: float) -> IntArray:
    """Return the rows of the jobs that have been submitted, and can still start or have ended.

    Jobs that can never be placed do not wait for anything; nor do those that were given up after
    too many failures.
    """
    there = (schedule.workload.submit_s <= now_s) & (schedule.outcome != Outcome.UNPLACEABLE)
    if schedule.count(Outcome.FAILED):
        last_end_s = np.full(len(schedule.workload), -np.inf)
        np.maximum.at(last_end_s, schedule.segment_job, schedule.segment_end_s)
        there &= (schedule.outcome != Outcome.FAILED) | (last_end_s > now_s)
    return np.flatnonzero(there)


def snapshot_of(schedule: Schedule, now_s: float) -> Snapshot:
    """Return what was known at a moment of a schedule.

    Raises:
        YardmasterError: if nothing was submitted by then.
    """
    rows = rows_at(schedule, now_s)
    if not len(rows):
        raise YardmasterError(f"No job was submitted by second {now_s:g}.")
    jobs = len(schedule.workload)
    ended = schedule.end_s <= now_s
    begun = np.flatnonzero(schedule.segment_start_s <= now_s)
    speed = speeds(schedule, begun)
    is_current = _ends(schedule, begun) > now_s
    current = begun[is_current]
    since_s, pace = np.full(jobs, np.nan), np.ones(jobs)
    since_s[schedule.segment_job[current]] = schedule.segment_start_s[current]
    pace[schedule.segment_job[current]] = speed[is_current]
    done_s = np.where(ended, schedule.workload.duration_s, _work(schedule, begun, speed, now_s))
    return Snapshot(
        now_s=now_s,
        jobs=_so_far(schedule.workload, done_s).select(rows),
        ended=ended[rows],
        since_s=since_s[rows],
        speed=pace[rows],
        holdings=_holdings(schedule, current, rows),
        cluster=schedule.cluster,
        scheduler=schedule.scheduler,
    )


def _ends(schedule: Schedule, segments: IntArray) -> FloatArray:
    """Return when segments end; those cut off by the end of the simulation go on."""
    is_cut = schedule.segment_cause[segments] == Cause.CUT
    return np.where(is_cut, np.inf, schedule.segment_end_s[segments])


def _work(schedule: Schedule, segments: IntArray, speed: FloatArray, now_s: float) -> FloatArray:
    """Return (jobs,) the work done in these segments by now.

    What a segment wasted shows when it ends; until then all of it counts.
    """
    end_s = _ends(schedule, segments)
    ran_s = np.minimum(end_s, now_s) - schedule.segment_start_s[segments]
    ran_s = ran_s - np.where(end_s <= now_s, schedule.segment_wasted_s[segments], 0.0)
    share = share_not_saving(schedule.cluster.site.checkpoints)
    work_s = np.zeros(len(schedule.workload))
    np.add.at(work_s, schedule.segment_job[segments], np.maximum(ran_s, 0.0) * speed * share)
    return work_s


def _so_far(workload: Workload, done_s: FloatArray) -> Workload:
    """Return the jobs with what they have done in place of what they will do."""
    return replace(workload, duration_s=done_s, status=Labels.missing(len(workload)))


def _holdings(schedule: Schedule, segments: IntArray, rows: IntArray) -> IntArray:
    """Return who holds how many GPUs of which node, in order of start, then of node."""
    offset, nodes = schedule.segment_gpu_offset, schedule.cluster.nodes
    size = offset[segments + 1] - offset[segments]
    first = np.cumsum(size) - size
    place = np.repeat(offset[segments] - first, size) + np.arange(int(size.sum()))
    node = schedule.cluster.gpu_node[schedule.gpu_ids[place]]
    turn = np.repeat(np.arange(len(segments)), size)
    pairs, gpus = np.unique(turn * nodes + node, return_counts=True)
    row_of = np.full(len(schedule.workload), -1, dtype=np.int64)
    row_of[rows] = np.arange(len(rows))
    row = row_of[schedule.segment_job[segments[pairs // nodes]]]
    return np.stack([row, pairs % nodes, gpus], axis=1).astype(np.int64)


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
        speed=np.append(snapshot.speed, 1.0),
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
