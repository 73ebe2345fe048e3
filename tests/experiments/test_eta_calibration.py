"""Corrections make intervals hold as often as they say, with what was known and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import YardmasterError
from yardmaster.experiments.eta import Forecast
from yardmaster.experiments.eta_calibration import (
    LEAST_PREDICTIONS,
    Correction,
    calibrate,
    correction_at,
    fit_correction,
    in_turn,
)
from yardmaster.experiments.eta_trials import Trials
from yardmaster.model.cluster import Cluster
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("2x V100:4")


def overconfident(rng, count: int, bias, width: float):
    """Predictions too narrow by `width` and off by `bias`, on a logarithmic scale."""
    centre = rng.normal(9.0, 1.0, count)
    actual = np.exp(centre + bias + rng.normal(0.0, 1.0, count))
    waits = np.exp(centre[:, None] + width * rng.normal(0.0, 1.0, (count, 60)))
    return waits, actual


def made(now_s, waits, actual) -> Trials:
    count = len(now_s)
    return Trials(now_s, np.ones(count, dtype=int), waits, np.zeros((count, 2)), actual)


def covered(waits, actual) -> float:
    low, high = np.quantile(waits, [0.1, 0.9], axis=1, method="inverted_cdf")
    return float(np.mean((low <= actual) & (actual <= high)))


@pytest.mark.parametrize(("bias", "width"), [(0.0, 0.2), (1.0, 0.5), (-1.5, 1.0), (0.3, 3.0)])
def test_corrected_intervals_hold(bias, width):
    """Too narrow, too wide or biased: once corrected, new intervals hold 80 % of the time."""
    rng = np.random.default_rng(7)
    waits, actual = overconfident(rng, 800, bias, width)
    correction = fit_correction(waits, actual, np.ones(800, dtype=bool))
    waits, actual = overconfident(rng, 2000, bias, width)
    forecast = Forecast(0.0, ("",) * 2000, np.ones(2000, dtype=int), np.zeros(2000), waits)
    assert covered(correction.applied(forecast).wait_s, actual) == pytest.approx(0.8, abs=0.04)
    assert abs(covered(waits, actual) - 0.8) > 0.05


@pytest.mark.parametrize("count", [20, 60])
def test_few_predictions_do_not_promise_too_much(count):
    """On average over many small records, the next start is inside at least 80 % of the time."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(400):
        waits, actual = overconfident(rng, count + 1, 0.5, 0.3)
        correction = fit_correction(waits[:-1], actual[:-1], np.ones(count, dtype=bool))
        forecast = Forecast(0.0, ("",), np.ones(1, dtype=int), np.zeros(1), waits[-1:])
        held.append(covered(correction.applied(forecast).wait_s, actual[-1:]))
    assert np.mean(held) > 0.8 - 2 * np.sqrt(0.16 / 400)
    assert np.mean(held) < 0.8 + 2 / (count + 1) + 3 * np.sqrt(0.16 / 400)


def test_who_still_waits_counts():
    """Seen while half of the jobs still wait, the correction is that of the whole truth."""
    rng = np.random.default_rng(5)
    waits, actual = overconfident(rng, 6000, 1.0, 0.3)
    whole = fit_correction(waits, actual, np.ones(6000, dtype=bool))
    since = rng.uniform(0.0, 3e5, 6000)
    started = actual <= since
    assert 0.3 < started.mean() < 0.95
    seen = fit_correction(waits, np.minimum(actual, since), started)
    assert seen.shifts == pytest.approx(whole.shifts, abs=0.25)
    dropped = fit_correction(waits[started], actual[started], np.ones(started.sum(), dtype=bool))
    assert dropped.shifts[2] < whole.shifts[2] - 0.3


def test_a_change_of_times_is_followed():
    """When jobs begin to wait e times as long as before, intervals soon hold again."""
    rng = np.random.default_rng(2)
    count = 800
    now_s = 3600.0 * np.arange(count)
    bias = np.where(np.arange(count) < 300, 0.0, 1.0)
    waits, actual = overconfident(rng, count, bias, 0.5)
    trials = made(now_s, waits, actual)
    low, high = in_turn(trials).T
    held = (low <= actual) & (actual <= high)
    after = slice(400, None)
    once = fit_correction(waits[:300], actual[:300], np.ones(300, dtype=bool))
    left = Forecast(0.0, ("",) * 400, np.ones(400, dtype=int), np.zeros(400), waits[after])
    assert held[after].mean() == pytest.approx(0.8, abs=0.05)
    assert covered(once.applied(left).wait_s, actual[after]) < 0.7


