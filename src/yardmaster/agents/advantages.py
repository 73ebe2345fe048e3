"""How much better a decision turned out than expected: discounts, returns and advantages.

Numbers are NumPy arrays, or tensors where the environments are on a GPU; the arithmetic is the
same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = Any
"""An array, or a tensor."""


def step_discounts(elapsed_s: Numbers, gamma: float, discount_per_s: float | None) -> Numbers:
    """Return what the value after each step is worth before it.

    Args:
        elapsed_s: Simulated seconds that passed in each step.
        gamma: Discount of one decision, or of `discount_per_s` seconds.
        discount_per_s: Seconds over which the future loses one factor of `gamma`; None discounts
            every decision alike, however long it took.
    """
    if discount_per_s is None:
        return elapsed_s * 0.0 + gamma
    return gamma ** (elapsed_s / discount_per_s)


def advantages(
    rewards: Numbers,
    values: Numbers,
    next_values: Numbers,
    discounts: Numbers,
    ended: Any,
    *,
    trace: Numbers,
) -> Numbers:
    """Return generalised advantage estimates, all arrays (steps, environments).

    An episode's end cuts the sum: what comes after it belongs to another episode.

    Args:
        rewards: Earned by each step.
        values: Expected return of the state each step was taken in.
        next_values: Of the state it led to, in the same episode: 0 if that was the end, the
            value of its last observation if a limit cut it off.
        discounts: What a value after the step is worth before it.
        ended: The episode ended with this step, in whichever way.
        trace: λ, how far surprises of later decisions reach back: 0 one step, 1 to the end; one for
            all steps, or one each.
    """
    surprises = rewards + discounts * next_values - values
    carries = discounts * trace * ~ended
    estimates = surprises + 0.0  # a copy: what is carried back is added to it
    for step in range(len(surprises) - 2, -1, -1):
        estimates[step] += carries[step] * estimates[step + 1]
    return estimates


def returns_to_go(rewards: Numbers, tails: Numbers, discounts: Numbers, ended: Any) -> Numbers:
    """Return the discounted sum of rewards from each step on, all arrays (steps, environments).

    `tails` are the values of what lies beyond the last recorded step of an episode: of its last
    observation where a limit cut it off or the recording stopped, 0 everywhere else.
    """
    return advantages(rewards, rewards * 0.0, tails, discounts, ended, trace=1.0)


def running_returns(
    rewards: Numbers, discounts: Numbers, ended: Any, running: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the discounted sum of rewards up to each step, and that to begin the next step with.

    `running` (environments,) is that to begin the first step with.
    """
    seen = rewards + 0.0
    for step in range(len(rewards)):
        running = running + rewards[step]
        seen[step] = running
        running = running * discounts[step] * ~ended[step]
    return seen, running


class ReturnScale:
    """Running spread of the discounted return so far, by which rewards are divided.

    Keeps returns near size 1 whatever the units of the reward, so that the same learning rate
    and value loss suit all. Rewards are only scaled, never shifted: that would change the task.
    Episodes may be of several kinds, each with a spread of its own: a kind whose returns are a
    hundred times as large must not be all that counts.
    """

    def __init__(self, environments: int, groups: int = 1) -> None:
        self._returns: Any = np.zeros(environments)
        self._moments = np.zeros((groups, 3))
        """Number, mean and sum of squared deviations of the returns of each kind."""

    @property
    def scale(self) -> float:
        """Standard deviation of all discounted returns of the first kind."""
        return float(self.scales[0])

    @property
    def scales(self) -> npt.NDArray[np.float64]:
        """The same of every kind; 1 where there is no spread yet."""
        count, _, squares = self._moments.T
        spreads = np.sqrt(squares / np.maximum(count, 1.0))
        return np.where(spreads > 1e-8, spreads, 1.0)

    def see(
        self,
        rewards: Any,
        discounts: Any,
        ended: Any,
        groups: Any = None,
        add_up: Callable[..., Any] | None = None,
    ) -> None:
        """Take in one rollout; all are (steps, environments), arrays or tensors.

        `add_up` does what `running_returns` does, which it is if not given.
        """
        running = self._returns
        if not isinstance(rewards, np.ndarray) and isinstance(running, np.ndarray):
            running = rewards.new_tensor(running)  # the first rollout on a GPU, or after a resume
        seen, self._returns = (add_up or running_returns)(rewards, discounts, ended, running)
        for group in range(len(self._moments)):
            self._join(group, seen if groups is None else seen[groups == group])

    def _join(self, group: int, seen: Any) -> None:
        """Merge the moments of new returns into the running ones (Chan's formula)."""
        number = math.prod(seen.shape)
        if number == 0:
            return
        before, mean, squares = self._moments[group]
        own_mean = float(seen.mean())
        count, shift = before + number, own_mean - mean
        squares += float(((seen - own_mean) ** 2).sum())
        squares += shift * shift * before * number / count
        self._moments[group] = count, mean + shift * number / count, squares

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on from here."""
        returns = self._returns.tolist()
        return {"returns": np.array(returns), "moments": self._moments.copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._returns = np.array(state["returns"])
        self._moments[:] = state["moments"]
