"""Whether there is a GPU: never an error, always a reason."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import pytest

from yardmaster.engine.gpu import availability
from yardmaster.engine.gpu.availability import SIMULATOR, gpu_status, require_gpu
from yardmaster.errors import YardmasterError


def raising(error: Exception):
    def fail(*_arguments: object) -> object:
        raise error

    return fail


def given(monkeypatch: pytest.MonkeyPatch, **found: object) -> None:
    """Let Numba's compiler for GPUs answer so."""
    monkeypatch.setenv(SIMULATOR, "0")
    monkeypatch.setattr(availability, "cuda_module", lambda: SimpleNamespace(**found))


def test_a_played_gpu_is_one(monkeypatch: pytest.MonkeyPatch):
    """Where Numba plays a GPU, environments can run on it, and it is said to be slow."""
    monkeypatch.setenv(SIMULATOR, "1")
    assert gpu_status()[:2] == (True, "simulated")
    assert "slowly" in gpu_status().why


def test_what_must_be_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    """Without numba-cuda the extra that brings it is named."""
    monkeypatch.setenv(SIMULATOR, "0")
    monkeypatch.setattr(importlib, "import_module", raising(ImportError("no such module")))
    status = gpu_status()
    assert not status.is_usable
    assert "numba-cuda is not installed" in status.why
    assert "yardmaster[gpu]" in status.why


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"is_available": lambda: False}, "No NVIDIA GPU"),
        ({"is_available": raising(RuntimeError("driver too old\nand more"))}, "driver too old"),
        ({"is_available": raising(RuntimeError())}, "RuntimeError"),
    ],
    ids=["none", "failing", "silent"],
)
def test_every_way_to_have_none_is_a_reason(
    answer: dict, why: str, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is raised until a GPU is asked for; then what to do is said."""
    given(monkeypatch, **answer)
    assert not gpu_status().is_usable
    assert why in gpu_status().why
    assert "\n" not in gpu_status().why
    with pytest.raises(YardmasterError, match=r"--device cpu.*yardmaster doctor"):
        require_gpu()


@pytest.mark.parametrize("name", ["Big GPU", b"Big GPU"])
def test_a_gpu_is_named(name: str | bytes, monkeypatch: pytest.MonkeyPatch):
    """Its name stands in the answer, however the driver writes it."""
    device = SimpleNamespace(name=name)
    given(monkeypatch, is_available=lambda: True, get_current_device=lambda: device)
    assert gpu_status() == (True, "Big GPU", "Big GPU, by numba-cuda.")
    assert require_gpu().get_current_device() is device
