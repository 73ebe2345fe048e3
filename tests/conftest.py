"""Shared by all tests: compile the core once before workers start, not once per worker."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says more about the machine than about the code.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# Two workers share two cores, and networks as small as those of tests are slower on several
# threads. It is read when torch is imported, here and in what tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_ON_GPU = Path(__file__).parent / "gpu"

_JOBS = """
import numpy as np
import yardmaster as ym
jobs = ym.Workload.of(submit_s=[0], duration_s=[1])
pool, mixed = ym.Cluster.pool(1), ym.Cluster.of("1x A100:4", "2x V100:2")
"""
_CORE = 'ym.simulate(jobs, pool, "fifo", compile_core="always")'
_CHOOSING = """
for name in {names}:
    ym.simulate(jobs, {cluster}, name, compile_core="always")
"""
_PICKING = """
from yardmaster.envs.batch import open_batch
from yardmaster.envs.task import TASKS
task = TASKS["default"].changed(jobs=4, episodes=1, cluster={cluster})
for threads in {threads}:
    batch = open_batch(task, size=130, seed=0, threads=threads)
    batch.step(batch.masks.argmax(axis=1))
    batch.close()
"""
_POLICIES = """
from yardmaster.engine.picking.compilation import compiled
from yardmaster.schedulers.learned.catalogue import shipped_path
from yardmaster.schedulers.learned.policy import load_policy
ym.simulate(jobs, pool, "policy:slowdown-clairvoyant", compile_core="always")
policy = load_policy(shipped_path("slowdown-clairvoyant"))
seen = np.zeros((1, policy.sight.layout().length), dtype=np.float32)
legal = np.ones((1, policy.sight.layout().actions), dtype=np.int8)
scores, scratch = np.zeros(legal.shape, dtype=np.float32), np.zeros(policy.scratch, np.float32)
compiled().score_many(policy.net, policy.weights, seen, legal, scores, scratch)
compiled().score_one(policy.net, policy.weights, seen[0], legal[0], scores[0], scratch)
"""
_CHOOSING_AT_ONCE = """
from yardmaster.envs.choosing.batch import open_choosing
from yardmaster.envs.choosing.task import CHOOSING_TASKS
task = CHOOSING_TASKS["regimes"].changed(regimes=["base-low-2"], episodes=1)
batch = open_choosing(task, size=70, threads=2)
batch.step(np.zeros(70, dtype=np.int64))
"""
_EVERYTHING = (
    _CORE,
    _PICKING.format(cluster="'2x V100:4'", threads="(1, 2)") + _POLICIES,
    _CHOOSING.format(cluster="mixed", names=("bandit:random",)),
    _CHOOSING.format(cluster="pool", names=("bandit:random", "meta:mixed")) + _CHOOSING_AT_ONCE,
    _PICKING.format(cluster="mixed", threads="(1,)"),
    'ym.simulate(jobs, mixed, "fifo", compile_core="always")',
)
"""What the tests need compiled, in an order in which two processors end at nearly the same time.

Most of the time goes into understanding the functions, once in a process: what calls the same ones
is compiled in one program. The core comes first, as choosing many at once needs it, too.
"""

_COMPILED = "yardmaster/compiled"

_LONG = (
    ("experiments/trainings/", "live/ray/", "envs/test_gpu_batch.py"),
    ("live/slurm/", "experiments/suite/", "agents/test_tensors.py", "properties/"),
)
"""Tests that take long: those that the first of two workers begins with, and the second."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fill the cache of machine code; quick where this version has been compiled before.

    One process of tests compiles what it meets. Two would compile the same at the same time, so
    everything is compiled before they start, each part once.
    """
    from yardmaster.engine.compilation import is_cached

    # Who starts the tests in a shell's background has Ctrl-C switched off, for every command that
    # they start, too; a signal that is handled here is not inherited as ignored.
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    if config.getoption("dist", "no") == "no":
        if not is_cached():
            _run(_CORE + _CHOOSING.format(cluster="pool", names=("bandit:random",)))
        return
    sources, cache = _sources(), getattr(config, "cache", None)
    if cache is not None and cache.get(_COMPILED, "") == sources and is_cached():
        return
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as several:
        list(several.map(_run, _EVERYTHING))
    if cache is not None:
        cache.set(_COMPILED, sources)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long tests first in either half, lest one worker waits for the other at the end.

    Workers begin with a half each, and who is done takes from the end of the other's.
    """
    here = Path(__file__).parent
    halves: tuple[list[pytest.Item], list[pytest.Item]] = ([], [])
    others = []
    for item in items:
        place = item.path.relative_to(here).as_posix() if here in item.path.parents else ""
        for half, names in zip(halves, _LONG, strict=True):
            if place.startswith(names):
                half.append(item)
                break
        else:
            others.append(item)
    middle = max(len(items) // 2 - len(halves[0]), 0)
    items[:] = [*halves[0], *others[:middle], *halves[1], *others[middle:]]


def _run(program: str) -> None:
    """Run a program that compiles."""
    subprocess.run([sys.executable, "-c", _JOBS + program], check=True)


def _sources() -> str:
    """Return a hash of what Numba goes by: where the sources are, how long and how old."""
    import yardmaster

    folder = Path(yardmaster.__file__).parent / "engine"
    found = sorted((str(path), path.stat()) for path in folder.rglob("*.py"))
    told = [(path, about.st_size, about.st_mtime_ns) for path, about in found]
    return hashlib.sha256(repr(told).encode()).hexdigest()


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
