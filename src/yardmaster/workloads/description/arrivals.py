"""When jobs are submitted: by hour and weekday, how far apart, and how bursty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.model.workload import FloatArray, Workload
from yardmaster.workloads.clock import HOUR_S, WEEK_S, since_monday_s
from yardmaster.workloads.description.spread import Spread, share, spread

WEEK_HOURS = 168


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When jobs are submitted.

    Attributes:
        is_dated: whether hours and weekdays are the calendar's; otherwise second 0 of the clock is
            taken for a Monday's midnight.
        hourly_mean: jobs per complete hour, hours counted from the first submission.
        hourly_dispersion: variance / mean of these counts (index of dispersion): 1 for a Poisson
            process, more for bursts and daily rhythms; NaN below two complete hours.
        gaps_s: seconds from one submission to the next.
        jobs_by_hour: (24) jobs submitted in each hour of the day, midnight first.
        jobs_by_weekday: (7) jobs submitted on each weekday, Monday first.
        jobs_by_hour_of_week: (7 × 24) jobs submitted in each hour of each weekday.
        hours_of_week: (7 × 24) hours of each kind between first and last submission, by which
            counts must be divided: a trace of ten days has some weekdays twice.
    """

    is_dated: bool
    hourly_mean: float
    hourly_dispersion: float
    gaps_s: Spread
    jobs_by_hour: tuple[int, ...]
    jobs_by_weekday: tuple[int, ...]
    jobs_by_hour_of_week: tuple[tuple[int, ...], ...]
    hours_of_week: tuple[tuple[float, ...], ...]

    def rates(self) -> FloatArray:
        """Return (7 × 24) jobs per hour in each hour of the week; NaN for hours not covered."""
        jobs = np.array(self.jobs_by_hour_of_week, dtype=np.float64)
        return _rates(jobs, np.array(self.hours_of_week))

    def rates_by_hour(self) -> FloatArray:
        """Return (24) jobs per hour in each hour of the day."""
        jobs = np.array(self.jobs_by_hour, dtype=np.float64)
        return _rates(jobs, np.sum(self.hours_of_week, axis=0))

    def rates_by_weekday(self) -> FloatArray:
        """Return (7) jobs per hour on each weekday."""
        jobs = np.array(self.jobs_by_weekday, dtype=np.float64)
        return _rates(jobs, np.sum(self.hours_of_week, axis=1))


def arrivals_of(workload: Workload) -> Arrivals:
    """Sum up when jobs are submitted."""
    submit_s, offset_s = workload.submit_s, since_monday_s(workload)
    hour = np.floor((submit_s + offset_s) / HOUR_S).astype(np.int64) % WEEK_HOURS
    week = np.bincount(hour, minlength=WEEK_HOURS).reshape(7, 24)
    covered_h = _covered_h(float(submit_s[0]) + offset_s, float(submit_s[-1]) + offset_s)
    mean, dispersion = hourly_counts(submit_s)
    return Arrivals(
        is_dated=bool(workload.begins),
        hourly_mean=mean,
        hourly_dispersion=dispersion,
        gaps_s=spread(np.diff(submit_s)),
        jobs_by_hour=tuple(week.sum(axis=0).tolist()),
        jobs_by_weekday=tuple(week.sum(axis=1).tolist()),
        jobs_by_hour_of_week=tuple(map(tuple, week.tolist())),
        hours_of_week=tuple(map(tuple, covered_h.tolist())),
    )


def hourly_counts(submit_s: FloatArray) -> tuple[float, float]:
    """Return mean and variance / mean of the jobs in each complete hour since the first job.

    Empty hours count, but are never laid out: a clock may be off by years.
    """
    since_s = submit_s - submit_s[0]
    hours = int(np.floor(since_s[-1] / HOUR_S))
    if hours < 1:
        return float("nan"), float("nan")
    number = np.floor(since_s / HOUR_S).astype(np.int64)
    _, counts = np.unique(number[number < hours], return_counts=True)
    mean = float(counts.sum()) / hours
    squares = float(np.sum(counts.astype(np.float64) ** 2)) / hours
    return mean, share(squares - mean * mean, mean) if hours > 1 else float("nan")


def _covered_h(begin_s: float, end_s: float) -> FloatArray:
    """Return (7 × 24): hours of each kind between two seconds since some Monday's midnight."""
    starts_s = np.arange(WEEK_HOURS) * HOUR_S

    def passed_s(until_s: float) -> FloatArray:
        weeks, rest_s = divmod(until_s, WEEK_S)
        passed = weeks * HOUR_S + np.clip(rest_s - starts_s, 0.0, HOUR_S)
        return np.asarray(passed, dtype=np.float64)

    return ((passed_s(end_s) - passed_s(begin_s)) / HOUR_S).reshape(7, 24)


def _rates(jobs: FloatArray, hours: FloatArray) -> FloatArray:
    rates = np.divide(jobs, hours, out=np.full(jobs.shape, np.nan), where=hours > 0)
    return np.asarray(rates, dtype=np.float64)
