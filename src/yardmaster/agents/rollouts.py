"""What happened in some steps of many environments, kept for learning from it once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.envs.protocol import Batch

Reals = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ROWS_AT_ONCE = 1024
"""Observations judged in one go: few enough for the processor's cache."""


class Rollout:
    """Some steps of all environments; arrays are (steps, environments, …), made once, refilled.

    Everything is copied: the batch writes over its own arrays in every step.
    """

    def __init__(
        self, steps: int, environments: int, layout: AnyLayout, device: str | torch.device = "cpu"
    ) -> None:
        shape = (steps, environments)
        self.steps = steps
        self.device = torch.device(device)
        """Where the network is, and what it learns from."""
        self.observations = torch.zeros(steps + 1, environments, layout.length, device=device)
        """What was seen before each step, and after the last."""
        self.masks = torch.zeros(*shape, layout.actions, dtype=torch.bool, device=device)
        self.actions = torch.zeros(shape, dtype=torch.int64, device=device)
        self.rewards: Reals = np.zeros(shape)
        self.elapsed_s: Reals = np.zeros(shape)
        self.terminated: Bools = np.zeros(shape, dtype=np.bool_)
        self.truncated: Bools = np.zeros(shape, dtype=np.bool_)
        """Cut off by a limit, and not terminated at the same time."""
        self.episode_returns: list[float] = []
        """Of the episodes that ended."""
        self._noop = layout.window
        self._cut_off: list[Tensor] = []
        """Last observations of truncated episodes, in the order of steps, then environments."""

    @property
    def ended(self) -> Bools:
        """Where an episode ended, in whichever way."""
        return self.terminated | self.truncated

    def before(self, step: int, batch: Batch) -> None:
        """Keep what is seen before a step."""
        if step == 0:
            self.episode_returns.clear()
            self._cut_off.clear()
        self.observations[step] = torch.from_numpy(batch.observations)
        self.masks[step] = torch.from_numpy(batch.masks)

    def after(self, step: int, batch: Batch, actions: Tensor) -> None:
        """Keep the actions of a step and what came of it."""
        self.actions[step] = actions
        self.rewards[step] = batch.rewards
        self.elapsed_s[step] = batch.elapsed_s
        self.terminated[step] = batch.terminated
        self.truncated[step] = batch.truncated & ~batch.terminated
        if (ended := batch.terminated | batch.truncated).any():
            self.episode_returns += batch.episode_returns[ended].tolist()
            # Indexing with an array of rows copies.
            last = torch.from_numpy(batch.final_observations[self.truncated[step]])
            self._cut_off.append(last.to(self.device))
        if step == self.steps - 1:
            self.observations[-1] = torch.from_numpy(batch.observations)

    @torch.no_grad()
    def values(
        self, critic: Callable[[Tensor], Tensor], seen: Tensor | None = None
    ) -> tuple[Reals, Reals]:
        """Return the values of the states before and after each step, (steps, environments) both.

        `seen` is what the critic is shown of these states, (states, …); all, if not given.

        After the end of an episode nothing follows: 0. An episode that a limit cut off would have
        gone on: the value of its last observation, not of the next episode's first.
        """
        seen = self.observations.flatten(0, 1) if seen is None else seen
        values = _judged(seen, critic).reshape(self.steps + 1, -1)
        following = values[1:].copy()
        self._settle(following, critic)
        return values[:-1], following

    @torch.no_grad()
    def tails(self, critic: Callable[[Tensor], Tensor]) -> Reals:
        """Return the value beyond the last recorded step of each episode, 0 at all other steps."""
        beyond = np.zeros_like(self.rewards)
        beyond[-1] = _judged(self.observations[-1], critic)
        self._settle(beyond, critic)
        return beyond

    def _settle(self, following: Reals, critic: Callable[[Tensor], Tensor]) -> None:
        following[self.terminated] = 0.0
        if self.truncated.any():
            following[self.truncated] = _judged(torch.cat(self._cut_off), critic)

    def scalars(self) -> dict[str, float]:
        """Return figures by name; the mean return only if an episode ended."""
        scalars = {
            "steps": float(self.actions.numel()),
            "noop_share": (self.actions == self._noop).float().mean().item(),
            "episodes": float(len(self.episode_returns)),
        }
        if self.episode_returns:
            scalars["episode_return"] = float(np.mean(self.episode_returns))
        return scalars


def _judged(observations: Tensor, critic: Callable[[Tensor], Tensor]) -> Reals:
    rows = ROWS_AT_ONCE if observations.device.type == "cpu" else len(observations)
    parts = [critic(part) for part in torch.split(observations, rows)]
    values: Reals = torch.cat(parts).double().cpu().numpy()
    return values


def flat(numbers: Reals) -> Tensor:
    """Return numbers of steps and environments as one column, in the order of `flatten(0, 1)`."""
    return torch.from_numpy(numbers.astype(np.float32).ravel())
