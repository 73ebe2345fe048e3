"""Commands run in the process of the tests; starting one takes longer than finding a mistake."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from yardmaster.cli.app import main

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs `yardmaster …` in a folder, within this process.

    How it ends and what it prints is what a shell gets; a traceback is an error of the test.
    """

    def run(*arguments: str, cwd: Path) -> CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["yardmaster", *arguments])
        capfd.readouterr()
        code = 0
        with warnings.catch_warnings():
            # The arguments are where a shell puts them, which Cyclopts takes for a mistake here.
            warnings.filterwarnings("ignore", message="Cyclopts application invoked without tokens")
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
        return CompletedProcess(arguments, code, *capfd.readouterr())

    return run
