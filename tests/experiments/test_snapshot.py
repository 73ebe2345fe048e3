"""A snapshot is what was known at a moment, and nothing more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.snapshot import (
    snapshot_of,
    typical_moment,
    waiting_at,
    with_newcomer,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.site import Checkpoints, Failures, Outage, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTER = Cluster.of("2x V100:4")


@pytest.fixture(scope="module")
def schedule():
    jobs = simple(jobs=120, seed=1, gpus=8, load=1.2, max_gpus=8)
    return simulate(jobs, CLUSTER, "fifo+skip")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_future_makes_no_difference(schedule, share):
    """A moment of the whole schedule equals that of a simulation cut there."""
    now_s = float(np.round(schedule.horizon_s[1] * share))
    whole = snapshot_of(schedule, now_s)
    cut = snapshot_of(simulate(schedule.workload, CLUSTER, "fifo+skip", until_s=now_s), now_s)
    np.testing.assert_array_equal(whole.jobs.id, cut.jobs.id)
    np.testing.assert_array_equal(whole.jobs.duration_s, cut.jobs.duration_s)
    np.testing.assert_array_equal(whole.since_s, cut.since_s)
    np.testing.assert_array_equal(whole.ended, cut.ended)
    np.testing.assert_array_equal(whole.holdings, cut.holdings)


def test_everybody_is_somewhere(schedule):
    """A job submitted by now has ended, runs or waits; held GPUs are those of running jobs."""
    now_s = typical_moment(schedule)
    moment = snapshot_of(schedule, now_s)
    jobs = int(np.count_nonzero(schedule.workload.submit_s <= now_s))
    assert len(moment.running) + len(moment.queued) + moment.ended.sum() == len(moment.jobs) == jobs
    held = np.bincount(moment.holdings[:, 0], moment.holdings[:, 2], minlength=jobs)
    np.testing.assert_array_equal(held[moment.running], moment.jobs.gpus[moment.running])
    assert held.sum() == moment.jobs.gpus[moment.running].sum() <= CLUSTER.gpus


def test_durations_are_what_has_run(schedule):
    """Ended jobs show their run time, running ones how long they run, waiting ones nothing."""
    moment = snapshot_of(schedule, typical_moment(schedule))
    known = schedule.workload.duration_s[: len(moment.jobs)]
    np.testing.assert_allclose(moment.jobs.duration_s[moment.ended], known[moment.ended])
    running = moment.running
    so_far = moment.now_s - moment.since_s[running]
    np.testing.assert_allclose(moment.jobs.duration_s[running], so_far)
    assert not moment.jobs.duration_s[moment.queued].any()


def test_how_a_job_ends_is_not_known(schedule):
    """The outcome of a trace (failed, completed) is as unknown as the run time."""
    told = replace(
        schedule,
        workload=schedule.workload.with_columns(status=["failed"] * len(schedule.workload)),
    )
    assert set(snapshot_of(told, 50_000.0).jobs.status.values()) == {None}


def test_queue_lengths(schedule):
    """Waiting jobs are counted at any time."""
    times = np.linspace(0, schedule.horizon_s[1], 50)
    expected = [len(snapshot_of(schedule, time).queued) for time in times[1:]]
    np.testing.assert_array_equal(waiting_at(schedule, times[1:]), expected)


def test_unplaceable_jobs_do_not_wait():
    """A job too large for the cluster is not in the queue of a snapshot."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[5, 5], gpus=[99, 1])
    schedule = simulate(jobs, CLUSTER, "fifo")
    assert schedule.count(Outcome.UNPLACEABLE) == 1
    assert len(snapshot_of(schedule, 1.0).queued) == 0


def test_a_newcomer_waits_last(schedule):
    """A new job is submitted now and needs what was said."""
    moment = snapshot_of(schedule, typical_moment(schedule))
    more = with_newcomer(moment, gpus=3, estimate_s=600.0)
    assert more.queued.tolist() == [*moment.queued.tolist(), len(moment.jobs)]
    assert more.row_of("new") == len(moment.jobs)
    assert (more.jobs.gpus[-1], more.jobs.submit_s[-1]) == (3, moment.now_s)


