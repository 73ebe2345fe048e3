"""When a chooser is asked, and what its choice does and does not touch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine import state
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.testing.choosing import (
    choice_sights,
    choosing_clusters,
    choosing_workloads,
    given_choices,
    replay_as_told,
)


def decisions(batch, action):
    """Yield second, waiting jobs and free GPUs at every decision of an episode."""
    while not batch._ends.any():
        ints = batch._rows[0][0]
        yield float(batch.now_s[0]), int(ints[state.QUEUED]), int(ints[state.FREE_GPUS])
        batch.step(np.array([action]))


@settings(max_examples=60, deadline=None)
@given(choosing_workloads(), choosing_clusters(), choice_sights(), st.integers(0, 4))
def test_it_is_asked_when_there_is_something_to_choose(workload, cluster, sight, place):
    """At the first job, then when two wait and a GPU is free, not too soon after the last time."""
    batch = given_choices(ChoosingTask(sight=sight), (workload, cluster))
    first, *rest = decisions(batch, place % len(sight.menu))
    assert first[1] >= 1
    seconds = [second for second, *_ in (first, *rest)]
    assert all(waiting >= 2 and free > 0 for _, waiting, free in rest)
    assert (np.diff(seconds) >= sight.every_s).all()


def test_nothing_worth_asking_is_left_out():
    """With `every_s=0` it is asked at every event at which two jobs wait and a GPU is free."""
    jobs = Workload.of(
        submit_s=[0.0, 1.0, 2.0, 3.0, 4.0],
        duration_s=[10.0, 10.0, 5.0, 7.0, 1.0],
        gpus=[3, 3, 3, 2, 1],
    )
    sight = ChoiceSight(menu=("fifo+strict",), past=0)
    batch = given_choices(ChoosingTask(sight=sight), (jobs, Cluster.pool(4)))
    # 3 of 4 GPUs are in use until 10, 20 and 25; jobs wait for each other all the while.
    assert list(decisions(batch, 0)) == [
        (0.0, 1, 4),
        (2.0, 2, 1),
        (3.0, 3, 1),
        (4.0, 4, 1),
        (10.0, 4, 4),
        (20.0, 3, 4),
        (25.0, 2, 4),
    ]


@settings(max_examples=40, deadline=None)
@given(choosing_workloads(), choosing_clusters(), choice_sights(), st.integers(0, 4))
def test_numbers_that_are_not_on_the_menu_change_nothing(workload, cluster, sight, place):
    """After a first choice, numbers that mean nothing leave that scheduler at work."""
    place %= len(sight.menu)
    kept = replay_as_told(workload, cluster, sight, [place])
    lost = replay_as_told(workload, cluster, sight, [place, *[-1, 99] * 500])
    assert lost.fingerprint() == kept.fingerprint()


@settings(max_examples=40, deadline=None)
@given(
    choosing_workloads(),
    choosing_clusters(),
    choice_sights(),
    st.lists(st.integers(0, 4), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_menu_does_not_matter(workload, cluster, sight, arms, random):
    """Whatever is chosen when, the same choices from a menu in another order end the same."""
    arms = [arm % len(sight.menu) for arm in arms]
    menu = random.sample(sight.menu, len(sight.menu))
    other = replace(sight, menu=tuple(menu))
    one = replay_as_told(workload, cluster, sight, arms)
    two = replay_as_told(workload, cluster, other, [menu.index(sight.menu[arm]) for arm in arms])
    assert one.fingerprint() == two.fingerprint()
    assert one.choices == two.choices
    assert one.switches == two.switches


def test_a_promise_does_not_bind_the_next_scheduler():
    """A job that `commit` has chosen blocks no other scheduler that is put to work."""
    jobs = Workload.of(
        submit_s=[0.0, 1.0, 2.0, 3.0], duration_s=[10.0, 5.0, 1.0, 1.0], gpus=[3, 4, 1, 1]
    )
    sight = ChoiceSight(menu=("fifo+commit", "sjf+skip"), past=0)
    bound = replay_as_told(jobs, Cluster.pool(4), sight, [0])
    assert bound.start_s.tolist() == [0.0, 10.0, 15.0, 15.0]
    freed = replay_as_told(jobs, Cluster.pool(4), sight, [0, 1, 1, 1, 1])
    assert freed.start_s.tolist() == [0.0, 10.0, 2.0, 3.0]
    assert (freed.choices, freed.switches) == ({"fifo+commit": 1, "sjf+skip": 2}, 1)


def test_jobs_that_can_never_run_are_let_be():
    """An episode of which no job can run ends with its first step, and nothing is earned."""
    jobs = Workload.of(submit_s=[0.0, 3.0], duration_s=[1.0, 1.0], gpus=[9, 9])
    sight = ChoiceSight(menu=("fifo",), past=1)
    schedule = replay_as_told(jobs, Cluster.pool(4), sight, [0])
    assert np.isnan(schedule.start_s).all()
