"""Snapshots from a file: who runs since when and who waits, as an operator would export it.

A CSV with the columns of a job table. `start_s` (or `elapsed_s`, seconds it has run) says that a
job runs; where both are empty it waits. A column `duration_s` is not read: nobody knows it yet.
Where jobs run is not in the file, so they count as running on the GPUs durations were measured on.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.experiments.snapshot import Snapshot
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import COLUMN_NAMES, LABEL_COLUMNS, BoolArray, FloatArray, Labels
from yardmaster.model.workload import Workload
from yardmaster.names import did_you_mean
from yardmaster.workloads.files import read_bytes, stem

RUNNING_COLUMNS = ("start_s", "elapsed_s")
_EMPTY = {"gpus": 1.0, "milli_gpu": 1000.0, "max_gpus_per_node": 0.0, "min_gpus": 0.0,
          "max_gpus": 0.0, "priority": 0.0}  # fmt: skip


def read_snapshot(
    path: Path,
    cluster: Cluster,
    scheduler: str,
    *,
    now_s: float | None = None,
    history: Workload | None = None,
) -> Snapshot:
    """Read who runs and who waits.

    Args:
        path: the CSV file.
        cluster: the machines.
        scheduler: who decides.
        now_s: the moment; by default the latest submission or start in the file.
        history: jobs that have ended, on the same clock, to learn run times and arrivals from.

    Raises:
        InvalidWorkloadError: naming the file, the row and the column of a mistake.
    """
    rows = _rows(path)
    columns = {
        name: _column(path, rows, name)
        for name in (*COLUMN_NAMES, *RUNNING_COLUMNS)
        if name in rows[0] and name != "duration_s"
    }
    if "submit_s" not in columns:
        raise InvalidWorkloadError(f"{path}: column 'submit_s' is required.")
    start_s, elapsed_s = (columns.pop(name, np.full(len(rows), np.nan)) for name in RUNNING_COLUMNS)
    if now_s is None:
        now_s = float(np.nanmax(np.concatenate([columns["submit_s"], start_s])))
    since_s = np.where(np.isnan(start_s), now_s - elapsed_s, start_s)
    _check(path, columns["submit_s"], since_s, now_s)
    order = np.argsort(columns["submit_s"], kind="stable")
    held_s = np.nan_to_num(now_s - since_s)
    jobs = Workload.of(name=stem(path), duration_s=held_s, **columns)
    jobs, is_past, since_s = _joined(jobs, since_s[order], history, now_s)
    nobody = np.zeros((0, 3), dtype=np.int64)
    speed = np.ones(len(jobs))
    return Snapshot(now_s, jobs, is_past, since_s, speed, nobody, cluster, scheduler)


def _rows(path: Path) -> list[dict[str, str]]:
    text = read_bytes(path).decode("utf-8", "replace").removeprefix("\ufeff")
    reader = csv.DictReader(text.splitlines())
    rows = list(reader)
    if not rows:
        raise InvalidWorkloadError(f"{path}: there are no jobs in it.")
    known = (*COLUMN_NAMES, *RUNNING_COLUMNS)
    for name in reader.fieldnames or ():
        if name not in known:
            raise InvalidWorkloadError(
                f"{path}: unknown column {name!r}.{did_you_mean(name, known)}"
            )
    return rows


def _column(path: Path, rows: Sequence[Mapping[str, str | None]], name: str) -> Any:
    cells = [(row[name] or "").strip() for row in rows]
    if name in LABEL_COLUMNS:
        return Labels.of(cells)
    if name == "id":
        return np.array(cells, dtype=np.str_)
    numbers = []
    for row, cell in enumerate(cells):
        try:
            numbers.append(float(cell) if cell else _EMPTY.get(name, math.nan))
        except ValueError:
            raise InvalidWorkloadError(
                f"{path}: row {row}: {name} is {cell!r}, not a number."
            ) from None
    return np.array(numbers)


def _check(path: Path, submit_s: FloatArray, since_s: FloatArray, now_s: float) -> None:
    late = np.flatnonzero((submit_s > now_s) | (since_s > now_s))
    if len(late):
        raise InvalidWorkloadError(
            f"{path}: row {late[0]}: it is submitted or started after now, second {now_s:g}."
        )
    early = np.flatnonzero(since_s < submit_s)
    if len(early):
        raise InvalidWorkloadError(f"{path}: row {early[0]}: it starts before its submission.")


def _joined(
    jobs: Workload, since_s: FloatArray, history: Workload | None, now_s: float
) -> tuple[Workload, BoolArray, FloatArray]:
    """Set the jobs behind those of the past: one table by submit time, who has ended, who runs."""
    if history is None:
        return jobs, np.zeros(len(jobs), dtype=np.bool_), since_s
    old = history.select(np.flatnonzero(history.submit_s + history.duration_s <= now_s))
    columns = {name: _both(old, jobs, name) for name in COLUMN_NAMES}
    order = np.argsort(columns["submit_s"], kind="stable")
    is_past = (np.arange(len(old) + len(jobs)) < len(old))[order]
    since_s = np.append(np.full(len(old), np.nan), since_s)[order]
    return Workload.of(name=jobs.name, **columns), is_past, since_s


def _both(old: Workload, new: Workload, name: str) -> Any:
    if name == "id":
        past = [f"past {job}" for job in old.id]
        return np.array([*past, *map(str, new.id)], dtype=np.str_)
    first, second = getattr(old, name), getattr(new, name)
    if isinstance(first, Labels):
        return Labels.of([*first.values(), *second.values()])
    return np.concatenate([first, second])
