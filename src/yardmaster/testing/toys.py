"""Tiny decision problems whose best policy is known: what any learner must master."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.choosing.sight import ChoiceLayout
from yardmaster.engine.picking.layout import Layout

SECONDS = 100.0


class OneMachine:
    """Jobs of random lengths, all present at the start, run one after another on one machine.

    Every pick runs one job to its end. The reward of a step is minus the time it takes, times the
    jobs still in the system, by `SECONDS`; shortest first is optimal for every draw, so an
    episode's best return is known: `best_returns`. The no-op is never legal. Picking a job also
    masks it. Satisfies `yardmaster.envs.protocol.Batch`.
    """

    def __init__(self, size: int, jobs: int = 4) -> None:
        self.size = size
        self.layout = Layout(
            window=jobs,
            job_features=("waiting", "length"),
            gpu_slots=1,
            global_features=("waiting",),
            jobs_at=0,
            gpus_at=2 * jobs,
            globals_at=(2 * jobs + 1,),
        )
        self.lengths = np.zeros((size, jobs))
        self.observations = np.zeros((size, self.layout.length), dtype=np.float32)
        self.masks = np.zeros((size, self.layout.actions), dtype=np.bool_)
        self.rewards = np.zeros(size)
        self.terminated = np.zeros(size, dtype=np.bool_)
        self.truncated = np.zeros(size, dtype=np.bool_)
        self.elapsed_s = np.zeros(size)
        self.final_observations = self.observations.copy()
        self.final_masks = self.masks.copy()
        self.episode_returns = np.zeros(size)
        self.episode_steps = np.zeros(size, dtype=np.int64)
        self.episode_noops = np.zeros(size, dtype=np.int64)
        self.groups = np.zeros(size, dtype=np.int64)
        self.group_count = 1
        self.best_returns = np.zeros(size)
        """(size,) best possible return of the episode each environment is in."""
        self._returns = np.zeros(size)
        self._steps = np.zeros(size, dtype=np.int64)
        self._dice = np.random.default_rng(0)

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes, always together: they are too short for it to matter."""
        del staggered
        self._dice = np.random.default_rng(seed)
        for row in range(self.size):
            self._begin(row)

    def _begin(self, row: int) -> None:
        lengths = self._dice.uniform(1.0, SECONDS, self.layout.window)
        self.lengths[row] = lengths
        self.masks[row, :-1] = True
        self._returns[row] = 0.0
        self._steps[row] = 0
        self.best_returns[row] = -float(np.cumsum(np.sort(lengths)).sum()) / SECONDS
        self._look(row)

    def _look(self, row: int) -> None:
        waiting = self.masks[row, :-1]
        self.layout.jobs(self.observations)[row, :, 0] = waiting
        self.layout.jobs(self.observations)[row, :, 1] = waiting * self.lengths[row] / SECONDS
        self.observations[row, -1] = waiting.mean()

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Run one job in every environment."""
        rows = np.arange(self.size)
        if not self.masks[rows, actions].all():
            raise ValueError("an illegal action")
        self.elapsed_s[:] = self.lengths[rows, actions]
        left = self.masks.sum(axis=1)
        self.rewards[:] = -self.elapsed_s * left / SECONDS
        self._returns += self.rewards
        self._steps += 1
        self.masks[rows, actions] = False
        self.terminated[:] = left == 1
        for row in rows.tolist():
            self._look(row)
        for row in np.flatnonzero(self.terminated).tolist():
            self.episode_returns[row] = self._returns[row]
            self.episode_steps[row] = self._steps[row]
            self.final_observations[row] = self.observations[row]
            self.final_masks[row] = self.masks[row]
            self._begin(row)

    def snapshot(self) -> dict[str, Any]:
        """Return everything needed to go on from here."""
        arrays = ("lengths", "observations", "masks", "best_returns", "_returns", "_steps")
        kept: dict[str, Any] = {name: getattr(self, name).copy() for name in arrays}
        return kept | {"dice": self._dice.bit_generator.state}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name, value in snapshot.items():
            if name == "dice":
                self._dice.bit_generator.state = value
            else:
                getattr(self, name)[...] = value


class WhichRegime:
    """In every regime another scheduler is right; only the recent past tells which regime it is.

    A right choice earns 1, a wrong one nothing, and an episode has `steps` of them, so that its
    best return is `steps`. The first regime is met nine times as often as any other. Satisfies
    `yardmaster.envs.protocol.Batch`.
    """

    def __init__(self, size: int, regimes: int = 3, steps: int = 6) -> None:
        self.size = size
        self.steps = steps
        self.layout = ChoiceLayout(
            ("noise", "clock"), tuple(f"trace_{place}" for place in range(2 * regimes)), regimes
        )
        self.observations = np.zeros((size, self.layout.length), dtype=np.float32)
        self.masks = np.ones((size, regimes), dtype=np.bool_)
        self.rewards = np.zeros(size)
        self.terminated = np.zeros(size, dtype=np.bool_)
        self.truncated = np.zeros(size, dtype=np.bool_)
        self.elapsed_s = np.ones(size)
        self.final_observations = self.observations.copy()
        self.final_masks = self.masks.copy()
        self.episode_returns = np.zeros(size)
        self.episode_steps = np.full(size, steps)
        self.episode_noops = np.zeros(size, dtype=np.int64)
        self.groups = np.zeros(size, dtype=np.int64)
        """(size,) the regime each environment is in: the right choice."""
        self.group_count = regimes
        self._returns = np.zeros(size)
        self._taken = np.zeros(size, dtype=np.int64)
        self._dice = np.random.default_rng(0)

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes, staggered ones at different steps."""
        self._dice = np.random.default_rng(seed)
        self._begin(np.arange(self.size))
        if staggered:
            self._taken[:] = self._dice.integers(self.steps, size=self.size)
        self._look()

    def _begin(self, rows: npt.NDArray[np.int64]) -> None:
        odds = np.ones(self.group_count)
        odds[0] = 9.0
        self.groups[rows] = self._dice.choice(self.group_count, len(rows), p=odds / odds.sum())
        self._returns[rows] = 0.0
        self._taken[rows] = 0

    def _look(self) -> None:
        dice, trace = self._dice, 2 * self.groups
        self.observations[:] = 0.3 * dice.random(self.observations.shape)
        self.observations[:, 1] = self._taken / self.steps
        for half in range(2):  # a trace of two numbers, both of which every regime has its own of
            self.observations[np.arange(self.size), 2 + trace + half] += 0.7

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Choose in every environment."""
        self.rewards[:] = actions == self.groups
        self._returns += self.rewards
        self._taken += 1
        self.terminated[:] = self._taken >= self.steps
        ended = np.flatnonzero(self.terminated)
        self.episode_returns[ended] = self._returns[ended]
        self._look()
        self.final_observations[ended] = self.observations[ended]
        if len(ended):
            self._begin(ended)
            self._look()

    def snapshot(self) -> dict[str, Any]:
        """Return everything needed to go on from here."""
        arrays = ("observations", "groups", "_returns", "_taken")
        kept: dict[str, Any] = {name: getattr(self, name).copy() for name in arrays}
        return kept | {"dice": self._dice.bit_generator.state}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        for name, value in snapshot.items():
            if name == "dice":
                self._dice.bit_generator.state = value
            else:
                getattr(self, name)[...] = value
