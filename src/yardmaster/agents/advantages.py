"""How much better a decision turned out than expected: discounts, returns and advantages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def step_discounts(elapsed_s: Reals, gamma: float, discount_per_s: float | None) -> Reals:
    """Return what the value after each step is worth before it.

    Args:
        elapsed_s: Simulated seconds that passed in each step.
        gamma: Discount of one decision, or of `discount_per_s` seconds.
        discount_per_s: Seconds over which the future loses one factor of `gamma`; None discounts
            every decision alike, however long it took.
    """
    if discount_per_s is None:
        return np.full_like(elapsed_s, gamma)
    return np.asarray(gamma ** (elapsed_s / discount_per_s))


def advantages(
    rewards: Reals,
    values: Reals,
    next_values: Reals,
    discounts: Reals,
    ended: Bools,
    *,
    trace: float,
) -> Reals:
    """Return generalised advantage estimates, all arrays (steps, environments).

    An episode's end cuts the sum: what comes after it belongs to another episode.

    Args:
        rewards: Earned by each step.
        values: Expected return of the state each step was taken in.
        next_values: Of the state it led to, in the same episode: 0 if that was the end, the
            value of its last observation if a limit cut it off.
        discounts: What a value after the step is worth before it.
        ended: The episode ended with this step, in whichever way.
        trace: λ, how far surprises of later decisions reach back: 0 one step, 1 to the end.
    """
    surprises = rewards + discounts * next_values - values
    carries = np.where(ended, 0.0, discounts * trace)
    estimates = np.empty_like(surprises)
    later = np.zeros_like(surprises[0])
    for step in range(len(surprises) - 1, -1, -1):
        later = surprises[step] + carries[step] * later
        estimates[step] = later
    return estimates


def returns_to_go(rewards: Reals, tails: Reals, discounts: Reals, ended: Bools) -> Reals:
    """Return the discounted sum of rewards from each step on, all arrays (steps, environments).

    `tails` are the values of what lies beyond the last recorded step of an episode: of its last
    observation where a limit cut it off or the recording stopped, 0 everywhere else.
    """
    return advantages(rewards, np.zeros_like(rewards), tails, discounts, ended, trace=1.0)


class ReturnScale:
    """Running spread of the discounted return so far, by which rewards are divided.

    Keeps returns near size 1 whatever the units of the reward, so that the same learning rate
    and value loss suit all. Rewards are only scaled, never shifted: that would change the task.
    """

    def __init__(self, environments: int) -> None:
        self._returns = np.zeros(environments)
        self._count = 0.0
        self._mean = 0.0
        self._squares = 0.0

    @property
    def scale(self) -> float:
        """Standard deviation of all discounted returns seen; 1 before there is a spread."""
        spread = (self._squares / self._count) ** 0.5 if self._count else 0.0
        return spread if spread > 1e-8 else 1.0

    def see(self, rewards: Reals, discounts: Reals, ended: Bools) -> None:
        """Take in one rollout; arrays (steps, environments)."""
        seen = np.empty_like(rewards)
        for step, earned in enumerate(rewards):
            self._returns += earned
            seen[step] = self._returns
            self._returns *= np.where(ended[step], 0.0, discounts[step])
        self._join(seen)

    def _join(self, seen: Reals) -> None:
        """Merge the moments of new returns into the running ones (Chan's formula)."""
        count = self._count + seen.size
        shift = float(seen.mean()) - self._mean
        self._squares += float(seen.var()) * seen.size
        self._squares += shift * shift * self._count * seen.size / count
        self._mean += shift * seen.size / count
        self._count = count

    def state(self) -> dict[str, Any]:
        """Return everything needed to go on from here."""
        return {
            "returns": self._returns.copy(),
            "count": self._count,
            "mean": self._mean,
            "squares": self._squares,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self._returns[:] = state["returns"]
        self._count = state["count"]
        self._mean = state["mean"]
        self._squares = state["squares"]
