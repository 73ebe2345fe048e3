"""Trials hold predictions against what came true."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments import eta_trials
from yardmaster.experiments.eta import Forecast
from yardmaster.experiments.eta_calibration import in_turn
from yardmaster.experiments.eta_trials import naive_interval, try_out
from yardmaster.experiments.snapshot import rows_at, snapshot_of
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("2x V100:4")


@pytest.fixture(scope="module")
def schedule():
    jobs = simple(jobs=600, seed=2, gpus=8, load=1.1, max_gpus=4)
    return simulate(jobs.with_columns(estimate_s=np.full(600, np.nan)), CLUSTER, "fifo+skip")


def test_trials_are_held_against_the_truth(schedule):
    """Moments lie in the span, and what came true is the wait the schedule shows."""
    begin, end = 0.5 * schedule.horizon_s[1], 0.8 * schedule.horizon_s[1]
    trials = try_out(schedule, begin, end, trials=6, simulations=5)
    assert ((trials.now_s >= begin - 1) & (trials.now_s <= end + 1)).all()
    assert (np.diff(trials.now_s) >= 0).all()
    starts = trials.now_s + trials.actual_s
    assert np.isin(np.round(starts, 6), np.round(schedule.start_s, 6)).all()
    assert trials.wait_s.shape == (6, 5)
    assert (trials.naive_s[:, 0] <= trials.naive_s[:, 1]).all()
    assert len(trials.select(trials.now_s > trials.now_s[2])) == 3


def test_only_first_starts_are_asked_for(monkeypatch):
    """Jobs that were preempted wait too, but nobody is told that they started in the past."""

    def at_once(snapshot, rows, **_):
        return Forecast(
            snapshot.now_s, ("",), snapshot.jobs.gpus[rows], np.zeros(1), np.ones((1, 1))
        )

    monkeypatch.setattr(eta_trials, "predict", at_once)
    jobs = simple(jobs=150, seed=5, gpus=8, load=1.5, max_gpus=4)
    cluster = CLUSTER.under(Site(quantum_s=60.0))
    schedule = simulate(jobs, cluster, "srpt+preemptive")
    assert len(schedule.segment_job) > len(jobs)  # somebody was preempted
    trials = try_out(schedule, *schedule.horizon_s, trials=25, simulations=1)
    assert (trials.actual_s > 0).all()


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
    starts = schedule.start_s[rows_at(schedule, 2000.0)]
    row = int(moment.queued[-1])  # just submitted: nothing waited yet
    past = 50.0 * np.arange(1, 21)  # jobs 0…20 have started by second 2000
    expected = tuple(np.quantile(past, [0.1, 0.9]))
    assert naive_interval(moment, starts, row) == pytest.approx(expected)


def test_a_steady_queue_is_predicted_as_often_as_promised():
    """Poisson arrivals, exponential run times: four in five starts fall into their interval."""
    rng = np.random.default_rng(11)
    count = 2500
    jobs = Workload.of(
        submit_s=np.cumsum(rng.exponential(1000.0, count)),
        duration_s=rng.exponential(1000.0 * 4 * 0.85, count),
    )
    schedule = simulate(jobs, Cluster.of("1x V100:4"), "fifo+strict")
    end_s = float(jobs.submit_s[-1])
    trials = try_out(schedule, 0.2 * end_s, 0.98 * end_s, trials=220, simulations=15)
    interval_s = in_turn(trials)
    later = ~np.isnan(interval_s[:, 0])
    low_s, high_s = interval_s[later].T
    held = (low_s <= trials.actual_s[later]) & (trials.actual_s[later] <= high_s)
    three_deviations = 3 * np.sqrt(0.8 * 0.2 / len(held))
    assert held.mean() == pytest.approx(0.8, abs=three_deviations)
    naive_s = trials.naive_s[later]
    assert np.median(high_s - low_s) < np.median(naive_s[:, 1] - naive_s[:, 0])
