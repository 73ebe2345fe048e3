"""Environments that begin an episode only when told, by number if need be, and tell how it went."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking import places as at
from yardmaster.engine.state import NODE_FREE
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.episodes import Episodes, Split
from yardmaster.envs.rows import RowBatch
from yardmaster.envs.task import TASKS, Task
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import IntArray

OPTIONS = ("episode",)
"""What `reset` may be asked for."""

MOST_SEEDS = 2**64


class NumberedRows(RowBatch):
    """What Gymnasium wants of a batch, whatever its environments are: it begins episodes itself."""

    _asked_for: IntArray | None = None

    def _next(self, rows: IntArray) -> IntArray:
        return self._by_seed(rows) if self._asked_for is None else self._asked_for[rows]

    def begin(self, rows: IntArray) -> None:
        """Begin the next episode in some environments."""
        super().begin(rows)
        self.elapsed_s[rows] = 0.0

    def begin_numbered(self, numbers: IntArray) -> None:
        """Begin these episodes, one in each environment."""
        self._asked_for = numbers
        try:
            self.begin(np.arange(self.size))
        finally:
            self._asked_for = None

    @property
    def legal(self) -> npt.NDArray[np.int8]:
        """(size, actions) 1 where an action is legal, as Gymnasium's samplers want it."""
        return self._legal

    def told(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known beside the observations, as the next step will write it."""
        return {
            "action_mask": self.legal,
            "now_s": self.now_s,
            "elapsed_s": self.elapsed_s,
            "waiting": self.waiting,
            "episode_number": self.episode_numbers,
        }

    @abstractmethod
    def scored(self, rows: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return what came of the episodes that ended in the last step, an entry per row."""


class NumberedBatch(NumberedRows, EnvironmentBatch):
    """Environments of picking jobs for Gymnasium."""

    def __init__(
        self, episodes: Episodes, size: int, *, threads: int = 1, compiled: bool = True
    ) -> None:
        super().__init__(
            episodes, size, threads=threads, compiled=compiled, autoreset=False, draw=self._next
        )

    def free_gpus(self, row: int) -> IntArray:
        """Return the free GPUs of each node of an environment."""
        ints = self._rows[0][row]
        first, nodes = int(ints[NODE_FREE]), self.episodes.cluster.nodes
        return np.asarray(ints[first : first + nodes], dtype=np.int64)

    def scored(self, rows: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return what came of the episodes that ended in the last step, an entry per row.

        Means are over the jobs that finished; see `envs.playing.Played`.
        """
        wait, jct, bounded, slow, work, last, ended = self.outcomes[rows].T
        count = np.maximum(ended, 1.0)
        facts = self._bank[2][self._places[rows]]
        gpu_s = np.maximum(last * self.episodes.cluster.gpus, 1e-9)
        return {
            "return": self.episode_returns[rows],
            "wait_s": wait / count,
            "jct_s": jct / count,
            "bounded_slowdown": bounded / count,
            "slowdown": slow / count,
            "utilisation": work / gpu_s,
            "makespan_s": last.copy(),
            "unfinished": (facts[:, at.PLACEABLE] - ended).astype(np.int64),
            "decisions": self.episode_steps[rows],
            "noops": self.episode_noops[rows],
        }


def opened(
    task: str | Task,
    changes: Mapping[str, Any],
    split: Split,
    *,
    size: int,
    threads: int = 1,
    compiled: bool = True,
) -> NumberedBatch:
    """Open environments of a task, named or given, with some of its settings changed.

    Raises:
        UnknownNameError: if there is no such task, setting or set of episodes.
    """
    base = TASKS[task] if isinstance(task, str) else task
    episodes = Episodes(base.changed(**changes), split)
    return NumberedBatch(episodes, size, threads=threads, compiled=compiled)


def begin_episodes(
    batch: NumberedRows, seed: int | None, options: Mapping[str, Any] | None
) -> None:
    """Begin an episode in every environment.

    Args:
        batch: the environments.
        seed: where they draw their episodes from now on; None: they go on as before.
        options: `episode`, a number or one per environment, asks for certain episodes.

    Raises:
        YardmasterError: if an option is unknown or an episode's number makes no sense.
    """
    from yardmaster.names import unknown

    asked = dict(options or {})
    for name in asked:
        if name not in OPTIONS:
            raise unknown("option of reset", name, OPTIONS)
    if seed is not None:
        batch.reset(seed % MOST_SEEDS)
    if "episode" in asked:
        batch.begin_numbered(_numbers(asked["episode"], batch.size))
    elif seed is None:
        batch.begin(np.arange(batch.size))


def _numbers(asked: Any, size: int) -> IntArray:
    numbers = np.asarray(asked)
    is_whole = np.issubdtype(numbers.dtype, np.integer)
    if not is_whole or numbers.shape not in {(), (size,)} or (numbers < 0).any():
        raise YardmasterError(
            f"episode must be a whole number from 0 on, or {size} of them, got {asked!r}."
        )
    return np.broadcast_to(numbers, (size,)).astype(np.int64)
