"""The desk: what every part of the dashboard shares."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from yardmaster.dashboard.bench import Workbench
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.runs import RunsFolder
from yardmaster.dashboard.schedule_shelf import ScheduleShelf

MOST_STREAMS = 32
"""Event streams open at once; each holds a connection for as long as a page is open."""


class Streams:
    """Counts the event streams, and tells all of them when the server stops."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self._most = most
        self._open = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()

    @property
    def is_closing(self) -> bool:
        """Whether the server is about to stop: streams end within a moment."""
        return self._closing.is_set()

    def close(self) -> None:
        """Ask every stream to end."""
        self._closing.set()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Hold a place for a stream.

        Raises:
            Refusal: if too many are open.
        """
        with self._lock:
            if self._open >= self._most:
                raise Refusal(429, f"{self._most} event streams are open; close a page first.")
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1


@dataclass(frozen=True, slots=True)
class Desk:
    """What routes work with.

    Attributes:
        runs: the folder of runs, the only place that is read.
        token: the secret that requests which start or stop work must repeat, and, on a server
            that others can reach, every request.
        is_loopback: whether only this machine can reach the server.
        streams: the open event streams.
        bench: the commands that pages have started.
    """

    runs: RunsFolder
    token: str
    is_loopback: bool = True
    streams: Streams = field(default_factory=Streams)
    schedules: ScheduleShelf = field(default_factory=ScheduleShelf)
    bench: Workbench = field(default_factory=Workbench)
