"""Shared by all tests: compile the core once before workers start, not once per worker."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COMPILE = """
import yardmaster as ym
jobs = ym.Workload.of(submit_s=[0], duration_s=[1])
ym.simulate(jobs, ym.Cluster.pool(1), "fifo", compile_core="always")
ym.simulate(jobs, ym.Cluster.pool(1), "bandit:random")
"""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fill the cache of machine code; quick where this version has been compiled before."""
    from yardmaster.engine.compilation import is_cached

    is_worker = hasattr(session.config, "workerinput")
    if not is_worker and not session.config.option.collectonly and not is_cached():
        subprocess.run([sys.executable, "-c", _COMPILE], check=True)
