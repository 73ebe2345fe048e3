"""Environments of choosing that begin an episode only when told, by number if need be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from yardmaster.engine import state
from yardmaster.engine.choosing.places import CURRENT
from yardmaster.envs.choosing.batch import ChoosingBatch
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import CHOOSING_TASKS, ChoosingTask
from yardmaster.envs.episodes import Split
from yardmaster.envs.numbered import NumberedRows
from yardmaster.model.workload import IntArray


class NumberedChoosing(NumberedRows, ChoosingBatch):
    """Environments of choosing schedulers for Gymnasium."""

    def __init__(
        self, episodes: ChoosingEpisodes, size: int, *, threads: int = 1, compiled: bool = True
    ) -> None:
        super().__init__(
            episodes, size, threads=threads, compiled=compiled, autoreset=False, draw=self._next
        )

    def told(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known beside the observations, as the next step will write it."""
        return super().told() | {"regime": self.groups}

    def scored(self, rows: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return what came of the episodes that ended in the last step, an entry per row."""
        scores = {name: value[rows] for name, value in self.scores.items()}
        ends = {"return": self.episode_returns[rows], "decisions": self.episode_steps[rows]}
        return ends | scores

    def picture(self, row: int) -> str:
        """Return one environment in a line: the clock, the GPUs, the queue, who is at work."""
        ints, member = self._rows[0][row], int(self._rows[2][row, CURRENT])
        regime = self.episodes.regimes[int(self.groups[row])].name
        gpus = int(ints[state.GPUS])
        at_work = "nobody yet" if member == state.NOTHING else self.task.sight.menu[member]
        return (
            f"second {self.now_s[row]:,.0f} of episode {self.episode_numbers[row]} ({regime}):"
            f" {gpus - int(ints[state.FREE_GPUS])} of {gpus} GPUs in use,"
            f" {self.waiting[row]} waiting, at work: {at_work}\n"
        )


def opened_choosing(
    task: str | ChoosingTask,
    changes: Mapping[str, Any],
    split: Split,
    *,
    size: int,
    threads: int = 1,
    compiled: bool = True,
) -> NumberedChoosing:
    """Open environments of a task, named or given, with some of its settings changed.

    Raises:
        UnknownNameError: if there is no such task, setting or set of episodes.
    """
    base = CHOOSING_TASKS[task] if isinstance(task, str) else task
    episodes = ChoosingEpisodes(base.changed(**changes), split)
    return NumberedChoosing(episodes, size, threads=threads, compiled=compiled)
