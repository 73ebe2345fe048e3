"""Rows of numbers, one per environment, stepped together: what all batches have in common.

A batch keeps a bank of episodes that are laid out in advance. Beginning an episode is copying its
row; stepping is one call of compiled functions over all rows. What the rows mean is the business of
those functions (`engine.picking`, `engine.choosing`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from yardmaster.engine.layout import Simulation
from yardmaster.engine.state import NOW
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray, IntArray

LEAST_ROWS_PER_THREAD = 32
"""Environments below which another thread costs more than it saves."""

Draw = Callable[[IntArray], IntArray]
"""Environments that need an episode → the numbers of the episodes they get."""

NOT_YET, DONE, CUT = 0, 1, 2
"""Why an episode is over, as both `engine.picking` and `engine.choosing` number it."""


class Prepared(Protocol):
    """One episode, laid out at its first instant."""

    @property
    def simulation(self) -> Simulation:
        """The core's two rows."""

    @property
    def facts(self) -> FloatArray:
        """What is known of the episode from the start."""

    @property
    def is_real(self) -> bool:
        """Whether it needs the core for real clusters."""

    @property
    def book_length(self) -> int:
        """Integers an environment needs beside the core's."""

    @property
    def purse_length(self) -> int:
        """Reals an environment needs beside the core's."""


