"""Environments that live on a GPU, as tensors: the learners' networks read them in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from yardmaster.engine.gpu.availability import is_simulated
from yardmaster.engine.picking.places import End
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.gpu_batch import ChoosingGpuBatch
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.gpu_batch import DrawnBatch, GpuBatch, KeptBatch
from yardmaster.envs.scene_batch import SceneBatch, SceneEpisodes
from yardmaster.envs.scenes import SceneRows, SceneTask
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError

PRECISIONS = ("float32", "bfloat16")
"""Numbers that networks can compute in."""


def as_tensor(array: Any) -> Tensor:
    """Return an array as a tensor in the same memory; tensors as they are."""
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else array


def shared(array: Any) -> Tensor:
    """Return an array of the GPU as a tensor in the same memory."""
    if is_simulated():  # the GPU that Numba plays keeps its arrays in NumPy's
        return torch.from_numpy(np.asarray(array._ary))  # noqa: SLF001
    return torch.as_tensor(array, device="cuda")


def torch_device(device: str) -> str:
    """Return where torch keeps what is on a device: where Numba plays the GPU, on the CPU.

    Raises:
        YardmasterError: if torch has no such device.
    """
    if device == "cpu" or is_simulated():
        return "cpu"
    if not torch.cuda.is_available():
        raise YardmasterError(
            "There is no CUDA device here for torch: use --device cpu. `yardmaster doctor` says"
            " what is missing."
        )
    return device


class ResidentBatch:
    """Environments on a GPU as `envs.protocol.Batch` describes them, in tensors.

    `episode_returns` are not known one by one: see `finished`.
    """

    def __init__(self, batch: GpuBatch) -> None:
        self.batch = batch
        self.size = batch.size
        self.layout = batch.layout
        self.group_count = batch.group_count
        self.can_cut = batch.can_cut
        self._views, self._legal = shared(batch.observations), shared(batch.legal)
        self._finals, self._ends = shared(batch.final_observations), shared(batch.ends)
        self.rewards, self._elapsed_s = shared(batch.rewards), shared(batch.elapsed_s)
        self.groups = shared(batch.groups)
        self._actions = shared(batch.actions)
        self.device = self.rewards.device
        self._units_s = torch.from_numpy(batch.time_units_s).float().to(self.device)
        self._unit_s = self._units_s[self.groups]

    @property
    def task(self) -> Any:
        """What is played."""
        return self.batch.task

    @property
    def episodes(self) -> Any:
        """Where the environments' regimes and jobs come from; drawn ones have none."""
        return self.batch.episodes

    @property
    def elapsed_s(self) -> Tensor:
        """(size,) time that passed in the last step, in units of its kind of episode."""
        return self._elapsed_s / self._unit_s

    @property
    def observations(self) -> Tensor:
        """(size, length) what each sees now, gathered from the tiles."""
        return self._by_environment(self._views)

    @property
    def masks(self) -> Tensor:
        """(size, actions) which actions are legal now."""
        return self._by_environment(self._legal) != 0

    @property
    def final_observations(self) -> Tensor:
        """(size, length) the last ones of episodes that a limit cut off."""
        return self._by_environment(self._finals)

    @property
    def terminated(self) -> Tensor:
        """(size,) the last step ended the episode by itself."""
        return self._ends == End.DONE

    @property
    def truncated(self) -> Tensor:
        """(size,) the last step was cut off by a limit."""
        return self._ends == End.CUT

    @staticmethod
    def _by_environment(tiles: Tensor) -> Tensor:
        return tiles.transpose(1, 2).reshape(-1, tiles.shape[1])

    def reset(self, seed: int, *, staggered: bool = False) -> None:
        """Begin fresh episodes in all environments."""
        self.batch.reset(seed, staggered=staggered)

    def step(self, actions: Tensor) -> None:
        """Carry out one action in every environment."""
        # Of the episodes that are played, not the next; always in the same memory.
        torch.index_select(self._units_s, 0, self.groups, out=self._unit_s)
        self._actions.copy_(actions)
        self.batch.step(self.batch.actions)

    def finished(self) -> tuple[float, float]:
        """Return how many episodes ended since the last time, and the sum of their returns."""
        tally = self.batch.tallied()
        return float(tally["episodes"].sum()), float(tally["returns"].sum())

    def snapshot(self) -> dict[str, Any]:
        """Return everything needed to go on from here."""
        return self.batch.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.batch.restore(snapshot)


def open_resident(
    task: Task | ChoosingTask,
    *,
    size: int,
    seed: int = 0,
    announce: Callable[[str], None] | None = None,
) -> ResidentBatch:
    """Open environments of a task's training episodes on the GPU, already in their first ones.

    Raises:
        YardmasterError: if there is no GPU, or the environments are no multiple of 32.
    """
    there: GpuBatch
    if isinstance(task, ChoosingTask):
        there = ChoosingGpuBatch(ChoosingEpisodes(task, "train"), size, announce=announce)
    else:
        there = KeptBatch(Episodes(task, "train"), size, announce=announce)
    batch = ResidentBatch(there)
    batch.reset(seed)
    return batch


def open_scenes(
    rows: SceneRows,
    task: SceneTask,
    size: int,
    *,
    seed: int = 0,
    device: str = "cpu",
    threads: int = 1,
    announce: Callable[[str], None] | None = None,
) -> ResidentBatch | SceneBatch:
    """Open environments of scenes, on the GPU or on the processor; `reset` begins episodes.

    Raises:
        YardmasterError: if there is no GPU, or too few environments, or on a GPU no multiple of 32.
    """
    if device == "cuda":
        return ResidentBatch(DrawnBatch(rows, task, size, announce=announce))
    episodes = SceneEpisodes(rows, task, seed)
    return SceneBatch(episodes, size, threads=threads, announce=announce)