def test_questions_about_the_wrong_job(schedule):
    """Jobs that are unknown, have ended or run are refused, each with its reason."""
    moment = snapshot_of(schedule, typical_moment(schedule))
    with pytest.raises(YardmasterError, match="No job 'x1'"):
        moment.row_of("x1")
    with pytest.raises(YardmasterError, match="has ended"):
        moment.row_of(str(moment.jobs.id[np.flatnonzero(moment.ended)[0]]))
    with pytest.raises(YardmasterError, match="it does not wait"):
        moment.row_of(str(moment.jobs.id[moment.running[0]]))
    assert moment.row_of(str(moment.jobs.id[moment.queued[0]])) == moment.queued[0]
    with pytest.raises(YardmasterError, match="--hours"):
        with_newcomer(moment, gpus=1)
    with pytest.raises(YardmasterError, match="at least 1 GPU"):
        with_newcomer(moment, gpus=0, estimate_s=1.0)


def test_moments_without_anybody():
    """Before the first submission, and where nobody ever waits, there is nothing to see."""
    jobs = Workload.of(submit_s=[100, 200], duration_s=[5, 5])
    schedule = simulate(jobs, CLUSTER, "fifo")
    with pytest.raises(YardmasterError, match="No job was submitted by second 50"):
        snapshot_of(schedule, 50.0)
    with pytest.raises(YardmasterError, match="Nobody waits"):
        typical_moment(schedule)


def test_work_counts_at_the_speed_of_the_gpus():
    """On GPUs of another speed, the work done is the time run times the speed."""
    cluster = Cluster.of("1x V100:4", "1x T4:2")
    jobs = Workload.of(submit_s=[0, 1, 2], duration_s=[1000, 1000, 1000], gpus=[4, 2, 4])
    schedule = simulate(jobs, cluster, "fifo")
    on_t4 = 1000.0 / (schedule.end_s[1] - schedule.start_s[1])
    assert on_t4 < 0.9
    moment = snapshot_of(schedule, 501.0)
    np.testing.assert_allclose(moment.speed, [1.0, on_t4, 1.0])
    np.testing.assert_allclose(moment.jobs.duration_s, [501.0, 500.0 * on_t4, 0.0])
    after = snapshot_of(schedule, float(schedule.end_s[1]))
    assert after.jobs.duration_s[1] == 1000.0


def test_lost_work_is_not_done():
    """A job whose node failed has done what its last checkpoint saved; one given up is gone."""
    failures = Failures(outages=(Outage(0, 250.0, 300.0),), retries=1)
    saved = Site(checkpoints=Checkpoints(every_s=100.0), failures=failures)
    jobs = Workload.of(submit_s=[0], duration_s=[1000], gpus=[4])
    cluster = Cluster.of("1x V100:4")
    schedule = simulate(jobs, cluster.under(saved), "fifo")
    assert snapshot_of(schedule, 200.0).jobs.duration_s[0] == pytest.approx(200.0)
    assert snapshot_of(schedule, 260.0).jobs.duration_s[0] == pytest.approx(200.0)
    assert snapshot_of(schedule, 260.0).queued.tolist() == [0]
    assert snapshot_of(schedule, 350.0).jobs.duration_s[0] == pytest.approx(250.0)
    hopeless = replace(saved, failures=replace(failures, retries=0))
    jobs = Workload.of(submit_s=[0, 1], duration_s=[1000, 5], gpus=[4, 4])
    schedule = simulate(jobs, cluster.under(hopeless), "fifo")
    assert schedule.count(Outcome.FAILED) == 1
    assert len(snapshot_of(schedule, 249.0).running) == 1
    assert snapshot_of(schedule, 260.0).jobs.id.tolist() == [1]