class RowBatch(ABC):
    """Environments stepped together; see `envs.protocol.Batch`."""

    def __init__(
        self,
        size: int,
        *,
        length: int,
        actions: int,
        threads: int = 1,
        autoreset: bool = True,
        draw: Draw | None = None,
    ) -> None:
        """Lay out so many environments.

        Args:
            size: environments.
            length: numbers of an observation.
            actions: actions there are.
            threads: threads to step them on.
            autoreset: whether an environment begins its next episode within the step that ends one.
            draw: which episode comes next, in place of drawing by seed.
        """
        self.size = size
        self.autoreset = autoreset
        self._draw = draw or self._by_seed
        self._parts = max(min(threads, size // LEAST_ROWS_PER_THREAD), 1)
        self._place_of: dict[int, int] = {}
        self._allocate(length, actions)

    def _allocate(self, length: int, actions: int) -> None:
        size = self.size
        self.observations = np.zeros((size, length), dtype=np.float32)
        self._legal = np.zeros((size, actions), dtype=np.int8)
        self.masks = self._legal.view(np.bool_)
        self.rewards = np.zeros(size)
        self.terminated = np.zeros(size, dtype=np.bool_)
        self.truncated = np.zeros(size, dtype=np.bool_)
        self.elapsed_s = np.zeros(size)
        self.final_observations = np.zeros_like(self.observations)
        self._final_legal = np.zeros_like(self._legal)
        self.final_masks = self._final_legal.view(np.bool_)
        self.episode_returns = np.zeros(size)
        self.episode_steps = np.zeros(size, dtype=np.int64)
        self.episode_noops = np.zeros(size, dtype=np.int64)
        self.episode_numbers = np.zeros(size, dtype=np.int64)
        """(size,) episode each environment is in."""
        self._ends = np.zeros(size, dtype=np.int64)
        self._places = np.zeros(size, dtype=np.int64)
        self._seeds = np.arange(size, dtype=np.uint64)
        self._counts = np.zeros(size, dtype=np.uint64)
        self._widths = np.zeros(4, dtype=np.int64)
        self._bank: list[npt.NDArray[Any]] = [
            np.zeros((0, 0), dtype=np.int64),
            np.zeros((0, 0)),
            np.zeros((0, 0)),
            np.zeros((0, 0), dtype=np.float32),
        ]
        self._rows: list[npt.NDArray[Any]] = [
            np.zeros((size, 0), dtype=np.int64),
            np.zeros((size, 0)),
            np.zeros((size, 0), dtype=np.int64),
            np.zeros((size, 0)),
        ]

    # What a kind of environment must say.

    @property
    @abstractmethod
    def _numbers(self) -> IntArray:
        """The episodes to draw from."""

    @property
    @abstractmethod
    def waiting(self) -> IntArray:
        """(size,) jobs waiting."""

    @abstractmethod
    def _prepared(self, number: int) -> Prepared:
        """Return an episode, laid out; called once for each that is met."""

    @abstractmethod
    def _cards(self, prepared: Prepared) -> npt.NDArray[np.float32]:
        """Return what else is known of an episode's jobs, in 32 bits; perhaps nothing."""

    @abstractmethod
    def _begin_rows(self, rows: IntArray) -> None:
        """Begin, in these environments, the episodes that stand at `_places` of the bank."""

    @abstractmethod
    def _step_rows(self, actions: IntArray) -> None:
        """Step all environments; write rewards, `_ends` and elapsed seconds."""

    @abstractmethod
    def _keep_last(self, ended: IntArray) -> None:
        """Keep what is known of episodes that have just ended."""

    # What follows from it.

    @property
    def groups(self) -> IntArray:
        """(size,) which kind of episode each environment is in; here there is but one kind."""
        return np.zeros(self.size, dtype=np.int64)

    @property
    def group_count(self) -> int:
        """Kinds of episodes."""
        return 1

    @property
    def now_s(self) -> npt.NDArray[np.float64]:
        """(size,) simulated second of each environment."""
        return self._rows[1][:, NOW]

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes; environment `i` draws as a single one with seed + i would."""
        self._seeds = np.arange(self.size, dtype=np.uint64) + np.uint64(seed)
        self._counts[:] = 0
        everybody = np.arange(self.size)
        self.begin(everybody)
        if staggered:
            self._stagger(np.random.default_rng(seed), everybody)

    def _stagger(self, dice: np.random.Generator, everybody: IntArray) -> None:
        """Play at random for about an episode, during which each begins anew at some moment."""
        decisions = 0
        self._ends[:] = NOT_YET
        while not self._ends.any():
            self.step(_random_legal(self.masks, dice))
            decisions += 1
        moments = dice.permutation(self.size) * decisions // self.size
        for moment in range(decisions):
            rows = everybody[moments == moment]
            if len(rows):
                self.begin(rows)
            self.step(_random_legal(self.masks, dice))

    def begin(self, rows: IntArray) -> None:
        """Begin the next episode in some environments."""
        numbers = self._draw(rows)
        places = [self._ensure(number) for number in numbers.tolist()]
        self.episode_numbers[rows] = numbers
        self._places[rows] = places
        self._begin_rows(rows.astype(np.int64))

    def _by_seed(self, rows: IntArray) -> IntArray:
        """Draw the next episode of each: a hash of the environment's seed and how many it had."""
        mixed = self._seeds[rows] * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= (self._counts[rows] + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        self._counts[rows] += np.uint64(1)
        numbers = self._numbers
        return numbers[(mixed % np.uint64(len(numbers))).astype(np.int64)]

    def _ensure(self, number: int) -> int:
        """Return the place of an episode in the bank, laying it out if it is new."""
        if number in self._place_of:
            return self._place_of[number]
        prepared = self._prepared(number)
        simulation = prepared.simulation
        parts: tuple[npt.NDArray[Any], ...] = (
            simulation.ints,
            simulation.reals,
            prepared.facts,
            self._cards(prepared),
        )
        place = len(self._place_of)
        self._grow(
            place, [len(part) for part in parts], prepared.book_length, prepared.purse_length
        )
        for table, part in zip(self._bank, parts, strict=True):
            table[place, : len(part)] = part
        self._place_of[number] = place
        return place

    def _grow(self, place: int, lengths: list[int], book: int, purse: int) -> None:
        """Enlarge the bank and the environments' rows where the new episode needs it."""
        for index, length in enumerate(lengths):
            table = self._bank[index]
            height = table.shape[0] if place < table.shape[0] else max(2 * place, 16)
            self._bank[index] = _enlarged(table, height, length)
        for index, length in enumerate((lengths[0], lengths[1], book, purse)):
            self._rows[index] = _enlarged(self._rows[index], self.size, length)
            self._widths[index] = max(int(self._widths[index]), length)

    def step(self, actions: npt.NDArray[np.int64]) -> None:
        """Carry out one action in every environment."""
        chosen = np.ascontiguousarray(actions, dtype=np.int64)
        if chosen.shape != (self.size,):
            raise YardmasterError(f"{self.size} actions are needed, got {chosen.shape}.")
        self._step_rows(chosen)
        np.equal(self._ends, DONE, out=self.terminated)
        np.equal(self._ends, CUT, out=self.truncated)
        ended = np.flatnonzero(self._ends)
        if len(ended):
            self.final_observations[ended] = self.observations[ended]
            self._final_legal[ended] = self._legal[ended]
            self._keep_last(ended)
            if self.autoreset:
                self.begin(ended)

    def snapshot(self) -> dict[str, Any]:
        """Return everything needed to go on from here."""
        kept: dict[str, Any] = {
            "rows": [row.copy() for row in self._rows],
            "observations": self.observations.copy(),
            "legal": self._legal.copy(),
            "numbers": self.episode_numbers.copy(),
            "seeds": self._seeds.copy(),
            "counts": self._counts.copy(),
        }
        return kept

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; the same actions then have the same results."""
        self.episode_numbers[:] = snapshot["numbers"]
        self._places[:] = [self._ensure(number) for number in self.episode_numbers.tolist()]
        for index, row in enumerate(snapshot["rows"]):
            self._rows[index] = _enlarged(self._rows[index], self.size, row.shape[1])
            self._rows[index][:, : row.shape[1]] = row
        self.observations[...] = snapshot["observations"]
        self._legal[...] = snapshot["legal"]
        self._seeds = np.array(snapshot["seeds"], dtype=np.uint64)
        self._counts[:] = snapshot["counts"]

    def close(self) -> None:  # noqa: B027  (kinds that hold something say so)
        """Nothing is held that must be let go."""


def _random_legal(masks: npt.NDArray[np.bool_], dice: np.random.Generator) -> IntArray:
    """Return one legal action per environment, each equally likely."""
    chosen: IntArray = np.where(masks, dice.random(masks.shape), -1.0).argmax(axis=1)
    return chosen


def _enlarged(table: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[Any]:
    """Return the table, or a copy with room for so many rows and columns."""
    if table.shape[0] >= height and table.shape[1] >= width:
        return table
    larger = np.zeros((max(table.shape[0], height), max(table.shape[1], width)), dtype=table.dtype)
    larger[: table.shape[0], : table.shape[1]] = table
    return larger
