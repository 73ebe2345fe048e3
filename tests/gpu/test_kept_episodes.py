"""Episodes laid out in advance are played on a GPU as on the CPU, decision by decision."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine.gpu.hashing import next_number
from yardmaster.engine.gpu.lanes import LANES
from yardmaster.engine.picking.places import STEPS
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.gpu_batch import KeptBatch
from yardmaster.envs.task import TASKS
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site

SMALL = TASKS["default"].changed(
    jobs=8, cluster="2x V100:4", episodes=6, load=1.5, window=6, gpu_slots=4, window_order="sjf"
)
SMALLER = {"jobs": 8, "episodes": 4, "window": 5}
FAILING = Cluster.of("1x A100:4", "2x V100:2").under(
    Site(failures=Failures(outages=(Outage(0, 300.0, 4_000.0), Outage(2, 1_500.0, 9_000.0))))
)
TRIED = {
    "plain": SMALL,
    "unsorted": SMALL.changed(window_order="fifo", noop="always", **SMALLER),
    "lookahead": SMALL.changed(lookahead="cdf", **SMALLER),
    "estimates": TASKS["estimates"].changed(cluster="2x V100:4", gpu_slots=4, **SMALLER),
    "blind": TASKS["blind"].changed(cluster="2x V100:4", gpu_slots=4, **SMALLER),
    "cut off": SMALL.changed(max_steps=7, reward="bounded_slowdown"),
    "gpu-optimizer": TASKS["gpu-optimizer"].changed(**SMALLER),
    "rltune": TASKS["rltune"].changed(cluster="2x V100:4", **SMALLER),
    "drl-scheduler": TASKS["drl-scheduler"].changed(
        cluster="1x A100:4, 1x T4:2", workload="venus-like", load=1.0, **SMALLER
    ),
    "outages": SMALL.changed(cluster=FAILING, **SMALLER),
}


@pytest.mark.parametrize("name", list(TRIED))
def test_a_gpu_plays_as_the_cpu_does(name: str, twins, scope):
    """Episodes, observations, masks, rewards, ends and time are those of the CPU at every step."""
    pair = twins(TRIED[name], 3)
    dice = np.random.default_rng(0)
    ended = 0
    for _ in range(scope.steps):
        pair.assert_same_sight()
        pair.step(pair.legal_actions(dice))
        pair.assert_same_outcome()
        ended += int((pair.here._ends != 0).sum())
    pair.assert_same_sight()
    assert ended > scope.size // 2


def test_what_is_tallied_is_what_the_episodes_came_to(twins, scope):
    """Sums over ended episodes are those of the CPU, and begin again once they are read."""
    pair = twins(SMALL, 5)
    dice = np.random.default_rng(1)
    counted = np.zeros(7)
    for _ in range(scope.steps):
        pair.step(pair.legal_actions(dice))
        ended = pair.here._ends != 0
        counted += [
            ended.sum(),
            pair.here.episode_returns[ended].sum(),
            pair.here.episode_steps[ended].sum(),
            pair.here.episode_noops[ended].sum(),
            pair.here.outcomes[ended, -1].sum(),
            pair.here.outcomes[ended, 1].sum(),
            pair.here.outcomes[ended, 2].sum(),
        ]
    tally = pair.there.tallied()
    np.testing.assert_allclose([float(sums[0]) for sums in tally.values()], counted, rtol=1e-6)
    assert not pair.there.tallied()["episodes"].any()


def test_a_snapshot_is_all_there_is(twins, assert_same_state):
    """From a snapshot the same actions have the same results, in another batch too."""
    pair = twins(SMALL, 9)
    dice = np.random.default_rng(2)
    for _ in range(5):
        pair.step(pair.legal_actions(dice))
    snapshot = pair.there.snapshot()
    other = twins(SMALL, 77)
    other.there.restore(snapshot)
    other.here.restore(pair.here.snapshot())
    for _ in range(6):
        actions = pair.legal_actions(dice)
        pair.step(actions)
        other.step(actions)
        other.assert_same_sight()
        other.assert_same_outcome()
    assert_same_state(pair.there, other.there)


def test_staggered_environments_are_in_different_moments(scope, by_environment):
    """They have made different numbers of decisions, draw their own episodes, and count anew."""
    batch = KeptBatch(Episodes(SMALL.changed(jobs=6), "train"), scope.size)
    batch.reset(4, staggered=True)
    assert len(set(by_environment(batch.book)[:, STEPS].tolist())) >= 4
    assert not batch.tally.copy_to_host().any()
    begun = batch._begun.copy_to_host()
    expected = [next_number(4 + row, count - 1, 6) for row, count in enumerate(begun.tolist())]
    np.testing.assert_array_equal(batch.episode_numbers.copy_to_host(), expected)
    assert by_environment(batch.legal).any(axis=1).all()
    once = by_environment(batch.observations)
    batch.reset(4, staggered=True)
    np.testing.assert_array_equal(by_environment(batch.observations), once)


@pytest.mark.parametrize("size", [0, 1, LANES - 1, LANES + 1])
def test_environments_fill_tiles(size: int):
    """Any other number than a multiple of 32 is refused, and named."""
    with pytest.raises(YardmasterError, match=f"multiple of 32, got {size}"):
        KeptBatch(Episodes(SMALL, "train"), size)
