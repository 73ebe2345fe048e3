"""Corrections make intervals hold as often as they say, with what was known and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import YardmasterError
from yardmaster.experiments.eta import Forecast
from yardmaster.experiments.eta_calibration import (
    Correction,
    calibrate,
    fit_correction,
    naive_interval,
    try_out,
)
from yardmaster.experiments.snapshot import snapshot_of
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("2x V100:4")


def overconfident(rng, count: int, bias: float, width: float):
    """Predictions too narrow by `width` and off by `bias`, on a logarithmic scale."""
    centre = rng.normal(9.0, 1.0, count)
    actual = np.exp(centre + bias + rng.normal(0.0, 1.0, count))
    waits = np.exp(centre[:, None] + width * rng.normal(0.0, 1.0, (count, 60)))
    return waits, actual


def covered(waits, actual) -> float:
    low, high = np.quantile(waits, [0.1, 0.9], axis=1, method="inverted_cdf")
    return float(np.mean((low <= actual) & (actual <= high)))


@pytest.mark.parametrize(("bias", "width"), [(0.0, 0.2), (1.0, 0.5), (-1.5, 1.0), (0.3, 3.0)])
def test_corrected_intervals_hold(bias, width):
    """Too narrow, too wide or biased: once corrected, new intervals hold 80 % of the time."""
    rng = np.random.default_rng(7)
    correction = fit_correction(*overconfident(rng, 800, bias, width))
    waits, actual = overconfident(rng, 2000, bias, width)
    forecast = Forecast(0.0, ("",) * 2000, np.ones(2000, dtype=int), np.zeros(2000), waits)
    assert covered(correction.applied(forecast).wait_s, actual) == pytest.approx(0.8, abs=0.04)
    assert abs(covered(waits, actual) - 0.8) > 0.05


@given(st.lists(st.floats(0, 1e6), min_size=5, max_size=30), st.tuples(*[st.floats(-3, 3)] * 3))
def test_corrections_keep_the_order(waits, shifts):
    """Whatever the correction, points stay in order and waits stay possible."""
    forecast = Forecast(0.0, ("a",), np.array([1]), np.zeros(1), np.array([waits]))
    moved = Correction(shifts, 20).applied(forecast)
    points = [float(moved.quantile(share)[0]) for share in (0.1, 0.5, 0.9)]
    assert points == sorted(points)
    assert (moved.wait_s >= 0).all()
    assert np.isfinite(moved.wait_s).all()


def test_no_correction_changes_nothing():
    """Predictions that were right stay as they are; so do those beyond the horizon and at once."""
    waits = np.array([[0.0, 60.0, 600.0, 6000.0, np.inf]])
    forecast = Forecast(0.0, ("a",), np.array([1]), np.zeros(1), waits)
    np.testing.assert_allclose(Correction((0, 0, 0), 20).applied(forecast).wait_s, waits)
    moved = Correction((1, 1, 1), 20).applied(forecast).wait_s[0]
    assert moved[0] == 0.0
    assert np.isinf(moved[-1])
    assert (moved[1:-1] > waits[0, 1:-1]).all()


def test_few_predictions_teach_nothing():
    """A correction from a handful is refused."""
    with pytest.raises(YardmasterError, match="at least 20"):
        fit_correction(np.ones((5, 10)), np.ones(5))


@pytest.fixture(scope="module")
def schedule():
    jobs = simple(jobs=600, seed=2, gpus=8, load=1.1, max_gpus=4)
    return simulate(jobs.with_columns(estimate_s=np.full(600, np.nan)), CLUSTER, "fifo+skip")


def test_trials_are_held_against_the_truth(schedule):
    """Moments lie in the span, and what came true is the wait the schedule shows."""
    begin, end = 0.5 * schedule.horizon_s[1], 0.8 * schedule.horizon_s[1]
    trial = try_out(schedule, begin, end, trials=6, simulations=5)
    assert ((trial.now_s >= begin - 1) & (trial.now_s <= end + 1)).all()
    starts = trial.now_s + trial.actual_s
    assert np.isin(np.round(starts, 6), np.round(schedule.start_s, 6)).all()
    assert trial.wait_s.shape == (6, 5)
    assert (trial.naive_s[:, 0] <= trial.naive_s[:, 1]).all()


def test_only_the_past_teaches(schedule):
    """What happens after now leaves the correction as it is."""
    now_s = float(np.round(0.6 * schedule.horizon_s[1]))
    once = calibrate(schedule, now_s, trials=20, simulations=5)
    jobs = schedule.workload
    unknown = ~(schedule.end_s <= now_s)
    longer = np.where(unknown, jobs.duration_s * 3 + 5000.0, jobs.duration_s)
    other = simulate(jobs.with_columns(duration_s=longer), CLUSTER, "fifo+skip")
    assert (other.start_s != schedule.start_s).any()
    assert calibrate(other, now_s, trials=20, simulations=5) == once


def test_where_nobody_waits_nothing_is_learnt():
    """A span without a queue is an error that names it."""
    jobs = Workload.of(submit_s=[0, 1000], duration_s=[5, 5])
    with pytest.raises(YardmasterError, match="Hardly anybody waits from second 10"):
        try_out(simulate(jobs, CLUSTER, "fifo"), 10.0, 900.0, trials=3, simulations=2)


def test_past_waits_of_like_jobs():
    """The naive interval is that of past waits longer than so far, less so far."""
    # One GPU, jobs of 100 s every 50 s: the k-th job waits 50·k seconds.
    jobs = Workload.of(submit_s=50.0 * np.arange(60), duration_s=np.full(60, 100.0))
    schedule = simulate(jobs, Cluster.of("1x V100:1"), "fifo")
    moment = snapshot_of(schedule, 2000.0)
    row = int(moment.queued[-1])  # just submitted: nothing waited yet
    past = 50.0 * np.arange(1, 21)  # jobs 0…20 have started by second 2000
    assert naive_interval(schedule, moment, row) == pytest.approx(
        tuple(np.quantile(past, [0.1, 0.9]))
    )
