"""Many environments stepped together on the compiled core, without Gymnasium.

This is what learners train on, and what the Gymnasium environments are made of. Arrays are written
in place; see `envs.protocol` for what each means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking import compilation
from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.layout import Layout
from yardmaster.envs.episodes import Episodes, Split
from yardmaster.envs.rows import Draw, RowBatch
from yardmaster.envs.task import Task
from yardmaster.model.workload import IntArray
from yardmaster.schedulers.picking import Prepared

_OUTCOMES = (at.WAIT_SUM, at.JCT_SUM, at.BSLD_SUM, at.SLD_SUM, at.WORK_SUM, at.LAST_END)


class EnvironmentBatch(RowBatch):
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
        self.episodes = episodes
        self.task = episodes.task
        self.layout: Layout = episodes.task.sight.layout()
        super().__init__(
            size,
            length=self.layout.length,
            actions=self.layout.actions,
            threads=threads,
            autoreset=autoreset,
            draw=draw,
        )
        self.outcomes = np.zeros((size, len(_OUTCOMES) + 1))
        """(size, sums) of episodes that ended in the last step; see `playing`."""
        self._announce = announce
        self._rules, self._scales = episodes.rules(), episodes.scales()
        self._is_real = episodes.prepared(0).is_real
        self._picking = (
            compilation.compiled(announce, is_real=self._is_real)
            if compiled
            else compilation.plain()
        )

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
    def terms(self) -> npt.NDArray[np.float64]:
        """(size, terms) what the last step earned of each `Term`, before weighing."""
        return self._rows[3][:, at.EARNED_AT : at.EARNED_END]

    @property
    def score_many(self) -> Callable[..., None] | None:
        """The compiled forward pass of policies (`engine.picking.nets`), if it is compiled."""
        return self._picking.score_many if self._picking.is_compiled else None

    @property
    def _numbers(self) -> IntArray:
        return self.episodes.numbers

    def _prepared(self, number: int) -> Prepared:
        prepared = self.episodes.prepared(number)
        if prepared.is_real and not self._is_real and self._picking.is_compiled:
            # The one for real clusters serves plain episodes as well.
            self._picking = compilation.compiled(self._announce, is_real=True)
            self._is_real = True
        return prepared

    def _cards(self, prepared: Any) -> npt.NDArray[np.float32]:
        cards: npt.NDArray[np.float32] = prepared.cards
        return cards

    def _begin_rows(self, rows: IntArray) -> None:
        ints, reals, book, purse = self._rows
        bank_ints, bank_reals, facts, cards = self._bank
        self._picking.begin_many(
            *(bank_ints, bank_reals, facts, cards, self._rules, self._scales),
            *(ints, reals, book, purse, self.observations, self._legal),
            *(self._places, self._widths, rows),
        )

    def _step_rows(self, actions: IntArray) -> None:
        ints, reals, book, purse = self._rows
        rows = (
            *(self._bank[2], self._bank[3], self._rules, self._scales),
            *(ints, reals, book, purse, self.observations, self._legal, self._places),
            *(actions, self.rewards, self._ends, self.elapsed_s),
        )
        if self._parts == 1:
            self._picking.step_many(*rows, 0, self.size)
        else:
            self._picking.step_parts(*rows, self._parts)

    def _keep_last(self, ended: IntArray) -> None:
        book, purse = self._rows[2], self._rows[3]
        self.episode_returns[ended] = purse[ended, at.RETURN]
        self.episode_steps[ended] = book[ended, at.STEPS]
        self.episode_noops[ended] = book[ended, at.NOOPS]
        for column, place in enumerate(_OUTCOMES):
            self.outcomes[ended, column] = purse[ended, place]
        self.outcomes[ended, len(_OUTCOMES)] = book[ended, at.ENDED]


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
