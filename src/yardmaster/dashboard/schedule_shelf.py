"""The schedules that are being looked at, kept in memory: the last few, each made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from yardmaster.dashboard.refusals import Refusal
from yardmaster.errors import YardmasterError
from yardmaster.experiments.saved_schedules import SavedSchedule, read_schedule

KEPT = 8
MOST_WAITING = 16
"""Requests for schedules at once, of which one is at work."""

Key = tuple[Path, int, int]


class ScheduleShelf:
    """The last few schedules; one at a time is read or simulated."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._found: OrderedDict[Key, SavedSchedule] = OrderedDict()
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_WAITING)

    def get(self, path: Path, simulation: int = 0) -> SavedSchedule:
        """Return the schedule of a run's simulation, counted from 0; a folder written anew counts.

        Raises:
            Refusal: if there is none, with the reason; or if too many are wanted at once.
        """
        try:
            key = (path, simulation, (path / "meta.json").stat().st_mtime_ns)
        except OSError:
            raise Refusal(404, "This run keeps no schedules.") from None
        if not self._places.acquire(blocking=False):
            raise Refusal(429, "Too many schedules are wanted at once; wait for some of them.")
        try:
            with self._lock:
                return self._made(key)
        finally:
            self._places.release()

    def _made(self, key: Key) -> SavedSchedule:
        if key not in self._found:
            path, simulation, _ = key
            try:
                self._found[key] = read_schedule(path, simulation, runs_code=False)
            except YardmasterError as error:
                raise Refusal(422, str(error)) from None
            while len(self._found) > self._kept:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return self._found[key]
