"""How far an experiment is, looked at from outside while another process works on it.

Nothing is written and no lock is taken: who holds the folder's lock is read from the list that the
system keeps. An experiment that is not under way and has its table is complete.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.cells import cells_of
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.training.folder import RunFolder
from yardmaster.experiments.trainings.plan import DOCUMENT, ENDED, FOLDER, status_of
from yardmaster.model.documents import read_toml

LOCKS = Path("/proc/locks")
MOST_FAILURES = 20
"""Failures that are named; all are counted."""


@dataclass(frozen=True, slots=True)
class State:
    """How far an experiment is.

    Attributes:
        total: runs it consists of; 0 while that is not known.
        done: runs made.
        failed: runs that could not be made.
        failures: the first of them, and why.
        is_running: whether a process is at work in the folder.
        is_complete: whether the table is written.
        trainings: trainings of the study, where there are any.
        trained: trainings that have ended.
    """

    total: int
    done: int
    failed: int
    failures: tuple[str, ...]
    is_running: bool
    is_complete: bool
    trainings: int = 0
    trained: int = 0

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


class Watch:
    """Looks at one folder again and again; what does not change is read once."""

    def __init__(self, folder: Path) -> None:
        self._place = SuiteFolder(folder)
        self._keys: dict[str, str] = {}
        self._document = 0

    def look(self) -> State:
        """Return how far the experiment is now."""
        place = self._place
        running = is_held(place.path / ".lock")
        trainings, trained = _trainings(place.path)
        if not place.document.is_file():
            whole = (place.path / "lookahead.parquet").is_file()
            return State(0, 0, 0, (), running, whole, trainings, trained)
        if place.results.is_file() and not running:
            lost = _lost(place.failures)
            made = _rows(place.results)
            return State(made + len(lost), made, len(lost), lost[:MOST_FAILURES], running,
                         is_complete=True, trainings=trainings, trained=trained)  # fmt: skip
        self._read_document()
        made, lost = self._count()
        return State(len(self._keys), made, len(lost), lost[:MOST_FAILURES], running,
                     is_complete=False, trainings=trainings, trained=trained)  # fmt: skip

    def _read_document(self) -> None:
        changed = self._place.document.stat().st_mtime_ns
        if changed != self._document:
            self._keys = {cell.key: str(cell) for cell in cells_of(self._place.suite())}
            self._document = changed

    def _count(self) -> tuple[int, tuple[str, ...]]:
        """Return how many runs were made, and those that failed."""
        if not self._place.store.is_file():
            return 0, ()
        try:
            link = sqlite3.connect(_as_it_is(self._place.store), uri=True)
            try:
                made = {key for (key,) in link.execute("SELECT key FROM runs")}
                lost = dict(link.execute("SELECT key, reason FROM failures"))
            finally:
                link.close()
        except sqlite3.Error:
            return 0, ()  # it is just being made
        failed = [f"{name}: {lost[key]}" for key, name in self._keys.items() if key in lost]
        return len(made & self._keys.keys()), tuple(failed)


def _as_it_is(store: Path) -> str:
    """Return how to open the store so that whoever looks on neither changes nor leaves anything."""
    address = f"{store.resolve().as_uri()}?mode=ro"
    is_at_work = store.with_name(f"{store.name}-wal").is_file()
    return address if is_at_work else f"{address}&immutable=1"


def is_held(lock: Path) -> bool:
    """Whether a process holds a lock on this file, without touching the lock."""
    if not lock.is_file() or not LOCKS.is_file():
        return False
    number = lock.stat().st_ino
    return any(
        line.split()[1] == "FLOCK" and line.split()[5].rpartition(":")[2] == str(number)
        for line in LOCKS.read_text(encoding="ascii").splitlines()
        if len(line.split()) > 5
    )


def _trainings(folder: Path) -> tuple[int, int]:
    """Return how many trainings a study consists of, and how many have ended."""
    document = folder / DOCUMENT
    if not document.is_file():
        return 0, 0
    names = list(read_toml(document))
    ended = [name for name in names if status_of(RunFolder(folder / FOLDER / name)) in ENDED]
    return len(names), len(ended)


def _lost(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return tuple(f"{one['run']}: {one['reason']}" for one in found)
    except (ValueError, KeyError, TypeError):
        raise YardmasterError(f"{path} is damaged; run the experiment again.") from None


def _rows(results: Path) -> int:
    import polars as pl

    try:
        return int(pl.scan_parquet(results).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        raise YardmasterError(f"{results} is damaged; run the experiment again.") from None
