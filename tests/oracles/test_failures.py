"""Failing nodes and periodic checkpoints against the expected run time of memoryless failures.

A job of n checkpoint intervals of τ seconds, on nodes that fail after exponential times of mean M,
with restart cost R after each failure and D seconds of repair, takes in expectation

    (M + D) · (e^{τ/M} − 1) · (1 + (n − 1) · e^{R/M}),

which for D = 0 is Daly's formula, except that nothing has to be restored before the first
checkpoint. Within an interval, δ of the τ seconds go to saving.
"""

import math

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome
from yardmaster.model.site import Checkpoints, Failures, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

MEAN_S = 3600.0
"""M: mean seconds from one failure of a node to the next."""


def expected_s(intervals, length_s, restore_s, repair_s=0.0):
    """Return the formula above."""
    one = (MEAN_S + repair_s) * math.expm1(length_s / MEAN_S)
    return one * (1 + (intervals - 1) * math.exp(restore_s / MEAN_S))


def site(every_s, save_s, restore_s, mttr_h):
    """Return the rules of a site whose nodes fail once an hour."""
    return Site(
        checkpoints=Checkpoints(every_s=every_s, save_s=save_s, restore_s=restore_s),
        failures=Failures(mtbf_h=MEAN_S / 3600.0, mttr_h=mttr_h),
    )


def assert_expected(times_s, theory_s):
    """Check a sample mean: within three standard errors and four per cent."""
    error_s = np.std(times_s, ddof=1) / math.sqrt(len(times_s))
    assert abs(np.mean(times_s) - theory_s) <= 3.0 * error_s
    assert np.mean(times_s) == pytest.approx(theory_s, rel=0.04)


@pytest.mark.parametrize(
    ("intervals", "every_s", "save_s", "restore_s"),
    [(10, 720.0, 0.0, 0.0), (10, 720.0, 60.0, 300.0), (30, 240.0, 20.0, 600.0)],
)
def test_daly(intervals, every_s, save_s, restore_s):
    """With spare nodes at hand, jobs take as long as memoryless failures make them."""
    jobs = 400
    work_s = intervals * (every_s - save_s)
    workload = Workload.of(submit_s=np.zeros(jobs), duration_s=np.full(jobs, work_s))
    cluster = Cluster.of(f"{2 * jobs}x V100:1")
    schedule = simulate(
        workload,
        cluster.under(site(every_s, save_s, restore_s, 0.01)),
        "fifo",
        seed=1,
        compile_core="never",
    )
    assert np.all(schedule.outcome == Outcome.FINISHED)
    assert np.count_nonzero(schedule.segment_cause == Cause.NODE_FAILED) > jobs
    assert_expected(schedule.end_s, expected_s(intervals, every_s, restore_s))


@pytest.mark.parametrize(
    ("intervals", "every_s", "restore_s"), [(1, 1800.0, 0.0), (5, 720.0, 120.0)]
)
def test_repairs_take_their_time(intervals, every_s, restore_s):
    """A job that has only its own node waits for every repair; without checkpoints it restarts."""
    mttr_s = 900.0
    cluster = Cluster.of("V100:1")
    if intervals == 1:  # a single interval is no checkpoint at all
        rules = site(math.inf, 0.0, restore_s, mttr_s / 3600.0)
    else:
        rules = site(every_s, 0.0, restore_s, mttr_s / 3600.0)
    workload = Workload.of(submit_s=[0], duration_s=[intervals * every_s])
    times_s = [
        simulate(workload, cluster.under(rules), "fifo", seed=seed, compile_core="never").end_s[0]
        for seed in range(700)
    ]
    repair_s = 1.0 + mttr_s * math.exp(-1.0 / mttr_s)  # repairs take at least a second
    assert_expected(np.array(times_s), expected_s(intervals, every_s, restore_s, repair_s))


def test_wasted_time_accounts_for_everything():
    """What a job spent beyond its work is what its segments report as wasted."""
    workload = Workload.of(submit_s=np.zeros(50), duration_s=np.full(50, 7200.0))
    cluster = Cluster.of("100x V100:1").under(site(600.0, 0.0, 120.0, 0.5))
    schedule = simulate(workload, cluster, "fifo", seed=3, compile_core="never")
    spent_s = schedule.segment_end_s - schedule.segment_start_s - schedule.segment_wasted_s
    assert np.bincount(schedule.segment_job, spent_s) == pytest.approx(workload.duration_s)
    assert schedule.segment_wasted_s.sum() > 50 * 600.0


def test_retries_run_out_as_often_as_failures_come():
    """A job that may not be started again survives with the chance e^{−W/M}."""
    jobs, work_s = 1000, 1800.0
    rules = Site(failures=Failures(mtbf_h=MEAN_S / 3600.0, retries=0))
    workload = Workload.of(submit_s=np.zeros(jobs), duration_s=np.full(jobs, work_s))
    cluster = Cluster.of(f"{jobs}x V100:1").under(rules)
    schedule = simulate(workload, cluster, "fifo", seed=5, compile_core="never")
    chance = math.exp(-work_s / MEAN_S)
    error = math.sqrt(chance * (1 - chance) / jobs)
    assert abs(schedule.count(Outcome.FINISHED) / jobs - chance) <= 3.0 * error
    assert schedule.count(Outcome.FAILED) + schedule.count(Outcome.FINISHED) == jobs
