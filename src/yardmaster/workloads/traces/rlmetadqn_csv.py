"""RLMetaDQN: its job tables, with a deadline for every job.

`est_runtime_s` is the run time its simulator gives the job, not a guess; `deadline_s` counts from
the submission. Every job takes one GPU. Rows are in no order. What a job does is the beginning of
its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.mapped_csv import MappedTable, draft_of, read_mapped
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

COLUMNS = {
    "id": "name", "submit_s": "submit_time", "duration_s": "est_runtime_s",
    "deadline_s": "deadline_s", "priority": "priority",
}  # fmt: skip
KINDS = r"^(LLM_TRAIN|LLM_FT|LLM_INFER|VISION_TRAIN|EVAL|DATA_PREP)"
ANY_KIND = r"^(.*?)[_\-# ]*\d*$"
"""Other names without the number at their end."""


def recognises(file: TraceFile) -> bool:
    """Tell a table by its columns."""
    return file.has_columns("command", *COLUMNS.values())


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read the tables."""
    ledger.remark("est_runtime_s is the true run time of these jobs: they carry no estimate")
    tables = [_table(file, options, ledger) for file in files]
    return draft_of(tables, options, ledger, zone="local time as written")


def _table(file: TraceFile, options: ImportOptions, ledger: Ledger) -> MappedTable:
    table = read_mapped(file, COLUMNS, options, ledger)
    name = pl.col("id")
    kind = pl.coalesce(name.str.to_uppercase().str.extract(KINDS), name.str.extract(ANY_KIND))
    deadline_s = pl.col("submit_s") + pl.col("deadline_s")
    return replace(table, frame=table.frame.with_columns(kind=kind, deadline_s=deadline_s))


FORMAT = TraceFormat(
    name="rlmetadqn-csv",
    reads="a table of name, command, est_runtime_s, deadline_s, priority and submit_time",
    source="RLMetaDQN's made-up traces",
    recognises=recognises,
    read=read,
)
