"""How far simulated waits are from recorded ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from yardmaster.metrics.per_job import BOUND_S
from yardmaster.model.workload import FloatArray
from yardmaster.workloads.ranks import rank_correlation

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0
FEWEST_DAYS = 14
"""Traces shorter than this are averaged by hour, not by day."""
FACTOR = 2.0
FACTOR_FLOOR_S = MINUTE_S
"""Waits below a minute count as a minute where factors are taken: 2 s and 9 s are the same."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of one side, recorded or simulated; seconds."""

    mean_s: float
    median_s: float
    p95_s: float
    bounded_slowdown: float
    """Mean of max(1, (wait + run time) / max(run time, 10 s))."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far apart the two waits of the same jobs are.

    Attributes:
        jobs: jobs compared.
        recorded: the waits in the record.
        simulated: the waits in the simulation.
        mean_difference_s: mean of simulated − recorded.
        mean_apart_s: mean of |simulated − recorded|.
        median_apart_s: median of it.
        within_minute: share of jobs at most 60 s apart.
        within_ten_minutes: share of jobs at most 600 s apart.
        within_factor_two: share of jobs whose waits differ by a factor of at most 2, waits below a
            minute counted as a minute.
        rank_correlation: Spearman's, over jobs; NaN where one side is constant.
        period_s: a day, or an hour for traces under two weeks.
        period_correlation: Pearson's, of the mean waits of the periods; NaN as above.
        period_ratio: median over periods of simulated / recorded mean wait, where the recorded one
            is a minute or more; NaN if it never is.
        recorded_longer: share of the differences |simulated − recorded| that is waiting the record
            has and the simulation has not.
        cancelled: share of the differences that cancels out within periods: right in the mean of
            the day, wrong about who waits.
    """

    jobs: int
    recorded: Waits
    simulated: Waits
    mean_difference_s: float
    mean_apart_s: float
    median_apart_s: float
    within_minute: float
    within_ten_minutes: float
    within_factor_two: float
    rank_correlation: float
    period_s: float
    period_correlation: float
    period_ratio: float
    recorded_longer: float
    cancelled: float

    @property
    def apart(self) -> float:
        """Mean of |simulated − recorded| over the mean recorded wait.

        0 is exact; 1 is as far as if one had said that nobody waits.
        """
        if self.mean_apart_s == 0:
            return 0.0
        return self.mean_apart_s / self.recorded.mean_s if self.recorded.mean_s > 0 else math.inf


class Periods(NamedTuple):
    """Mean waits of the jobs submitted in each day or hour; those without jobs are left out."""

    begin_s: FloatArray
    recorded_s: FloatArray
    simulated_s: FloatArray
    jobs: FloatArray


def measure_distance(
    submit_s: FloatArray, duration_s: FloatArray, recorded_s: FloatArray, simulated_s: FloatArray
) -> Distance:
    """Compare two columns of waits of the same jobs; none may be NaN, and there must be some."""
    difference_s = simulated_s - recorded_s
    apart_s = np.abs(difference_s)
    larger = np.maximum(np.maximum(recorded_s, simulated_s), FACTOR_FLOOR_S)
    smaller = np.maximum(np.minimum(recorded_s, simulated_s), FACTOR_FLOOR_S)
    length_s = period_of(submit_s)
    means = by_period(submit_s, recorded_s, simulated_s, length_s)
    left = float(np.sum(means.jobs * np.abs(means.simulated_s - means.recorded_s)))
    total = float(apart_s.sum())
    has_waits = means.recorded_s >= MINUTE_S
    ratios = means.simulated_s[has_waits] / means.recorded_s[has_waits]
    return Distance(
        jobs=len(recorded_s),
        recorded=_waits(recorded_s, duration_s),
        simulated=_waits(simulated_s, duration_s),
        mean_difference_s=float(difference_s.mean()),
        mean_apart_s=float(apart_s.mean()),
        median_apart_s=float(np.median(apart_s)),
        within_minute=float(np.mean(apart_s <= MINUTE_S)),
        within_ten_minutes=float(np.mean(apart_s <= 10 * MINUTE_S)),
        within_factor_two=float(np.mean(larger <= FACTOR * smaller)),
        rank_correlation=rank_correlation(recorded_s, simulated_s),
        period_s=length_s,
        period_correlation=correlation(means.recorded_s, means.simulated_s),
        period_ratio=float(np.median(ratios)) if len(ratios) else math.nan,
        recorded_longer=(total - float(difference_s.sum())) / (2.0 * total) if total > 0 else 0.0,
        cancelled=max(0.0, 1.0 - left / total) if total > 0 else 0.0,
    )


def period_of(submit_s: FloatArray) -> float:
    """Return the length of the periods waits are averaged over: a day, or an hour."""
    return DAY_S if np.ptp(submit_s) >= FEWEST_DAYS * DAY_S else HOUR_S


def by_period(
    submit_s: FloatArray, recorded_s: FloatArray, simulated_s: FloatArray, length_s: float
) -> Periods:
    """Average the waits of the jobs submitted in each period."""
    number, period = np.unique(np.floor(submit_s / length_s), return_inverse=True)
    jobs = np.bincount(period).astype(np.float64)
    recorded = np.bincount(period, recorded_s) / jobs
    simulated = np.bincount(period, simulated_s) / jobs
    return Periods(number * length_s, recorded, simulated, jobs)


def correlation(a: FloatArray, b: FloatArray) -> float:
    """Return Pearson's correlation; NaN where a column is constant."""
    if len(a) < 2:
        return math.nan
    x, y = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    # Means of large numbers are rounded: a column that differs by that alone is constant.
    tiny = 1e-12 * len(a) * float(np.abs(a).max(initial=0.0)) * float(np.abs(b).max(initial=0.0))
    return min(1.0, max(-1.0, float(x @ y) / scale)) if scale > tiny else math.nan


def _waits(wait_s: FloatArray, duration_s: FloatArray) -> Waits:
    slowdown = np.maximum(1.0, (wait_s + duration_s) / np.maximum(duration_s, BOUND_S))
    median_s, p95_s = np.percentile(wait_s, (50, 95))
    return Waits(float(wait_s.mean()), float(median_s), float(p95_s), float(slowdown.mean()))
