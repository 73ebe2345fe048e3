"""Many environments in step: the same as single ones, by Gymnasium's convention."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from yardmaster.envs import registration
from yardmaster.envs.pick_job import PickJobEnv
from yardmaster.envs.vector import PickJobVectorEnv
from yardmaster.errors import UnknownNameError, YardmasterError

SMALL: dict[str, Any] = {
    "compiled": False,
    "cluster": "2x V100:8",
    "jobs": 12,
    "episodes": 5,
    "window": 4,
    "gpu_slots": 5,
    "load": 2.0,
}


def legal_actions(masks: np.ndarray, dice: np.random.Generator) -> np.ndarray:
    """Return a random legal action of each environment."""
    return np.array([dice.choice(np.flatnonzero(mask)) for mask in masks])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"observation": "dict", "max_steps": 9},
        {"task": "gpu-optimizer-original", "cluster": "pool:8", "max_steps": 9},
        {"task": "drl-scheduler", "cluster": "1x A100:8, 1x T4:4", "time_limit_s": 600.0},
        {"task": "rltune", "observation": "dict", "pace": "commit"},
    ],
    ids=["default", "dict", "gpu-optimizer", "drl-scheduler", "rltune"],
)
def test_identical_to_single_environments(changes: dict[str, Any]):
    """Everything a step returns is what Gymnasium's vector of single environments returns."""
    settings = SMALL | changes
    many = PickJobVectorEnv(3, **settings)
    single = SyncVectorEnv(
        [lambda: PickJobEnv(**settings)] * 3, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert many.single_observation_space == single.single_observation_space
    assert many.observation_space == single.observation_space
    assert many.action_space == single.action_space
    assert data_equivalence(many.reset(seed=5), single.reset(seed=5), exact=True)
    dice = np.random.default_rng(0)
    ended = 0
    for _ in range(60):
        actions = legal_actions(many.action_masks(), dice)
        ours, theirs = many.step(actions), single.step(actions)
        assert data_equivalence(ours, theirs, exact=True)
        ended += int((ours[2] | ours[3]).sum())
    assert ended > 3
    assert data_equivalence(many.reset(), single.reset(), exact=True)


def test_last_observations_and_scores():
    """Where an episode ended, the last observation and the scores of the old one are told."""
    envs = PickJobVectorEnv(4, **SMALL)
    dice = np.random.default_rng(1)
    envs.reset(seed=1)
    returns = np.zeros(4)
    seen = 0
    for _ in range(60):
        _, rewards, terminated, truncated, infos = envs.step(
            legal_actions(envs.action_masks(), dice)
        )
        returns += rewards
        ended = terminated | truncated
        assert ("final_info" in infos) == bool(ended.any())
        for row in np.flatnonzero(ended):
            seen += 1
            scores = infos["final_info"]["scores"]
            assert scores["return"][row] == pytest.approx(returns[row])
            assert infos["final_obs"][row] in envs.single_observation_space
            assert infos["elapsed_s"][row] == 0.0
            assert infos["final_info"]["elapsed_s"][row] > 0.0
            assert infos["now_s"][row] < infos["final_info"]["now_s"][row]
            returns[row] = 0.0
    assert seen > 4


def test_arrays_are_ones_own_unless_asked_otherwise():
    """By default a later step changes nothing handed out; with `copy=False` it does."""
    for copy in (True, False):
        envs = PickJobVectorEnv(3, copy=copy, **SMALL)
        observations, infos = envs.reset(seed=2)
        masks = infos["action_mask"]
        kept = (observations.copy(), masks.copy())
        for _ in range(4):
            later = envs.step(envs.action_masks().argmax(axis=1))
        assert np.array_equal(observations, kept[0]) == copy
        assert np.array_equal(masks, kept[1]) == copy
        assert (later[0] is observations) == (not copy)
        assert np.shares_memory(later[4]["action_mask"], masks) == (not copy)


def test_threads_change_nothing():
    """On two threads the compiled environments do what they do on one."""
    settings = SMALL | {"compiled": True}
    one, two = (PickJobVectorEnv(130, threads=threads, **settings) for threads in (1, 2))
    assert data_equivalence(one.reset(seed=3), two.reset(seed=3), exact=True)
    dice = np.random.default_rng(3)
    for _ in range(40):
        actions = legal_actions(one.action_masks(), dice)
        assert data_equivalence(one.step(actions), two.step(actions), exact=True)
    two.close()
    two.close()


def test_made_by_gymnasium_and_wrapped():
    """`make_vec` makes it by default, and Gymnasium's wrappers count its episodes rightly."""
    envs = gymnasium.make_vec(registration.PICK_JOB, num_envs=2, **SMALL)
    assert isinstance(envs, PickJobVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    counted = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    _, infos = counted.reset(seed=4)
    dice = np.random.default_rng(4)
    ends = 0
    while ends < 4:
        *_, infos = counted.step(legal_actions(infos["action_mask"], dice))
        for row in np.flatnonzero(infos.get("_final_info", np.zeros(2))):
            ends += 1
            scores = infos["final_info"]["scores"]
            assert infos["episode"]["r"][row] == pytest.approx(scores["return"][row])
            assert infos["episode"]["l"][row] == scores["decisions"][row]


def test_episodes_can_be_asked_for_by_number():
    """`options` takes one number for all environments, or one for each."""
    envs = PickJobVectorEnv(3, **SMALL)
    _, infos = envs.reset(options={"episode": 4})
    assert infos["episode_number"].tolist() == [4, 4, 4]
    _, infos = envs.reset(options={"episode": [0, 7, 2]})
    assert infos["episode_number"].tolist() == [0, 7, 2]
    with pytest.raises(YardmasterError, match="or 3 of them"):
        envs.reset(options={"episode": [1, 2]})


def test_pictures():
    """With a render mode there is a picture of each environment, without none."""
    envs = PickJobVectorEnv(2, render_mode="ansi", **SMALL)
    envs.reset(options={"episode": [0, 3]})
    first, second = envs.render() or ("", "")
    assert "of episode 0" in first
    assert "of episode 3" in second
    assert PickJobVectorEnv(1, **SMALL).render() is None


def test_what_makes_no_sense_is_refused():
    """No environments, a wrong number of actions, and settings there are not are refused."""
    with pytest.raises(YardmasterError, match="num_envs must be at least 1"):
        PickJobVectorEnv(0)
    envs = PickJobVectorEnv(2, **SMALL)
    with pytest.raises(YardmasterError, match="reset"):
        envs.step(np.zeros(2, dtype=np.int64))
    envs.reset(seed=0)
    with pytest.raises(YardmasterError, match="needs 2 actions"):
        envs.step(np.zeros(3, dtype=np.int64))
    with pytest.raises(UnknownNameError, match="Did you mean 'max_steps'"):
        gymnasium.make_vec(registration.PICK_JOB, num_envs=2, max_episode_steps=10)
