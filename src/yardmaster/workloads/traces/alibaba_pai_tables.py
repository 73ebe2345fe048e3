"""The tables of Alibaba PAI 2020: which file is which, and what their columns hold.

None has a header (the publisher keeps those in files of their own, `.header`), so a table is told
by its file's name or, where that was changed, by the number and the look of its cells.
"""

from __future__ import annotations

import re
from enum import StrEnum

import polars as pl

from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import COMMAS, Layout, Reason, read_rows
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

STATUSES = frozenset({"Running", "Terminated", "Failed", "Waiting"})
LINES_LOOKED_AT = 20


class Role(StrEnum):
    """What a table is about; the value is the publisher's name for it."""

    JOBS = "pai_job_table"
    TASKS = "pai_task_table"
    TAGS = "pai_group_tag_table"


NAMES: dict[Role, tuple[str, ...]] = {
    Role.JOBS: ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    Role.TASKS: (
        "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
        "plan_mem", "plan_gpu", "gpu_type",
    ),
    Role.TAGS: ("inst_id", "user", "gpu_type_spec", "group", "workload"),
}  # fmt: skip
"""Columns of each table, in order."""

FIELDS: dict[Role, tuple[Field, ...]] = {
    Role.JOBS: (
        Field("job_name", Kind.TEXT),
        Field("inst_id", Kind.TEXT, may_be_blank=True),
        Field("user", Kind.TEXT, may_be_blank=True),
        Field("status", Kind.TEXT, may_be_blank=True),
        Field("start_time", Kind.SECONDS, may_be_blank=True),
        Field("end_time", Kind.SECONDS, may_be_blank=True),
    ),
    Role.TASKS: (
        Field("job_name", Kind.TEXT),
        Field("inst_num", Kind.AMOUNT, may_be_blank=True),
        Field("start_time", Kind.SECONDS, may_be_blank=True),
        Field("end_time", Kind.SECONDS, may_be_blank=True),
        Field("plan_cpu", Kind.AMOUNT, may_be_blank=True),
        Field("plan_mem", Kind.AMOUNT, may_be_blank=True),
        Field("plan_gpu", Kind.AMOUNT, may_be_blank=True),
    ),
    Role.TAGS: (
        Field("inst_id", Kind.TEXT),
        Field("gpu_type_spec", Kind.TEXT, may_be_blank=True),
        Field("workload", Kind.TEXT, may_be_blank=True),
    ),
}
"""What is read of each table."""

SAYS_NOTHING = Reason(
    "name neither a GPU type nor a kind of work",
    pl.col("gpu_type_spec").is_null() & pl.col("workload").is_null(),
)
"""Most tags only say which jobs are alike."""

_LONG_HASH = re.compile(r"[0-9a-f]{40,}")


def role(file: TraceFile) -> Role | None:
    """Return which of the tables a file is, None if it is none of them."""
    name = file.short_name
    if name.endswith(".header"):
        return None
    for kind in Role:
        if name.startswith(kind):
            return kind
    return None if name.startswith("pai_") else _role_by_cells(file)


def _role_by_cells(file: TraceFile) -> Role | None:
    for kind, names in NAMES.items():
        if file.columns() == names:
            return kind  # somebody put the header on top
    rows = [line.split(",") for line in file.lines[:LINES_LOOKED_AT]]
    widths = {len(row) for row in rows}
    if widths == {len(NAMES[Role.TAGS])} and all(_LONG_HASH.fullmatch(row[0]) for row in rows):
        return Role.TAGS
    for kind in (Role.JOBS, Role.TASKS):
        if widths == {len(NAMES[kind])} and all(row[3] in STATUSES for row in rows):
            return kind
    return None


def read_table(file: TraceFile, kind: Role, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return what is wanted of a table; times of 0 are not known and come out null."""
    layout = COMMAS if file.columns() == NAMES[kind] else Layout(names=NAMES[kind])
    reasons = [SAYS_NOTHING] if kind == Role.TAGS else []
    rows = read_rows(file, FIELDS[kind], ledger, options, reasons=reasons, layout=layout)
    times = [name for name in ("start_time", "end_time") if name in rows.columns]
    return rows.with_columns(
        pl.when(pl.col(name) > 0.0).then(pl.col(name)).alias(name) for name in times
    )
