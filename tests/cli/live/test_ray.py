"""`yardmaster live ray`, as a user runs it without a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'yardmaster[ray]'")


def test_no_cluster_is_said_in_one_sentence(tmp_path: Path):
    """Exit code 2 and the address that nobody answers at, without a traceback; nothing is left."""
    (tmp_path / "jobs.toml").write_text('[[job]]\ncommand = "true"\n')
    ended = subprocess.run(
        [sys.executable, "-m", "yardmaster", "live", "ray", "jobs.toml", "--out", "run"],
        env=os.environ | {"RAY_TMPDIR": str(tmp_path), "RAY_ADDRESS": ""},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "Cannot connect to Ray at auto" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "run/live.json").exists()
