"""Timing contenders side by side, and what can only be measured in a fresh process."""

from __future__ import annotations

import gc
import math
import os
import platform
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from yardmaster.errors import ConformanceError
from yardmaster.model.workload import FloatArray

Contender = Callable[[], FloatArray]
"""Something that simulates and returns the start second of every job."""
Result = TypeVar("Result")

FEWEST_ROUNDS, MOST_ROUNDS = 5, 25
RACE_S = 1.0
"""Short races are run again until they have taken this long."""
LONG_RUN_S = 2.0
"""A rival whose first run takes longer is not run again: that one run is its time."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one contender took.

    Attributes:
        seconds: median of the runs; where it was stopped, what it had used by then.
        cpu_s: median processor time of the runs; well below `seconds`, it tells that others kept
            the machine busy.
        runs: how many runs were timed.
        was_stopped: whether patience ended first, so that `seconds` is a lower bound.
    """

    seconds: float
    cpu_s: float
    runs: int
    was_stopped: bool = False


class _Run(NamedTuple):
    """One run: real seconds, processor seconds, and its answer unless it was stopped."""

    seconds: float
    cpu_s: float
    starts: FloatArray | None


class _PatienceError(BaseException):
    """Raised inside a contender that takes too long; no contender may catch it by accident."""


def race(
    contenders: Mapping[str, Contender], *, patience_s: float, must_agree: bool = True
) -> dict[str, Timing]:
    """Time contenders turn by turn (A B C A B C …), so that noise of the machine hits all.

    Everybody runs once first: that warms caches up, and if they `must_agree` their start times
    must be equal. A rival (all but the first contender) that takes longer than `patience_s` is
    stopped, and stays unchecked.

    Raises:
        ConformanceError: if a contender's start times differ from the first contender's.
    """
    with nothing_to_collect():
        return _race(contenders, patience_s, must_agree=must_agree)


def _race(
    contenders: Mapping[str, Contender], patience_s: float, *, must_agree: bool
) -> dict[str, Timing]:
    ours = next(iter(contenders))
    first = {
        name: _timed(run, math.inf if name == ours else patience_s)
        for name, run in contenders.items()
    }
    answers = {name: run.starts for name, run in first.items() if run.starts is not None}
    if must_agree:
        _check_equal(answers)
    sprinters = [
        name
        for name, run in first.items()
        if name == ours or (run.seconds < LONG_RUN_S and name in answers)
    ]
    runs = {name: [run] for name, run in first.items() if name not in sprinters}
    for _ in range(_rounds(sum(first[name].seconds for name in sprinters))):
        for name in sprinters:
            runs.setdefault(name, []).append(_timed(contenders[name], math.inf))
    return {name: _summary(runs[name]) for name in contenders}


def _summary(runs: Sequence[_Run]) -> Timing:
    return Timing(
        seconds=statistics.median(run.seconds for run in runs),
        cpu_s=statistics.median(run.cpu_s for run in runs),
        runs=len(runs),
        was_stopped=any(run.starts is None for run in runs),
    )


@contextmanager
def nothing_to_collect() -> Iterator[None]:
    """Hide what exists from the garbage collector: walking over Numba takes long, at any moment."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _rounds(round_s: float) -> int:
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(RACE_S / max(round_s, 1e-6))))


def _check_equal(starts: Mapping[str, FloatArray]) -> None:
    (first, expected), *others = starts.items()
    for name, found in others:
        different = np.flatnonzero(found != expected)
        if len(different):
            row = different[0]
            raise ConformanceError(
                f"{name} and {first} disagree on {len(different)} of {len(expected)} start times"
                f" (first: row {row}, {found[row]} s and {expected[row]} s); nothing was timed."
            )


def _timed(run: Contender, patience_s: float) -> _Run:
    gc.collect()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    starts: FloatArray | None = None
    with suppress(_PatienceError), _patience(patience_s):
        starts = run()
    return _Run(time.perf_counter() - begin, time.process_time() - cpu_begin, starts)


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Stop what runs inside after `seconds`; only a program's main thread can be stopped."""
    if math.isinf(seconds) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise _PatienceError

    before = signal.signal(signal.SIGALRM, stop)
    # Again after a second: Python drops what is raised while it cleans up an object.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def machine() -> str:
    """Return what the numbers are measured on, and how busy it is, in one line."""
    from importlib.metadata import version

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.machine()
    return (
        f"{processor}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before;"
        f" Python {platform.python_version()}, NumPy {version('numpy')}, Numba {version('numba')}"
    )


def in_fresh_process(work: Callable[..., Result], *arguments: Any) -> Result:
    """Run `work` in a new interpreter, so that nothing of this process counts in."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def peak_memory_mib() -> float:
    """Return the most memory this process has held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would count what the parent process held: Linux keeps that across the start.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource
    import sys

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
