"""A schedule played back: what the cluster and the queue look like at any second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.metrics.timeline import busy_gpus, queue_intervals, queue_length, running_jobs
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, IntArray

IDLE = -1
AWAY = -2
DAY_S, HOUR_S = 86_400, 3_600


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """The cluster at one second of the workload's clock, after all events of that second.

    Attributes:
        time_s: the second.
        gpu_job: (gpus,) row of the job on each GPU, `IDLE`, or `AWAY` where its node is.
        busy: GPUs held by jobs; a shared one counts with its shares.
        running: jobs that hold GPUs.
        waiting: (queued,) rows of the jobs in the queue, the longest-waiting first.
        ended: jobs that have finished.
        submitted: jobs that have been submitted.
    """

    time_s: float
    gpu_job: IntArray
    busy: float
    running: int
    waiting: IntArray
    ended: int
    submitted: int


class Playback:
    """Looks into a schedule at any second of its horizon."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.begin_s, self.end_s = schedule.horizon_s
        self._busy = busy_gpus(schedule)
        self._running = running_jobs(schedule)
        self._queue = queue_intervals(schedule)
        self._queued = queue_length(schedule)
        self._ends_s = np.sort(schedule.end_s[np.isfinite(schedule.end_s)])

    @property
    def span_s(self) -> float:
        """Seconds from the first submission to the last event."""
        return max(self.end_s - self.begin_s, 0.0)

    def at(self, time_s: float) -> Moment:
        """Return the cluster at a second."""
        schedule = self.schedule
        return Moment(
            time_s=time_s,
            gpu_job=self._jobs(time_s),
            busy=self._busy.at(time_s) if time_s < self.end_s else 0.0,
            running=int(self._running.at(time_s)) if time_s < self.end_s else 0,
            waiting=self._waiting(time_s),
            ended=int(np.searchsorted(self._ends_s, time_s, side="right")),
            submitted=int(np.searchsorted(schedule.workload.submit_s, time_s, side="right")),
        )

    def utilisation(self, bins: int) -> FloatArray:
        """Return (bins,) the share of the GPUs in use, averaged over equal parts of the span."""
        return self._busy.resample(bins)[1] / self.schedule.cluster.gpus

    def queue(self, bins: int) -> FloatArray:
        """Return (bins,) jobs waiting, averaged over equal parts of the span."""
        return self._queued.resample(bins)[1]

    def _jobs(self, time_s: float) -> IntArray:
        schedule = self.schedule
        found = np.full(schedule.cluster.gpus, IDLE, dtype=np.int64)
        for outage in schedule.outages:
            if outage.down_s <= time_s < outage.up_s:
                first = int(schedule.cluster.node_first_gpu[outage.node])
                found[first : first + int(schedule.cluster.node_gpus[outage.node])] = AWAY
        is_on = (schedule.segment_start_s <= time_s) & (time_s < schedule.segment_end_s)
        for segment in np.flatnonzero(is_on).tolist():
            found[schedule.gpus_of(segment)] = schedule.segment_job[segment]
        return found

    def _waiting(self, time_s: float) -> IntArray:
        job, begin_s, end_s = self._queue
        waits = np.flatnonzero((begin_s <= time_s) & (time_s < end_s))
        return job[waits[np.argsort(begin_s[waits], kind="stable")]]


def clock(seconds: float) -> str:
    """Write a second of the workload's clock as `day 2 05:13:20`."""
    days, rest = divmod(int(seconds), DAY_S)
    return f"day {days} {rest // HOUR_S:02}:{rest % HOUR_S // 60:02}:{rest % 60:02}"
