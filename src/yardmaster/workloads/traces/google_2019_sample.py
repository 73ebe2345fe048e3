"""A popular joined table of Google's 2019 trace: events and usage windows in one CSV.

Each row pairs an event of an instance with an event of its collection and with one window in which
the instance's usage was measured. The rows are a sample from all eight cells: most jobs have one or
a few, and the event of a row and its window belong to different times. So all that can be said of a
job is that the instances seen ran from the start of the first window seen to the end of the last:
that is its run time, a lower bound, and its slots are those of the instances seen. Its submission
is not known. The columns `event` and `failed` name the events by another numbering than the
publisher's; they are not used.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.workloads.traces.borg_events import ALLOC_SETS, LARGEST_US, Bounded, Request
from yardmaster.workloads.traces.borg_jobs import Clock, in_slots, remark_on_slots, slot_share
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FIELDS = (
    Bounded("collection_id", Kind.WHOLE),
    Bounded("collection_type", Kind.WHOLE, largest=1),
    Bounded("priority", Kind.WHOLE, needed=False, largest=1000),
    Field("instance_index", Kind.COUNT),
    Request("resource_request", Kind.AMOUNT, needed=False, may_be_blank=True),
    Bounded("start_time", Kind.WHOLE, largest=LARGEST_US),
    Bounded("end_time", Kind.WHOLE, largest=LARGEST_US),
    Field("user", Kind.TEXT, needed=False),
    Field("collection_logical_name", Kind.TEXT, needed=False),
    Field("cluster", Kind.TEXT, needed=False),
)
REASONS = (
    ALLOC_SETS,
    Reason("its usage window ends before it starts", pl.col("end_time") < pl.col("start_time")),
)


def is_sample(file: TraceFile) -> bool:
    """Tell the joined table by its renamed columns."""
    return file.has_columns("collection_id", "instance_events_type", "start_time", "end_time")


def read_sample(
    files: Sequence[TraceFile], clock: Clock, options: ImportOptions, ledger: Ledger
) -> Draft:
    """Make a job of all rows of a collection."""
    rows = pl.concat([read_rows(file, FIELDS, ledger, options, reasons=REASONS) for file in files])
    slot = slot_share(options)
    jobs = _jobs(rows, slot)
    ledger.stage("jobs", len(jobs), len(jobs))
    ledger.censor("are known from some of their usage windows only", len(jobs))
    ledger.change("have no usable submission; the start of their first window is taken", len(jobs))
    guessed = int(jobs["guessed"].sum())
    ledger.change("have tasks without a CPU request, counted as 1 slot each", guessed)
    remark_on_slots(jobs, slot, ledger)
    ledger.remark(
        "a joined sample: only the instances in it count, and jobs of all cells are mixed"
    )
    ledger.remark("events are not used: those of a row belong to other times than its usage window")
    frame = jobs.select(
        "user", "kind", "priority",
        id="job",
        submit_s=pl.col("start") / 1e6 + clock.second_0_s,
        duration_s=(pl.col("end") - pl.col("start")) / 1e6,
        gpus="slots",
        tenant="cell",
        status=pl.lit("censored"),
    )  # fmt: skip
    return Draft(frame.sort("submit_s", "id"), ledger, time_zone=clock.words)


def _jobs(rows: pl.DataFrame, slot: float) -> pl.DataFrame:
    """Return one row per collection of a cell: when it was seen running, and its slots."""
    named = [
        pl.col("user", "kind").drop_nulls().first(),
        pl.col("start").min(),
        pl.col("end").max(),
        pl.col("priority").max(),
    ]
    instances = (
        rows.select(
            "user", "priority",
            job="collection_id",
            cell="cell " + pl.col("cluster"),
            task="instance_index",
            kind="collection_logical_name",
            start="start_time",
            end="end_time",
            cpu="resource_request",
        )
        .group_by("cell", "job", "task")
        .agg(*named, pl.col("cpu").max())
    )  # fmt: skip
    return instances.group_by("cell", "job").agg(
        *named,
        in_slots(slot).sum().alias("slots"),
        pl.col("cpu").is_null().any().alias("guessed"),
        pl.col("cpu").sum(),
    )
