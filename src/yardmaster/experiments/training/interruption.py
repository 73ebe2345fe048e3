"""Stopping politely: the first Ctrl-C asks, the second insists."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asked_to_stop(
    announce: Callable[[str], None], *, work: str = "this update"
) -> Iterator[Callable[[], bool]]:
    """Yield a question: has somebody pressed Ctrl-C, or asked the process to end?

    A second Ctrl-C interrupts at once. Signals reach only a program's main thread; in others, the
    answer is always no.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        announce(f"{name}: finishing {work} (once more to stop at once).")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
