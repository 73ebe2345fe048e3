"""Which jobs we requeued, when and for whom: on disk before a job is stopped.

`stops.json` bounds what is done (per hour, per job, once for each waiting job) across restarts, and
lets `live why` tell the owner. It also keeps the jobs that a person took in hand (held, pinned,
given a factor) while they waited: what they were given is not seen any more while they run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from yardmaster.errors import YardmasterError

NAME = "stops.json"
HOUR_S = 3600.0
KEPT_S = 14 * 86_400.0
"""How long a stop is remembered, seconds."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A job that was requeued.

    Attributes:
        job: the job.
        waiting: the job it made room for.
        unix_s: when.
        ran_s: seconds it had run: lost, unless it saves its work.
    """

    job: str
    waiting: str
    unix_s: float
    ran_s: float


class Stops:
    """The jobs we requeued, and those that are in somebody's hands."""

    def __init__(self, folder: Path) -> None:
        """Read what earlier processes wrote.

        Raises:
            YardmasterError: if the file cannot be read; without it no bound would hold.
        """
        self._path = folder / NAME
        self._stopped: list[Stopped] = []
        self._in_hands: set[str] = set()
        if self._path.exists():
            try:
                found = json.loads(self._path.read_text(encoding="utf-8"))
                self._stopped = [Stopped(**one) for one in found["stopped"]]
                self._in_hands = set(found["in_hands"])
            except (ValueError, KeyError, TypeError) as error:
                raise YardmasterError(f"Cannot read {self._path}: {error}.") from None

    def of(self, job: str) -> list[Stopped]:
        """Return when this job was stopped, latest last."""
        return [one for one in self._stopped if one.job == job]

    def made_for(self, waiting: str) -> list[Stopped]:
        """Return what was stopped for this waiting job."""
        return [one for one in self._stopped if one.waiting == waiting]

    def within(self, seconds: float) -> int:
        """Return how many jobs were stopped in the last seconds."""
        since = time.time() - seconds
        return sum(one.unix_s > since for one in self._stopped)

    def is_in_hands(self, job: str) -> bool:
        """Whether somebody took this job in hand while it waited."""
        return job in self._in_hands

    def see(self, in_hands: Iterable[str], present: Iterable[str]) -> None:
        """Note the jobs that are in somebody's hands now, and forget those that are gone."""
        after = (self._in_hands | set(in_hands)) & set(present)
        if after != self._in_hands:
            self._in_hands = after
            self._write()

    def intend(self, stopped: Iterable[Stopped]) -> None:
        """Write down who is about to be stopped; on disk before this returns."""
        oldest = time.time() - KEPT_S
        self._stopped = [one for one in self._stopped if one.unix_s > oldest] + list(stopped)
        self._write()

    def _write(self) -> None:
        part = self._path.with_name(f".{NAME}.part")
        record = {
            "version": 1,
            "stopped": [asdict(one) for one in self._stopped],
            "in_hands": sorted(self._in_hands),
        }
        with part.open("w", encoding="utf-8") as file:
            json.dump(record, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)
