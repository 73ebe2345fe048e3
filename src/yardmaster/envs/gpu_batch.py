"""Thousands of environments that live on a GPU, stepped by its threads.

Nothing is copied to the processor: observations, masks and rewards stay on the GPU, where a
learner's network reads them in place. Arrays are device arrays of Numba, which other libraries
share by `__cuda_array_interface__`; those with a row per environment stand in tiles (see
`engine.gpu.lanes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.gpu import lanes
from yardmaster.engine.gpu.alignment import aligned, common, stacked
from yardmaster.engine.gpu.availability import require_gpu
from yardmaster.engine.gpu.picking import TALLY, compiled
from yardmaster.engine.picking.features import CARDS
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.scenes import SceneRows, SceneTask
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray


class GpuBatch(ABC):
    """Environments on a GPU; an episode that ends is followed by the next within the same step."""

    task: Any
    """What is played."""
    episodes: Any
    """Those that are laid out in advance, if any are."""
    TALLIED: tuple[str, ...] = TALLY
    """What is added up over the episodes that ended."""

    def __init__(
        self,
        size: int,
        layout: Any,
        kernels: Callable[[], Any],
        scales: FloatArray,
        *,
        widths: Mapping[str, int],
        groups: int,
        can_cut: bool,
        announce: Callable[[str], None] | None,
    ) -> None:
        """Lay out so many environments on the GPU.

        Args:
            size: environments.
            layout: where everything stands in an observation.
            kernels: compiles what steps them.
            scales: reals that say what the task is.
            widths: words that an environment has of each kind.
            groups: kinds of episodes.
            can_cut: whether episodes can be cut off before their end.
            announce: told that compiling takes a while.

        Raises:
            YardmasterError: if there is no GPU, or the environments do not fill tiles.
        """
        self._cuda = require_gpu()
        if size < 1 or size % lanes.LANES:
            raise YardmasterError(
                f"On a GPU the number of environments must be a multiple of {lanes.LANES},"
                f" got {size}."
            )
        self.size = size
        self.layout = layout
        self.can_cut = can_cut
        """Whether episodes can be cut off before their end."""
        self.group_count = groups
        """Kinds of episodes."""
        if announce is not None:
            announce("Compiling the environment for the GPU (up to a minute) …")
        self._kernels = kernels()
        self._scales = self.to_gpu(scales)
        self.time_units_s = np.ones(groups)
        """Of every kind of episode, seconds that count as one where the future is discounted."""
        self.last_tally: dict[str, FloatArray] = {}
        """What `tallied` found the last time."""
        self._allocate(widths)

    def _allocate(self, widths: Mapping[str, int]) -> None:
        size, layout = self.size, self.layout
        tiles = lanes.tiles(size)

        def tiled(words: int, dtype: Any) -> Any:
            return self.to_gpu(np.zeros((tiles, max(words, 1), lanes.LANES), dtype=dtype))

        self.ints = tiled(widths["ints"], np.int64)
        self.reals = tiled(widths["reals"], np.float64)
        self.facts = tiled(widths["facts"], np.float64)
        self.cards = tiled(widths["cards"], np.float32)
        self.book = tiled(widths["book"], np.int64)
        self.purse = tiled(widths["purse"], np.float64)
        self.observations = tiled(layout.length, np.float32)
        """(tiles, length, lanes) what each sees now."""
        self.final_observations = tiled(layout.length if self.can_cut else 1, np.float32)
        """Likewise, the last ones of episodes that ended in the last step, if any can be cut."""
        self.legal = tiled(layout.actions, np.int8)
        """(tiles, actions, lanes) 1 where an action is legal."""
        self.actions = self.to_gpu(np.zeros(size, dtype=np.int64))
        self.rewards = self.to_gpu(np.zeros(size, dtype=np.float32))
        self.elapsed_s = self.to_gpu(np.zeros(size, dtype=np.float32))
        self.ends = self.to_gpu(np.zeros(size, dtype=np.int8))
        """(size,) an `End`: how the last step ended an episode, if it did."""
        self.groups = self.to_gpu(np.zeros(size, dtype=np.int64))
        """(size,) which kind of episode each is in."""
        self._seeds = self.to_gpu(np.zeros(size, dtype=np.int64))
        self._begun = self.to_gpu(np.zeros(size, dtype=np.int64))
        self.episode_numbers = self.to_gpu(np.zeros(size, dtype=np.int64))
        self.tally = self.to_gpu(np.zeros((self.group_count, len(self.TALLIED))))

    def to_gpu(self, array: npt.NDArray[Any]) -> Any:
        """Return a copy on the GPU."""
        return self._cuda.to_device(np.ascontiguousarray(array))

    @property
    def _blocks(self) -> int:
        return -(-self.size // self._threads)

    @property
    def _threads(self) -> int:
        return min(self.size, int(self._kernels.threads))

    @abstractmethod
    def _begin_ended(self) -> None:
        """Begin the next episode in every environment whose episode has ended."""

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes; environment `i` draws as a single one with seed + i would."""
        self._seeds.copy_to_device(np.arange(self.size, dtype=np.int64) + seed)
        self._begun.copy_to_device(np.zeros(self.size, dtype=np.int64))
        self._begin_where(np.ones(self.size, dtype=np.int8))
        if staggered:
            self._stagger(seed)
        self.tally.copy_to_device(np.zeros(self.tally.shape))

    def _begin_where(self, due: npt.NDArray[np.int8]) -> None:
        self.ends.copy_to_device(due)
        self._begin_ended()
        self.ends.copy_to_device(np.zeros(self.size, dtype=np.int8))

    def _stagger(self, seed: int) -> None:
        """Play at random for about an episode, during which each begins anew at some moment."""
        decisions = 0
        ends = np.zeros(self.size, dtype=np.int8)
        while not ends.any():
            self.step_at_random(seed, decisions)
            decisions += 1
            ends = self.ends.copy_to_host()
        moments = np.random.default_rng(seed).permutation(self.size) * decisions // self.size
        for moment in range(decisions):
            self._begin_where((moments == moment).astype(np.int8))
            self.step_at_random(seed, decisions + moment)

    def step_at_random(self, seed: int, moment: int) -> None:
        """Carry out any legal action in every environment; the same numbers give the same ones."""
        kernel = self._kernels.act_at_random[self._blocks, self._threads]
        kernel(self.legal, seed & 0xFFFFFFFF, moment, self.actions)
        self.step(self.actions)

    def step(self, actions: Any) -> None:
        """Carry out one action in every environment; `actions` is on the GPU, 64-bit integers."""
        self._kernels.step[self._blocks, self._threads](
            *(self._scales, self.ints, self.reals, self.facts, self.cards, self.book, self.purse),
            *(self.observations, self.legal, actions, self.rewards, self.ends, self.elapsed_s),
            self.groups,
        )
        self._begin_ended()

    def tallied(self) -> dict[str, FloatArray]:
        """Return the sums over episodes that ended since the last time, an entry per group."""
        sums = self.tally.copy_to_host()
        self.tally.copy_to_device(np.zeros_like(sums))
        self.last_tally = dict(zip(self.TALLIED, sums.T, strict=True))
        return self.last_tally

    _KEPT = (
        *("ints", "reals", "facts", "cards", "book", "purse", "observations", "legal", "groups"),
        *("_seeds", "_begun", "episode_numbers", "tally"),
    )

    def snapshot(self) -> dict[str, Any]:
        """Return everything needed to go on from here, copied from the GPU."""
        return {name.lstrip("_"): getattr(self, name).copy_to_host() for name in self._KEPT}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; the same actions then have the same results."""
        for name in self._KEPT:
            getattr(self, name).copy_to_device(np.ascontiguousarray(snapshot[name.lstrip("_")]))


class KeptBatch(GpuBatch):
    """Environments of a task whose training episodes are laid out in advance, as on the CPU."""

    def __init__(
        self, episodes: Episodes, size: int, *, announce: Callable[[str], None] | None = None
    ) -> None:
        self.episodes = episodes
        self.task = episodes.task
        prepared = [episodes.prepared(number) for number in episodes.numbers.tolist()]
        bank = [
            *aligned([one.simulation for one in prepared]),
            stacked([one.facts for one in prepared]),
            stacked([one.cards for one in prepared]),
        ]
        names = ("ints", "reals", "facts", "cards")
        widths = {name: part.shape[1] for name, part in zip(names, bank, strict=True)}
        task = episodes.task
        is_real = any(one.is_real for one in prepared)
        super().__init__(
            size,
            task.sight.layout(),
            lambda: compiled(episodes.rules(), common(bank[0]), is_real=is_real),
            episodes.scales()[None],
            widths=widths
            | {
                "book": max(one.book_length for one in prepared),
                "purse": max(one.purse_length for one in prepared),
            },
            groups=1,
            # Who is asked after every event may wait for ever, and leave jobs behind.
            can_cut=bool(task.max_steps or task.time_limit_s or task.horizon_factor)
            or task.sight.pace == "event",
            announce=announce,
        )
        self._bank = [self.to_gpu(part) for part in bank]

    def _begin_ended(self) -> None:
        self._kernels.begin_kept[lanes.tiles(self.size), self._kernels.team](
            *(*self._bank, self._scales, self.ints, self.reals, self.facts, self.cards),
            *(self.book, self.purse, self.observations, self.final_observations, self.legal),
            *(self.ends, self._seeds, self._begun, self.episode_numbers, self.tally),
        )


class DrawnBatch(GpuBatch):
    """Environments whose episodes are drawn from scenes, on the GPU."""

    def __init__(
        self,
        rows: SceneRows,
        task: SceneTask,
        size: int,
        *,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        self.task = task
        self.rows = rows
        super().__init__(
            size,
            task.sight.layout(),
            lambda: compiled(task.rules(), common(rows.bank_ints), is_real=False),
            task.scales(rows.names),
            widths={
                "ints": rows.bank_ints.shape[1],
                "reals": rows.bank_reals.shape[1],
                "facts": rows.bank_facts.shape[1],
                "cards": CARDS * rows.jobs,
                "book": rows.book_length,
                "purse": rows.purse_length,
            },
            groups=len(rows.names),
            can_cut=False,
            announce=announce,
        )
        self.time_units_s[:] = [task.unit_s.get(name, 1.0) for name in rows.names]
        self._tables = [self.to_gpu(table) for table in rows.arrays().values()]

    def _begin_ended(self) -> None:
        self._kernels.begin_drawn[lanes.tiles(self.size), self._kernels.team](
            *(*self._tables, self._scales, self.ints, self.reals, self.facts, self.cards),
            *(self.book, self.purse, self.observations, self.legal, self.ends, self._seeds),
            *(self._begun, self.episode_numbers, self.groups, self.tally),
        )
