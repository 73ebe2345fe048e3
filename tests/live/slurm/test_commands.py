"""Slurm's programs where there is no Slurm: said in our words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from yardmaster.live.slurm.commands import Slurm, SlurmError


def test_a_machine_without_settings_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch):
    """Without slurm.conf the answer is which variable to set, not what DNS said."""
    if shutil.which("squeue") is None:
        pytest.skip("needs Slurm's programs")
    if Path("/etc/slurm/slurm.conf").exists():
        pytest.skip("this machine belongs to a cluster")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    with pytest.raises(SlurmError, match="set SLURM_CONF") as caught:
        Slurm().read("squeue", "-h")
    assert "DNS" not in str(caught.value)


def test_a_missing_program_is_named(tmp_path: Path):
    """The package that has it is told."""
    with pytest.raises(SlurmError, match="slurm-client"):
        Slurm(environment={"PATH": str(tmp_path)}).read("squeue", "-h")
