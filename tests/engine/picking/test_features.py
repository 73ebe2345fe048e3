"""The standard observation: what fits, what is reserved, what it tells and what it must not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import (
    episode_workloads,
    given_batch,
    same_speed_clusters,
    sights,
    tasks,
)

some = settings(max_examples=25, deadline=None, print_blob=True)


def pool_task(gpus, **choices):
    sight = Sight(**({"window": 4, "gpu_slots": 2, "time_unit_s": 10.0} | choices))
    return Task(cluster=Cluster.pool(gpus), sight=sight, measured_unit=False)


def feature(batch, name):
    """Return one feature of the jobs of the window."""
    tokens = batch.layout.jobs(batch.observations)[0]
    present = tokens[:, 0] == 1.0
    return tokens[present, batch.layout.job_features.index(name)].tolist()


def glance(batch, name):
    """Return one of the globals."""
    return float(
        batch.layout.globals(batch.observations)[0, batch.layout.global_features.index(name)]
    )


def test_the_reservation_by_hand():
    """The first blocked job is reserved for; who ends in time or leaves it room is harmless."""
    jobs = Workload.of(
        submit_s=[0, 0, 0, 0, 0], duration_s=[10, 50, 10, 11, 99], gpus=[3, 3, 1, 1, 1]
    )
    batch = given_batch(pool_task(4), jobs)
    batch.step(np.array([0]))
    # Three GPUs are busy until 10; then the next gang of three can start and leaves one over.
    assert feature(batch, "fits") == [0.0, 1.0, 1.0, 1.0]
    assert feature(batch, "reserved") == [1.0, 0.0, 0.0, 0.0]
    assert feature(batch, "harmless") == [0.0, 1.0, 1.0, 1.0]
    assert feature(batch, "slack") == pytest.approx([-40 / 50, 0.0, -1 / 11, -89 / 99])
    assert glance(batch, "shadow") == pytest.approx(10 / 20)
    assert glance(batch, "spare") == pytest.approx(1 / 4)
    batch.step(np.array([3]))  # the longest takes the GPU that is spare for good
    assert batch.now_s[0] == 10.0


def test_who_would_delay_the_reserved_job_is_not_harmless():
    """Without a spare GPU only those who end by the shadow time are harmless."""
    jobs = Workload.of(submit_s=[0, 0, 0, 0], duration_s=[10, 50, 10, 11], gpus=[3, 4, 1, 1])
    batch = given_batch(pool_task(4), jobs)
    batch.step(np.array([0]))
    assert feature(batch, "harmless") == [0.0, 1.0, 0.0]
    assert glance(batch, "spare") == 0.0


def test_ranks_by_hand():
    """A rank is the place in the window under another order, as a share of the jobs shown."""
    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[5, 1, 5], gpus=[1, 1, 2])
    batch = given_batch(pool_task(4, ranks=("sjf", "largest-first")), jobs)
    assert feature(batch, "rank_sjf") == pytest.approx([2 / 3, 1 / 3, 1.0])
    assert feature(batch, "rank_largest-first") == pytest.approx([2 / 3, 1.0, 1 / 3])


@some
@given(same_speed_clusters(), episode_workloads(), st.sampled_from(("fifo", "sjf")))
def test_harmless_jobs_do_no_harm(cluster, workload, order):
    """While only harmless jobs are picked, the reservation of the first blocked one stays."""
    sight = Sight(window=40, gpu_slots=0, time_unit_s=10.0, window_order=order, noop="always")
    task = Task(cluster=cluster, sight=sight, measured_unit=False)
    batch = given_batch(task, workload)
    book, purse = batch._rows[2], batch._rows[3]
    last_head, last_shadow_s = -1, np.inf
    harmless = batch.layout.job_features.index("harmless")
    while not (batch.terminated[0] or batch.truncated[0]):
        head, shadow_s = int(book[0, at.HEAD]), float(purse[0, at.SHADOW])
        if head >= 0 and head == last_head:
            assert shadow_s <= last_shadow_s + 1e-9
        last_head, last_shadow_s = head, shadow_s
        free_to_go = batch.layout.jobs(batch.observations)[0, :, harmless] == 1.0
        places = np.flatnonzero(free_to_go & batch.masks[0, :-1])
        # The last in line: it has the least right to go first.
        batch.step(np.array([places[-1] if len(places) else sight.window]))


@some
@given(tasks(sights(["standard"])), episode_workloads(), st.integers(0, 999))
def test_all_numbers_are_between_minus_one_and_one(task, workload, seed):
    """The standard observation needs no further scaling, and has no NaN."""
    dice = np.random.default_rng(seed)
    batch = given_batch(task, workload)
    while not (batch.terminated[0] or batch.truncated[0]):
        assert np.abs(batch.observations).max(initial=0.0) <= 1.0
        batch.step(np.array([dice.choice(np.flatnonzero(batch.masks[0]))]))
    assert np.abs(batch.observations).max(initial=0.0) <= 1.0


def first_observations(task, workload):
    """Return what is seen while nothing has ended yet, always picking the first that fits."""
    batch = given_batch(task, workload)
    seen = [batch.observations[0].copy()]
    for _ in range(3):
        batch.step(batch.masks.argmax(axis=1))
        if batch.now_s[0] > 0 or batch.terminated[0]:
            break
        seen.append(batch.observations[0].copy())
    return np.array(seen)


@pytest.mark.parametrize("features", ["standard", "gpu_optimizer", "drl_scheduler", "rltune"])
def test_a_blind_policy_is_shown_no_run_times(features):
    """Jobs that differ only in their durations look alike to a blind policy."""
    jobs = Workload.of(submit_s=[0, 0, 0, 0], duration_s=[10, 20, 30, 40], gpus=[1, 2, 1, 2])
    longer = replace(jobs, duration_s=jobs.duration_s[::-1].copy())
    try:
        task = pool_task(4, features=features, information="blind", longest_s=100.0)
        shown = first_observations(task, jobs)
    except YardmasterError:
        return  # refusing to show a blind policy such features is as good
    np.testing.assert_array_equal(shown, first_observations(task, longer))


@pytest.mark.parametrize("features", ["standard", "gpu_optimizer", "drl_scheduler", "rltune"])
def test_estimates_hide_the_truth(features):
    """Jobs that differ only in their true durations look alike if estimates are shown."""
    jobs = Workload.of(
        submit_s=[0, 0, 0, 0],
        duration_s=[10, 20, 30, 40],
        estimate_s=[9, 9, 60, 60],
        gpus=[1, 2, 1, 2],
    )
    longer = replace(jobs, duration_s=jobs.duration_s[::-1].copy())
    task = pool_task(4, features=features, information="estimate", longest_s=100.0)
    np.testing.assert_array_equal(first_observations(task, jobs), first_observations(task, longer))


def test_the_last_look_at_a_cut_episode_is_a_true_one():
    """At the horizon nothing fits on busy GPUs, and the first in line is reserved for."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[100, 5], gpus=[1, 1])
    batch = given_batch(replace(pool_task(1), time_limit_s=50.0), jobs)
    batch.step(np.array([0]))
    assert batch.truncated[0]
    assert feature(batch, "fits") == [0.0]
    assert feature(batch, "harmless") == [0.0]
    assert feature(batch, "reserved") == [1.0]
    assert glance(batch, "shadow") == pytest.approx(50 / 60)
    assert batch.masks[0].tolist() == [False, False, False, False, True]


