"""What commands print and where: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yardmaster.experiments.compare import Progress

LINE_EVERY_S = 5.0
"""How often progress is reported where there is no terminal to draw a bar on."""


def say(text: str) -> None:
    """Print a result."""
    sys.stdout.write(text.rstrip("\n") + "\n")


def remark(text: str) -> None:
    """Print something that is not a result."""
    sys.stderr.write(text.rstrip("\n") + "\n")
    sys.stderr.flush()


def complain(text: str) -> None:
    """Print what went wrong."""
    remark(f"Error: {text}")


def say_json(value: Any) -> None:
    """Print a result for programs; what has no value is null."""
    say(json.dumps(_finite(value), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def width() -> int:
    """Return how wide a table may be: the terminal's width, 120 where there is none."""
    if not sys.stdout.isatty():
        return 120
    return max(shutil.get_terminal_size((120, 40)).columns, 60)


def colours() -> bool:
    """Whether results may be coloured."""
    import os

    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


@dataclass(slots=True)
class _Pace:
    """How fast things get done; a step in which something was compiled says nothing about it."""

    last_s: float
    done: int = 0
    counted: int = 0
    spent_s: float = 0.0
    is_spoilt: bool = False

    def words(self, done: int, total: int) -> str:
        """Return rate and time left as of now; nothing while they are unknown."""
        now_s = time.monotonic()
        if not self.is_spoilt:
            self.spent_s += now_s - self.last_s
            self.counted += done - self.done
        if done > self.done:
            self.is_spoilt = False
        self.last_s, self.done = now_s, done
        if self.counted <= 0:
            return ""
        rate = self.counted / max(self.spent_s, 1e-9)
        return f"{rate:.1f}/s, {(total - done) / rate:.0f} s left"


_paces: list[_Pace] = []
"""Paces of the work that is going on."""


@contextmanager
def _pace() -> Iterator[_Pace]:
    pace = _Pace(time.monotonic())
    _paces.append(pace)
    try:
        yield pace
    finally:
        _paces.remove(pace)


def announce(text: str) -> None:
    """Print that something is compiled first, and leave that time out of rates."""
    remark(text)
    for pace in _paces:
        pace.is_spoilt = True


@contextmanager
def progress(*, quiet: bool, things: str = "simulations") -> Iterator[Progress | None]:
    """Show how far long work is: a bar on a terminal, a line now and then elsewhere.

    Args:
        quiet: show nothing.
        things: what is counted.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        with _lines(things) as report:
            yield report


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar, _pace() as pace:
        task = bar.add_task("", total=None, pace="")

        def report(label: str, done: int, total: int) -> None:
            words = pace.words(done, total)
            bar.update(task, description=label[:48], completed=done, total=total, pace=words)

        yield report


@contextmanager
def _lines(things: str) -> Iterator[Progress]:
    last = time.monotonic()

    with _pace() as pace:

        def report(label: str, done: int, total: int) -> None:
            nonlocal last
            words, now = pace.words(done, total), time.monotonic()
            if now - last < LINE_EVERY_S or done == 0:
                return
            last = now
            remark(", ".join(filter(None, [f"{done}/{total} {things}", words])) + f": {label}")

        yield report
