"""Which factors are ours: every value we gave, written down before it is sent.

A job that carries a factor nobody finds here got it from a person, and is left alone. Several
values are kept per job because a controller that crashed comes back with an older one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.changes import Change, SetFactor, SetPrefer

NAME = "factors.json"
KEPT_VALUES = 8
FORGOTTEN_AFTER_S = 86_400.0
"""How long after a job was last seen its values are kept."""


class Ledger:
    """The factors we gave."""

    def __init__(self, folder: Path) -> None:
        """Read what earlier processes wrote.

        Raises:
            YardmasterError: if the file cannot be read; guessing whose factors are whose is worse.
        """
        self._path = folder / NAME
        self._jobs: dict[str, dict[str, Any]] = {}
        """Points and wishes we gave each job, latest last, and when it was last seen."""
        if self._path.exists():
            try:
                self._jobs = json.loads(self._path.read_text(encoding="utf-8"))["jobs"]
            except (ValueError, KeyError, TypeError) as error:
                raise YardmasterError(f"Cannot read {self._path}: {error}.") from None

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def jobs(self) -> frozenset[str]:
        """Jobs we ever gave a factor and have not forgotten."""
        return frozenset(self._jobs)

    def is_ours(self, job: str, points: int) -> bool:
        """Whether a job's factor is none, or one of ours."""
        return points == 0 or points in self._jobs.get(job, {}).get("points", ())

    def is_our_wish(self, job: str, feature: str) -> bool:
        """Whether a job prefers what we let it prefer."""
        return bool(feature) and feature in self._jobs.get(job, {}).get("wishes", ())

    @property
    def has_wishes(self) -> bool:
        """Whether we ever gave a preference."""
        return any("wishes" in entry for entry in self._jobs.values())

    def intend(self, changes: Sequence[Change]) -> None:
        """Write down what is about to be sent; on disk before this returns."""
        now = time.time()
        for change in changes:
            entry = self._jobs.setdefault(change.job, {})
            if isinstance(change, SetFactor):
                _remember(entry, "points", change.points)
            elif isinstance(change, SetPrefer):
                _remember(entry, "wishes", change.feature)
            entry["seen_unix_s"] = round(now)
        if changes:
            self._write()

    def seen(self, jobs: Iterable[str]) -> None:
        """Note who is still in the queue, and forget who has long been gone."""
        now = time.time()
        for job in jobs:
            if job in self._jobs:
                self._jobs[job]["seen_unix_s"] = round(now)
        gone = [
            job
            for job, entry in self._jobs.items()
            if now - entry.get("seen_unix_s", 0) > FORGOTTEN_AFTER_S
        ]
        for job in gone:
            del self._jobs[job]
        if gone:
            self._write()

    def _write(self) -> None:
        part = self._path.with_name(f".{NAME}.part")
        with part.open("w", encoding="utf-8") as file:
            json.dump({"version": 1, "jobs": self._jobs}, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)


def _remember(entry: dict[str, Any], name: str, value: int | str) -> None:
    """Put a value last among those of a job; the oldest go."""
    values = [one for one in entry.get(name, ()) if one != value]
    entry[name] = [*values, value][-KEPT_VALUES:]
