"""The compiled environment and the plain one do the same, whatever they are given.

`YARDMASTER_PROPERTY_EXAMPLES` sets how many tasks are tried (a nightly run wants thousands).
"""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.reference import ReferencePickJob
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import (
    episode_workloads,
    given_batch,
    mixed_speed_clusters,
    sights,
    tasks,
)

EXAMPLES = int(os.environ.get("YARDMASTER_PROPERTY_EXAMPLES", "400"))
PACES = ("decision", "event", "tick", "commit")
SEEDS = st.integers(0, 2**32 - 1)

some = settings(
    max_examples=max(EXAMPLES // 10, 10),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# The same examples in every run: what is compiled must not depend on luck.
same = settings(some, derandomize=True, database=None)


def chosen(mask, dice):
    """Return a legal action; now and then one that is not, or makes no sense."""
    if dice.random() < 0.1:
        return int(dice.integers(-1, len(mask) + 2))
    return int(dice.choice(np.flatnonzero(mask)))


def without_ways(env, observation):
    """Blank RLTune's number of ways for gangs over several nodes, which are counted roughly."""
    if env.sight.features != "rltune":
        return observation
    tokens = observation.copy().reshape(env.sight.window, 7)
    for place, row in enumerate(env.window):
        gang = env.gangs[row]
        if gang.gpus > max(env.rules.node_gpus[node] for node in gang.nodes):
            tokens[place, 5] = 0.0
    return tokens.ravel()


def assert_sees_the_same(batch, reference):
    place = f"step {reference.steps}, second {reference.now_s}, line {reference.line}"
    assert batch.now_s[0] == pytest.approx(reference.now_s, abs=1e-9), place
    jobs = batch.window_jobs[0]
    assert jobs[jobs >= 0].tolist() == reference.window, place
    assert batch.masks[0].tolist() == reference.mask.tolist(), place
    assert reference.mask.any(), place
    np.testing.assert_allclose(
        without_ways(reference, batch.observations[0]),
        without_ways(reference, reference.observation),
        atol=1e-5,
        err_msg=place,
    )


def assert_earns_the_same(batch, outcome, place):
    _, reward, terminated, truncated, more = outcome
    for term in Term:
        expected = more["terms"][term]
        assert batch.terms[0, term] == pytest.approx(expected, rel=1e-6, abs=1e-6), (term, place)
    assert batch.rewards[0] == pytest.approx(reward, rel=1e-6, abs=1e-6), place
    assert batch.elapsed_s[0] == pytest.approx(more["elapsed_s"], abs=1e-9), place
    assert (bool(batch.terminated[0]), bool(batch.truncated[0])) == (terminated, truncated), place


def assert_agree(task, workload, seed, *, compiled=False):
    """Play one episode in both, step by step."""
    dice = np.random.default_rng(seed)
    batch = given_batch(task, workload, compiled=compiled)
    episodes = batch.episodes
    reference = ReferencePickJob(episodes.task, episodes.cluster)
    reference.reset(episodes.workload(0), baseline=episodes.baseline_score(0))
    while not reference.over:
        assert_sees_the_same(batch, reference)
        action = chosen(reference.mask, dice)
        batch.step(np.array([action]))
        assert_earns_the_same(batch, reference.step(action), f"step {reference.steps}")
    assert_sees_the_same(batch, reference)
    assert batch.episode_steps[0] == reference.steps
    assert batch.episode_noops[0] == reference.noops


@pytest.mark.parametrize("pace", PACES)
def test_standard_observations_agree(pace):
    """Observations, masks, rewards and ends are those of the reference, step by step."""
    seen = tasks(sights(["standard"], [pace]))

    @some
    @given(seen, episode_workloads(), SEEDS)
    def agree(task, workload, seed):
        assert_agree(task, workload, seed)

    agree()


@pytest.mark.parametrize("features", ["gpu_optimizer", "drl_scheduler", "rltune"])
def test_observations_of_other_programs_agree(features):
    """The observations of other programs are those of the reference as well."""

    @some
    @given(tasks(sights([features], PACES)), episode_workloads(), SEEDS)
    def agree(task, workload, seed):
        assert_agree(task, workload, seed)

    agree()


@some
@given(tasks(), mixed_speed_clusters(), episode_workloads(), SEEDS)
def test_gpu_types_of_different_speed_agree(task, cluster, workload, seed):
    """Where GPU types have speeds of their own, the core for real clusters agrees too."""
    assert_agree(replace(task, cluster=cluster), workload, seed)


@same
@given(tasks(), episode_workloads(), SEEDS)
def test_the_compiled_environment_agrees(task, workload, seed):
    """Compiling changes nothing."""
    assert_agree(task, workload, seed, compiled=True)


@pytest.mark.slow
@settings(same, max_examples=15)
@given(tasks(), mixed_speed_clusters(), episode_workloads(), SEEDS)
def test_the_compiled_environment_for_real_clusters_agrees(task, cluster, workload, seed):
    """Compiling the core for real clusters changes nothing either."""
    assert_agree(replace(task, cluster=cluster), workload, seed, compiled=True)


def test_an_episode_by_hand():
    """One GPU, three jobs: every number of the second decision is known."""
    task = Task(
        cluster=Cluster.pool(2),
        reward="jct",
        measured_unit=False,
        sight=Sight(window=3, gpu_slots=2, lookahead="per_gpu", time_unit_s=10.0),
    )
    jobs = Workload.of(
        submit_s=[0, 0, 5], duration_s=[30, 30, 10], gpus=[1, 2, 1], priority=[1, 1, 3]
    )
    env = ReferencePickJob(task, Cluster.pool(2))
    env.reset(jobs)
    assert env.mask.tolist() == [True, True, False, False]
    observation, reward, terminated, truncated, more = env.step(0)
    # The second job does not fit beside the first, so nothing happens until the third comes.
    assert (more["elapsed_s"], reward) == (5.0, pytest.approx(-2 * 5 / 3 / 10))
    assert not terminated
    assert not truncated
    assert env.mask.tolist() == [False, True, False, True]
    day_s = 86_400.0
    blocked, late, blank = observation[: 3 * 13].reshape(3, 13).tolist()
    assert late == pytest.approx(
        [
            1.0,
            math.log2(2) / math.log2(3),
            0.5,
            math.log1p(10) / math.log1p(30 * day_s),
            math.log1p(10) / math.log1p(60 * day_s),
            0.75,  # priority 3
            0.0,  # it has just come
            0.0,
            1.0,  # fits
            0.0,
            1.0,  # harmless: over at second 15, the reservation is at 30
            15 / 25,
            0.0,
        ]
    )
    assert blocked[6:] == pytest.approx([5 / 15, 5 / 35, 0.0, 1.0, 0.0, -5 / 15, 0.0])
    assert blank == [0.0] * 13
    assert observation[39:].tolist() == pytest.approx(
        [25 / 35, 0.0, 0.5, 2 / 5, 0.0, 0.5, 25 / 35, 0.0]
    )


def test_the_reference_knows_its_limits():
    """Placements and rules it does not model are refused, not ignored."""
    task = Task(cluster=Cluster.pool(1), measured_unit=False)
    with pytest.raises(YardmasterError, match="pack"):
        ReferencePickJob(task.changed(placement="spread"), Cluster.pool(1))
    group = NodeGroup(count=1, gpu_type=gpu_type("V100"), gpus=2, cpus=4.0)
    needy = Workload.of(submit_s=[0], duration_s=[1], cpus=[2.0])
    with pytest.raises(YardmasterError, match="cores"):
        ReferencePickJob(task, from_groups([group], name="with cores")).reset(needy)
    with pytest.raises(YardmasterError, match="qssf"):
        ReferencePickJob(task.changed(window_order="qssf"), Cluster.pool(1)).reset(needy)
