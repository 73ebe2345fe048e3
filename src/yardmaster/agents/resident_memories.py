"""What off-policy learners remember of environments on a GPU: the same as `memories`, in tensors.

Nothing leaves the GPU but how many transitions a step completed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from yardmaster.agents.memories import Sample, Transitions
from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.agents.tensors import ResidentBatch

Columns = dict[str, Tensor]
"""The columns of `Transitions`, by name."""


def random_legal(masks: Tensor, generator: torch.Generator) -> Tensor:
    """Return one legal action per row, each equally likely."""
    dice = torch.rand(masks.shape, generator=generator, device=masks.device)
    return dice.masked_fill_(~masks, -1.0).argmax(dim=1)


def _columns(rows: int, layout: AnyLayout, device: torch.device) -> Columns:
    empty = Transitions.empty(1, layout)
    return {
        column.name: torch.from_numpy(getattr(empty, column.name))
        .to(device)
        .repeat(rows, *[1] * (getattr(empty, column.name).ndim - 1))
        for column in fields(Transitions)
    }


class ResidentMemory:
    """The last transitions of every kind of episode; each kind has as much room as any other.

    With one kind it is `memories.Memory`, and kinds of episodes are not told apart; with several it
    is `memories.BalancedMemory`.
    """

    def __init__(self, size: int, layout: AnyLayout, groups: int, device: torch.device) -> None:
        self._room = max(size // groups, 1)
        self.size = self._room * groups
        # What comes to more than a kind has room for is written to a row that nobody reads.
        self._columns = _columns(self.size + 1, layout, device)
        self._in_group = torch.zeros(groups, dtype=torch.int64, device=device)
        """Transitions remembered of each kind; the newest stand in place of the oldest."""
        self._next_in_group = torch.zeros_like(self._in_group)
        self._weights = torch.ones(1, device=device)

    @property
    def filled(self) -> int:
        """Transitions remembered now."""
        return int(self._in_group.sum().item())

    def add(self, new: Columns) -> Tensor:
        """Remember transitions, in place of the oldest of their kind; return where they stand."""
        groups = new["groups"] if len(self._in_group) > 1 else torch.zeros_like(new["groups"])
        order = groups.argsort(stable=True)
        counts = torch.bincount(groups, minlength=len(self._in_group))
        ordered = groups[order]
        first = counts.cumsum(0) - counts
        rank = torch.arange(len(order), device=order.device) - first[ordered]
        places = ordered * self._room + (self._next_in_group[ordered] + rank) % self._room
        is_kept = rank >= counts[ordered] - self._room
        rows = torch.empty_like(order)
        rows[order] = torch.where(is_kept, places, self.size)
        for name, column in self._columns.items():
            column[rows] = new[name].to(column.dtype)
        self._next_in_group = (self._next_in_group + counts) % self._room
        self._in_group = (self._in_group + counts).clamp(max=self._room)
        return rows

    def sample(self, count: int, generator: torch.Generator) -> Sample:
        """Draw transitions: first a kind, then one of that kind, each equally likely."""
        known = self._in_group > 0
        kinds = (~known).long().argsort(stable=True)  # those that were met come first
        dice = torch.rand(2, count, generator=generator, device=known.device)
        which = (dice[0] * known.sum()).long().clamp(max=len(kinds) - 1)
        groups = kinds[which]
        there = self._in_group[groups]
        places = torch.minimum((dice[1] * there).long(), there - 1)  # 32 bits may round up
        rows = groups * self._room + places
        drawn = {name: column[rows] for name, column in self._columns.items() if name != "groups"}
        return Sample(**drawn, weights=self._weights.expand(count), rows=rows)

    def state(self) -> dict[str, Any]:
        """Return all that is remembered."""
        columns = {name: column.clone() for name, column in self._columns.items()}
        return {"columns": columns, "in": self._in_group, "next": self._next_in_group}

    def load(self, state: Mapping[str, Any]) -> None:
        """Remember what a saved memory of the same size did."""
        self._in_group = state["in"].to(self._in_group.device)
        self._next_in_group = state["next"].to(self._in_group.device)
        for name, column in state["columns"].items():
            self._columns[name].copy_(column)


class ResidentNSteps:
    """Joins up to `n` consecutive steps of each environment, as `memories.NSteps` does."""

    def __init__(self, n: int, size: int, layout: AnyLayout, device: torch.device) -> None:
        self._n = n
        self._slot = 0
        flat = _columns(n * size, layout, device)
        begun = ("observations", "masks", "actions", "groups", "returns", "discounts")
        self._begun = {name: flat[name].view(n, size, *flat[name].shape[1:]) for name in begun}
        self._open = torch.zeros(n, size, dtype=torch.bool, device=device)

    def begin(self, batch: ResidentBatch, actions: Tensor) -> None:
        """Note what the environments show and what is about to be done there."""
        shown = {
            "observations": batch.observations,
            "masks": batch.masks,
            "actions": actions,
            "groups": batch.groups,
        }
        for name, value in shown.items():
            self._begun[name][self._slot] = value
        self._begun["returns"][self._slot] = 0.0
        self._begun["discounts"][self._slot] = 1.0
        self._open[self._slot] = True

    def finish(self, batch: ResidentBatch, discounts: Tensor) -> Columns:
        """Take in what the step brought; return the transitions it completed.

        Args:
            batch: The environments, after the step.
            discounts: (size,) what a value after the step is worth before it.
        """
        self._begun["returns"] += self._begun["discounts"] * batch.rewards
        self._begun["discounts"] *= discounts
        terminated = batch.terminated
        ended = terminated | batch.truncated
        oldest = (self._slot + 1) % self._n
        complete = self._open & ended
        complete[oldest] = self._open[oldest]
        self._open &= ~complete
        self._slot = oldest
        slots, rows = complete.nonzero(as_tuple=True)
        following = batch.observations
        if batch.can_cut:  # else nothing follows where an episode ends, and nobody reads it
            following = torch.where(ended[:, None], batch.final_observations, following)
        return {name: column[slots, rows] for name, column in self._begun.items()} | {
            "next_observations": following[rows],
            # Where schedulers are chosen, all are legal at any time.
            "next_masks": batch.masks[rows],
            "terminated": terminated[rows],
        }

    def state(self) -> dict[str, Any]:
        """Return the transitions still open."""
        kept = {name: column.clone() for name, column in self._begun.items()}
        return {"begun": kept, "open": self._open.clone(), "slot": self._slot}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on with transitions that were open when they were saved."""
        for name, column in state["begun"].items():
            self._begun[name].copy_(column)
        self._open.copy_(state["open"])
        self._slot = state["slot"]
