"""The observations of other programs, number by number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.reference import ReferencePickJob
from yardmaster.envs.reference.views import ways
from yardmaster.envs.task import TASKS, Task
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import given_batch

ALMOST_ONE = 1.0 - 1e-5


@pytest.mark.parametrize(
    ("task", "length"), [("drl-scheduler", 66), ("gpu-optimizer", 210), ("rltune", 896)]
)
def test_presets_have_the_length_of_their_originals(task, length):
    """Observations are as long as those of the programs they come from."""
    assert TASKS[task].sight.layout().length == length
    assert TASKS[f"{task}-original"].sight.layout().length == length


def seen(features, jobs, cluster, steps=0, **choices):
    """Return the observation after some picks of the first job that fits."""
    sight = Sight(**({"window": 2, "gpu_slots": 2, "features": features} | choices))
    task = Task(cluster=cluster, sight=sight, measured_unit=False, time_limit_s=200.0)
    batch = given_batch(task, jobs)
    for _ in range(steps):
        batch.step(batch.masks.argmax(axis=1))
    return batch.observations[0].tolist()


JOBS = Workload.of(
    submit_s=[0, 4, 4], duration_s=[8, 50, 10], gpus=[2, 3, 1], priority=[1.0, 2.0, 5.0]
)


def test_gpu_optimizer_by_hand():
    """Duration, priority, GPUs and wait of each job; GPUs; idle and busy."""
    shown = seen("gpu_optimizer", JOBS, Cluster.pool(4), 1, longest_s=40.0, lookahead="sorted")
    assert shown == pytest.approx(
        [1.0, 0.2, 0.75, 0.0, 0.25, 0.5, 0.25, 0.0, 0.0, 4 / 40, 0.5, 0.5]
    )


def test_drl_scheduler_by_hand():
    """Free share; priority, FLOPs, GPUs and run time of each job; jobs waiting by 200."""
    shown = seen("drl_scheduler", JOBS, Cluster.pool(4), 1, longest_s=40.0)
    assert shown == pytest.approx([0.5, 0.4, 1.0, 0.75, 1.0, 1.0, 1.0, 0.25, 0.25, 2 / 200])


def test_rltune_by_hand():
    """Seven numbers of each job, none of which tells a run time; padding as in the original."""
    jobs = Workload.of(submit_s=[0, 4], duration_s=[8, 50], gpus=[2, 1])
    shown = seen("rltune", jobs, Cluster.of("2x V100:4"), 1)
    # One node has two of four GPUs free, the other all four: two ways, but one GPU cannot split.
    assert shown == pytest.approx(
        [0.0, 0.25, 1 / 6 / 8, 13 / 16, 0.5, 2 / 3, ALMOST_ONE, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        abs=1e-6,
    )


def assert_ways_agree(sizes, requests):
    """Fill nodes with gangs one after the other; hold the number of ways against brute force."""
    cluster = Cluster.of(*(f"V100:{size}" for size in sizes))
    count = len(requests)
    jobs = Workload.of(submit_s=[0] * count, duration_s=[10] * count, gpus=requests)
    sight = Sight(window=count, features="rltune", gpu_slots=0)
    task = Task(cluster=cluster, sight=sight, measured_unit=False)
    batch, reference = given_batch(task, jobs), ReferencePickJob(task, cluster)
    reference.reset(jobs)
    while not reference.over and reference.now_s == 0.0:
        shown = batch.layout.jobs(batch.observations)[0, :, 5]
        for place, row in enumerate(reference.window):
            gang, free = reference.gangs[row], reference.free
            expected = ways(gang, free, list(sizes)) if gang.fits(free) else 0
            assert shown[place] == pytest.approx(min(expected / 3, ALMOST_ONE)), (free, gang.gpus)
        action = int(np.flatnonzero(reference.mask)[0])
        batch.step(np.array([action]))
        reference.step(action)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 8).flatmap(
        lambda size: st.tuples(
            st.lists(st.just(size), min_size=1, max_size=5),
            st.lists(st.integers(1, size), min_size=1, max_size=8),
        )
    )
)
def test_ways_on_equal_nodes(situation):
    """The ways to place a gang on one node, or split over two, are those that brute force finds."""
    assert_ways_agree(*situation)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from((1, 2, 4, 8)), min_size=1, max_size=5).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes), st.lists(st.integers(1, max(sizes)), min_size=1, max_size=8)
        )
    )
)
def test_ways_on_nodes_of_several_sizes(situation):
    """A small node that is wholly free is not partly used."""
    assert_ways_agree(*situation)
