"""Slurm's programs where there is no Slurm: said in our words."""

from __future__ import annotations

import os
import shutil
import time
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


def test_settings_that_are_not_there_are_told_at_once(tmp_path: Path):
    """A $SLURM_CONF that names nothing is blamed itself, before any program hangs."""
    _program(tmp_path, "squeue", "sleep 30")
    slurm = Slurm(
        0.5,
        environment={
            "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_CONF": f"{tmp_path}/gone.conf",
        },
    )  # fmt: skip
    for ask in (lambda: slurm.read("squeue"), lambda: slurm.read_all(("squeue",))):
        with pytest.raises(SlurmError, match=r"SLURM_CONF names .*gone\.conf"):
            ask()


def _program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_several_programs_are_read_at_the_same_time(tmp_path: Path):
    """Each answer comes whole and in its place, however long; what is no text is replaced."""
    _program(tmp_path, "squeue", "sleep 0.4; yes abcdefgh | head -c 3000000; printf '\\377'")
    _program(tmp_path, "sinfo", "sleep 0.4; echo nodes; yes noise | head -c 300000 >&2")
    slurm = Slurm(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    began = time.monotonic()
    queue, nodes = slurm.read_all(("squeue",), ("sinfo", "-h"))
    assert time.monotonic() - began < 0.75
    assert (len(queue), queue[-1], nodes) == (3_000_001, "\ufffd", "nodes\n")


def test_one_that_fails_or_hangs_ends_them_all(tmp_path: Path):
    """A time-out and a failure are told by name, and nobody is left running."""
    _program(tmp_path, "squeue", f"echo $$ > {tmp_path}/pid; exec sleep 30")
    _program(tmp_path, "sinfo", "echo no such partition >&2; exit 1")
    slurm = Slurm(0.5, environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    with pytest.raises(SlurmError, match="squeue did not answer within"):
        slurm.read_all(("sinfo",), ("squeue",))
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(SlurmError, match="sinfo failed: no such partition"):
        slurm.read_all(("sinfo",))
    with pytest.raises(SlurmError, match="sbatch is not a program that only reads"):
        slurm.read_all(("sinfo",), ("sbatch",))


def test_habits_of_whoever_starts_it_hide_no_job(tmp_path: Path, monkeypatch):
    """Variables that choose what squeue shows are not passed on; times are counted in UTC."""
    monkeypatch.setenv("SQUEUE_USERS", "ann")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    _program(tmp_path, "squeue", 'echo "$SQUEUE_USERS,$TZ,$SLURM_TIME_FORMAT"')
    slurm = Slurm(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert slurm.read("squeue") == slurm.read_all(("squeue",))[0] == ",UTC0,%s\n"
