"""Bandits: they try the schedulers of a menu and keep to those that served them well.

A bandit is rewarded, for every span between two of its decisions, by 1 / (1 + q), where q is the
mean queue during that span by the number of GPUs. It begins each simulation knowing nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.names import Registry


class Bandit(Protocol):
    """Chooses among a few arms, and is told how well each choice turned out."""

    def choose(self, seen: FloatArray) -> int:
        """Return the arm to pull, in view of these numbers."""

    def learn(self, reward: float) -> None:
        """Take in what the last choice earned, between 0 and 1."""


class EpsilonGreedy:
    """Mostly the arm that has earned most on average, now and then any; less and less often."""

    FIRST, LAST, KEPT = 0.3, 0.05, 0.995
    """Share of choices at random: at first, in the long run, and how much of it is kept a time."""

    def __init__(self, arms: int, _numbers: int, seed: int) -> None:
        self._dice = np.random.default_rng(seed)
        self._means = np.zeros(arms)
        self._pulls = np.zeros(arms, dtype=np.int64)
        self._epsilon = self.FIRST
        self._arm = 0

    def choose(self, seen: FloatArray) -> int:
        """Return an arm that was never tried, a random one, or the best so far."""
        del seen
        untried = np.flatnonzero(self._pulls == 0)
        if len(untried):
            self._arm = int(untried[0])
        elif self._dice.random() < self._epsilon:
            self._arm = int(self._dice.integers(len(self._means)))
        else:
            self._arm = int(self._means.argmax())
        self._epsilon = max(self._epsilon * self.KEPT, self.LAST)
        return self._arm

    def learn(self, reward: float) -> None:
        """Move the arm's mean."""
        self._pulls[self._arm] += 1
        self._means[self._arm] += (reward - self._means[self._arm]) / self._pulls[self._arm]


class Exp3:
    """Exponential weights for rewards that may change at will (Auer et al. 2002), γ = 0.1."""

    GAMMA = 0.1

    def __init__(self, arms: int, _numbers: int, seed: int) -> None:
        self._dice = np.random.default_rng(seed)
        self._logs = np.zeros(arms)
        self._shares = np.full(arms, 1.0 / arms)
        self._arm = 0

    def choose(self, seen: FloatArray) -> int:
        """Draw an arm by its weight; a tenth of the draws are even."""
        del seen
        weights = np.exp(self._logs - self._logs.max())
        even = 1.0 / len(weights)
        self._shares = (1.0 - self.GAMMA) * weights / weights.sum() + self.GAMMA * even
        self._arm = int(self._dice.choice(len(weights), p=self._shares))
        return self._arm

    def learn(self, reward: float) -> None:
        """Raise the arm's weight by what it earned, the more the rarer it is drawn."""
        estimate = reward / self._shares[self._arm]
        self._logs[self._arm] += self.GAMMA * estimate / len(self._logs)


class LinUCB:
    """A linear model of the reward per arm, and the benefit of the doubt (Li et al. 2010)."""

    ALPHA = 1.0
    """How much doubt counts."""

    def __init__(self, arms: int, numbers: int, _seed: int) -> None:
        size = numbers + 1
        self._inverse = np.stack([np.eye(size) for _ in range(arms)])
        self._sums = np.zeros((arms, size))
        self._seen = np.zeros(size)
        self._arm = 0

    def choose(self, seen: FloatArray) -> int:
        """Return the arm whose reward may be highest."""
        self._seen = np.append(seen, 1.0)
        spread = self._inverse @ self._seen
        expected = np.einsum("as,as->a", self._sums, spread)
        doubt = np.sqrt(np.maximum(spread @ self._seen, 0.0))
        self._arm = int((expected + self.ALPHA * doubt).argmax())
        return self._arm

    def learn(self, reward: float) -> None:
        """Fit the arm's model to one more reward (Sherman and Morrison's formula)."""
        inverse = self._inverse[self._arm]
        spread = inverse @ self._seen
        inverse -= np.outer(spread, spread) / (1.0 + self._seen @ spread)
        self._sums[self._arm] += reward * self._seen


class AnyOfThem:
    """Any arm, each equally likely: the floor that choosing must beat."""

    def __init__(self, arms: int, _numbers: int, seed: int) -> None:
        self._arms = arms
        self._dice = np.random.default_rng(seed)

    def choose(self, seen: FloatArray) -> int:
        """Return any arm."""
        del seen
        return int(self._dice.integers(self._arms))

    def learn(self, reward: float) -> None:
        """Learn nothing."""


class BanditKind(NamedTuple):
    """A kind of bandit: how to begin one, and what it does in one line."""

    begin: Callable[[int, int, int], Bandit]
    summary: str


BANDITS: Registry[BanditKind] = Registry("bandit")
for _name, _begin, _summary in (
    ("epsilon-greedy", EpsilonGreedy, "the best so far, and at random 30 % of the time, falling"),
    ("exp3", Exp3, "exponential weights, for rewards that may change at will"),
    ("linucb", LinUCB, "a linear model of what is seen, and the benefit of the doubt"),
    ("random", AnyOfThem, "any scheduler, each equally likely"),
):
    BANDITS.add(_name, BanditKind(_begin, _summary))
