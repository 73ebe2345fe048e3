"""Shared by all tests: compile the core once before workers start, not once per worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says more about the machine than about the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

_ON_GPU = Path(__file__).parent / "gpu"

_COMPILE = """
import yardmaster as ym
jobs = ym.Workload.of(submit_s=[0], duration_s=[1])
ym.simulate(jobs, ym.Cluster.pool(1), "fifo", compile_core="always")
ym.simulate(jobs, ym.Cluster.pool(1), "bandit:random")
"""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fill the cache of machine code; quick where this version has been compiled before."""
    from yardmaster.engine.compilation import is_cached

    # Who starts the tests in a shell's background has Ctrl-C switched off, for every command that
    # they start, too; a signal that is handled here is not inherited as ignored.
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    is_worker = hasattr(session.config, "workerinput")
    if not is_worker and not session.config.option.collectonly and not is_cached():
        subprocess.run([sys.executable, "-c", _COMPILE], check=True)


@pytest.fixture
def passes_on_played_gpu() -> Callable[[str], bool]:
    """Return whether a file of `tests/gpu` passes where Numba plays a GPU.

    Numba must be told before it is imported, so each runs in a process of its own.
    """

    def passes(name: str) -> bool:
        options = ("-q", "-p", "no:xdist", "-p", "no:cacheprovider", f"--confcutdir={_ON_GPU}")
        command = [sys.executable, "-m", "pytest", *options, str(_ON_GPU / name)]
        environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
        return subprocess.run(command, env=environment, check=False).returncode == 0

    return passes
