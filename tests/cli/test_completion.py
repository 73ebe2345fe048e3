"""Completion, as a real shell does it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest


@cache
def script(shell: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


BASH = shutil.which("bash") or ""


@pytest.mark.skipif(not BASH, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [("sim", "simulate"), ("workload desc", "describe"), ("simulate --sched", "--scheduler")],
)
def test_bash_completes_commands_and_options(typed: str, offered: str, tmp_path: Path):
    """What was typed halfway is completed: a command, a subcommand, an option."""
    (tmp_path / "completion").write_text(script("bash"), "utf-8")
    words = ["yardmaster", *typed.split()]
    asked = (
        f"source {tmp_path}/completion\n"
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
        f"COMP_LINE='{' '.join(words)}'; COMP_POINT=${{#COMP_LINE}}\n"
        "$(complete -p yardmaster | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    done = subprocess.run([BASH, "-c", asked], capture_output=True, text=True, check=False)
    assert offered in done.stdout.split(), done.stderr


def test_other_shells_have_scripts_too():
    """Zsh and fish get scripts that name the commands."""
    assert all("simulate" in script(shell) for shell in ("zsh", "fish"))
