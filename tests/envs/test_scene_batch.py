"""Environments of scenes on the processor: each in its scene, stepped as its scene says."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.scene_batch import EPISODES_PER_SCENE, SceneBatch, SceneEpisodes
from yardmaster.envs.scenes import Scene, SceneTask
from yardmaster.errors import YardmasterError

SCENES = (
    Scene(name="small", cluster="2x V100:4", sizes={1: 0.5, 2: 0.3, 4: 0.2}, share=3.0),
    Scene(name="large", cluster="4x V100:8", sizes={1: 0.5, 8: 0.3, 16: 0.2}),
)
SIGHT = Sight(window=8, gpu_slots=8, window_order="sjf")


def opened(size: int = 16, **changes) -> SceneBatch:
    task = SceneTask(scenes=SCENES, jobs=24, sight=SIGHT, **changes)
    return SceneBatch(SceneEpisodes(task.rows(), task), size, compiled=False)


def played(batch: SceneBatch, steps: int):
    """Play at random; return the rewards and the time of every step."""
    dice = np.random.default_rng(5)
    rewards, elapsed_s = [], []
    for _ in range(steps):
        batch.step(np.where(batch.masks, dice.random(batch.masks.shape), -1.0).argmax(axis=1))
        rewards.append(batch.rewards.copy())
        elapsed_s.append(batch.elapsed_s.copy())
    return np.array(rewards), np.array(elapsed_s)


def test_environments_follow_the_shares_and_stay_in_their_scene():
    """Three quarters are in the scene with that share, and none ever draws another's episode."""
    batch = opened()
    assert np.bincount(batch.groups).tolist() == [12, 4]
    batch.reset(3)
    for _ in range(120):
        assert (batch.episode_numbers // EPISODES_PER_SCENE == batch.groups).all()
        batch.step(batch.masks.argmax(axis=1))


def test_rewards_and_time_are_divided_by_what_is_usual_in_the_scene():
    """A scene whose usual waiting is doubled earns half; a unit of ten seconds passes a tenth."""
    plain, scaled = (
        opened(reward={"waiting": -1.0}),
        opened(
            reward={"waiting": -1.0},
            usual={"large": {"waiting": 2.0}},
            unit_s={"small": 10.0},
        ),
    )
    for batch in (plain, scaled):
        batch.reset(1)
    (rewards, elapsed_s), (halved, tenth_s) = played(plain, 60), played(scaled, 60)
    is_large = plain.groups == 1
    assert rewards[:, is_large].any()
    np.testing.assert_allclose(halved[:, is_large], rewards[:, is_large] / 2.0)
    np.testing.assert_allclose(halved[:, ~is_large], rewards[:, ~is_large])
    np.testing.assert_allclose(tenth_s[:, ~is_large], elapsed_s[:, ~is_large] / 10.0)
    np.testing.assert_allclose(tenth_s[:, is_large], elapsed_s[:, is_large])


def test_every_scene_needs_an_environment():
    """Fewer environments than scenes are refused."""
    with pytest.raises(YardmasterError, match="2 scenes"):
        opened(1)
