"""Predicted starts: exact where nothing is uncertain, and blind to what nobody knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.eta import Forecast, predict
from yardmaster.experiments.snapshot import snapshot_of, typical_moment, with_newcomer
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("2x V100:4")


def sample(jobs: int = 150, **changes) -> Workload:
    workload = simple(jobs=jobs, seed=4, gpus=8, load=1.3, max_gpus=4)
    return workload.with_columns(**changes) if changes else workload


@pytest.mark.parametrize("scheduler", ["fifo+strict", "fifo+skip@spread", "fifo+easy~estimate"])
def test_unknown_run_times_are_never_read(scheduler):
    """Other true durations of jobs that have not ended give the same prediction, bit for bit."""
    jobs = sample()
    schedule = simulate(jobs, CLUSTER, scheduler)
    now_s = typical_moment(schedule)
    moment = snapshot_of(schedule, now_s)
    assert len(moment.queued)
    assert len(moment.running)
    open_ended = ~(schedule.end_s <= now_s)
    left_s = np.where(np.isnan(schedule.start_s), 0.0, np.maximum(now_s - schedule.start_s, 0.0))
    other_s = np.where(open_ended, left_s + 12_345.0, jobs.duration_s)
    other = simulate(jobs.with_columns(duration_s=other_s), CLUSTER, scheduler)
    moment_too = snapshot_of(other, now_s)
    assert (other.end_s != schedule.end_s)[open_ended].any()
    first = predict(moment, simulations=20, seed=3)
    second = predict(moment_too, simulations=20, seed=3)
    np.testing.assert_array_equal(first.wait_s, second.wait_s)
    assert first.ids == second.ids


def test_seeds_fix_everything():
    """The same seed gives the same numbers, another seed others."""
    moment = snapshot_of(s := simulate(sample(), CLUSTER, "fifo"), typical_moment(s))
    once, again, other = (predict(moment, simulations=15, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.wait_s, again.wait_s)
    assert (once.wait_s != other.wait_s).any()


def test_certain_run_times_give_certain_starts():
    """Estimates that always came true, and nobody else to come: the true start, every time."""
    count = 60
    rng = np.random.default_rng(0)
    duration = rng.integers(50, 400, count + 12).astype(float)
    submit = np.concatenate([np.arange(count) * 300.0, np.full(12, 200_000.0)])
    gpus = rng.integers(1, 5, count + 12)
    jobs = Workload.of(submit_s=submit, duration_s=duration, estimate_s=duration, gpus=gpus)
    schedule = simulate(jobs, CLUSTER, "sjf+easy~estimate")
    moment = snapshot_of(schedule, 200_010.0)
    # The past is two days and more, of which only the first hours had arrivals.
    forecast = predict(moment, simulations=3, seed=0)
    actual = schedule.start_s[[int(job) for job in forecast.ids]] - moment.now_s
    assert len(actual) > 3
    np.testing.assert_allclose(forecast.wait_s[:, 0], actual, atol=1.0)


@pytest.mark.parametrize("scheduler", ["fifo+easy~estimate", "fifo+skip@fastest"])
def test_certain_run_times_on_unequal_gpus(scheduler):
    """Jobs on slow GPUs have more time left than work: still the true start, every time."""
    rng = np.random.default_rng(0)
    duration = rng.integers(50, 400, 72).astype(float)
    submit = np.concatenate([np.arange(60) * 300.0, np.full(12, 200_000.0)])
    jobs = Workload.of(
        submit_s=submit, duration_s=duration, estimate_s=duration, gpus=rng.integers(1, 7, 72)
    )
    schedule = simulate(jobs, Cluster.of("1x V100:4", "1x T4:4", "1x K80:4"), scheduler)
    moment = snapshot_of(schedule, 200_060.0)
    assert (moment.speed[moment.running] < 0.9).any()
    forecast = predict(moment, simulations=2, seed=0)
    actual = schedule.start_s[[int(job) for job in forecast.ids]] - moment.now_s
    assert len(actual) > 3
    np.testing.assert_allclose(forecast.wait_s[:, 0], actual, atol=1.0)


def test_age_counts_from_submission():
    """An order that prefers age goes on where it was, as if it had not been interrupted."""
    jobs = sample(estimate_s=sample().duration_s)
    schedule = simulate(jobs, CLUSTER, "wfp3+skip~estimate")
    now_s = typical_moment(schedule)
    moment = snapshot_of(schedule, now_s)
    forecast = predict(moment, simulations=5)
    later = jobs.submit_s > now_s
    # With certain run times, who starts first among those waiting is who really does.
    actual = schedule.start_s[[int(job) for job in forecast.ids]]
    assert later.any()
    assert np.argmin(forecast.quantile(0.5)) in np.flatnonzero(actual == actual.min())


def test_probabilities_and_points():
    """Points are those of the simulations; those beyond the horizon count as never."""
    waits = np.array([[0.0, 1800.0, 7200.0, 90_000.0, np.inf]])
    forecast = Forecast(0.0, ("a",), np.array([1]), np.zeros(1), waits)
    assert forecast.within(3600.0).tolist() == [0.4]
    assert forecast.within(86_400.0).tolist() == [0.6]
    assert forecast.quantile(0.5).tolist() == [7200.0]
    assert np.isinf(forecast.quantile(0.9)).all()


def test_mixed_clusters_and_newcomers():
    """Jobs stay on the types they hold; a newcomer on a full cluster waits."""
    cluster = Cluster.of("1x V100:4", "1x T4:4")
    schedule = simulate(sample(), cluster, "fifo+strict")
    moment = with_newcomer(
        snapshot_of(schedule, typical_moment(schedule)), gpus=4, estimate_s=3600.0
    )
    forecast = predict(moment, np.array([len(moment.jobs) - 1]), simulations=10)
    assert forecast.ids == ("new",)
    assert (forecast.wait_s > 0).all()


def test_what_is_not_looked_at_is_said():
    """Notes tell of failures, power caps and jobs put back elsewhere."""
    from yardmaster.model.site import Failures, Power, Site

    site = Site(failures=Failures(mtbf_h=100.0), power=Power(cap_w=1e6))
    schedule = simulate(sample(), CLUSTER, "fifo+skip@spread")
    moment = snapshot_of(schedule, typical_moment(schedule))
    forecast = predict(replace(moment, cluster=CLUSTER.under(site)), simulations=2)
    text = " ".join(forecast.notes)
    assert "failures" in text
    assert "power cap" in text
    assert "other nodes" in text


def test_senseless_questions():
    """Nobody waiting, or no simulations, is an error that says so."""
    schedule = simulate(sample(), CLUSTER, "fifo")
    moment = snapshot_of(schedule, typical_moment(schedule))
    with pytest.raises(YardmasterError, match="At least one simulation"):
        predict(moment, simulations=0)
    with pytest.raises(YardmasterError, match="Nobody waits"):
        predict(moment, np.zeros(0, dtype=np.int64))
