"""`yardmaster doctor`: where training would run, and that a machine without a GPU is well."""

from __future__ import annotations

import json

import pytest

from yardmaster.cli import doctor as command
from yardmaster.engine.gpu import availability


def training(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Return what the examination says of training; it must not end with an error."""
    command.doctor(json=True)
    findings = json.loads(capsys.readouterr().out)
    (found,) = (finding for finding in findings if finding["what"] == "training")
    return found


@pytest.mark.parametrize(
    ("has_cuda", "status", "found"),
    [
        (True, (True, "H200", "H200, by numba-cuda."), "on CUDA with --device cuda, ppo and"),
        (
            True,
            (False, "", "No numba-cuda."),
            "network on CUDA with --device cuda, environments on",
        ),
        (False, (True, "H200", "H200."), "on the CPU: torch finds no CUDA device"),
        (False, (False, "", "No NVIDIA GPU."), "on the CPU: torch finds no CUDA device"),
    ],
    ids=["both", "torch alone", "numba-cuda alone", "none"],
)
def test_where_training_runs_is_said_with_the_reason(has_cuda, status, found, monkeypatch, capsys):
    """Network and environments on CUDA, the network alone, or all on the CPU; all are well."""
    monkeypatch.setattr(availability, "gpu_status", lambda: availability.GpuStatus(*status))
    monkeypatch.setattr(command, "_torch_has_cuda", lambda: has_cuda)
    finding = training(capsys)
    assert finding["is_well"]
    assert str(finding["found"]).startswith(found)


def test_without_torch_nothing_trains(monkeypatch, capsys):
    """It says how to get torch, which running policies does not need."""
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    finding = training(capsys)
    assert finding["is_well"]
    assert "pip install 'yardmaster[rl]'" in str(finding["found"])
