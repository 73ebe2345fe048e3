"""The schedules that are being looked at, kept in memory: the last few, each made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yardmaster.dashboard.refusals import Refusal
from yardmaster.errors import YardmasterError
from yardmaster.experiments.saved_schedules import SavedSchedule, read_schedule

KEPT = 8
MOST_WAITING = 16
"""Requests at once for schedules that are not kept."""
MOST_MADE = 2
"""Of these, how many are at work: a short one need not wait for a long one."""

Key = tuple[Path, int, int]


class ScheduleShelf:
    """The last few schedules; a few at a time are read or simulated, each by one."""

    def __init__(self, kept: int = KEPT) -> None:
        self._most = kept
        self._kept: OrderedDict[Key, SavedSchedule] = OrderedDict()
        self._makers: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()
        """Held for moments only: what is kept is given at once, whatever is being made."""
        self._places = threading.BoundedSemaphore(MOST_WAITING)
        self._made_at_once = threading.BoundedSemaphore(MOST_MADE)

    def get(self, path: Path, simulation: int = 0) -> SavedSchedule:
        """Return the schedule of a run's simulation, counted from 0; a folder written anew counts.

        Raises:
            Refusal: if there is none, with the reason; or if too many are wanted at once.
        """
        try:
            key = (path, simulation, (path / "meta.json").stat().st_mtime_ns)
        except OSError:
            raise Refusal(404, "This run keeps no schedules.") from None
        kept = self._look(key)
        if kept is not None:
            return kept
        if not self._places.acquire(blocking=False):
            raise Refusal(429, "Too many schedules are wanted at once; wait for some of them.")
        try:
            with self._making(key):
                return self._look(key) or self._make(key)
        finally:
            self._places.release()

    def _look(self, key: Key) -> SavedSchedule | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    @contextmanager
    def _making(self, key: Key) -> Iterator[None]:
        """Let one at a time make a schedule; who comes later finds it kept."""
        with self._lock:
            maker = self._makers.setdefault(key, threading.Lock())
        try:
            with maker, self._made_at_once:
                yield
        finally:
            with self._lock:
                self._makers.pop(key, None)

    def _make(self, key: Key) -> SavedSchedule:
        path, simulation, _ = key
        try:
            found = read_schedule(path, simulation, runs_code=False)
        except YardmasterError as error:
            raise Refusal(422, str(error)) from None
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found
