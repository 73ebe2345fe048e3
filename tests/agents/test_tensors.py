"""Environments on a GPU as tensors: the same memory, a row per environment."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from yardmaster.agents import tensors
from yardmaster.agents.tensors import ResidentBatch, as_tensor, torch_device
from yardmaster.engine.gpu.lanes import LANES, by_environment
from yardmaster.engine.picking.places import End
from yardmaster.errors import YardmasterError

TILES, LENGTH, ACTIONS = 2, 3, 4
SIZE = TILES * LANES


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of the GPU be NumPy's."""
    monkeypatch.setattr(tensors, "is_simulated", lambda: True)


def gpu_array(array: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(_ary=array)


def gpu_batch() -> SimpleNamespace:
    dice = np.random.default_rng(0)
    ends = np.resize(np.array([0, End.DONE, End.CUT], dtype=np.int8), SIZE)
    views = dice.random((TILES, LENGTH, LANES), dtype=np.float32)
    steps: list[np.ndarray] = []
    batch = SimpleNamespace(
        size=SIZE,
        task="a task",
        layout="a layout",
        group_count=2,
        can_cut=True,
        observations=gpu_array(views),
        final_observations=gpu_array(-views),
        legal=gpu_array(dice.integers(0, 2, (TILES, ACTIONS, LANES)).astype(np.int8)),
        rewards=gpu_array(np.zeros(SIZE, dtype=np.float32)),
        elapsed_s=gpu_array(np.full(SIZE, 60.0, dtype=np.float32)),
        time_units_s=np.array([1.0, 30.0]),
        ends=gpu_array(ends),
        groups=gpu_array(np.arange(SIZE) % 2),
        actions=gpu_array(np.zeros(SIZE, dtype=np.int64)),
        steps=steps,
        tallied=lambda: {"episodes": np.array([2.0, 3.0]), "returns": np.array([-1.0, -4.0])},
    )
    batch.step = lambda actions: steps.append(actions._ary.copy())
    return batch


@pytest.mark.slow
def test_learning_on_a_played_gpu(passes_on_played_gpu):
    """PPO learns from them what it learns from the same ones on the CPU."""
    assert passes_on_played_gpu("test_learning.py")


@pytest.mark.usefixtures("played")
def test_a_row_is_an_environment():
    """Tiles are read environment by environment, and ends by their kind."""
    batch = gpu_batch()
    resident = ResidentBatch(batch)
    for name in ("observations", "final_observations"):
        expected = by_environment(getattr(batch, name)._ary)
        np.testing.assert_array_equal(getattr(resident, name), expected)
    np.testing.assert_array_equal(resident.masks, by_environment(batch.legal._ary) == 1)
    np.testing.assert_array_equal(resident.terminated, batch.ends._ary == End.DONE)
    np.testing.assert_array_equal(resident.truncated, batch.ends._ary == End.CUT)
    np.testing.assert_array_equal(resident.elapsed_s, np.resize([60.0, 2.0], SIZE))
    assert (resident.task, resident.layout) == ("a task", "a layout")
    assert resident.finished() == (5.0, -5.0)


@pytest.mark.usefixtures("played")
def test_nothing_is_copied_but_actions():
    """What the kernels write shows at once; actions go where the kernels read them."""
    batch = gpu_batch()
    resident = ResidentBatch(batch)
    batch.rewards._ary[5] = 7.0
    batch.observations._ary[1, 2, 3] = 9.0
    assert resident.rewards[5] == 7.0
    assert resident.observations[LANES + 3, 2] == 9.0
    resident.step(torch.arange(SIZE))
    np.testing.assert_array_equal(batch.steps[0], np.arange(SIZE))


def test_arrays_become_tensors_in_place():
    """A tensor stays the one it is; an array shares its memory."""
    array = np.zeros(3)
    as_tensor(array)[1] = 4.0
    assert array[1] == 4.0
    tensor = torch.zeros(2)
    assert as_tensor(tensor) is tensor


def test_where_torch_keeps_what_is_on_a_gpu(monkeypatch: pytest.MonkeyPatch):
    """On the GPU, or on the CPU where one is played; a missing one is an error with a way out."""
    assert torch_device("cpu") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(YardmasterError, match=r"no CUDA device.*--device cpu.*yardmaster doctor"):
        torch_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert torch_device("cuda") == "cuda"
    monkeypatch.setattr(tensors, "is_simulated", lambda: True)
    assert torch_device("cuda") == "cpu"
