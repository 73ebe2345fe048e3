"""Commands that the dashboard runs: tied to the server that started them."""

from __future__ import annotations

import os
import subprocess
import sys


def child(parent: int, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "yardmaster.cli.child", str(parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_child_is_the_command_line():
    """It prints what the command prints, and ends as it ends."""
    done = child(os.getpid(), "list", "disciplines", "--json")
    assert done.returncode == 0
    assert "conservative" in done.stdout
    assert child(os.getpid(), "simulate", "--scheduler=sjff").returncode == 2


def test_a_child_whose_parent_is_gone_does_nothing():
    """A server that died while its command was being started leaves no command behind."""
    done = child(1, "list", "disciplines")
    assert (done.returncode, done.stdout) == (0, "")