def test_what_is_not_yet_known_teaches_nothing():
    """Starts after the moment may be any: intervals and correction stay the same."""
    rng = np.random.default_rng(4)
    now_s = np.sort(rng.uniform(0, 4e5, 150))
    waits, actual = overconfident(rng, 150, 0.3, 0.5)
    trials = made(now_s, waits, actual)
    moment = 3e5
    unknown = now_s + actual > moment
    other = replace(trials, actual_s=np.where(unknown, actual * 7 + 1e5, actual))
    assert np.count_nonzero(unknown & (now_s < moment)) > 5
    before = now_s <= moment
    np.testing.assert_array_equal(in_turn(other)[before], in_turn(trials)[before])
    once, again = (correction_at(t, in_turn(t), moment) for t in (trials, other))
    assert once == again


def test_the_first_intervals_are_missing():
    """Without enough predictions before it, an interval is not corrected but NaN."""
    waits, actual = overconfident(np.random.default_rng(1), 30, 0.0, 0.5)
    interval_s = in_turn(made(np.arange(30.0), waits, actual))
    np.testing.assert_array_equal(np.isnan(interval_s[:, 0]), np.arange(30) < LEAST_PREDICTIONS)


@given(st.lists(st.floats(0, 1e6), min_size=5, max_size=30), st.tuples(*[st.floats(-3, 3)] * 3))
def test_corrections_keep_the_order(waits, shifts):
    """Whatever the correction, points stay in order and waits stay possible."""
    forecast = Forecast(0.0, ("a",), np.array([1]), np.zeros(1), np.array([waits]))
    moved = Correction(shifts, 20).applied(forecast)
    points = [float(moved.quantile(share)[0]) for share in (0.1, 0.5, 0.9)]
    assert points == sorted(points)
    assert (moved.wait_s >= 0).all()
    assert np.isfinite(moved.wait_s).all()


def test_sure_predictions_can_be_widened():
    """Simulations that all agree get an interval too, if earlier ones were wrong."""
    forecast = Forecast(0.0, ("a",), np.array([1]), np.zeros(1), np.full((1, 50), 3600.0))
    moved = Correction((-2.0, 0.0, 2.0), 20).applied(forecast)
    assert moved.quantile(0.1)[0] < 3600.0 < moved.quantile(0.9)[0]


def test_no_correction_changes_nothing():
    """Predictions that were right stay as they are; so do those beyond the horizon and at once."""
    waits = np.array([[6000.0, 60.0, 0.0, 600.0, np.inf]])
    forecast = Forecast(0.0, ("a",), np.array([1]), np.zeros(1), waits)
    np.testing.assert_allclose(Correction((0, 0, 0), 20).applied(forecast).wait_s, waits)
    moved = Correction((1, 1, 1), 20).applied(forecast).wait_s[0]
    assert moved[2] == 0.0
    assert np.isinf(moved[-1])
    assert (moved[[0, 1, 3]] > waits[0, [0, 1, 3]]).all()


def test_few_predictions_teach_nothing():
    """A correction from a handful is refused."""
    with pytest.raises(YardmasterError, match="at least 20"):
        fit_correction(np.ones((5, 10)), np.ones(5), np.ones(5, dtype=bool))


def test_only_the_past_teaches():
    """What happens after now leaves the correction as it is."""
    jobs = simple(jobs=600, seed=2, gpus=8, load=1.1, max_gpus=4)
    jobs = jobs.with_columns(estimate_s=np.full(600, np.nan))
    schedule = simulate(jobs, CLUSTER, "fifo+skip")
    now_s = float(np.round(0.6 * schedule.horizon_s[1]))
    once = calibrate(schedule, now_s, trials=25, simulations=5)
    unknown = ~(schedule.end_s <= now_s)
    longer = np.where(unknown, jobs.duration_s * 3 + 5000.0, jobs.duration_s)
    other = simulate(jobs.with_columns(duration_s=longer), CLUSTER, "fifo+skip")
    assert (other.start_s != schedule.start_s).any()
    assert calibrate(other, now_s, trials=25, simulations=5) == once
