"""A workload: the jobs, as one columnar table.

Each job is one request for a gang of GPUs. Columns are NumPy arrays of equal length, units are in
their names, and what "missing" means is defined for each (see `COLUMNS`). Rows are kept sorted by
submit time; rows submitted at the same second keep the order in which they were given, which is the
order in which the engine breaks ties.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.model.columns import (
    COLUMN_NAMES,
    COLUMNS,
    LABEL_COLUMNS,
    BoolArray,
    Column,
    FloatArray,
    IntArray,
    Labels,
)
from yardmaster.model.job_table import LARGEST_TIME_S, MISTAKES_SHOWN, checked, invalid

__all__ = [
    "COLUMNS",
    "COLUMN_NAMES",
    "LABEL_COLUMNS",
    "LARGEST_TIME_S",
    "MISTAKES_SHOWN",
    "BoolArray",
    "Column",
    "FloatArray",
    "IntArray",
    "Labels",
    "Workload",
]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Workload:
    """Jobs sorted by submit time, then by the row in which they were given.

    Build one with `Workload.of(submit_s=…, duration_s=…, gpus=…, …)`; missing columns take the
    defaults of `COLUMNS`. `name` and `notes` travel along for tables and reports: notes hold what
    an importer or a generator wants the reader to know (rows skipped and why, seeds, sources).
    `begins` is the local date and time of second 0 (`2020-04-06T00:00:00`), "" where nobody knows;
    generated workloads begin at midnight of some Monday.
    """

    id: npt.NDArray[Any]
    submit_s: FloatArray
    duration_s: FloatArray
    estimate_s: FloatArray
    gpus: IntArray
    milli_gpu: IntArray
    gpu_types: Labels
    max_gpus_per_node: IntArray
    min_gpus: IntArray
    max_gpus: IntArray
    gpu_memory_gib: FloatArray
    cpus: FloatArray
    memory_gib: FloatArray
    tenant: Labels
    user: Labels
    priority: FloatArray
    deadline_s: FloatArray
    kind: Labels
    status: Labels
    recorded_wait_s: FloatArray
    name: str = "workload"
    notes: tuple[str, ...] = field(default=())
    begins: str = ""

    @classmethod
    def of(
        cls,
        *,
        name: str = "workload",
        notes: Sequence[str] = (),
        begins: str = "",
        **columns: Any,
    ) -> Workload:
        """Build a workload from columns (arrays or lists), filling defaults, checking everything.

        Raises:
            InvalidWorkloadError: with every mistake found, each naming its row and column.
        """
        table = checked(columns, name)
        submit_s = table["submit_s"]
        if np.any(submit_s[1:] < submit_s[:-1]):
            order = np.argsort(submit_s, kind="stable")
            table = {key: _take(value, order) for key, value in table.items()}
        return cls(name=name, notes=tuple(notes), begins=begins, **table)

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def has_estimates(self) -> bool:
        """Whether every job carries a run-time estimate."""
        return len(self) > 0 and not bool(np.isnan(self.estimate_s).any())

    @property
    def work_gpu_s(self) -> float:
        """GPU-seconds the jobs ask for in total (whole GPUs, fractions counted as fractions)."""
        return float(np.sum(self.duration_s * self.gpus * (self.milli_gpu / 1000.0)))

    def load(self, gpus: int) -> float:
        """Offered load on `gpus` GPUs: work divided by capacity over the span of submissions."""
        span_s = float(self.submit_s[-1] - self.submit_s[0]) if len(self) else 0.0
        return self.work_gpu_s / (gpus * span_s) if span_s > 0 else float("inf")

    def select(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Workload:
        """Return the jobs of `rows` (indices or mask) without shifting the clock."""
        columns = {key: _take(getattr(self, key), rows) for key in COLUMN_NAMES}
        return Workload.of(name=name or self.name, notes=self.notes, begins=self.begins, **columns)

    def starting_at(self, origin_s: float) -> Workload:
        """Return the same jobs with the clock moved so that `origin_s` becomes second 0.

        Raises:
            InvalidWorkloadError: if a job would then be submitted before second 0.
        """
        if not origin_s <= self.submit_s[0]:
            first = f"its first job is submitted at {self.submit_s[0]} s"
            raise invalid(self.name, [f"cannot start the clock at {origin_s} s: {first}"])
        begins = self.begins and _later(self.begins, origin_s)
        return replace(
            self,
            submit_s=self.submit_s - origin_s,
            deadline_s=self.deadline_s - origin_s,
            begins=begins,
        )

    def with_columns(self, **columns: Any) -> Workload:
        """Return the same jobs with some columns replaced (checked again)."""
        merged = {key: getattr(self, key) for key in COLUMN_NAMES} | columns
        return Workload.of(name=self.name, notes=self.notes, begins=self.begins, **merged)

    def renamed(self, name: str, *extra_notes: str) -> Workload:
        """Return the same jobs under another name, with notes appended."""
        return replace(self, name=name, notes=self.notes + extra_notes)

    def compact(self) -> Workload:
        """Return the same jobs with only the names in use, numbered as a file of them would."""
        columns = {key: getattr(self, key) for key in COLUMN_NAMES}
        labels: dict[str, Any] = {
            key: value.compact() for key, value in columns.items() if isinstance(value, Labels)
        }
        return replace(self, **labels)

    def fingerprint(self) -> str:
        """Return a SHA-256 over every column: equal jobs, equal fingerprint."""
        digest = hashlib.sha256()
        for key in COLUMN_NAMES:
            value = getattr(self, key)
            if key == "recorded_wait_s" and np.isnan(value).all():
                continue  # nothing is recorded: the same jobs as before there was such a column
            digest.update(key.encode())
            if isinstance(value, Labels):
                used = value.compact()
                digest.update(_netstrings(used.names))
                digest.update(used.codes.tobytes())
            elif value.dtype.kind == "U":
                digest.update(_netstrings(value.tolist()))
            else:
                digest.update(np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()


def _later(begins: str, seconds: float) -> str:
    return (datetime.fromisoformat(begins) + timedelta(seconds=seconds)).isoformat()


def _take(value: Any, rows: npt.NDArray[Any]) -> Any:
    return value.take(rows) if isinstance(value, Labels) else value[rows]


def _netstrings(names: Sequence[str]) -> bytes:
    """Return names as bytes such that no two different lists give the same bytes."""
    return "".join(f"{len(name)}:{name}" for name in names).encode("utf-8", "surrogatepass")


assert tuple(f.name for f in fields(Workload))[: len(COLUMNS)] == COLUMN_NAMES  # noqa: S101
