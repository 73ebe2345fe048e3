"""Environments on a GPU beside the same ones on the CPU.

These tests need a GPU, or `NUMBA_ENABLE_CUDASIM=1` before Python starts: Numba then plays one, in
Python, with less of everything. `make test` runs them that way, `make test-gpu` on a GPU, where
nothing but NumPy, numba-cuda, torch and pytest is needed.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from yardmaster.engine.gpu import lanes
from yardmaster.engine.gpu.availability import gpu_status, is_simulated
from yardmaster.envs.batch import EnvironmentBatch
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.gpu_batch import GpuBatch, KeptBatch
from yardmaster.envs.task import Task


class Scope(NamedTuple):
    """How much is compared, and how closely."""

    size: int
    """Environments."""
    steps: int
    tolerance: float
    """A GPU multiplies and adds in one go, so that last digits differ; a played one does not."""


PLAYED, REAL = Scope(32, 15, 0.0), Scope(512, 120, 1e-6)


class Twins(NamedTuple):
    """The same environments on a GPU and on the CPU."""

    there: GpuBatch
    here: EnvironmentBatch
    tolerance: float

    def legal_actions(self, dice: np.random.Generator) -> np.ndarray:
        """Draw a legal action for every environment."""
        masks = self.here.masks
        return np.where(masks, dice.random(masks.shape), -1.0).argmax(axis=1)

    def step(self, actions: np.ndarray) -> None:
        """Carry out the same actions in both."""
        self.here.step(actions)
        self.there.step(self.there.to_gpu(actions))

    def assert_same_sight(self) -> None:
        """Both show the same of the same episodes."""
        played = self.there.episode_numbers.copy_to_host()
        np.testing.assert_array_equal(played, self.here.episode_numbers)
        np.testing.assert_array_equal(rows_of(self.there.legal), self.here._legal)
        self._assert_close(rows_of(self.there.observations), self.here.observations)

    def assert_same_outcome(self) -> None:
        """The last step came to the same in both."""
        ends = self.there.ends.copy_to_host()
        np.testing.assert_array_equal(ends, self.here._ends)
        self._assert_close(self.there.rewards.copy_to_host(), np.float32(self.here.rewards))
        self._assert_close(self.there.elapsed_s.copy_to_host(), np.float32(self.here.elapsed_s))
        if self.there.can_cut and ends.any():
            last = rows_of(self.there.final_observations)[ends != 0]
            self._assert_close(last, self.here.final_observations[ends != 0])

    def _assert_close(self, there: np.ndarray, here: np.ndarray) -> None:
        np.testing.assert_allclose(there, here, rtol=self.tolerance, atol=self.tolerance)


def rows_of(tiles: Any) -> np.ndarray:
    return lanes.by_environment(tiles.copy_to_host())


@pytest.fixture(autouse=True, scope="session")
def gpu() -> None:
    """Skip what needs a GPU where there is none."""
    status = gpu_status()
    if not status.is_usable:
        pytest.skip(status.why)
    if is_simulated():
        played: Any = importlib.import_module("numba.cuda.simulator.kernel")
        played.BlockManager = _turns()


def _turns() -> type:
    """Return a block of threads that take turns, each until it waits for the others or is done.

    Numba lets all run at once; they mostly wait for the interpreter then. Every other round goes
    backwards: who reads what another thread has yet to write finds it missing in one of them.
    """
    played: Any = importlib.import_module("numba.cuda.simulator.kernel")

    class Thread(played.BlockThread):
        """A thread of the GPU that runs when it is told to."""

        def __init__(self, *about: Any) -> None:
            super().__init__(*about)
            self.begins, self.rests = threading.Semaphore(0), threading.Semaphore(0)
            self.is_done = False

        def run(self) -> None:
            super().run()
            self.is_done = True
            self.rests.release()

        def syncthreads(self) -> None:
            self.rests.release()
            self.begins.acquire()

        def take_turn(self) -> None:
            if self.ident is None:
                self.start()
            else:
                self.begins.release()
            self.rests.acquire()
            if self.exception:
                raise self.exception[0].with_traceback(self.exception[1])

    class Block(played.BlockManager):
        """A block of such threads."""

        def run(self, place: Any, *arguments: Any) -> None:
            def work() -> None:
                self._f(*arguments)

            points = np.ndindex(*self._block_dim)
            threads = [Thread(work, self, place, point, self._debug) for point in points]
            while threads:
                for thread in threads:
                    thread.take_turn()
                threads = [thread for thread in reversed(threads) if not thread.is_done]

    return Block


@pytest.fixture(scope="session")
def scope() -> Scope:
    """Return how much is compared here."""
    return PLAYED if is_simulated() else REAL


@pytest.fixture
def by_environment() -> Callable[[Any], np.ndarray]:
    """Return the function that fetches tiles as (environments, words)."""
    return rows_of


@pytest.fixture
def assert_same_state() -> Callable[[Any, Any], None]:
    """Return the function that finds two batches on a GPU to be in the same state."""

    def compared(one: Any, other: Any) -> None:
        found, expected = one.snapshot(), other.snapshot()
        assert found.keys() == expected.keys()
        assert "book" in found
        for name, part in found.items():
            # Threads add to a tally in any order, so that its last digits are not always the same.
            close = {"rtol": 1e-12 if name == "tally" else 0.0, "atol": 0.0}
            np.testing.assert_allclose(part, expected[name], err_msg=name, **close)

    return compared


@pytest.fixture
def twins_of(scope: Scope) -> Callable[..., Twins]:
    """Return a function that makes twins of episodes."""

    def made(episodes: Any, there: GpuBatch, **options: Any) -> Twins:
        here = EnvironmentBatch(episodes, there.size, compiled=not is_simulated(), **options)
        return Twins(there, here, scope.tolerance)

    return made


@pytest.fixture
def twins(scope: Scope, twins_of: Callable[..., Twins]) -> Callable[[Task, int], Twins]:
    """Return a function that makes twins of a task, with a seed, in their first episodes."""

    def made(task: Task, seed: int) -> Twins:
        episodes = Episodes(task, "train")
        pair = twins_of(episodes, KeptBatch(episodes, scope.size))
        pair.there.reset(seed)
        pair.here.reset(seed)
        return pair

    return made
