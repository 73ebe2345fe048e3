"""Paired statistics: intervals that cover, and gaps worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from yardmaster.errors import YardmasterError
from yardmaster.metrics import statistics
from yardmaster.metrics.statistics import (
    Interval,
    blocks,
    bootstrap_mean,
    excludes_zero,
    hindsight_gap,
    paired_difference,
)
from yardmaster.model.cluster import Cluster

TRIALS = 600
NOISE = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
}


@pytest.mark.parametrize("units", [8, 20])
@pytest.mark.parametrize("noise", NOISE)
def test_paired_intervals_cover_the_truth(noise, units):
    """About 95 % of intervals hold the true difference, with normal and with skewed units."""
    rng = np.random.default_rng(7)
    held = 0
    for trial in range(TRIALS):
        b = rng.uniform(50, 500, size=units)  # what the workloads have in common
        a = b + 0.5 + NOISE[noise](rng, units)
        interval = paired_difference(a, b, seed=trial, resamples=500).absolute
        held += interval.low <= 0.5 <= interval.high
    assert 0.9 <= held / TRIALS <= 0.985


def test_relative_intervals_cover_the_truth():
    """The interval of mean(a) / mean(b) − 1 covers too when the baseline itself varies a lot."""
    rng = np.random.default_rng(11)
    held = 0
    for trial in range(TRIALS):
        b = rng.uniform(50, 500, size=12)
        a = b * (0.9 + 0.1 * rng.normal(size=12))
        interval = paired_difference(a, b, seed=trial, resamples=500).relative
        held += interval.low <= -0.1 <= interval.high
    assert 0.9 <= held / TRIALS <= 0.985


@pytest.mark.parametrize("degrees", [1, 2, 5, 9, 10, 11, 19, 40, 1000])
def test_t_quantile_agrees_with_an_independent_one(degrees):
    """The quantile of Student's distribution is right to four digits."""
    assert statistics.t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-4)


def test_large_samples_give_the_normal_interval():
    """With many units the interval is mean ± 1.96 standard errors."""
    x = np.random.default_rng(0).normal(10, 3, size=2000)
    mean, low, high = bootstrap_mean(x)
    half = 1.96 * x.std(ddof=1) / math.sqrt(2000)
    assert mean == pytest.approx(x.mean())
    assert (low, high) == pytest.approx((x.mean() - half, x.mean() + half), abs=0.1 * half)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12), st.integers(0, 5))
def test_intervals_hold_their_mean_and_are_deterministic(values, seed):
    """Equal input, equal interval; the mean lies inside."""
    interval = bootstrap_mean(values, seed=seed, resamples=200)
    assert interval == bootstrap_mean(values, seed=seed, resamples=200)
    slack = 1e-9 * (1 + max(map(abs, values)))
    assert interval.low - slack <= interval.mean <= interval.high + slack


@pytest.mark.parametrize("units", [2, 3, 4])
def test_few_units_get_students_interval(units):
    """With fewer than five units the interval is the textbook one."""
    x = np.array([3.0, 5.0, 4.0, 9.0])[:units]
    expected = stats.t.interval(0.95, units - 1, x.mean(), stats.sem(x))
    assert bootstrap_mean(x)[1:] == pytest.approx(expected, rel=1e-4)


def test_units_that_are_mostly_equal_get_students_interval():
    """One unit that differs among twenty does not blow up the interval."""
    x = np.array([1.0] + [0.0] * 19)
    expected = stats.t.interval(0.95, 19, x.mean(), stats.sem(x))
    assert bootstrap_mean(x)[1:] == pytest.approx(expected, rel=1e-4)


def test_drawing_in_chunks_changes_nothing(monkeypatch):
    """The bound on memory does not show in the result."""
    x = np.random.default_rng(0).exponential(size=30)
    whole = bootstrap_mean(x, resamples=1000)
    monkeypatch.setattr(statistics, "DRAWS_AT_ONCE", 100)
    assert bootstrap_mean(x, resamples=1000) == whole


