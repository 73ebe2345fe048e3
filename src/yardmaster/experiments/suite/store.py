"""What is known already: one SQLite file that keeps every run by what it was made from.

Only the process that was started by the user writes, a batch of runs in one transaction. The file
is in write-ahead mode: a process that is killed at any moment leaves whole batches and nothing
else. What a run cost in seconds is kept too, but beside the numbers, since no second run would
give the same.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray

SCHEMA_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS columns (number INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, columns INTEGER NOT NULL, numbers BLOB NOT NULL, jct BLOB NOT NULL,
    seconds REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (key TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
"""
Quantiles = npt.NDArray[np.float32]


class Kept(NamedTuple):
    """One run as the store keeps it."""

    key: str
    """What it was made from, as a digest (see `cells`)."""
    numbers: FloatArray
    """One number for each of the names."""
    jct_quantiles_s: Quantiles
    """Completion times at evenly spaced shares of the jobs, from the least to the largest."""
    seconds: float
    """What it took to simulate and measure; NaN where loading the core is in it."""


class Store:
    """An open file of runs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def keys(self) -> frozenset[str]:
        """Return the keys of all runs kept."""
        return frozenset(key for (key,) in self._db.execute("SELECT key FROM runs"))

    def add(self, names: Sequence[str], runs: Iterable[Kept]) -> None:
        """Keep some runs, all of them or none; what failed before and is here now did not fail."""
        with self._db:
            columns = self._columns(names)
            rows = [
                (one.key, columns, _bytes(one.numbers, "<f8"), _bytes(one.jct_quantiles_s, "<f4"),
                 None if math.isnan(one.seconds) else one.seconds)
                for one in runs
            ]  # fmt: skip
            self._db.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)", rows)
            self._db.executemany("DELETE FROM failures WHERE key = ?", [row[:1] for row in rows])

    def add_failures(self, failures: Iterable[tuple[str, str]]) -> None:
        """Keep why some runs could not be made: (key, reason) of each."""
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?)", failures)

    def failures(self) -> dict[str, str]:
        """Return the reason of every run that failed and was not made since, by key."""
        return dict(self._db.execute("SELECT key, reason FROM failures"))

    def numbers(self, keys: Sequence[str], names: Sequence[str]) -> FloatArray:
        """Return (keys, names) the numbers of some runs.

        Raises:
            YardmasterError: if one of them is not kept, or has no such number.
        """
        found = np.empty((len(keys), len(names)))
        kept = self._all_columns()
        places: dict[int, list[int]] = {}
        for row, (columns, numbers) in enumerate(self._picked(keys, "columns, numbers")):
            if columns not in places:
                places[columns] = _places(kept[columns], names)
            found[row] = np.frombuffer(numbers, dtype="<f8")[places[columns]]
        return found

    def jct_quantiles_s(self, keys: Sequence[str]) -> Quantiles:
        """Return (keys, quantiles) completion times from the least to the largest, seconds."""
        rows = [np.frombuffer(jct, dtype="<f4") for (jct,) in self._picked(keys, "jct")]
        return np.array(rows, dtype=np.float32)

    def seconds(self, keys: Sequence[str]) -> FloatArray:
        """Return (keys,) what each run took, seconds; NaN where nobody knows."""
        taken = [seconds for (seconds,) in self._picked(keys, "seconds")]
        return np.array(taken, dtype=np.float64)  # None becomes NaN

    def _picked(self, keys: Sequence[str], what: str) -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {what} FROM runs WHERE key = ?"  # noqa: S608  (our own column names)
        for key in keys:
            row = self._db.execute(query, (key,)).fetchone()
            if row is None:
                raise YardmasterError(f"The store has no run {key[:12]}…; run the experiment.")
            yield row

    def _columns(self, names: Sequence[str]) -> int:
        """Return the number under which this list of names is kept."""
        text = json.dumps(list(names))
        self._db.execute("INSERT OR IGNORE INTO columns (names) VALUES (?)", (text,))
        query = "SELECT number FROM columns WHERE names = ?"
        return int(self._db.execute(query, (text,)).fetchone()[0])

    def _all_columns(self) -> dict[int, list[str]]:
        rows = self._db.execute("SELECT number, names FROM columns")
        return {number: json.loads(names) for number, names in rows}


@contextmanager
def opened(path: Path, *, read_only: bool = False) -> Iterator[Store]:
    """Open a store, and make it if it is not there and may be written.

    Raises:
        YardmasterError: if it is missing, damaged, or of another version.
    """
    if read_only and not path.is_file():
        raise YardmasterError(f"There is no {path}; run the experiment first.")
    try:
        # Transactions are ours to begin and end; nobody else writes, so nobody is waited for.
        connection = sqlite3.connect(path, timeout=10.0)
    except sqlite3.Error as error:
        raise YardmasterError(f"Cannot open {path}: {error}.") from None
    try:
        _prepare(connection, path)
        yield Store(connection)
    except sqlite3.DatabaseError as error:
        raise YardmasterError(
            f"{path} cannot be used: {error}. Move it away to make all runs again."
        ) from error
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit need not reach the disk at once: a killed process loses nothing, and after a power
    # failure the last batches are made again.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.executescript(_TABLES)
    with connection:
        connection.execute(
            "INSERT OR IGNORE INTO about VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),)
        )
    query = "SELECT value FROM about WHERE name = 'schema_version'"
    version = connection.execute(query).fetchone()[0]
    if version != str(SCHEMA_VERSION):
        raise YardmasterError(f"{path} is of version {version}; this is version {SCHEMA_VERSION}.")


def _bytes(values: npt.NDArray[np.floating], dtype: str) -> bytes:
    return np.ascontiguousarray(values, dtype=dtype).tobytes()


def _places(kept: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return where the wanted names stand in a list."""
    missing = [name for name in wanted if name not in kept]
    if missing:
        raise YardmasterError(f"The store has runs without {', '.join(missing)}.")
    return [kept.index(name) for name in wanted]
