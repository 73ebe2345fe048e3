"""Many environments in step: seeds, snapshots, ends, threads."""

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.batch import EnvironmentBatch, open_batch
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.task import TASKS, Task
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.workload import Workload
from yardmaster.testing.environments import given_batch

SMALL = TASKS["default"].changed(
    jobs=10, cluster="2x V100:4", episodes=5, load=1.5, window=6, gpu_slots=4, max_steps=14
)
SHOWN = ("observations", "masks", "rewards", "terminated", "truncated", "elapsed_s")


def legal_actions(batch, dice):
    """Draw a legal action for every environment."""
    return (dice.random(batch.masks.shape) * batch.masks).argmax(axis=1)


def history(batch, steps, seed=0):
    """Step with drawn actions; return all that is shown on the way."""
    dice = np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        batch.step(legal_actions(batch, dice))
        rows.append({name: getattr(batch, name).copy() for name in SHOWN})
    return rows


def assert_same(one, other):
    for left, right in zip(one, other, strict=True):
        for name in SHOWN:
            np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_each_environment_plays_as_it_would_alone():
    """Environment i of a batch with seed s is the one of a batch of one with seed s + i."""
    together = open_batch(SMALL, size=3, seed=40, compiled=False)
    alone = [open_batch(SMALL, size=1, seed=40 + row, compiled=False) for row in range(3)]
    dice = np.random.default_rng(1)
    ended = 0
    for _ in range(40):
        actions = legal_actions(together, dice)
        together.step(actions)
        for row, single in enumerate(alone):
            single.step(actions[row : row + 1])
            for name in (*SHOWN, "episode_numbers"):
                assert np.array_equal(getattr(together, name)[row], getattr(single, name)[0])
        ended += int((together.terminated | together.truncated).sum())
    assert ended > 3
    numbers = {tuple(single.episode_numbers) for single in alone}
    assert len(numbers) > 1


def test_the_same_seed_gives_the_same_episodes():
    """And another seed other ones."""
    one, two = (open_batch(SMALL, size=4, seed=7, compiled=False) for _ in range(2))
    assert_same(history(one, 20), history(two, 20))
    drawn = {
        seed: open_batch(SMALL, size=8, seed=seed, compiled=False).episode_numbers.tolist()
        for seed in (7, 100)
    }
    assert drawn[7] != drawn[100]
    one.reset(7)
    two = open_batch(SMALL, size=4, seed=7, compiled=False)
    assert_same(history(one, 5), history(two, 5))


def test_every_episode_is_drawn():
    """All training episodes turn up, none that does not exist."""
    batch = open_batch(SMALL, size=64, seed=0, compiled=False)
    assert set(batch.episode_numbers.tolist()) == set(range(5))


def test_final_observations_are_kept():
    """What a batch that begins anew keeps of an episode's end is what one that does not shows."""
    episodes = Episodes(SMALL)
    begins = EnvironmentBatch(episodes, 4, compiled=False)
    stays = EnvironmentBatch(episodes, 4, compiled=False, autoreset=False)
    for batch in (begins, stays):
        batch.reset(3)
    dice = np.random.default_rng(2)
    running = np.ones(4, dtype=bool)
    returns = np.zeros(4)
    while running.any():
        actions = legal_actions(begins, dice)
        begins.step(actions)
        stays.step(np.where(running, actions, 0))
        returns += np.where(running, begins.rewards, 0.0)
        for row in np.flatnonzero(running & (begins.terminated | begins.truncated)):
            assert np.array_equal(begins.final_observations[row], stays.observations[row])
            assert np.array_equal(begins.final_masks[row], stays.masks[row])
            assert begins.episode_returns[row] == pytest.approx(returns[row])
            assert not np.array_equal(begins.observations[row], stays.observations[row])
            running[row] = False
    assert (begins.episode_steps > 0).all()


def test_a_new_episode_is_a_fresh_one():
    """Nothing of the old episode shows in the first observation of the new one."""
    batch = open_batch(replace(SMALL, episodes=1), size=1, seed=0, compiled=False)
    first = batch.observations.copy(), batch.masks.copy()
    while not (batch.terminated[0] or batch.truncated[0]):
        batch.step(batch.masks.argmax(axis=1))
    np.testing.assert_array_equal(batch.observations, first[0])
    np.testing.assert_array_equal(batch.masks, first[1])


def test_a_snapshot_goes_on_identically():
    """Restored here or in a fresh batch, the same actions have the same results."""
    batch = open_batch(SMALL, size=3, seed=1, compiled=False)
    history(batch, 15)
    kept = batch.snapshot()
    expected = history(batch, 30, seed=5)
    batch.restore(kept)
    assert_same(history(batch, 30, seed=5), expected)
    fresh = open_batch(SMALL, size=3, seed=99, compiled=False)
    fresh.restore(kept)
    assert_same(history(fresh, 30, seed=5), expected)


def test_a_snapshot_does_not_change_afterwards():
    """It is a copy, not a view."""
    batch = open_batch(SMALL, size=2, seed=1, compiled=False)
    kept = batch.snapshot()
    before = kept["observations"].copy()
    history(batch, 5)
    np.testing.assert_array_equal(kept["observations"], before)


def test_compiled_is_the_same_to_the_last_bit():
    """Machine code and plain Python give equal numbers."""
    plain = open_batch(SMALL, size=3, seed=11, compiled=False)
    compiled = open_batch(SMALL, size=3, seed=11)
    assert_same(history(plain, 60), history(compiled, 60))


def test_threads_change_nothing():
    """Two threads give what one gives."""
    one = open_batch(SMALL, size=130, seed=5)
    two = open_batch(SMALL, size=130, seed=5, threads=2)
    try:
        assert_same(history(one, 60), history(two, 60))
    finally:
        two.close()


@pytest.mark.parametrize("count", [2, 4])
def test_the_wrong_number_of_actions_is_refused(count):
    """One action per environment, no fewer and no more."""
    batch = open_batch(SMALL, size=3, seed=0, compiled=False)
    with pytest.raises(YardmasterError, match="3"):
        batch.step(np.zeros(count, dtype=np.int64))


@pytest.mark.slow
def test_episodes_of_real_and_plain_clusters_mix():
    """Where only some episodes need the core for real clusters, they get it, compiled too."""
    group = NodeGroup(count=1, gpu_type=gpu_type("V100"), gpus=4, cpus=4.0)
    task = Task(
        cluster=from_groups([group], name="with cores"),
        reward="jct",
        sight=Sight(window=4, gpu_slots=2, time_unit_s=10.0),
        measured_unit=False,
    )
    frugal = Workload.of(submit_s=[0, 0, 0], duration_s=[5, 5, 5])
    needy = Workload.of(submit_s=[0, 0, 0], duration_s=[5, 5, 5], cpus=[3, 3, 3])
    plain = given_batch(task, frugal, needy)
    compiled = given_batch(task, frugal, needy, compiled=True)
    for _ in range(3):
        actions = plain.masks.argmax(axis=1)
        plain.step(actions)
        compiled.step(actions)
        np.testing.assert_array_equal(plain.now_s, compiled.now_s)
    assert plain.now_s.tolist() == [5.0, 15.0]
