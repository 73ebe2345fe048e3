"""What a trace can and cannot say: endings, cut-off run times, estimates, waits, empty columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.model.workload import COLUMN_NAMES, BoolArray, FloatArray, Labels, Workload
from yardmaster.workloads.description.shapes import gpu_time_s
from yardmaster.workloads.description.spread import Spread, share, spread

CENSORED_STATUSES = ("running", "censored")
"""Endings of jobs that ran longer than their duration says: it is what was seen of it."""
COMPARED_DURATIONS = 20
"""How many shorter durations a suspiciously frequent one is compared with."""
SUSPICIOUS_FACTOR = 10
SUSPICIOUS_JOBS = 10
SUSPICIOUS_SHARE = 0.001
OPTIONAL_COLUMNS = (
    "estimate_s", "gpu_types", "gpu_memory_gib", "cpus", "memory_gib", "tenant", "user",
    "deadline_s", "kind", "status", "recorded_wait_s",
)  # fmt: skip
"""Columns in which a job may have no value."""


@dataclass(frozen=True, slots=True)
class SharedDuration:
    """A run time that suspiciously many jobs have to the second: a limit, or a publisher's clip."""

    duration_s: float
    jobs: int
    jobs_share: float


@dataclass(frozen=True, slots=True)
class Censoring:
    """Jobs of which only a part of the run time is known.

    Attributes:
        jobs: jobs whose status is one of `CENSORED_STATUSES`.
        jobs_share: their share of all jobs.
        gpu_time_share: their share of all GPU time, as far as it was seen.
        shared_duration: the largest run time that suspiciously many jobs share, if there is one.
    """

    jobs: int
    jobs_share: float
    gpu_time_share: float
    shared_duration: SharedDuration | None


@dataclass(frozen=True, slots=True)
class Estimates:
    """Run times that users asked for, or a model predicted.

    Attributes:
        jobs_share: share of the jobs that have one.
        ratio: estimate / duration, over jobs that have one and run at all.
        below_share: share of these that run longer than estimated.
        exact_share: share of these that run exactly as long.
    """

    jobs_share: float
    ratio: Spread
    below_share: float
    exact_share: float


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits that the trace recorded: share of the jobs that have one, and their spread."""

    jobs_share: float
    wait_s: Spread


def is_censored(workload: Workload) -> BoolArray:
    """Return the jobs that ran longer than their duration says."""
    names = workload.status.names
    codes = [code for code, name in enumerate(names) if name.casefold() in CENSORED_STATUSES]
    return np.isin(workload.status.codes, codes)


def censoring_of(workload: Workload) -> Censoring:
    """Sum up the jobs of which only a part of the run time is known."""
    censored, work_s = is_censored(workload), gpu_time_s(workload)
    jobs = int(np.count_nonzero(censored))
    return Censoring(
        jobs=jobs,
        jobs_share=share(jobs, len(workload)),
        gpu_time_share=share(float(work_s[censored].sum()), float(work_s.sum())),
        shared_duration=shared_duration(workload.duration_s),
    )


def shared_duration(duration_s: FloatArray) -> SharedDuration | None:
    """Return the largest run time that suspiciously many jobs share.

    At least ten jobs and one in a thousand must have it, ten times as many as each of the twenty
    next shorter run times has on average. Where run times are few and round, nothing is suspicious.
    """
    values, counts = np.unique(duration_s, return_counts=True)
    if len(values) <= COMPARED_DURATIONS:
        return None
    passed = np.concatenate(([0], np.cumsum(counts)))
    below = (passed[COMPARED_DURATIONS:-1] - passed[: -COMPARED_DURATIONS - 1]) / COMPARED_DURATIONS
    frequent = counts[COMPARED_DURATIONS:]
    fewest = max(SUSPICIOUS_JOBS, SUSPICIOUS_SHARE * len(duration_s))
    found = np.flatnonzero((frequent >= fewest) & (frequent >= SUSPICIOUS_FACTOR * below))
    if not len(found):
        return None
    place = int(found[-1]) + COMPARED_DURATIONS
    jobs = int(counts[place])
    return SharedDuration(float(values[place]), jobs, share(jobs, len(duration_s)))


def estimates_of(workload: Workload) -> Estimates:
    """Sum up how estimates compare with run times."""
    known = ~np.isnan(workload.estimate_s)
    compared = known & (workload.duration_s > 0)
    estimate_s, duration_s = workload.estimate_s[compared], workload.duration_s[compared]
    count = len(estimate_s)
    return Estimates(
        jobs_share=share(int(np.count_nonzero(known)), len(workload)),
        ratio=spread(estimate_s / duration_s),
        below_share=share(int(np.count_nonzero(estimate_s < duration_s)), count),
        exact_share=share(int(np.count_nonzero(estimate_s == duration_s)), count),
    )


def waits_of(workload: Workload) -> Waits:
    """Sum up the recorded waits."""
    known = workload.recorded_wait_s[~np.isnan(workload.recorded_wait_s)]
    return Waits(share(len(known), len(workload)), spread(known))


def coverage_of(workload: Workload) -> dict[str, float]:
    """Return the share of the jobs that have a value, for every column that may be empty."""
    return {
        key: share(int(np.count_nonzero(_present(getattr(workload, key)))), len(workload))
        for key in COLUMN_NAMES
        if key in OPTIONAL_COLUMNS
    }


def _present(column: Labels | FloatArray) -> BoolArray:
    return column.codes >= 0 if isinstance(column, Labels) else ~np.isnan(column)
