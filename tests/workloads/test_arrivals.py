"""Submissions: memoryless, seasonal and bursty, over exactly the span that was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.arrivals import (
    HOUR_S,
    Season,
    poisson_arrivals,
    rate_cv2,
    seasonal_arrivals,
    span_for_load,
    stretched,
)

FLAT = Season(np.ones(24), np.ones(7), rate_cv2=0.0)


def _dispersion(times: np.ndarray, span_s: float) -> float:
    counts = np.histogram(times, bins=np.arange(0, span_s + 1, HOUR_S))[0]
    return float(counts.var() / counts.mean())


@given(
    jobs=st.integers(1, 300),
    span_s=st.integers(1, 10**7).map(float),
    seed=st.integers(0, 1000),
    bursts=st.floats(0, 5),
)
def test_arrivals_span_exactly_what_was_asked(jobs, span_s, seed, bursts):
    """The first job comes at second 0, the last at the span; whole seconds, sorted."""
    season = Season(np.arange(1.0, 25.0), np.ones(7), rate_cv2=bursts)
    rng = np.random.default_rng(seed)
    for times in (
        poisson_arrivals(rng, jobs, span_s),
        seasonal_arrivals(rng, jobs, span_s, season),
    ):
        assert len(times) == jobs
        assert times[0] == 0
        assert times[-1] == (span_s if jobs > 1 else 0)
        assert (np.diff(times) >= 0).all()
        assert (times == np.round(times)).all()


def test_poisson_arrivals_are_not_dispersed():
    """Hourly counts of memoryless arrivals have a variance equal to their mean."""
    times = poisson_arrivals(np.random.default_rng(1), 100_000, 5000 * HOUR_S)
    assert _dispersion(times, 5000 * HOUR_S) == pytest.approx(1.0, abs=0.08)


def test_a_flat_season_without_bursts_is_a_poisson_process():
    """Without weights and bursts the seasonal process loses its dispersion."""
    times = seasonal_arrivals(np.random.default_rng(2), 100_000, 5000 * HOUR_S, FLAT)
    assert _dispersion(times, 5000 * HOUR_S) == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize("mean", [5.0, 40.0])
def test_dispersion_follows_the_rate_whatever_the_number_of_jobs(mean):
    """Variance / mean of hourly counts is 1 + mean × cv² of the rate, season included."""
    season = Season(np.r_[np.full(12, 0.2), np.full(12, 1.8)], np.ones(7), rate_cv2=2.0)
    hours = 20_000
    times = seasonal_arrivals(np.random.default_rng(3), int(mean * hours), hours * HOUR_S, season)
    assert _dispersion(times, hours * HOUR_S) == pytest.approx(1 + mean * 2.0, rel=0.1)


def test_hours_and_weekdays_keep_their_weights():
    """Shares of submissions by hour and weekday are those of the season; Monday comes first."""
    hour_weights = np.linspace(0.5, 1.5, 24)
    weekday_weights = np.array([1.5, 1.3, 1.2, 1.1, 1.0, 0.5, 0.4])
    season = Season(hour_weights, weekday_weights, rate_cv2=0.0)
    weeks_s = 50 * 168 * HOUR_S
    times = seasonal_arrivals(np.random.default_rng(4), 400_000, weeks_s, season)
    by_hour = np.bincount(((times // HOUR_S) % 24).astype(int), minlength=24) / len(times)
    by_day = np.bincount(((times // (24 * HOUR_S)) % 7).astype(int), minlength=7) / len(times)
    assert by_hour == pytest.approx(hour_weights / hour_weights.sum(), abs=0.002)
    assert by_day == pytest.approx(weekday_weights / weekday_weights.sum(), abs=0.003)


def test_the_rate_variance_is_read_from_hourly_counts():
    """A Poisson process has no rate variance; dispersion above 1 is mean × cv²."""
    assert rate_cv2(20.0, 1.0) == 0.0
    assert rate_cv2(20.0, 0.5) == 0.0
    assert rate_cv2(20.0, 41.0) == pytest.approx(2.0)


def test_a_load_that_takes_millennia_is_refused():
    """A load so small that jobs would arrive for thousands of years names the argument."""
    assert span_for_load(1000.0, gpus=10, load=0.5) == 200.0
    with pytest.raises(InvalidWorkloadError, match=r"load 1e-12 is too small"):
        span_for_load(1e6, gpus=1, load=1e-12)


@given(
    gaps=st.lists(st.integers(0, 1000), min_size=1, max_size=50).filter(any),
    begin=st.integers(0, 10**6),
    span_s=st.integers(1, 10**6),
)
def test_stretching_keeps_the_beginning_the_order_and_whole_seconds(gaps, begin, span_s):
    """Stretched times begin where they began and span what was asked for."""
    times = begin + np.r_[0.0, np.cumsum(gaps)]
    out = stretched(times, float(span_s))
    assert out[0] == begin
    assert out[-1] - out[0] == span_s
    assert (np.diff(out) >= 0).all()
    assert (out == np.round(out)).all()


def test_stretching_keeps_fractions_of_seconds():
    """Times that were not whole seconds are not rounded."""
    assert stretched(np.array([0.5, 1.0, 1.5]), 3.0).tolist() == [0.5, 2.0, 3.5]
