"""The columns of a job table: their names, units and what "missing" means in each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Column(NamedTuple):
    """One column of the canonical job table."""

    name: str
    type: str
    missing: str
    meaning: str


COLUMNS: tuple[Column, ...] = (
    Column("id", "text or integer", "row number", "unique name of the job"),
    Column("submit_s", "float", "required", "seconds on the workload's clock at submission, ≥ 0"),
    Column("duration_s", "float", "required", "run time in seconds on the reference GPU type, ≥ 0"),
    Column("estimate_s", "float", "NaN", "run time the user asked for or a model predicted, > 0"),
    Column("gpus", "integer", "1", "GPUs held at once by the gang, ≥ 1"),
    Column(
        "milli_gpu", "integer", "1000", "thousandths of each GPU, 1…1000; below 1000 only for 1"
    ),
    Column("gpu_types", "set of names", "any type", "GPU types the job may run on, joined by |"),
    Column("max_gpus_per_node", "integer", "0 (no limit)", "most GPUs of the gang on one node"),
    Column("min_gpus", "integer", "0 (rigid)", "fewest GPUs an elastic job can run on"),
    Column("max_gpus", "integer", "0 (rigid)", "most GPUs an elastic job can use"),
    Column("gpu_memory_gib", "float", "NaN", "device memory needed on each GPU, GiB"),
    Column("cpus", "float", "NaN", "CPU cores of the whole job"),
    Column("memory_gib", "float", "NaN", "host memory of the whole job, GiB"),
    Column("tenant", "label", "none", "virtual cluster or account that pays"),
    Column("user", "label", "none", "person who submitted"),
    Column("priority", "float", "0", "larger is more urgent"),
    Column("deadline_s", "float", "NaN", "second on the workload's clock by which it should end"),
    Column("kind", "label", "none", "what the job does (model or job family)"),
    Column("status", "label", "none", "how the job ended in the trace (completed, failed, …)"),
    Column("recorded_wait_s", "float", "NaN", "seconds the job waited in the trace, ≥ 0"),
)
COLUMN_NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
LABEL_COLUMNS: tuple[str, ...] = ("gpu_types", "tenant", "user", "kind", "status")


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of names, stored as codes into a short list; code −1 means missing."""

    codes: npt.NDArray[np.int32]
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[object]) -> Labels:
        """Encode names in order of first appearance; None, NaN and "" are missing.

        Numbers are names too: user 0 is the user called "0".
        """
        values = list(values)
        numbers: dict[str, int] = {}
        codes: dict[object, int] = {None: -1, "": -1}
        for value in dict.fromkeys(values):  # each once: long columns have few names
            if value not in codes:
                is_missing = isinstance(value, float) and math.isnan(value)
                codes[value] = -1 if is_missing else numbers.setdefault(str(value), len(numbers))
        return cls(
            np.fromiter(map(codes.__getitem__, values), np.int32, len(values)), tuple(numbers)
        )

    @classmethod
    def missing(cls, length: int) -> Labels:
        """Return a column in which every value is missing."""
        return cls(np.full(length, -1, dtype=np.int32), ())

    def __len__(self) -> int:
        return len(self.codes)

    def values(self) -> list[str | None]:
        """Return the names themselves, None where missing."""
        return [self.names[code] if code >= 0 else None for code in self.codes]

    def take(self, rows: npt.NDArray[Any]) -> Labels:
        """Return the column restricted to `rows` (indices or mask), in that order."""
        return Labels(self.codes[rows], self.names)

    def compact(self) -> Labels:
        """Return the same column with only the names in use, numbered as they first appear."""
        used, first, position = np.unique(self.codes, return_index=True, return_inverse=True)
        present = used >= 0
        by_appearance = np.flatnonzero(present)[np.argsort(first[present])]
        renumbered = np.full(len(used), -1, dtype=np.int32)
        renumbered[by_appearance] = np.arange(len(by_appearance), dtype=np.int32)
        names = tuple(self.names[code] for code in used[by_appearance])
        return Labels(renumbered[position], names)
