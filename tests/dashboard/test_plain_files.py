"""Files of runs that come from others: links and pipes are not opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yardmaster.dashboard.plain_files import read_plain, trap_in
from yardmaster.dashboard.tails import Tail


def test_only_ordinary_files_are_read(tmp_path: Path):
    """A link, a pipe that nobody writes to, a device and a folder are refused at once."""
    (tmp_path / "file").write_text("said")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    assert read_plain(tmp_path / "file") == "said"
    for name in ("link", "pipe", "missing", "."):
        with pytest.raises(OSError, match=r"."):
            read_plain(tmp_path / name)
        assert Tail(tmp_path / name).read_all() == []
    with pytest.raises(OSError, match="too large"):
        read_plain(tmp_path / "file", most=3)


def test_traps_are_found_in_a_run_and_its_folders(tmp_path: Path):
    """Links that stay inside are none; links out and pipes are named."""
    run = tmp_path / "runs" / "run"
    (run / "workloads").mkdir(parents=True)
    (tmp_path / "runs" / "other").mkdir()
    (run / "inside").symlink_to(tmp_path / "runs" / "other")
    assert trap_in(run, tmp_path / "runs") == ""
    (run / "workloads" / "0.parquet").symlink_to("/etc/hostname")
    assert trap_in(run, tmp_path / "runs") == "workloads/0.parquet"
    (run / "workloads" / "0.parquet").unlink()
    os.mkfifo(run / "summary.json")
    assert trap_in(run, tmp_path / "runs") == "summary.json"
