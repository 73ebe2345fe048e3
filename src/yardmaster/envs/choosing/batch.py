"""Many environments of choosing stepped together on the compiled core, without Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine import state
from yardmaster.engine.choosing import compilation
from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.sight import ChoiceLayout
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.standards import mixed_cost
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Split
from yardmaster.envs.rows import Draw, RowBatch
from yardmaster.model.workload import FloatArray, IntArray
from yardmaster.schedulers.meta.menu import PreparedChoice

SCORES = (
    "jct_s",
    "p95_jct_s",
    "wait_s",
    "bounded_slowdown",
    "late",
    "unfinished",
    "switches",
    "jct_gap",
    "p95_gap",
    "mixed_gap",
)
"""What is known of an episode that has ended; gaps are to the best scheduler kept all the time."""


class ChoosingBatch(RowBatch):
    """Environments of one task, stepped together; see `envs.protocol.Batch`."""

    def __init__(
        self,
        episodes: ChoosingEpisodes,
        size: int,
        *,
        threads: int = 1,
        compiled: bool = True,
        autoreset: bool = True,
        draw: Draw | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        """Lay out so many environments; see `RowBatch`.

        Args:
            episodes: where their regimes and jobs come from.
            size: environments.
            threads: threads to step them on.
            compiled: False runs the same functions as plain Python.
            autoreset: whether an environment begins its next episode within the step that ends one.
            draw: which episode comes next, in place of drawing by seed.
            announce: told when the environment must be compiled first.
        """
        self.episodes = episodes
        self.task = episodes.task
        self.layout: ChoiceLayout = episodes.task.sight.layout()
        super().__init__(
            size,
            length=self.layout.length,
            actions=self.layout.actions,
            threads=threads,
            autoreset=autoreset,
            draw=draw,
        )
        self._legal[:] = 1
        self._final_legal[:] = 1
        self.scores = {name: np.zeros(size) for name in SCORES}
        """(size,) each, of episodes that ended in the last step."""
        self._rules, self._scales = episodes.rules(), episodes.scales()
        self._announce = announce
        self._is_real = episodes.prepared(0).is_real
        self._choosing = (
            compilation.compiled(announce, is_real=self._is_real)
            if compiled
            else compilation.plain()
        )

    @property
    def groups(self) -> IntArray:
        """(size,) place, among the task's regimes, of the one each environment is in."""
        return self.episode_numbers % len(self.episodes.regimes)

    @property
    def group_count(self) -> int:
        """Regimes of the task."""
        return len(self.episodes.regimes)

    @property
    def waiting(self) -> IntArray:
        """(size,) jobs waiting."""
        return self._rows[0][:, state.QUEUED]

    @property
    def terms(self) -> FloatArray:
        """(size, terms) what the last step earned of each `Term`, before weighing."""
        return self._rows[3][:, at.EARNED_AT : at.EARNED_AT + at.TERMS]

    @property
    def legal(self) -> npt.NDArray[np.int8]:
        """(size, actions) 1 where an action is legal: everywhere."""
        return self._legal

    @property
    def _numbers(self) -> IntArray:
        return self.episodes.numbers

    def _prepared(self, number: int) -> PreparedChoice:
        prepared = self.episodes.prepared(number)
        if prepared.is_real and not self._is_real and self._choosing.is_compiled:
            # Serves plain episodes as well.
            self._choosing = compilation.compiled(self._announce, is_real=True)
            self._is_real = True
        return prepared

    def _cards(self, prepared: Any) -> npt.NDArray[np.float32]:
        del prepared
        return np.zeros(0, dtype=np.float32)

    def _begin_rows(self, rows: IntArray) -> None:
        ints, reals, book, purse = self._rows
        bank_ints, bank_reals, facts, _ = self._bank
        self._choosing.begin_many(
            *(bank_ints, bank_reals, facts, self._rules, self._scales),
            *(ints, reals, book, purse, self.observations),
            *(self._places, self._widths, rows),
        )

    def _step_rows(self, actions: IntArray) -> None:
        ints, reals, book, purse = self._rows
        rows = (
            *(self._bank[2], self._rules, self._scales),
            *(ints, reals, book, purse, self.observations, self._places),
            *(actions, self.rewards, self._ends, self.elapsed_s),
        )
        if self._parts == 1:
            self._choosing.step_many(*rows, 0, self.size)
        else:
            self._choosing.step_parts(*rows, self._parts)

    def kept_returns(self, rows: IntArray) -> FloatArray:
        """Return what each scheduler, kept from now to the end, would still earn: (rows, actions).

        It is found by playing on, so that jobs count which nobody knows of yet: a chooser that
        reads it is an oracle. The environments stay where they are.
        """
        actions = self.layout.actions
        count = len(rows) * actions
        twins = [np.repeat(part[rows], actions, axis=0) for part in self._rows]
        earned = twins[3][:, at.RETURN].copy()
        scales = self._scales.copy()
        scales[at.EVERY_S] = np.inf  # nobody is asked again
        self._choosing.step_many(
            *(self._bank[2], self._rules, scales, *twins),
            np.zeros((count, self.layout.length), dtype=np.float32),
            *(np.repeat(self._places[rows], actions), np.tile(np.arange(actions), len(rows))),
            *(np.zeros(count), np.zeros(count, dtype=np.int64), np.zeros(count), 0, count),
        )
        found: FloatArray = twins[3][:, at.RETURN] - earned
        return found.reshape(len(rows), actions)

    def _keep_last(self, ended: IntArray) -> None:
        book, purse = self._rows[2], self._rows[3]
        self.episode_returns[ended] = purse[ended, at.RETURN]
        self.episode_steps[ended] = book[ended, at.STEPS]
        for row in ended.tolist():
            for name, value in self._score(row).items():
                self.scores[name][row] = value

    def _score(self, row: int) -> dict[str, float]:
        """Return what came of the episode that has just ended in an environment."""
        book, purse = self._rows[2][row], self._rows[3][row]
        number = int(self.episode_numbers[row])
        jobs = int(self._rows[0][row, state.JOBS])
        first = at.PURSE + at.PAST * int(self._rules[at.BUCKETS])
        jct_s = purse[first : first + jobs][book[at.BOOK : at.BOOK + jobs] == at.FINISHED]
        ended = max(int(book[at.ENDED]), 1)
        placeable = self._bank[2][self._places[row], at.PLACEABLE]
        found = self.episodes.standards(number)
        best, jct, late = found.best, purse[at.JCT_SUM] / ended, book[at.LATE_JOBS] / placeable
        p95 = float(np.percentile(jct_s, 95)) if len(jct_s) else np.nan
        return {
            "jct_s": jct,
            "p95_jct_s": p95,
            "wait_s": purse[at.WAIT_SUM] / ended,
            "bounded_slowdown": purse[at.BSLD_SUM] / ended,
            "late": late,
            "unfinished": placeable - book[at.ENDED],
            "switches": float(book[at.SWITCHES]),
            "jct_gap": jct / best.mean_jct_s - 1.0,
            "p95_gap": p95 / best.p95_jct_s - 1.0,
            "mixed_gap": mixed_cost(best, jct, p95, late) / found.mixed - 1.0,
        }


def open_choosing(
    task: ChoosingTask,
    *,
    size: int,
    split: Split = "train",
    seed: int = 0,
    threads: int = 1,
    compiled: bool = True,
    announce: Callable[[str], None] | None = None,
) -> ChoosingBatch:
    """Open environments of a task, already in their first episodes."""
    batch = ChoosingBatch(
        ChoosingEpisodes(task, split), size, threads=threads, compiled=compiled, announce=announce
    )
    batch.reset(seed)
    return batch
