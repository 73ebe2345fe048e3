"""What off-policy learners remember: transitions over one or several steps, drawn again later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from yardmaster.agents.networks.parts import AnyLayout
from yardmaster.envs.protocol import Batch

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Transitions:
    """Decisions and what came of them, one per row of every column."""

    observations: Floats
    """(rows, length) what was seen."""
    masks: Bools
    """(rows, actions) what was legal."""
    actions: Rows
    returns: Floats
    """(rows,) discounted sum of the rewards of the steps the transition spans."""
    discounts: Floats
    """(rows,) what a value after these steps is worth before them."""
    next_observations: Floats
    """(rows, length) what was seen after them, in the same episode."""
    next_masks: Bools
    terminated: Bools
    """(rows,) the episode ended there by itself; one that was cut off goes on in value."""
    groups: Rows
    """(rows,) which kind of episode it was."""

    @classmethod
    def empty(cls, rows: int, layout: AnyLayout) -> Transitions:
        """Return columns of zeros; the system gives them memory only when they are written."""
        return cls(
            observations=np.zeros((rows, layout.length), dtype=np.float32),
            masks=np.zeros((rows, layout.actions), dtype=np.bool_),
            actions=np.zeros(rows, dtype=np.int64),
            returns=np.zeros(rows, dtype=np.float32),
            discounts=np.zeros(rows, dtype=np.float32),
            next_observations=np.zeros((rows, layout.length), dtype=np.float32),
            next_masks=np.zeros((rows, layout.actions), dtype=np.bool_),
            terminated=np.zeros(rows, dtype=np.bool_),
            groups=np.zeros(rows, dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True, slots=True)
class Sample:
    """Remembered transitions drawn to learn from, as tensors."""

    observations: torch.Tensor
    masks: torch.Tensor
    actions: torch.Tensor
    returns: torch.Tensor
    discounts: torch.Tensor
    next_observations: torch.Tensor
    next_masks: torch.Tensor
    terminated: torch.Tensor
    weights: torch.Tensor
    """(rows,) what each counts in the loss, at most 1, to undo that some are drawn more often."""
    rows: Any
    """Where they stand in the memory, an array or a tensor."""

    def to(self, device: torch.device) -> Sample:
        """Return them on another device; where they stand in the memory stays here."""
        moved = {
            column.name: getattr(self, column.name).to(device)
            for column in fields(self)
            if column.name != "rows"
        }
        return Sample(**moved, rows=self.rows)

    @property
    def bootstrap(self) -> torch.Tensor:
        """What the value of the next state counts: its discount, or 0 if there is none."""
        return self.discounts * ~self.terminated


class Memory:
    """The last `size` transitions, each equally likely to be drawn."""

    def __init__(self, size: int, layout: AnyLayout) -> None:
        self.size = size
        self.filled = 0
        """Transitions remembered now."""
        self._next = 0
        self._columns = Transitions.empty(size, layout)

    def add(self, new: Transitions) -> Rows:
        """Remember transitions, in place of the oldest; return where they stand."""
        surplus = max(0, len(new) - self.size)
        rows = (self._next + np.arange(surplus, len(new))) % self.size
        for column in fields(Transitions):
            getattr(self._columns, column.name)[rows] = getattr(new, column.name)[surplus:]
        self._next = (self._next + len(new)) % self.size
        self.filled = min(self.size, self.filled + len(new))
        return rows

    def sample(self, count: int, dice: np.random.Generator, beta: float = 1.0) -> Sample:
        """Draw transitions, with replacement; `beta` is of use to prioritised memories only."""
        del beta
        return self._at(dice.integers(self.filled, size=count), np.ones(count, dtype=np.float32))

    def reprioritise(self, rows: Rows, errors: Reals) -> None:
        """Note how surprising drawn transitions were; here all stay equally likely."""

    def _at(self, rows: Rows, weights: Floats) -> Sample:
        columns = self._columns
        return Sample(
            observations=torch.from_numpy(columns.observations[rows]),
            masks=torch.from_numpy(columns.masks[rows]),
            actions=torch.from_numpy(columns.actions[rows]),
            returns=torch.from_numpy(columns.returns[rows]),
            discounts=torch.from_numpy(columns.discounts[rows]),
            next_observations=torch.from_numpy(columns.next_observations[rows]),
            next_masks=torch.from_numpy(columns.next_masks[rows]),
            terminated=torch.from_numpy(columns.terminated[rows]),
            weights=torch.from_numpy(weights),
            rows=rows,
        )

    def state(self) -> dict[str, Any]:
        """Return all that is remembered."""
        columns = {
            column.name: getattr(self._columns, column.name)[: self.filled].copy()
            for column in fields(Transitions)
        }
        return {"columns": columns, "filled": self.filled, "next": self._next}

    def load(self, state: Mapping[str, Any]) -> None:
        """Remember what a saved memory of the same size did."""
        self.filled = state["filled"]
        self._next = state["next"]
        for name, column in state["columns"].items():
            getattr(self._columns, name)[: self.filled] = column


class SumTree:
    """Numbers ≥ 0 whose sum, and the place where a running sum is reached, are quick to find.

    A binary tree in one array: node `i` holds the sum of nodes `2i` and `2i + 1`, and the numbers
    themselves are the leaves, so a change touches one node per level.
    """

    def __init__(self, size: int) -> None:
        self._levels = max(0, (size - 1).bit_length())
        self._leaves = 1 << self._levels
        self._nodes = np.zeros(2 * self._leaves)

    @property
    def total(self) -> float:
        """Sum of all numbers."""
        return float(self._nodes[1])

    def __getitem__(self, rows: Rows) -> Reals:
        return self._nodes[self._leaves + rows]

    def __setitem__(self, rows: Rows, values: Reals) -> None:
        nodes = self._leaves + rows
        self._nodes[nodes] = values
        for _ in range(self._levels):
            # A parent of two changed children is summed twice, to the same result.
            nodes >>= 1
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def find(self, sums: Reals) -> Rows:
        """Return, for each sum below the total, the first row up to which more than it adds up."""
        nodes = np.ones(len(sums), dtype=np.int64)
        left_over = sums.copy()
        for _ in range(self._levels):
            nodes *= 2
            before = self._nodes[nodes]
            # Rounding may ask for a little more than there is: never go where nothing is.
            right = (left_over >= before) & (self._nodes[nodes + 1] > 0.0)
            left_over -= np.where(right, before, 0.0)
            nodes += right
        return nodes - self._leaves


class PrioritisedMemory(Memory):
    """Like `Memory`, but surprising transitions are drawn more often (Schaul et al. 2016).

    A transition is drawn with probability proportional to `(error + FLOOR) ** alpha`; a new one
    counts as surprising as the most surprising so far, so that each is soon looked at.
    """

    FLOOR = 1e-6

    def __init__(self, size: int, layout: AnyLayout, alpha: float) -> None:
        super().__init__(size, layout)
        self.alpha = alpha
        self.tree = SumTree(size)
        self._greatest = 1.0

    def add(self, new: Transitions) -> Rows:
        """Remember transitions, in place of the oldest; return where they stand."""
        rows = super().add(new)
        self.tree[rows] = np.full(len(rows), self._greatest)
        return rows

    def sample(self, count: int, dice: np.random.Generator, beta: float = 1.0) -> Sample:
        """Draw transitions by priority, one from each of `count` equal strata of the total.

        Args:
            count: How many.
            dice: Where chance comes from.
            beta: How far the weights undo the preference: 0 not at all, 1 wholly.
        """
        strata = np.arange(count) + dice.random(count)
        rows = self.tree.find(strata * (self.tree.total / count))
        rarity = self.tree.total / (self.filled * self.tree[rows])
        weights = rarity**beta
        return self._at(rows, (weights / weights.max()).astype(np.float32))

    def reprioritise(self, rows: Rows, errors: Reals) -> None:
        """Note how surprising drawn transitions were: the size of their errors, ≥ 0."""
        priorities = (errors + self.FLOOR) ** self.alpha
        self.tree[rows] = priorities
        self._greatest = max(self._greatest, float(priorities.max()))

    def state(self) -> dict[str, Any]:
        """Return all that is remembered."""
        priorities = self.tree[np.arange(self.filled)]
        return {**super().state(), "priorities": priorities, "greatest": self._greatest}

    def load(self, state: Mapping[str, Any]) -> None:
        """Remember what a saved memory of the same size did."""
        super().load(state)
        self.tree = SumTree(self.size)
        self.tree[np.arange(self.filled)] = state["priorities"]
        self._greatest = state["greatest"]


class BalancedMemory(Memory):
    """Like `Memory`, but every kind of episode has as much room and is drawn as often as any other.

    Regimes in which much happens would otherwise crowd out those in which little does.
    """

    def __init__(self, size: int, layout: AnyLayout, groups: int) -> None:
        self._room = max(size // groups, 1)
        super().__init__(self._room * groups, layout)
        self._in_group = np.zeros(groups, dtype=np.int64)
        """Transitions remembered of each kind; the newest stand in place of the oldest."""
        self._next_in_group = np.zeros(groups, dtype=np.int64)

    def add(self, new: Transitions) -> Rows:
        """Remember transitions, in place of the oldest of their kind; return where they stand."""
        rows = np.zeros(len(new), dtype=np.int64)
        for group in np.unique(new.groups).tolist():
            mine = np.flatnonzero(new.groups == group)
            places = (self._next_in_group[group] + np.arange(len(mine))) % self._room
            rows[mine] = group * self._room + places
            self._next_in_group[group] = (self._next_in_group[group] + len(mine)) % self._room
            self._in_group[group] = min(self._in_group[group] + len(mine), self._room)
        for column in fields(Transitions):
            getattr(self._columns, column.name)[rows] = getattr(new, column.name)
        self.filled = int(self._in_group.sum())
        return rows

    def sample(self, count: int, dice: np.random.Generator, beta: float = 1.0) -> Sample:
        """Draw transitions: first a kind, then one of that kind, each equally likely."""
        del beta
        known = np.flatnonzero(self._in_group)
        groups = known[dice.integers(len(known), size=count)]
        places = (dice.random(count) * self._in_group[groups]).astype(np.int64)
        return self._at(groups * self._room + places, np.ones(count, dtype=np.float32))

    def state(self) -> dict[str, Any]:
        """Return all that is remembered."""
        columns = {
            column.name: getattr(self._columns, column.name).copy()
            for column in fields(Transitions)
        }
        return {"columns": columns, "in": self._in_group.copy(), "next": self._next_in_group.copy()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Remember what a saved memory of the same size did."""
        self._in_group[:] = state["in"]
        self._next_in_group[:] = state["next"]
        self.filled = int(self._in_group.sum())
        for name, column in state["columns"].items():
            getattr(self._columns, name)[:] = column


