"""Environments of scenes on the processor: what `gpu_batch.DrawnBatch` is on a GPU.

Every environment stays in one scene, so that those of a scene stand side by side; how many there
are of each follows the scenes' shares. Episodes are drawn once and used again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from yardmaster.engine.drawing import places as at
from yardmaster.engine.layout import Simulation
from yardmaster.engine.picking.layout import Floats
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.scenes import SceneRows, SceneTask, drawn, workload_of
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Workload

EPISODES_PER_SCENE = 128
"""Distinct episodes of a scene."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawnEpisode:
    """One episode of a scene, laid out at its first instant."""

    simulation: Simulation
    facts: FloatArray
    cards: Floats
    book_length: int
    purse_length: int
    is_real: bool = False


class SceneEpisodes:
    """The episodes of a task of scenes; another seed gives others.

    Those of a scene are numbered from scene · `EPISODES_PER_SCENE` on.
    """

    def __init__(self, rows: SceneRows, task: SceneTask, seed: int = 0) -> None:
        self.rows, self.task, self.seed = rows, task, seed
        self.numbers = np.arange(len(rows.names) * EPISODES_PER_SCENE)
        self.prepared: Callable[[int], DrawnEpisode] = cache(self._prepare)

    def _prepare(self, number: int) -> DrawnEpisode:
        scene = number // EPISODES_PER_SCENE
        one = drawn(self.rows, self.rules(), self.seed * len(self.numbers) + number, scene)
        return DrawnEpisode(
            Simulation(one.ints, one.reals),
            one.facts,
            one.cards,
            self.rows.book_length,
            self.rows.purse_length,
        )

    def workload(self, number: int) -> Workload:
        """Return the jobs of an episode."""
        simulation = self.prepared(number).simulation
        return workload_of(simulation.ints, simulation.reals)

    def cluster_of(self, number: int) -> Cluster:
        """Return the machines of an episode."""
        return self._clusters[number // EPISODES_PER_SCENE]

    @cached_property
    def _clusters(self) -> list[Cluster]:
        return [scene.machines() for scene in self.task.scenes]

    def rules(self) -> IntArray:
        """Return the row of integers that says what the task is."""
        return self.task.rules()

    def scales(self) -> FloatArray:
        """Return the row of reals of the first scene; features are the same in all."""
        row: FloatArray = self.task.scales(self.rows.names)[0].copy()
        return row


class SceneBatch(EnvironmentBatch):
    """Environments of scenes, stepped together; see `envs.protocol.Batch`."""

    def __init__(self, episodes: SceneEpisodes, size: int, **settings: Any) -> None:
        """Lay out so many environments; `settings` as of `EnvironmentBatch`.

        Raises:
            YardmasterError: if there are fewer environments than scenes.
        """
        rows = episodes.rows
        if size < len(rows.names):
            raise YardmasterError(
                f"{len(rows.names)} scenes need as many environments at least, got {size}."
            )
        super().__init__(episodes, size, **settings)  # type: ignore[arg-type]  # as good as Episodes
        self._scene = _assigned(np.diff(rows.reals[:, at.SHARE], prepend=0.0), size)
        self._scene_scales = episodes.task.scales(rows.names)
        units = [episodes.task.unit_s.get(name, 1.0) for name in rows.names]
        self._units_s = np.array(units)[self._scene]

    @property
    def groups(self) -> IntArray:
        """(size,) the scene of each."""
        return self._scene

    @property
    def group_count(self) -> int:
        """Scenes."""
        return len(self._scene_scales)

    def _by_seed(self, rows: IntArray) -> IntArray:
        return self._scene[rows] * EPISODES_PER_SCENE + super()._by_seed(rows) % EPISODES_PER_SCENE

    def _step_rows(self, actions: IntArray) -> None:
        ints, reals, book, purse = self._rows
        for scene, scales in enumerate(self._scene_scales):
            first, last = np.searchsorted(self._scene, [scene, scene + 1]).tolist()
            self._picking.step_many(
                *(self._bank[2], self._bank[3], self._rules, scales),
                *(ints, reals, book, purse, self.observations, self._legal, self._places),
                *(actions, self.rewards, self._ends, self.elapsed_s, first, last),
            )
        self.elapsed_s /= self._units_s


def _assigned(shares: FloatArray, size: int) -> IntArray:
    """Return the scene of each environment, by shares, one of each at least, in order."""
    counts = 1 + np.floor(shares * (size - len(shares))).astype(np.int64)
    counts[np.argsort(-shares)[: size - int(counts.sum())]] += 1
    return np.repeat(np.arange(len(shares)), counts)
