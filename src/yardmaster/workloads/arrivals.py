"""When jobs are submitted: memoryless arrivals, and arrivals with days, weeks and bursts.

Both processes are asked for a number of jobs and a span, and put the first job at its beginning and
the last at its end. Given their number, the points of a Poisson process are independent, so the
jobs between are placed independently of each other. All processes that recipes can name are in
`recipes.arrivals`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray

HOUR_S = 3600.0
WEEK_HOURS = 168
LONGEST_SPAN_S = 1000 * 365 * 24 * HOUR_S
"""A workload that takes longer than a thousand years to arrive is a typing mistake."""


@dataclass(frozen=True, slots=True, eq=False)
class Season:
    """How the rate of submissions changes from hour to hour.

    Attributes:
        hour_weights: (24,) relative rate of each hour of the day, midnight first.
        weekday_weights: (7,) relative rate of each weekday, Monday first.
        rate_cv2: squared coefficient of variation of the hourly rate, season and bursts together.
    """

    hour_weights: FloatArray
    weekday_weights: FloatArray
    rate_cv2: float

    def week(self) -> FloatArray:
        """Return the (168,) relative rates of the hours of a week, with mean 1."""
        weights = np.outer(self.weekday_weights, self.hour_weights).ravel()
        return np.asarray(weights / weights.mean(), dtype=np.float64)

    def burst_variance(self) -> float:
        """Return the variance of the random factor (mean 1) on each hour's rate.

        The rate is season × burst, both with mean 1 and independent of each other, therefore
        1 + cv²(rate) = (1 + cv²(season)) · (1 + var(burst)).
        """
        seasonal_cv2 = float(self.week().var())
        return max(0.0, (1.0 + self.rate_cv2) / (1.0 + seasonal_cv2) - 1.0)


def rate_cv2(hourly_mean: float, hourly_dispersion: float) -> float:
    """Return the squared coefficient of variation of the rate behind hourly counts.

    For Poisson counts with a random rate, variance / mean = 1 + mean · cv²(rate). The cv² does not
    depend on how many jobs arrive, so it carries over to clusters of another size.
    """
    return max(0.0, (hourly_dispersion - 1.0) / hourly_mean)


def span_for_load(
    work_gpu_s: float, gpus: int, load: float, *, whole_seconds: bool = True
) -> float:
    """Return the seconds over which work must arrive to offer `load` to `gpus` GPUs.

    Raises:
        InvalidWorkloadError: if that is longer than any real workload.
    """
    span_s = work_gpu_s / (gpus * load)
    if span_s > LONGEST_SPAN_S:
        raise InvalidWorkloadError(
            f"load {load:g} is too small: on {gpus:,} GPUs the jobs would arrive over "
            f"{span_s / (365 * 24 * HOUR_S):,.0f} years."
        )
    return max(1.0, float(np.round(span_s))) if whole_seconds else span_s


def poisson_arrivals(rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
    """Draw memoryless submissions over [0, `span_s`], in whole seconds."""
    drawn_s = rng.random(max(0, jobs - 2)) * span_s
    return np.round(with_ends(drawn_s, jobs, span_s))


def seasonal_arrivals(
    rng: np.random.Generator, jobs: int, span_s: float, season: Season
) -> FloatArray:
    """Draw submissions of a doubly stochastic Poisson process over [0, `span_s`].

    Second 0 is Monday midnight. Each hour's rate is hour weight × weekday weight × a gamma
    distributed burst factor; within the hour arrivals are uniform. Times are whole seconds.
    """
    drawn_s = seasonal_moments(rng, max(0, jobs - 2), span_s, season)
    return np.round(with_ends(drawn_s, jobs, span_s))


def seasonal_moments(
    rng: np.random.Generator, jobs: int, span_s: float, season: Season
) -> FloatArray:
    """Draw the moments of `seasonal_arrivals`, unsorted, without first and last."""
    rate_rng, count_rng, place_rng = rng.spawn(3)
    hours = max(1, int(np.ceil(span_s / HOUR_S)))
    weights = season.week()[np.arange(hours) % WEEK_HOURS]
    variance = season.burst_variance()
    if variance > 0:
        weights = weights * rate_rng.gamma(1.0 / variance, variance, size=hours)
    lengths_s = np.full(hours, HOUR_S)
    lengths_s[-1] = span_s - HOUR_S * (hours - 1)
    weights = weights * lengths_s
    hour = np.repeat(np.arange(hours), count_rng.multinomial(jobs, weights / weights.sum()))
    return np.asarray(hour * HOUR_S + place_rng.random(jobs) * lengths_s[hour], dtype=np.float64)


def with_ends(drawn_s: FloatArray, jobs: int, span_s: float) -> FloatArray:
    """Add the first submission at second 0 and the last at `span_s`, and sort.

    Fixing the ends makes the offered load exact without stretching the hours of the day.
    """
    ends_s = np.array([0.0, span_s])[:jobs]
    return np.sort(np.concatenate((drawn_s, ends_s)))


def stretched(times_s: FloatArray, span_s: float) -> FloatArray:
    """Stretch sorted times so that they span `span_s`, keeping the first where it is.

    Times that were whole seconds are rounded to whole seconds again.
    """
    begin_s = times_s[0]
    offsets_s = (times_s - begin_s) * (span_s / (times_s[-1] - begin_s))
    whole = bool(np.all(times_s == np.round(times_s)))
    return np.asarray(begin_s + (np.round(offsets_s) if whole else offsets_s), dtype=np.float64)
