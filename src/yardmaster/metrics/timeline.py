"""How the cluster went through time: queue length, running jobs and busy GPUs as step functions.

All changes of one instant count together, as the rules of time have it (completions, arrivals,
then starts): a job started at the second of its submission was never in the queue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from yardmaster.metrics.holdings import busy_spans
from yardmaster.metrics.per_job import interrupted_segments, is_failed
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import FloatArray, IntArray

EXPLOSION_THRESHOLD = 200
"""Queued jobs beyond which a queue that does not drain counts as exploded."""


class StepFunction(NamedTuple):
    """A value that changes at instants and stays in between: `times, values = queue_length(…)`."""

    edges_s: FloatArray
    """(steps + 1,) seconds at which steps begin; the last one is the end of the horizon."""
    values: IntArray | FloatArray
    """(steps,) value from each edge up to, not including, the next."""

    def time_average(self) -> float:
        """Return the mean over time; NaN over a horizon of zero length."""
        span_s = float(self.edges_s[-1] - self.edges_s[0])
        return float(self.values @ np.diff(self.edges_s)) / span_s if span_s > 0 else float("nan")

    def maximum(self) -> float:
        """Return the largest value."""
        return float(self.values.max())

    def at(self, time_s: float) -> float:
        """Return the value right after all changes at `time_s`; the last value from the end on."""
        step = int(np.searchsorted(self.edges_s, time_s, side="right")) - 1
        return float(self.values[min(max(step, 0), len(self.values) - 1)])

    def resample(self, bins: int) -> tuple[FloatArray, FloatArray]:
        """Return (bins + 1,) edges of equal bins and the (bins,) time average in each.

        The averages are exact, so the area under the curve stays the same.
        """
        edges = np.linspace(self.edges_s[0], self.edges_s[-1], bins + 1)
        if edges[-1] <= edges[0]:
            return edges, np.full(bins, np.nan)
        area = np.concatenate(([0.0], np.cumsum(self.values * np.diff(self.edges_s))))
        return edges, np.diff(np.interp(edges, self.edges_s, area)) / np.diff(edges)


class QueueIntervals(NamedTuple):
    """Spans of time jobs spent in the queue: from submission, or from an interruption, to a start.

    A job still queued at the cut has a span up to the end of the horizon, a failed one none after
    its last segment.
    """

    job: IntArray
    begin_s: FloatArray
    end_s: FloatArray


def queue_intervals(schedule: Schedule) -> QueueIntervals:
    """Return every span of waiting; jobs that could not be placed never queue."""
    cut = schedule.horizon_s[1]
    outside = (schedule.outcome == Outcome.UNPLACEABLE) | (
        schedule.outcome == Outcome.NOT_SUBMITTED
    )
    job = np.flatnonzero(~outside)
    start = schedule.start_s[job]
    end = np.where(np.isnan(start), cut, start)
    interrupted = np.flatnonzero(interrupted_segments(schedule))
    return QueueIntervals(
        np.concatenate((job, schedule.segment_job[interrupted])),
        np.concatenate((schedule.workload.submit_s[job], schedule.segment_end_s[interrupted])),
        np.concatenate((end, _next_start_s(schedule, interrupted))),
    )


def _next_start_s(schedule: Schedule, segments: IntArray) -> FloatArray:
    """Return when the job of each segment starts again.

    The cut if it does not, and the segment's own end if the job has failed: it waits no longer.
    """
    if not len(segments):
        return np.empty(0)
    in_job_order = np.argsort(schedule.segment_job, kind="stable")
    job = schedule.segment_job[in_job_order]
    ended = schedule.segment_end_s[in_job_order]
    following = np.where(is_failed(schedule)[job], ended, schedule.horizon_s[1])
    same_job = job[1:] == job[:-1]
    following[:-1][same_job] = schedule.segment_start_s[in_job_order][1:][same_job]
    result = np.empty(len(job))
    result[in_job_order] = following
    return result[segments]


def queue_length(schedule: Schedule) -> StepFunction:
    """Return jobs submitted and not running: before the first start and between segments."""
    _, begin, end = queue_intervals(schedule)
    return stacked(schedule, begin, end, np.ones(len(begin), dtype=np.int64))


def running_jobs(schedule: Schedule) -> StepFunction:
    """Return jobs that hold GPUs."""
    ones = np.ones(len(schedule.segment_job), dtype=np.int64)
    return stacked(schedule, schedule.segment_start_s, schedule.segment_end_s, ones)


def busy_gpus(schedule: Schedule) -> StepFunction:
    """Return GPUs held by jobs; a shared one counts with the sum of its shares."""
    begin, end, gpus = busy_spans(schedule, np.ones(len(schedule.cluster.gpu_types)))
    # In thousandths, which are whole: sums of fractions would not come back to 0.
    busy = stacked(schedule, begin, end, np.rint(1000.0 * gpus).astype(np.int64))
    return StepFunction(busy.edges_s, busy.values / 1000.0)


def stacked(
    schedule: Schedule, begin_s: FloatArray, end_s: FloatArray, weight: IntArray | FloatArray
) -> StepFunction:
    """Return the total weight of the spans that cover each instant of the horizon.

    No span may begin before the horizon.
    """
    first, cut = schedule.horizon_s
    times = np.concatenate(([first], begin_s, end_s))
    changes = np.concatenate((np.zeros(1, dtype=weight.dtype), weight, -weight))
    order = np.argsort(times)
    times = times[order]
    levels: IntArray | FloatArray = np.add.accumulate(changes[order])
    is_settled = np.append(times[1:] != times[:-1], True)
    is_kept = is_settled & (times < cut)
    if not is_kept.any():
        return StepFunction(np.array([first, cut]), np.zeros(1))
    return StepFunction(np.append(times[is_kept], cut), levels[is_kept])


def queue_exploded(
    schedule: Schedule,
    *,
    threshold: int = EXPLOSION_THRESHOLD,
    queue: StepFunction | None = None,
) -> bool:
    """Return whether the queue passed the threshold and had not drained by the last submission.

    Precisely: the queue was longer than `threshold` at some time up to the last submission within
    the horizon, and right after the events of that last submission it still holds at least
    `threshold` jobs. Later than that every queue drains, so it says nothing about the scheduler.
    Pass `queue` where the schedule's `queue_length` is at hand already.
    """
    steps = queue_length(schedule) if queue is None else queue
    submitted = schedule.workload.submit_s[schedule.outcome != Outcome.NOT_SUBMITTED]
    if not len(submitted):
        return False
    last = float(submitted.max())
    until_then = steps.values[steps.edges_s[:-1] <= last]
    return bool((until_then > threshold).any()) and steps.at(last) >= threshold
