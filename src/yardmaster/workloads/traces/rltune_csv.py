"""RLTune: tables without a header, whose columns are those of the Standard Workload Format.

The processors are GPUs. The last two of 19 columns are the virtual cluster and the GPU type that a
job is bound to. −1 means absent. The documentation and the programs that read these files disagree
about where those two stand, so the columns that hold names are looked for.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.mapped_csv import MappedTable, draft_of
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import LARGEST_SECONDS, Field, Kind
from yardmaster.workloads.traces.reading.delimited import Layout, Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

COLUMNS = (
    "job_id", "submit", "wait", "run", "gpus", "cpu_time", "used_mem", "req_cpus", "req_time",
    "req_mem", "status", "user", "group", "exe", "queue", "partition",
)  # fmt: skip
"""The columns everybody agrees on; the names are among the three or four after them."""

WIDTHS = (19, 20)
DOCUMENTED = (17, 18)
"""Places of the virtual cluster and the GPU type, from 0, as the documentation counts."""

ROWS_LOOKED_AT = 200
ABSENT = "-1"
GPU_TYPE = re.compile(r"(?i)(tesla )?[abghklmptv]\d{1,3}(m32|[- ]?\d+gb?)?|misc|.*[gr]tx.*|cpu")
"""How GPU types are called, where only one column holds names."""

CODES = {"0": "FAILED", "1": "COMPLETED", "5": "CANCELLED"}
"""Status numbers of SWF, in words."""


@dataclass(frozen=True, slots=True)
class OrAbsent(Field):
    """A number from 0, or −1 where the trace does not know it."""

    def impossible(self) -> pl.Expr:
        """Return where the number is neither; never where it is null."""
        value = pl.col(self.name)
        known = value.is_finite() & (value >= 0) & (value <= LARGEST_SECONDS)
        return (~known & (value != -1)).fill_null(value=False)


FIELDS = (
    Field("job_id", Kind.TEXT),
    Field("submit", Kind.SECONDS),
    OrAbsent("wait", Kind.SECONDS, may_be_blank=True),
    OrAbsent("run", Kind.SECONDS),
    OrAbsent("gpus", Kind.AMOUNT),
    OrAbsent("req_cpus", Kind.AMOUNT, may_be_blank=True),
    OrAbsent("req_time", Kind.SECONDS, may_be_blank=True),
    Field("status", Kind.TEXT, may_be_blank=True),
    Field("user", Kind.TEXT, may_be_blank=True),
    Field("exe", Kind.TEXT, may_be_blank=True),
)
REASONS = (
    Reason("run time −1: unknown", pl.col("run") == -1),
    Reason("GPUs −1: unknown", pl.col("gpus") == -1),
)
NO_GPU = Reason("asked for no GPU (CPU job)", pl.col("gpus") == 0)


def recognises(file: TraceFile) -> bool:
    """Tell a table by its 19 or 20 cells without a header: times first, −1 for what is absent."""
    rows = _first_rows(file)
    width = len(rows[0]) if rows else 0
    if width not in WIDTHS:
        return False
    has_times = all(_is_number(cell) for row in rows for cell in row[1:5])
    has_absent = any(cell.partition(".")[0] == ABSENT for row in rows for cell in row)
    return has_times and has_absent and (width == WIDTHS[0] or len(_name_places(rows)) > 0)


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read tables that share a clock."""
    tables = [MappedTable(_rows(file, options, ledger), dated=False) for file in files]
    return draft_of(tables, options, ledger, zone="")


def _rows(file: TraceFile, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    rows = _first_rows(file)
    width = len(rows[0]) if rows and len(rows[0]) in WIDTHS else WIDTHS[0]
    places = _places([row for row in rows if len(row) == width], width, ledger)
    names = [*COLUMNS, *(f"column {place + 1}" for place in range(len(COLUMNS), width))]
    for name, place in places.items():
        names[place] = name
    labels = [
        Field(name, Kind.TEXT, needed=False, may_be_blank=True) for name in ("vc", "gpu_type")
    ]
    frame = read_rows(
        file,
        (*FIELDS, *labels),
        ledger,
        options,
        reasons=REASONS if options.slot_cores is not None else (*REASONS, NO_GPU),
        layout=Layout(names=tuple(names)),
    )
    return frame.select(
        pl.col("job_id").alias("id"),
        pl.col("submit").alias("submit_s"),
        pl.col("run").alias("duration_s"),
        "gpus",
        pl.when(pl.col("req_cpus") > 0).then("req_cpus").alias("cpus"),
        pl.when(pl.col("wait") >= 0).then("wait").alias("recorded_wait_s"),
        pl.col("status").str.replace(r"\.0$", "").replace({**CODES, ABSENT: None}),
        *(_named(theirs).alias(ours) for theirs, ours in _LABELS.items()),
        *_estimate(frame, ledger),
    )


_LABELS = {"user": "user", "exe": "kind", "vc": "tenant", "gpu_type": "gpu_types"}


def _named(column: str) -> pl.Expr:
    """Return a column of names, null where absent."""
    name = pl.col(column).str.replace(r"^(-?\d+)\.0$", "$1")
    return pl.when(name != ABSENT).then(name)


def _estimate(frame: pl.DataFrame, ledger: Ledger) -> list[pl.Expr]:
    """Return requested times, unless they are the run times again, which no user knew."""
    known = frame.filter(pl.col("req_time") > 0)
    if known.is_empty():
        return []
    if bool((known["req_time"] == known["run"]).all()):
        ledger.remark("requested times are no estimates: they repeat the true run times")
        return []
    return [pl.when(pl.col("req_time") > 0).then("req_time").alias("estimate_s")]


# --- where the names are --------------------------------------------------------------------------


def _places(rows: Sequence[Sequence[str]], width: int, ledger: Ledger) -> dict[str, int]:
    """Return the places of the virtual cluster and the GPU type, from 0, and say which."""
    found = _name_places(rows)[-2:]
    if len(found) == 2:
        places = dict(zip(("vc", "gpu_type"), found, strict=True))
    elif found:
        cells = [row[found[0]] for row in rows]
        types = sum(bool(GPU_TYPE.fullmatch(cell)) for cell in cells if not _is_number(cell))
        places = {"gpu_type" if 2 * types > len(cells) else "vc": found[0]}
    else:
        places = dict(zip(("vc", "gpu_type"), DOCUMENTED, strict=True))
    words = {"vc": "the virtual cluster", "gpu_type": "the GPU type"}
    told = " and ".join(f"column {place + 1} is {words[key]}" for key, place in places.items())
    why = "the columns that hold names" if found else "as documented; no column holds names"
    ledger.remark(f"{told} ({why}, of {width})")
    return places


def _name_places(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the last columns in which anything but numbers is written."""
    width = len(rows[0]) if rows else 0
    return [
        place
        for place in range(len(COLUMNS), width)
        if any(row[place].strip() and not _is_number(row[place]) for row in rows)
    ]


def _first_rows(file: TraceFile) -> list[list[str]]:
    """Return the first rows that are as wide as most of them."""
    try:
        rows = [row for row in csv.reader(file.lines[:ROWS_LOOKED_AT]) if row]
    except csv.Error:
        return []
    widths = Counter(map(len, rows)).most_common(1)
    return [[cell.strip() for cell in row] for row in rows if len(row) == widths[0][0]]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


FORMAT = TraceFormat(
    name="rltune-csv",
    reads="a table of 19 columns without a header (Helios, Philly or Alibaba)",
    source="RLTune (SoCC 2025), made from Helios, Philly and Alibaba traces",
    recognises=recognises,
    read=read,
)
