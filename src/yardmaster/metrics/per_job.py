"""One number per job: how long it waited, how long it took, how much it suffered.

Every function returns a column with one row per job of the workload. Jobs that did not finish hold
NaN in the columns about completion, so that no average can count them as if they had ended; how
many they are is always reported beside the averages.
"""

from __future__ import annotations

import numpy as np

from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray

BOUND_S = 10.0
"""Run times below this count as this long in the bounded slowdown."""


def is_finished(schedule: Schedule) -> BoolArray:
    """Return which jobs finished."""
    return np.asarray(schedule.outcome == Outcome.FINISHED)


def is_unfinished(schedule: Schedule) -> BoolArray:
    """Return which jobs were submitted and placeable, but cut by the end of the simulation."""
    return np.asarray((schedule.outcome == Outcome.RUNNING) | (schedule.outcome == Outcome.QUEUED))


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
    """Return seconds each job ran, the sum of its segments; 0 for jobs that never ran."""
    lengths = schedule.segment_end_s - schedule.segment_start_s
    total = np.bincount(schedule.segment_job, lengths, minlength=len(schedule.workload))
    return np.asarray(total, dtype=np.float64)


def slowdown(schedule: Schedule) -> FloatArray:
    """Return JCT / run time; NaN for jobs that did not finish.

    A job of zero length counts as if it had run for one second: (JCT + 1 s) / 1 s. So the slowdown
    is never below 1.
    """
    runtime = run_s(schedule)
    added = np.where(runtime > 0, 0.0, 1.0)
    return (jct_s(schedule) + added) / (runtime + added)


def bounded_slowdown(schedule: Schedule) -> FloatArray:
    """Return max(1, JCT / max(run time, 10 s)); NaN for jobs that did not finish."""
    return np.maximum(1.0, jct_s(schedule) / np.maximum(run_s(schedule), BOUND_S))


def tardiness_s(schedule: Schedule) -> FloatArray:
    """Return seconds by which each job missed its deadline, 0 if it was met.

    A job unfinished past its deadline is late by the time from the deadline to the cut, a lower
    bound. NaN where there is nothing to say: no deadline, a deadline after the cut of an
    unfinished job, or a job that could not be placed or was not submitted.
    """
    deadline = schedule.workload.deadline_s
    cut = schedule.horizon_s[1]
    overdue = is_unfinished(schedule) & (deadline < cut)
    ended = np.where(overdue, cut, np.where(is_finished(schedule), schedule.end_s, np.nan))
    return np.maximum(0.0, ended - deadline)


def interrupted_segments(schedule: Schedule) -> BoolArray:
    """Return which segments ended with neither the job's completion nor the cut."""
    jobs = schedule.segment_job
    last = np.full(len(schedule.workload), -1, dtype=np.int64)
    # Segments are in order of start, and of several writes to one place the last one stays.
    last[jobs] = np.arange(len(jobs))
    is_last = last[jobs] == np.arange(len(jobs))
    was_cut = schedule.segment_end_s >= schedule.horizon_s[1]
    return np.asarray(~(is_last & (is_finished(schedule)[jobs] | was_cut)))


def preemptions(schedule: Schedule) -> IntArray:
    """Return how often each job was interrupted (preempted, moved or failed)."""
    interrupted = schedule.segment_job[interrupted_segments(schedule)]
    return np.bincount(interrupted, minlength=len(schedule.workload))


def wasted_gpu_s(schedule: Schedule) -> FloatArray:
    """Return GPU-seconds each interrupted job ran beyond its duration: work done twice.

    A job that was never interrupted wastes nothing.
    """
    redone = np.maximum(0.0, run_s(schedule) - schedule.workload.duration_s)
    return np.where(preemptions(schedule) > 0, redone * gpu_share(schedule), 0.0)


def gpu_share(schedule: Schedule) -> FloatArray:
    """Return GPUs each job asks for, fractions of a GPU counted as fractions."""
    workload = schedule.workload
    return np.asarray(workload.gpus * (workload.milli_gpu / 1000.0))
