"""What happened in some steps of many environments, kept for learning from it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from yardmaster.agents.networks.filled import Filled
from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.agents.tensors import as_tensor

Numbers = Any
"""(steps, environments): an array, or a tensor where the environments are on a GPU."""

ROWS_AT_ONCE = 1024
"""Observations judged in one go: few enough for the processor's cache."""

_KINDS = {float: torch.float32, bool: torch.bool, int: torch.int64}


class Rollout:
    """Some steps of all environments; arrays are (steps, environments, …), made once, refilled.

    Everything is copied: the batch writes over its own arrays in every step.
    """

    def __init__(
        self,
        steps: int,
        environments: int,
        layout: AnyLayout,
        device: str | torch.device = "cpu",
        *,
        is_resident: bool = False,
        has_groups: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Make room.

        Args:
            steps: of every environment.
            environments: how many.
            layout: of their observations.
            device: where the network is.
            is_resident: whether the environments are there too: nothing then leaves it.
            has_groups: whether episodes are of several kinds.
            dtype: numbers that observations are kept in.
        """
        shape = (steps, environments)
        self.steps = steps
        self._is_resident = is_resident
        self.device = torch.device(device)
        """Where the network is, and what it learns from."""
        self.observations = torch.zeros(
            steps + 1, environments, layout.length, dtype=dtype, device=device
        )
        """What was seen before each step, and after the last."""
        self.masks = torch.zeros(*shape, layout.actions, dtype=torch.bool, device=device)
        self.actions = torch.zeros(shape, dtype=torch.int64, device=device)

        def numbers(kind: type) -> Numbers:
            if is_resident:
                return torch.zeros(shape, dtype=_KINDS[kind], device=device)
            return np.zeros(shape, dtype=kind)

        self.rewards = numbers(float)
        self.elapsed_s = numbers(float)
        self.terminated = numbers(bool)
        self.truncated = numbers(bool)
        """Cut off by a limit, and not terminated at the same time."""
        self.episode_returns: list[float] = []
        """Of the episodes that ended."""
        self.groups: Numbers = numbers(int) if has_groups else None
        """Which kind of episode each was in, if there are several."""
        self.finished: tuple[float, float] | None = None
        """How many episodes ended on a GPU, and the sum of their returns."""
        self._noop = layout.window
        self._cut_off: list[Tensor] = []
        """Last observations of truncated episodes, in the order of steps, then environments."""

    @property
    def ended(self) -> Numbers:
        """Where an episode ended, in whichever way."""
        return self.terminated | self.truncated

    def begin(self) -> None:
        """Forget the episodes that ended in the last rollout."""
        self.episode_returns.clear()
        self._cut_off.clear()

    def before(self, step: int, batch: Any) -> None:
        """Keep what is seen before a step."""
        if step == 0:
            self.begin()
        self.observations[step] = as_tensor(batch.observations)
        self.masks[step] = as_tensor(batch.masks)
        if self.groups is not None:
            self.groups[step] = batch.groups

    def after(self, step: int, batch: Any, actions: Tensor) -> None:
        """Keep the actions of a step and what came of it."""
        self.actions[step] = actions
        self.rewards[step] = batch.rewards
        self.elapsed_s[step] = batch.elapsed_s
        self.terminated[step] = batch.terminated
        self.truncated[step] = batch.truncated & ~batch.terminated
        if self._is_resident:
            if batch.can_cut and self.truncated[step].any():
                self.keep_cut_off(step, batch)
        elif (ended := batch.terminated | batch.truncated).any():
            self.episode_returns += batch.episode_returns[ended].tolist()
            # Indexing with an array of rows copies.
            last = as_tensor(batch.final_observations[self.truncated[step]])
            self._cut_off.append(last.to(self.observations))
        if step == self.steps - 1:
            self.end(batch)

    def end(self, batch: Any) -> None:
        """Keep what is seen after the last step."""
        self.finished = batch.finished() if self._is_resident else None
        self.observations[-1] = as_tensor(batch.observations)

    def keep_cut_off(self, step: int, batch: Any) -> None:
        """Keep the last observations of episodes on a GPU that a limit cut off in a step."""
        self._cut_off.append(batch.final_observations[self.truncated[step]])

    def write_seen(self, step: Tensor, seen: Tensor, masks: Tensor, groups: Tensor) -> None:
        """Keep what is seen before a step on a GPU; the step's number, (1,), is there too."""
        self.observations.index_copy_(0, step, seen.unsqueeze(0))
        self.masks.index_copy_(0, step, masks.unsqueeze(0))
        if self.groups is not None:
            self.groups.index_copy_(0, step, groups.unsqueeze(0))

    def write_outcome(self, step: Tensor, batch: Any) -> Tensor:
        """Keep what came of a step on a GPU; return where an episode was cut off."""
        truncated = batch.truncated & ~batch.terminated
        self.rewards.index_copy_(0, step, batch.rewards.unsqueeze(0))
        self.elapsed_s.index_copy_(0, step, batch.elapsed_s.unsqueeze(0))
        self.terminated.index_copy_(0, step, batch.terminated.unsqueeze(0))
        self.truncated.index_copy_(0, step, truncated.unsqueeze(0))
        found: Tensor = truncated
        return found

    @torch.no_grad()
    def values(
        self,
        critic: Callable[[Any], Tensor],
        seen: Tensor | Filled | None = None,
        show: Callable[[Tensor], Tensor | Filled] | None = None,
    ) -> tuple[Numbers, Numbers]:
        """Return the values of the states before and after each step, (steps, environments) both.

        `seen` is what the critic is shown of these states, (states, …), and `show` what it would be
        shown of others; all, if not given.

        After the end of an episode nothing follows: 0. An episode that a limit cut off would have
        gone on: the value of its last observation, not of the next episode's first.
        """
        seen = self.observations.flatten(0, 1) if seen is None else seen
        values = self._judged(seen, critic).reshape(self.steps + 1, -1)
        following = values[1:] + 0.0
        self._settle(following, critic, show)
        return values[:-1], following

    @torch.no_grad()
    def tails(self, critic: Callable[[Tensor], Tensor]) -> Numbers:
        """Return the value beyond the last recorded step of each episode, 0 at all other steps."""
        beyond = self.rewards * 0.0
        beyond[-1] = self._judged(self.observations[-1], critic)
        self._settle(beyond, critic)
        return beyond

    def _settle(
        self,
        following: Numbers,
        critic: Callable[[Any], Tensor],
        show: Callable[[Tensor], Tensor | Filled] | None = None,
    ) -> None:
        following[self.terminated] = 0.0
        # Of environments on a GPU it is known here already, without waiting for it.
        if self._cut_off if self._is_resident else self.truncated.any():
            last = torch.cat(self._cut_off).to(self.observations)
            following[self.truncated] = self._judged(last if show is None else show(last), critic)

    def _judged(self, observations: Tensor | Filled, critic: Callable[[Any], Tensor]) -> Numbers:
        """Return what a critic says, as the rewards are kept."""
        rows = ROWS_AT_ONCE if observations.device.type == "cpu" else len(observations)
        firsts = range(0, len(observations), rows)
        values = torch.cat([critic(observations[first : first + rows]) for first in firsts])
        return values.float() if self._is_resident else values.double().cpu().numpy()

    def scalars(self) -> dict[str, float]:
        """Return figures by name; the mean return only if an episode ended.

        Of environments on a GPU, those of the episodes that have `finished`.
        """
        count, total = self.finished or (len(self.episode_returns), sum(self.episode_returns))
        scalars = {
            "steps": float(self.actions.numel()),
            "noop_share": (self.actions == self._noop).float().mean().item(),
            "episodes": float(count),
        }
        if count:
            scalars["episode_return"] = float(total / count)
        return scalars


def flat(numbers: Numbers) -> Tensor:
    """Return numbers of steps and environments as one column, in the order of `flatten(0, 1)`."""
    return as_tensor(numbers).float().flatten()
