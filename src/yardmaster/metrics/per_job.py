"""One number per job: how long it waited, how long it took, how much it suffered.

Every function returns a column with one row per job of the workload. Jobs that did not finish hold
NaN in the columns about completion, so that no average can count them as if they had ended; how
many they are is always reported beside the averages. A job that lost its nodes too often has
failed: it is neither finished nor unfinished.

The *run time* of a job, to which its slowdown refers, is its `duration_s`: the seconds it runs,
undisturbed, on the GPUs it asks for and of the type its duration was measured on.
"""

from __future__ import annotations

import numpy as np

from yardmaster.metrics.holdings import segment_gpus
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray

BOUND_S = 10.0
"""Run times below this count as this long in the bounded slowdown."""


def is_finished(schedule: Schedule) -> BoolArray:
    """Return which jobs finished."""
    return np.asarray(schedule.outcome == Outcome.FINISHED)


def is_unfinished(schedule: Schedule) -> BoolArray:
    """Return which jobs were submitted and placeable, but cut by the end of the simulation."""
    return np.asarray((schedule.outcome == Outcome.RUNNING) | (schedule.outcome == Outcome.QUEUED))


def is_failed(schedule: Schedule) -> BoolArray:
    """Return which jobs lost their nodes more often than the site starts a job again."""
    return np.asarray(schedule.outcome == Outcome.FAILED)


def wait_s(schedule: Schedule) -> FloatArray:
    """Return seconds from submission to the first start; NaN for jobs that did not finish."""
    waited = schedule.start_s - schedule.workload.submit_s
    return np.where(is_finished(schedule), waited, np.nan)


def jct_s(schedule: Schedule) -> FloatArray:
    """Return seconds from submission to completion; NaN for jobs that did not finish."""
    taken = schedule.end_s - schedule.workload.submit_s
    return np.where(is_finished(schedule), taken, np.nan)


def age_s(schedule: Schedule) -> FloatArray:
    """Return seconds an unfinished job has been in the system at the cut; NaN for all others.

    It is a lower bound on the completion time the job would have had.
    """
    age = schedule.horizon_s[1] - schedule.workload.submit_s
    return np.where(is_unfinished(schedule), age, np.nan)


def run_s(schedule: Schedule) -> FloatArray:
    """Return seconds each job held GPUs, the sum of its segments; 0 for jobs that never ran."""
    return _total(schedule, schedule.segment_end_s - schedule.segment_start_s)


def queued_s(schedule: Schedule) -> FloatArray:
    """Return seconds each job waited from submission to completion, between segments too.

    NaN for jobs that did not finish.
    """
    return np.maximum(0.0, jct_s(schedule) - run_s(schedule))


def slowdown(schedule: Schedule) -> FloatArray:
    """Return JCT / run time; NaN for jobs that did not finish.

    A job of zero length counts as if it had run for one second: (JCT + 1 s) / 1 s. Below 1 are only
    jobs that ran faster than measured, on faster or on more GPUs.
    """
    runtime = schedule.workload.duration_s
    added = np.where(runtime > 0, 0.0, 1.0)
    return (jct_s(schedule) + added) / (runtime + added)


def bounded_slowdown(schedule: Schedule) -> FloatArray:
    """Return max(1, JCT / max(run time, 10 s)); NaN for jobs that did not finish."""
    runtime = schedule.workload.duration_s
    return np.maximum(1.0, jct_s(schedule) / np.maximum(runtime, BOUND_S))


def tardiness_s(schedule: Schedule) -> FloatArray:
    """Return seconds by which each job missed its deadline, 0 if it was met.

    A job unfinished past its deadline is late by the time from the deadline to the cut, a lower
    bound, and so is a failed one (0 if its deadline lies after the cut). NaN where there is nothing
    to say: no deadline, a deadline after the cut of an unfinished job, or a job that could not be
    placed or was not submitted.
    """
    deadline = schedule.workload.deadline_s
    cut = schedule.horizon_s[1]
    overdue = (is_unfinished(schedule) & (deadline < cut)) | is_failed(schedule)
    ended = np.where(overdue, cut, np.where(is_finished(schedule), schedule.end_s, np.nan))
    return np.maximum(0.0, ended - deadline)


def deadline_missed(schedule: Schedule) -> FloatArray:
    """Return 1 for jobs past their deadline, 0 for those that met it, NaN as in `tardiness_s`.

    A failed job has missed its deadline, whenever that is.
    """
    late_s = tardiness_s(schedule)
    is_missed = (late_s > 0) | is_failed(schedule)
    return np.where(np.isnan(late_s), np.nan, is_missed)


def interrupted_segments(schedule: Schedule) -> BoolArray:
    """Return which segments ended with neither the job's completion nor the cut."""
    cause = schedule.segment_cause
    return np.asarray((cause != Cause.FINISHED) & (cause != Cause.CUT))


def interruptions(schedule: Schedule, cause: Cause) -> IntArray:
    """Return how many segments of each job ended for this cause."""
    jobs = schedule.segment_job[schedule.segment_cause == cause]
    return np.bincount(jobs, minlength=len(schedule.workload))


def restarts(schedule: Schedule) -> IntArray:
    """Return how often each job started again after it had lost a node."""
    failures = interruptions(schedule, Cause.NODE_FAILED)
    if not failures.any():
        return failures
    last = np.full(len(schedule.workload), Cause.FINISHED)
    # Segments are in order of start, and of several writes to one place the last one stays.
    last[schedule.segment_job] = schedule.segment_cause
    return np.asarray(failures - (last == Cause.NODE_FAILED))


def held_gpu_s(schedule: Schedule) -> FloatArray:
    """Return GPU-seconds each job held, with as many GPUs as each of its segments had."""
    lengths = schedule.segment_end_s - schedule.segment_start_s
    return _total(schedule, lengths * segment_gpus(schedule))


def wasted_gpu_s(schedule: Schedule) -> FloatArray:
    """Return GPU-seconds each job held without getting nearer to its end.

    They went into restoring it, or into work that was lost and had to be done again.
    """
    return _total(schedule, schedule.segment_wasted_s * segment_gpus(schedule))


def gpu_share(schedule: Schedule) -> FloatArray:
    """Return GPUs each job asks for, fractions of a GPU counted as fractions."""
    workload = schedule.workload
    return np.asarray(workload.gpus * (workload.milli_gpu / 1000.0))


def _total(schedule: Schedule, of_segment: FloatArray) -> FloatArray:
    """Return (jobs,) the sum over the segments of each job."""
    total = np.bincount(schedule.segment_job, of_segment, minlength=len(schedule.workload))
    return np.asarray(total, dtype=np.float64)