@pytest.mark.parametrize(
    ("values", "mean"), [([3.0], 3.0), ([], math.nan), ([1, math.nan], math.nan)]
)
def test_no_interval_without_two_numbers(values, mean):
    """One unit has a mean but no interval; a missing unit is never dropped silently."""
    found = bootstrap_mean(values)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert not excludes_zero(found)


def test_pairing_removes_what_workloads_share():
    """A small constant advantage is plain although the workloads differ by far more."""
    b = np.array([100.0, 900.0, 250.0, 4000.0, 30.0])
    difference = paired_difference(0.9 * b, b)
    assert difference.relative == pytest.approx((-0.1, -0.1, -0.1))
    assert difference.absolute.mean == pytest.approx(-0.1 * b.mean())
    assert excludes_zero(difference.relative)


def test_equal_columns_do_not_differ():
    """A scheduler compared with itself is at zero, and zero is not excluded."""
    difference = paired_difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert difference.absolute == (0, 0, 0)
    assert not excludes_zero(difference.absolute)


def test_a_baseline_of_zero_has_no_relative_difference():
    """Nothing is a fraction of zero; the absolute difference remains."""
    difference = paired_difference([1.0, 2.0], [0.0, 0.0])
    assert difference.absolute.mean == 1.5
    assert math.isnan(difference.relative.mean)
    assert math.isnan(difference.relative.low)


def test_pairs_need_equal_lengths():
    """Columns of different length are not pairs."""
    with pytest.raises(YardmasterError, match="Cannot pair 2 units with 3"):
        paired_difference([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.1, 0.2, True), (-2, -1, True), (-1, 1, False), (0, 1, False)]
)
def test_excludes_zero(low, high, expected):
    """Zero on the border is not excluded."""
    assert excludes_zero(Interval(0.5, low, high)) is expected


@given(st.integers(1, 200), st.data())
def test_blocks_cut_all_jobs_into_equal_parts(jobs, data):
    """Blocks follow one another, hold every job once, and differ by one job at most."""
    count = data.draw(st.integers(1, jobs))
    parts = blocks(np.zeros(jobs), count)
    assert len(parts) == count
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(jobs))
    sizes = {part.stop - part.start for part in parts}
    assert max(sizes) - min(sizes) <= 1


def test_blocks_of_a_schedule(make):
    """A schedule is cut by its jobs; more blocks than jobs are a mistake."""
    schedule = make(Cluster.pool(1), [], cut_s=9.0, submit_s=[0, 1, 2], duration_s=[1, 1, 1])
    assert blocks(schedule, 3) == (slice(0, 1), slice(1, 2), slice(2, 3))
    with pytest.raises(YardmasterError, match="Cannot cut 3 jobs into 4 blocks"):
        blocks(schedule, 4)


def test_hindsight_gap_by_hand():
    """Gaps are to the best of each workload, averaged over workloads."""
    values = [[10.0, 40.0], [20.0, 20.0], [15.0, 30.0]]
    np.testing.assert_allclose(hindsight_gap(values), [0.5, 0.5, 0.5])
    np.testing.assert_allclose(hindsight_gap([[1, 1], [2, 3]]), [0, 1.5])
    np.testing.assert_allclose(
        hindsight_gap([[0.8, 0.5], [0.4, 1.0]], better="higher"), [0.25, 0.25]
    )


def test_hindsight_gap_with_missing_and_zero_values():
    """A scheduler without a value has no gap; a best of zero is matched only by zero."""
    gaps = hindsight_gap([[math.nan, 1.0], [2.0, 1.0], [3.0, 2.0]])
    np.testing.assert_allclose(gaps, [math.nan, 0, 0.75])
    np.testing.assert_array_equal(hindsight_gap([[0.0], [1.0]]), [0, math.inf])
