"""Google ClusterData2019: `collection_events` and `instance_events` of a Borg cell, May 2019.

Exports of the publisher's BigQuery tables: lines of JSON (as in its storage buckets), an array of
JSON objects, or CSV with the nested request as one column or as `resource_request.cpus`. A
collection is a job, or an alloc set, which reserves resources for jobs and is dropped; an instance
is a task. Events have other numbers than in 2011. CPU requests are shares of the largest machine.

All cells begin at midnight Pacific time, and that is the clock unless the user names another zone.
The machines are elsewhere: cells a, c and d on America/New_York time, b and f on America/Chicago, e
on Europe/Helsinki, g on Asia/Singapore, h on Europe/Brussels.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.borg_events import (
    AFTER_THE_END,
    AFTER_US,
    ALLOC_SETS,
    LARGEST_US,
    Bounded,
    EventCodes,
    Request,
    folded,
)
from yardmaster.workloads.traces.borg_jobs import clock_of, drafted, slot_share
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.google_2019_sample import is_sample, read_sample
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.json_tables import read_json_rows
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

CODES = EventCodes(
    opened=(0, 1, 2),
    scheduled=3,
    ended={4: "EVICT", 5: "FAIL", 6: "FINISH", 7: "KILL", 8: "LOST"},
)
BEGAN = datetime(2019, 5, 1, tzinfo=timezone(timedelta(hours=-7)))
"""Second 600 of every cell: midnight Pacific daylight time."""

EVENT_FIELDS = (
    Bounded("time", Kind.WHOLE, largest=LARGEST_US, also=AFTER_US),
    Bounded("type", Kind.WHOLE, largest=10),
    Bounded("collection_id", Kind.WHOLE),
    Bounded("collection_type", Kind.WHOLE, needed=False, largest=1),
    Bounded("priority", Kind.WHOLE, needed=False, largest=1000),
)
COLLECTION_FIELDS = (
    *EVENT_FIELDS,
    Field("user", Kind.TEXT, needed=False),
    Field("collection_logical_name", Kind.TEXT, needed=False),
)
INSTANCE_FIELDS = (*EVENT_FIELDS, Field("instance_index", Kind.COUNT))
REQUESTS = ("resource_request.cpus", "resource_request_cpus", "resource_request")
"""Names of the column with the CPU request, by how the nested table was flattened."""

REASONS = (AFTER_THE_END, ALLOC_SETS)


def recognises(file: TraceFile) -> bool:
    """Tell the tables of events by their columns or keys, the joined sample by its own."""
    return is_sample(file) or _has(file, "time", "type", "collection_id")


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Fold the events of collections and instances into jobs."""
    slot_share(options)  # complain before long work
    clock = clock_of(BEGAN, "America/Los_Angeles", options)
    samples = [file for file in files if is_sample(file)]
    if samples and len(samples) < len(files):
        raise TraceFormatError(
            f"{samples[0].name} is a joined sample of the trace: read it without other tables."
        )
    if samples:
        return read_sample(samples, clock, options, ledger)
    instance_parts = [file for file in files if _has(file, "instance_index")]
    collection_parts = [file for file in files if file not in instance_parts]

    def collections_of(file: TraceFile, rows: Ledger) -> pl.DataFrame:
        return _collections(file, rows, options)

    def instances_of(file: TraceFile, rows: Ledger) -> pl.DataFrame:
        return _instances(file, rows, options)

    jobs = tasks = None
    if collection_parts:
        jobs = folded(
            collection_parts, collections_of, CODES,
            keys=("job",), table="collection_events", ledger=ledger,
        )  # fmt: skip
    if instance_parts:
        tasks = folded(
            instance_parts, instances_of, CODES,
            keys=("job", "task"), table="instance_events", ledger=ledger,
        )  # fmt: skip
    return drafted(jobs, tasks, CODES, clock=clock, options=options, ledger=ledger)


def _is_json(file: TraceFile) -> bool:
    return file.head.lstrip()[:1] in {b"{", b"["}


def _has(file: TraceFile, *names: str) -> bool:
    """Tell whether a table has these columns, or the first records of a JSON file these keys."""
    if _is_json(file):
        return all(f'"{name}"'.encode() in file.head for name in names)
    return file.has_columns(*names)


def _collections(file: TraceFile, rows: Ledger, options: ImportOptions) -> pl.DataFrame:
    return _read(file, COLLECTION_FIELDS, rows, options).select(
        "time", "user", "priority",
        job="collection_id",
        code="type",
        kind="collection_logical_name",
    )  # fmt: skip


def _instances(file: TraceFile, rows: Ledger, options: ImportOptions) -> pl.DataFrame:
    columns = REQUESTS[:1] if _is_json(file) else file.columns()
    name = next((name for name in REQUESTS if name in columns), REQUESTS[0])
    request = Request(name, Kind.AMOUNT, needed=False, may_be_blank=True)
    return _read(file, (*INSTANCE_FIELDS, request), rows, options).select(
        "time", "priority",
        job="collection_id",
        task=pl.col("instance_index").cast(pl.Int32),
        code="type",
        user=pl.lit(None, pl.String),
        kind=pl.lit(None, pl.String),
        cpu=name,
    )  # fmt: skip


def _read(
    file: TraceFile, fields: Sequence[Field], rows: Ledger, options: ImportOptions
) -> pl.DataFrame:
    reader = read_json_rows if _is_json(file) else read_rows
    return reader(file, fields, rows, options, reasons=REASONS)


FORMAT = TraceFormat(
    name="google-2019",
    reads="collection_events and instance_events of one cell, every shard, as JSON or CSV; or the"
    " joined sample found on Kaggle (CPU only)",
    source="Google ClusterData2019, May 2019 (Tirmazi et al., EuroSys 2020; CC-BY)",
    recognises=recognises,
    read=read,
)