def test_spare_gpus_are_counted_on_real_clusters_too():
    """GPU types of different speed change nothing about what is free beside a reservation."""
    jobs = Workload.of(
        submit_s=[0, 0, 0], duration_s=[10, 50, 5], gpus=[2, 4, 1], gpu_types=["V100", None, "T4"]
    )
    cluster = Cluster.of("1x V100:4", "1x T4:2")
    batch = given_batch(replace(pool_task(1), cluster=cluster), jobs)
    while batch.window_jobs[0, 0] == 0:  # until the first job runs and the second is blocked
        batch.step(np.array([0]))
    assert feature(batch, "reserved")[0] == 1.0
    free = float(batch.layout.globals(batch.observations)[0, 0]) * 6
    assert glance(batch, "spare") * 6 == pytest.approx(free - 2)


def test_the_rank_under_the_windows_own_order_is_the_place():
    """A window in an order whose keys change tells each job's place in it."""
    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[5, 1, 5], gpus=[4, 1, 2])
    batch = given_batch(pool_task(8, window_order="wfp3", ranks=("wfp3", "sjf")), jobs)
    assert feature(batch, "rank_wfp3") == pytest.approx([1 / 3, 2 / 3, 1.0])
    places = [int(job) for job in batch.window_jobs[0] if job >= 0]
    by_run_time = sorted(places, key=lambda job: (jobs.duration_s[job], job))
    expected = [(by_run_time.index(job) + 1) / 3 for job in places]
    assert feature(batch, "rank_sjf") == pytest.approx(expected)
