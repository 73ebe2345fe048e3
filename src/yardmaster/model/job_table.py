"""Checking a job table: columns as people give them in, canonical columns or every mistake out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.columns import COLUMN_NAMES, LABEL_COLUMNS, BoolArray, IntArray, Labels
from yardmaster.names import did_you_mean

MISTAKES_SHOWN = 20
"""How many mistakes of a bad job table are spelled out before the rest are only counted."""

LARGEST_TIME_S = 1e15
"""Times beyond this many seconds (thirty million years) are mistakes, not schedules."""

_REQUIRED = ("submit_s", "duration_s")
_INTEGERS = {"gpus": 1, "milli_gpu": 1000, "max_gpus_per_node": 0, "min_gpus": 0, "max_gpus": 0}
_FLOATS = {
    "submit_s": 0.0,
    "duration_s": 0.0,
    "estimate_s": np.nan,
    "gpu_memory_gib": np.nan,
    "cpus": np.nan,
    "memory_gib": np.nan,
    "priority": 0.0,
    "deadline_s": np.nan,
    "recorded_wait_s": np.nan,
}
_NAME_TYPES = (str, int, float, np.generic, type(None))


def checked(columns: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return all canonical columns as arrays, missing ones filled with their defaults.

    Args:
        columns: what was given: lists, arrays or `Labels`, in any mixture; None means missing.
        name: the workload's name, for messages.

    Raises:
        InvalidWorkloadError: with every mistake found, each naming its column and row.
    """
    mistakes = [
        f"unknown column {key!r}.{did_you_mean(key, COLUMN_NAMES)}"
        for key in columns
        if key not in COLUMN_NAMES
    ]
    mistakes += [f"column {key!r} is required" for key in _REQUIRED if columns.get(key) is None]
    length = next((rows for key in _REQUIRED if (rows := _rows(columns.get(key))) is not None), 0)
    table: dict[str, Any] = {}
    for key in COLUMN_NAMES:
        table[key] = _default(key, length)
        given = columns.get(key)
        if given is not None:
            wrong = _shape_mistakes(key, given, length)
            if not wrong:
                table[key], wrong = _converted(key, given)
            mistakes += wrong
    if not mistakes and length == 0:
        mistakes = ["the workload is empty: it has no jobs"]
    mistakes += _broken_rules(table)
    if mistakes:
        raise invalid(name, mistakes)
    return table


def invalid(name: str, mistakes: Sequence[str]) -> InvalidWorkloadError:
    """Build the error that lists the mistakes, the first of them in full."""
    shown = [f"  - {mistake}" for mistake in mistakes[:MISTAKES_SHOWN]]
    if len(mistakes) > MISTAKES_SHOWN:
        shown.append(f"  … and {len(mistakes) - MISTAKES_SHOWN} more")
    plural = "mistake" if len(mistakes) == 1 else "mistakes"
    return InvalidWorkloadError(f"{name}: {len(mistakes)} {plural}\n" + "\n".join(shown))


def _default(key: str, length: int) -> Any:
    if key == "id":
        return np.arange(length, dtype=np.int64)
    if key in _INTEGERS:
        return np.full(length, _INTEGERS[key], dtype=np.int64)
    if key in _FLOATS:
        return np.full(length, _FLOATS[key], dtype=np.float64)
    return Labels.missing(length)


def _rows(value: object) -> int | None:
    """Return how many rows a column has, None if the value is no column at all."""
    if isinstance(value, str | bytes | Mapping | AbstractSet) or getattr(value, "ndim", 1) != 1:
        return None
    return len(value) if hasattr(value, "__len__") else None


def _shape_mistakes(key: str, value: object, length: int) -> list[str]:
    rows = _rows(value)
    if rows is None:
        return [f"column {key!r} must be a list of values, one per job"]
    if rows != length:
        return [f"column {key!r} has {rows} rows, the workload has {length} jobs"]
    return []


def _converted(key: str, value: Any) -> tuple[Any, list[str]]:
    """Read one column; cells that cannot be read get the default and a mistake with their row."""
    if key in LABEL_COLUMNS:
        return _labels(key, value)
    if key == "id":
        return _ids(value)
    if key in _INTEGERS and getattr(getattr(value, "dtype", None), "kind", "") == "i":
        return np.array(value, dtype=np.int64), []
    numbers, mistakes = _numbers(key, value)
    if key in _FLOATS:
        return numbers, mistakes
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53)
    mistakes += [
        f"row {row}: {key} is {_shown(value[int(row)])}, not a whole number below 2^53"
        for row in np.flatnonzero(~whole)
    ]
    return np.where(whole, numbers, _INTEGERS[key]).astype(np.int64), mistakes


