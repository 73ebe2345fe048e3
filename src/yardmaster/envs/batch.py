"""Many environments stepped together on the compiled core, without Gymnasium.

This is what learners train on, and what the Gymnasium environments are made of. Arrays are written
in place; see `envs.protocol` for what each means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking import compilation
from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.layout import Layout
from yardmaster.engine.picking.places import End
from yardmaster.envs.episodes import Episodes, Split
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import IntArray

LEAST_ROWS_PER_THREAD = 32
"""Environments below which another thread costs more than it saves."""

_OUTCOMES = (at.WAIT_SUM, at.JCT_SUM, at.BSLD_SUM, at.SLD_SUM, at.WORK_SUM, at.LAST_END)

Draw = Callable[[IntArray], IntArray]
"""Environments that need an episode → the numbers of the episodes they get."""


class EnvironmentBatch:
    """Environments of one task, stepped together; see `envs.protocol.Batch`."""

    def __init__(
        self,
        episodes: Episodes,
        size: int,
        *,
        threads: int = 1,
        compiled: bool = True,
        autoreset: bool = True,
        draw: Draw | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        """Lay out so many environments.

        Args:
            episodes: where their jobs come from.
            size: environments.
            threads: threads to step them on.
            compiled: False runs the same functions as plain Python.
            autoreset: whether an environment begins its next episode within the step that ends one.
            draw: which episode comes next, in place of drawing by seed.
            announce: told when the environment must be compiled first.
        """
        self.size = size
        self.episodes = episodes
        self.task = episodes.task
        self.layout: Layout = episodes.task.sight.layout()
        self.autoreset = autoreset
        self._draw = draw or self._by_seed
        self._rules, self._scales = episodes.rules(), episodes.scales()
        self._is_real = episodes.prepared(0).is_real
        self._picking = (
            compilation.compiled(announce, is_real=self._is_real)
            if compiled
            else compilation.plain()
        )
        self._parts = max(min(threads, size // LEAST_ROWS_PER_THREAD), 1)
        self._place_of: dict[int, int] = {}
        self._allocate()

    def _allocate(self) -> None:
        size, layout = self.size, self.layout
        self.observations = np.zeros((size, layout.length), dtype=np.float32)
        self._legal = np.zeros((size, layout.actions), dtype=np.int8)
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
        self.outcomes = np.zeros((size, len(_OUTCOMES) + 1))
        """(size, sums) of episodes that ended in the last step; see `playing`."""
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

    # What the environments are in the middle of: the core's two rows, the book, the purse.

    @property
    def window_jobs(self) -> IntArray:
        """(size, window) row of the job at each place of the window; −1 beyond the line."""
        book = self._rows[2]
        place = np.arange(self.layout.window)
        there = place[None, :] < book[:, at.LINE_LENGTH, None]
        column = np.where(there, at.BOOK + book[:, at.LINE_FIRST, None] + place[None, :], 0)
        return np.where(there, np.take_along_axis(book, column, axis=1), -1)

    @property
    def waiting(self) -> IntArray:
        """(size,) jobs waiting."""
        return self._rows[2][:, at.LINE_LENGTH]

    @property
    def now_s(self) -> npt.NDArray[np.float64]:
        """(size,) simulated second of each environment."""
        from yardmaster.engine.state import NOW

        return self._rows[1][:, NOW]

    @property
    def terms(self) -> npt.NDArray[np.float64]:
        """(size, terms) what the last step earned of each `Term`, before weighing."""
        return self._rows[3][:, at.EARNED_AT : at.EARNED_END]

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
        self._ends[:] = End.NOT_YET
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
        ints, reals, book, purse = self._rows
        bank_ints, bank_reals, facts, cards = self._bank
        self._picking.begin_many(
            *(bank_ints, bank_reals, facts, cards, self._rules, self._scales),
            *(ints, reals, book, purse, self.observations, self._legal),
            *(self._places, self._widths, rows.astype(np.int64)),
        )

    def _by_seed(self, rows: IntArray) -> IntArray:
        """Draw the next episode of each: a hash of the environment's seed and how many it had."""
        mixed = self._seeds[rows] * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= (self._counts[rows] + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        self._counts[rows] += np.uint64(1)
        numbers: IntArray = self.episodes.numbers
        return numbers[(mixed % np.uint64(len(numbers))).astype(np.int64)]

    def _ensure(self, number: int) -> int:
        """Return the place of an episode in the bank, laying it out if it is new."""
        if number in self._place_of:
            return self._place_of[number]
        prepared = self.episodes.prepared(number)
        if prepared.is_real and not self._is_real and self._picking.is_compiled:
            self._picking = compilation.compiled(is_real=True)  # serves plain episodes as well
            self._is_real = True
        simulation = prepared.simulation
        parts: tuple[npt.NDArray[Any], ...] = (
            simulation.ints,
            simulation.reals,
            prepared.facts,
            prepared.cards,
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
        ints, reals, book, purse = self._rows
        rows = (
            *(self._bank[2], self._bank[3], self._rules, self._scales),
            *(ints, reals, book, purse, self.observations, self._legal, self._places),
            *(chosen, self.rewards, self._ends, self.elapsed_s),
        )
        if self._parts == 1:
            self._picking.step_many(*rows, 0, self.size)
        else:
            self._picking.step_parts(*rows, self._parts)
        np.equal(self._ends, End.DONE, out=self.terminated)
        np.equal(self._ends, End.CUT, out=self.truncated)
        ended = np.flatnonzero(self._ends)
        if len(ended):
            self._keep_last(ended)
            if self.autoreset:
                self.begin(ended)

    def _keep_last(self, ended: IntArray) -> None:
        """Keep what is known of episodes that have just ended."""
        book, purse = self._rows[2], self._rows[3]
        self.final_observations[ended] = self.observations[ended]
        self._final_legal[ended] = self._legal[ended]
        self.episode_returns[ended] = purse[ended, at.RETURN]
        self.episode_steps[ended] = book[ended, at.STEPS]
        self.episode_noops[ended] = book[ended, at.NOOPS]
        for column, place in enumerate(_OUTCOMES):
            self.outcomes[ended, column] = purse[ended, place]
        self.outcomes[ended, len(_OUTCOMES)] = book[ended, at.ENDED]

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

    def close(self) -> None:
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


def open_batch(
    task: Task,
    *,
    size: int,
    split: Split = "train",
    seed: int = 0,
    threads: int = 1,
    compiled: bool = True,
    announce: Callable[[str], None] | None = None,
) -> EnvironmentBatch:
    """Open environments of a task, already in their first episodes."""
    batch = EnvironmentBatch(
        Episodes(task, split), size, threads=threads, compiled=compiled, announce=announce
    )
    batch.reset(seed)
    return batch
