"""What commands print and where: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
        yield _lines(things)


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate="")
        begun = time.monotonic()

        def report(label: str, done: int, total: int) -> None:
            rate = f"{done / max(time.monotonic() - begun, 1e-9):.1f}/s" if done else ""
            bar.update(task, description=label[:48], completed=done, total=total, rate=rate)

        yield report


def _lines(things: str) -> Progress:
    begun = last = time.monotonic()

    def report(label: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < LINE_EVERY_S or done == 0:
            return
        last = now
        rate = done / (now - begun)
        remark(
            f"{done}/{total} {things}, {rate:.1f}/s, {(total - done) / rate:.0f} s left: {label}"
        )

    return report
