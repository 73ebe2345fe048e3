"""Many environments of choosing in step: the same as single ones, by Gymnasium's convention."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from yardmaster.envs import registration
from yardmaster.envs.choosing.pick_scheduler import PickSchedulerEnv
from yardmaster.envs.choosing.vector import PickSchedulerVectorEnv
from yardmaster.errors import YardmasterError

SMALL: dict[str, Any] = {
    "compiled": False,
    "regimes": ["base-low-2", "bursty-low-4"],
    "episodes": 4,
    "past": 2,
    "max_steps": 12,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"observation": "dict", "max_steps": 0},
        {"information": "blind", "every_s": 60.0, "labelled": True},
        {"task": "hard-regimes", "regimes": ["gangs-busy"], "reward": "mixed"},
    ],
    ids=["default", "dict", "blind", "hard"],
)
def test_identical_to_single_environments(changes: dict[str, Any]):
    """Everything a step returns is what Gymnasium's vector of single environments returns."""
    settings = SMALL | changes
    many = PickSchedulerVectorEnv(3, **settings)
    single = SyncVectorEnv(
        [lambda: PickSchedulerEnv(**settings)] * 3, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert many.observation_space == single.observation_space
    assert many.action_space == single.action_space
    assert data_equivalence(many.reset(seed=5), single.reset(seed=5), exact=True)
    dice = np.random.default_rng(0)
    ended = 0
    while ended < 4:
        actions = dice.integers(many.single_action_space.n, size=3)
        ours, theirs = many.step(actions), single.step(actions)
        assert data_equivalence(ours, theirs, exact=True)
        ended += int((ours[2] | ours[3]).sum())
    assert data_equivalence(many.reset(), single.reset(), exact=True)


def test_last_observations_and_scores():
    """Where an episode ended, the last observation and the scores of the old one are told."""
    envs = PickSchedulerVectorEnv(3, **(SMALL | {"max_steps": 0}))
    envs.reset(seed=1)
    returns, seen = np.zeros(3), 0
    while seen < 4:
        _, rewards, terminated, truncated, infos = envs.step(np.arange(3))
        returns += rewards
        for row in np.flatnonzero(terminated | truncated):
            seen += 1
            final = infos["final_info"]
            assert final["scores"]["return"][row] == pytest.approx(returns[row])
            assert infos["final_obs"][row] in envs.single_observation_space
            assert infos["elapsed_s"][row] == infos["now_s"][row] == 0.0
            assert final["now_s"][row] > final["elapsed_s"][row] > 0.0
            returns[row] = 0.0


def test_made_by_gymnasium():
    """`make_vec` makes it by default; arrays are ones own unless asked otherwise."""
    for copy in (True, False):
        envs = gymnasium.make_vec(registration.PICK_SCHEDULER, num_envs=2, copy=copy, **SMALL)
        assert isinstance(envs, PickSchedulerVectorEnv)
        observations, _ = envs.reset(seed=2)
        kept = observations.copy()
        envs.step(np.zeros(2, dtype=np.int64))
        assert np.array_equal(observations, kept) == copy
        assert envs.render() is None
        envs.close()


def test_what_makes_no_sense_is_refused():
    """No environments, steps before the first reset and a wrong number of actions are refused."""
    with pytest.raises(YardmasterError, match="num_envs must be at least 1"):
        PickSchedulerVectorEnv(0)
    envs = PickSchedulerVectorEnv(2, render_mode="ansi", **SMALL)
    with pytest.raises(YardmasterError, match="reset"):
        envs.step(np.zeros(2, dtype=np.int64))
    envs.reset(options={"episode": [0, 3]})
    first, second = envs.render() or ("", "")
    assert "episode 0 (base-low-2)" in first
    assert "episode 3 (bursty-low-4)" in second
    with pytest.raises(YardmasterError, match="needs 2 actions"):
        envs.step(np.zeros(3, dtype=np.int64))