class NSteps:
    """Joins up to `n` consecutive steps of each environment into one transition.

    Every decision begins one. It is complete `n` steps later, or when the episode ends, whichever
    comes first; none ever spans two episodes.
    """

    def __init__(self, n: int, size: int, layout: AnyLayout) -> None:
        self._n = n
        self._slot = 0
        # Transitions begun at one step share a slot; one of n steps ago is done with by now.
        self._observations = np.zeros((n, size, layout.length), dtype=np.float32)
        self._masks = np.zeros((n, size, layout.actions), dtype=np.bool_)
        self._actions = np.zeros((n, size), dtype=np.int64)
        self._groups = np.zeros((n, size), dtype=np.int64)
        self._returns = np.zeros((n, size))
        self._discounts = np.ones((n, size))
        self._open = np.zeros((n, size), dtype=np.bool_)

    def begin(self, batch: Batch, actions: Rows) -> None:
        """Note what the environments show and what is about to be done there."""
        slot = self._slot
        self._observations[slot] = batch.observations
        self._masks[slot] = batch.masks
        self._actions[slot] = actions
        self._groups[slot] = batch.groups
        self._returns[slot] = 0.0
        self._discounts[slot] = 1.0
        self._open[slot] = True

    def finish(self, batch: Batch, discounts: Reals) -> Transitions:
        """Take in what the step brought; return the transitions it completed.

        Args:
            batch: The environments, after the step.
            discounts: (size,) what a value after the step is worth before it.
        """
        self._returns += self._discounts * batch.rewards
        self._discounts *= discounts
        ended = batch.terminated | batch.truncated
        oldest = (self._slot + 1) % self._n
        complete = self._open & ended
        complete[oldest] = self._open[oldest]
        self._open &= ~complete
        self._slot = oldest
        return self._gathered(batch, complete, ended)

    def _gathered(self, batch: Batch, complete: Bools, ended: Bools) -> Transitions:
        slots, rows = np.nonzero(complete)
        over = ended[rows, None]
        return Transitions(
            observations=self._observations[slots, rows],
            masks=self._masks[slots, rows],
            actions=self._actions[slots, rows],
            returns=self._returns[slots, rows].astype(np.float32),
            discounts=self._discounts[slots, rows].astype(np.float32),
            next_observations=np.where(
                over, batch.final_observations[rows], batch.observations[rows]
            ),
            next_masks=np.where(over, batch.final_masks[rows], batch.masks[rows]),
            terminated=batch.terminated[rows],
            groups=self._groups[slots, rows],
        )

    _KEPT = ("_observations", "_masks", "_actions", "_groups", "_returns", "_discounts", "_open")

    def state(self) -> dict[str, Any]:
        """Return the transitions still open."""
        kept: dict[str, Any] = {name: getattr(self, name).copy() for name in self._KEPT}
        return kept | {"slot": self._slot}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on with transitions that were open when they were saved."""
        for name in self._KEPT:
            getattr(self, name)[...] = state[name]
        self._slot = state["slot"]