def _labels(key: str, value: Any) -> tuple[Labels, list[str]]:
    if isinstance(value, Labels):
        bad = np.flatnonzero((value.codes < -1) | (value.codes >= len(value.names)))
        mistakes = [f"row {row}: {key} has code {value.codes[row]}, no name" for row in bad]
        return (Labels.missing(len(value)) if mistakes else value), mistakes
    foreign = {kind for kind in set(map(type, value)) if not issubclass(kind, _NAME_TYPES)}
    mistakes = [
        f"row {row}: {key} is {cell!r}, not a name"
        for row, cell in enumerate(value if foreign else [])
        if type(cell) in foreign
    ]
    return (Labels.missing(len(value)) if mistakes else Labels.of(value)), mistakes


def _ids(value: Any) -> tuple[npt.NDArray[Any], list[str]]:
    ids = np.asarray(value)
    if ids.dtype.kind == "i":
        return ids.astype(np.int64), []
    if ids.dtype.kind == "U":
        return ids.copy(), []
    cells = list(value)
    missing = [cell is None or (isinstance(cell, float) and math.isnan(cell)) for cell in cells]
    mistakes = [f"row {row}: id is missing" for row, is_missing in enumerate(missing) if is_missing]
    # A missing id must not look like a second mistake, two equal ids.
    names = [f"missing {row}" if missing[row] else str(cell) for row, cell in enumerate(cells)]
    return np.asarray(names, dtype=np.str_), mistakes


def _numbers(key: str, value: Any) -> tuple[npt.NDArray[np.float64], list[str]]:
    try:
        numbers = np.asarray(value, dtype=np.float64)
        if numbers.ndim == 1:
            return numbers + 0.0, []  # a copy of our own, in which −0 is 0
    except (TypeError, ValueError):
        pass  # some cell is no number: find out which
    mistakes = []
    default = {**_INTEGERS, **_FLOATS}[key]
    numbers = np.full(len(value), default, dtype=np.float64)
    for row, cell in enumerate(value):
        try:
            numbers[row] = math.nan if cell is None else float(cell)
        except (TypeError, ValueError):
            mistakes.append(f"row {row}: {key} is {cell!r}, not a number")
    return numbers, mistakes


def _broken_rules(table: Mapping[str, Any]) -> list[str]:
    """List everything that makes no sense in a converted table, each with its row and value."""
    return [
        f"row {row} (id {table['id'][row]}): {key} {complaint}, got {table[key][row]}"
        for key, complaint, bad in _rules(table)
        for row in np.flatnonzero(bad)
    ]


def _rules(table: Mapping[str, Any]) -> Iterator[tuple[str, str, BoolArray]]:
    """Yield each rule: the column, the complaint, and the rows that break it."""
    for key in _REQUIRED:
        value = table[key]
        yield key, "must be a finite number", ~np.isfinite(value)
        yield key, "must not be negative", np.isfinite(value) & (value < 0)
        too_large = np.isfinite(value) & (value > LARGEST_TIME_S)
        yield key, f"must be at most {LARGEST_TIME_S:.0e} s", too_large
    estimate = table["estimate_s"]
    is_estimate = np.isnan(estimate) | ((estimate > 0) & (estimate <= LARGEST_TIME_S))
    yield "estimate_s", "must be positive and finite, or missing", ~is_estimate
    gpus: IntArray = table["gpus"]
    yield "gpus", "must be at least 1", gpus < 1
    milli: IntArray = table["milli_gpu"]
    yield "milli_gpu", "must be 1…1000", (milli < 1) | (milli > 1000)
    yield "milli_gpu", "below 1000 needs gpus = 1", (milli >= 1) & (milli < 1000) & (gpus > 1)
    yield "max_gpus_per_node", "must not be negative", table["max_gpus_per_node"] < 0
    for key, is_wrong in (("min_gpus", np.greater), ("max_gpus", np.less)):
        bound: IntArray = table[key]
        yield key, "must not be negative", bound < 0
        side = "more" if key == "min_gpus" else "less"
        beyond = (gpus >= 1) & (bound > 0) & is_wrong(bound, gpus)
        yield key, f"must not be {side} than gpus", beyond
    for key in ("cpus", "memory_gib", "gpu_memory_gib"):
        yield key, "must not be negative or infinite", (table[key] < 0) | np.isinf(table[key])
    yield "priority", "must be a finite number", ~np.isfinite(table["priority"])
    yield "deadline_s", "must be finite, or missing", np.isinf(table["deadline_s"])
    waited = table["recorded_wait_s"]
    yield "recorded_wait_s", "must not be negative or infinite", (waited < 0) | np.isinf(waited)
    yield "id", "is not unique", _repeated(table["id"])


def _repeated(ids: npt.NDArray[Any]) -> BoolArray:
    """Return the rows whose id another row has too."""
    if np.all(ids[1:] > ids[:-1]):  # numbered as they come: nearly every table
        return np.zeros(len(ids), dtype=np.bool_)
    in_order = np.sort(ids)
    return np.isin(ids, in_order[1:][in_order[1:] == in_order[:-1]])


def _shown(value: object) -> str:
    """Return a value as the user wrote it: NumPy's numbers without their type."""
    return repr(value.item() if isinstance(value, np.generic) else value)
