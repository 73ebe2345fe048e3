"""Thousands of environments of choosing that live on a GPU; see `envs.gpu_batch`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from yardmaster.engine.gpu import lanes
from yardmaster.engine.gpu.availability import require_gpu
from yardmaster.engine.gpu.choosing import TALLY, compiled, threads_for
from yardmaster.engine.gpu.menus import aligned_menus
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.gpu_batch import GpuBatch


class ChoosingGpuBatch(GpuBatch):
    """Environments of a task of choosing, whose training episodes are laid out in advance."""

    TALLIED = TALLY

    def __init__(
        self,
        episodes: ChoosingEpisodes,
        size: int,
        *,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        require_gpu()  # laying out takes a while
        self.episodes = episodes
        self.task = episodes.task
        prepared = [episodes.prepared(number) for number in episodes.numbers.tolist()]
        bank = aligned_menus(
            [one.simulation for one in prepared],
            [one.facts for one in prepared],
            len(episodes.task.sight.menu),
        )
        is_real = any(one.is_real for one in prepared)
        if is_real and announce is not None:
            announce(
                "Some regimes have GPUs that differ or fail: compiling for these takes minutes."
            )
        super().__init__(
            size,
            episodes.task.sight.layout(),
            lambda: compiled(episodes.rules(), bank.constants, bank.disciplines, is_real=is_real),
            episodes.scales(),
            widths={
                "ints": bank.ints.shape[1],
                "reals": bank.reals.shape[1],
                "facts": 0,
                "cards": 0,
                "book": max(one.book_length for one in prepared),
                "purse": max(one.purse_length for one in prepared),
            },
            groups=len(episodes.regimes),
            # Jobs that lost their nodes for good are left behind.
            can_cut=bool(episodes.task.max_steps) or is_real,
            announce=announce,
        )
        self.legal.copy_to_device(np.ones(self.legal.shape, dtype=np.int8))
        self._bank = [self.to_gpu(part) for part in (bank.ints, bank.reals, bank.facts)]

    @property
    def _threads(self) -> int:
        return threads_for(self.size)

    def step(self, actions: object) -> None:
        """Carry out one action in every environment; `actions` is on the GPU, 64-bit integers."""
        self._kernels.step[self._blocks, self._threads](
            *(self._bank[2], self._scales, self.ints, self.reals, self.book, self.purse),
            *(self.observations, self.episode_numbers, actions, self.rewards, self.ends),
            self.elapsed_s,
        )
        self._begin_ended()

    def _begin_ended(self) -> None:
        self._kernels.begin_kept[lanes.tiles(self.size), self._kernels.team](
            *(*self._bank, self._scales, self.ints, self.reals, self.book, self.purse),
            *(self.observations, self.final_observations, self.ends, self._seeds, self._begun),
            *(self.episode_numbers, self.groups, self.tally),
        )
