"""What is kept of many steps, and what the value of a step's outcome is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.agents.rollouts import Rollout
from yardmaster.engine.picking.layout import Layout


class Scripted:
    """Environments whose every observation is a number of its own and whose ends are given.

    All arrays are written in place, as the real batch does. An episode may end in both ways.
    """

    def __init__(self, terminated: np.ndarray, truncated: np.ndarray) -> None:
        self.script = terminated, truncated
        self.size = terminated.shape[1]
        self.layout = Layout(1, ("number",), 0, (), 0, 1, ())
        self.observations = np.zeros((self.size, 1), dtype=np.float32)
        self.masks = np.ones((self.size, 2), dtype=np.bool_)
        self.rewards = np.zeros(self.size)
        self.elapsed_s = np.zeros(self.size)
        self.terminated = np.zeros(self.size, dtype=np.bool_)
        self.truncated = np.zeros(self.size, dtype=np.bool_)
        self.final_observations = np.zeros_like(self.observations)
        self.episode_returns = np.zeros(self.size)
        self.next_number = 1.0
        self.step_number = 0
        self.observations[:, 0] = self.numbers()

    def numbers(self) -> np.ndarray:
        """Return numbers never used before, one per environment."""
        first = self.next_number
        self.next_number += self.size
        return np.arange(first, self.next_number)

    def step(self, actions: np.ndarray) -> None:
        """Follow the script."""
        assert actions.shape == (self.size,)
        self.terminated[:] = self.script[0][self.step_number]
        self.truncated[:] = self.script[1][self.step_number]
        self.rewards[:] = self.numbers()
        self.elapsed_s[:] = self.numbers()
        self.final_observations[:, 0] = self.numbers()
        self.episode_returns[:] = self.numbers()
        self.observations[:, 0] = self.numbers()
        self.step_number += 1


def played(batch: Scripted, rollout: Rollout) -> list[dict[str, np.ndarray]]:
    """Fill a rollout; return copies of what the batch showed before and after every step."""
    shown = []
    for step in range(rollout.steps):
        before = {"before": batch.observations.copy()}
        rollout.before(step, batch)
        actions = torch.full((batch.size,), step % 2)
        batch.step(actions.numpy())
        rollout.after(step, batch, actions)
        names = ("rewards", "elapsed_s", "final_observations", "episode_returns", "observations")
        shown.append(before | {name: getattr(batch, name).copy() for name in names})
    return shown


@given(st.integers(1, 9), st.integers(1, 3), st.integers(0, 10**6))
def test_values_follow_each_episode_to_its_own_end(steps, size, seed):
    """0 after the end, the last observation's value after a cut, else that of what came next."""
    dice = np.random.default_rng(seed)
    terminated, truncated = dice.random((2, 2 * steps, size)) < 0.3
    batch = Scripted(terminated, truncated)
    rollout = Rollout(steps, size, batch.layout)
    for part in (slice(0, steps), slice(steps, None)):  # the second fills the same arrays anew
        shown = played(batch, rollout)
        values, following = rollout.values(lambda seen: 10.0 * seen[:, 0])
        tails = rollout.tails(lambda seen: 10.0 * seen[:, 0])
        for step, row in np.ndindex(steps, size):
            at_step = shown[step]
            goes_on = not terminated[part][step, row] and not truncated[part][step, row]
            expected = at_step["observations" if goes_on else "final_observations"][row, 0]
            expected *= 10.0 * (not terminated[part][step, row])
            assert values[step, row] == 10.0 * at_step["before"][row, 0]
            assert following[step, row] == expected
            assert tails[step, row] == (0.0 if goes_on and step < steps - 1 else expected)
            assert rollout.rewards[step, row] == at_step["rewards"][row]
            assert rollout.elapsed_s[step, row] == at_step["elapsed_s"][row]


def test_scalars_are_those_of_this_rollout_alone():
    """Shares of no-ops and returns of ended episodes; without any, no mean return."""
    terminated = np.array([[True, False], [False, True], [False, False], [False, False]])
    batch = Scripted(terminated, np.zeros_like(terminated))
    rollout = Rollout(2, 2, batch.layout)
    shown = played(batch, rollout)
    ended = [shown[0]["episode_returns"][0], shown[1]["episode_returns"][1]]
    assert rollout.scalars() == {
        "steps": 4.0,
        "noop_share": 0.5,
        "episodes": 2.0,
        "episode_return": pytest.approx(np.mean(ended)),
    }
    played(batch, rollout)
    assert rollout.scalars() == {"steps": 4.0, "noop_share": 0.5, "episodes": 0.0}
