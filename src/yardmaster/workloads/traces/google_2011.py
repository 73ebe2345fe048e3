"""Google ClusterData2011-2: `job_events` and `task_events`, one Borg cell for 29 days of May 2011.

Headerless parts, CPU only. Task events tell how much of the largest machine's CPU each task asks
for; job events tell when jobs were submitted, started and ended. If only some parts are given, jobs
whose tasks are not among them are dropped, since their size is not known; without any task events,
every job is 1 slot. `machine_events`, `task_usage` and the other tables are not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.borg_events import (
    AFTER_THE_END,
    AFTER_US,
    LARGEST_US,
    Bounded,
    EventCodes,
    folded,
)
from yardmaster.workloads.traces.borg_jobs import clock_of, drafted, slot_share
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Layout, read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

CODES = EventCodes(
    opened=(0,),
    scheduled=1,
    ended={2: "EVICT", 3: "FAIL", 4: "FINISH", 5: "KILL", 6: "LOST"},
)
BEGAN = datetime(2011, 5, 1, 19, tzinfo=timezone(timedelta(hours=-4)))
"""Second 600 of the trace: 19:00 Eastern daylight time."""

JOB_COLUMNS = (
    "time", "missing_info", "job_id", "event_type", "user", "scheduling_class", "job_name",
    "logical_job_name",
)  # fmt: skip
TASK_COLUMNS = (
    "time", "missing_info", "job_id", "task_index", "machine_id", "event_type", "user",
    "scheduling_class", "priority", "cpu_request", "memory_request", "disk_space_request",
    "different_machines_restriction",
)  # fmt: skip
EVENT_FIELDS = (
    Bounded("time", Kind.WHOLE, largest=LARGEST_US, also=AFTER_US),
    Bounded("job_id", Kind.WHOLE),
    Bounded("event_type", Kind.WHOLE, largest=8),
    Field("user", Kind.TEXT, needed=False),
)
JOB_FIELDS = (*EVENT_FIELDS, Field("logical_job_name", Kind.TEXT, needed=False))
TASK_FIELDS = (
    *EVENT_FIELDS,
    Field("task_index", Kind.COUNT),
    Bounded("priority", Kind.WHOLE, needed=False, largest=1000),
    Field("cpu_request", Kind.AMOUNT, needed=False),
)
_FIRST_LINES = 20
_JOB_LINE = re.compile(r"\d+,[0-5]?,\d+,[0-8],[^,]*,[0-3]?,[^,]*,[^,]*")
_TASK_LINE = re.compile(r"\d+,[0-5]?,\d+,\d+,\d*,[0-8],[^,]*,[0-3]?,\d*,[^,]*,[^,]*,[^,]*,[01]?")


def recognises(file: TraceFile) -> bool:
    """Tell a part by the pattern of its first lines: there is no header."""
    lines = file.lines[:_FIRST_LINES]
    whole = [line for line in lines if _JOB_LINE.fullmatch(line) or _TASK_LINE.fullmatch(line)]
    return len(whole) * 2 > len(lines)


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Fold the events of jobs and tasks into jobs."""
    slot_share(options)  # complain before long work
    job_parts = [file for file in files if _width(file) == len(JOB_COLUMNS)]
    task_parts = [file for file in files if file not in job_parts]

    def jobs_of(file: TraceFile, rows: Ledger) -> pl.DataFrame:
        return _jobs(file, rows, options)

    def tasks_of(file: TraceFile, rows: Ledger) -> pl.DataFrame:
        return _tasks(file, rows, options)

    jobs = tasks = None
    if job_parts:
        jobs = folded(job_parts, jobs_of, CODES, keys=("job",), table="job_events", ledger=ledger)
    if task_parts:
        tasks = folded(
            task_parts, tasks_of, CODES, keys=("job", "task"), table="task_events", ledger=ledger
        )
    clock = clock_of(BEGAN, "America/New_York", options)
    return drafted(jobs, tasks, CODES, clock=clock, options=options, ledger=ledger)


def _width(file: TraceFile) -> int:
    """Return how many columns a part has, which tells the two tables apart.

    Raises:
        TraceFormatError: if it is neither of them.
    """
    widths = Counter(line.count(",") + 1 for line in file.lines[:_FIRST_LINES])
    usual = widths.most_common(1)[0][0] if widths else 0
    if usual not in {len(JOB_COLUMNS), len(TASK_COLUMNS)}:
        raise TraceFormatError(
            f"{file.name}: {usual} cells in a row; job_events has {len(JOB_COLUMNS)}, task_events"
            f" {len(TASK_COLUMNS)}."
        )
    return usual


def _jobs(file: TraceFile, rows: Ledger, options: ImportOptions) -> pl.DataFrame:
    frame = read_rows(
        file, JOB_FIELDS, rows, options,
        reasons=(AFTER_THE_END,), layout=Layout(names=JOB_COLUMNS),
    )  # fmt: skip
    return frame.select(
        "time", "user",
        job="job_id",
        code="event_type",
        kind="logical_job_name",
        priority=pl.lit(None, pl.Int64),
    )  # fmt: skip


def _tasks(file: TraceFile, rows: Ledger, options: ImportOptions) -> pl.DataFrame:
    frame = read_rows(
        file, TASK_FIELDS, rows, options,
        reasons=(AFTER_THE_END,), layout=Layout(names=TASK_COLUMNS),
    )  # fmt: skip
    return frame.select(
        "time", "user", "priority",
        job="job_id",
        task=pl.col("task_index").cast(pl.Int32),
        code="event_type",
        kind=pl.lit(None, pl.String),
        cpu="cpu_request",
    )  # fmt: skip


FORMAT = TraceFormat(
    name="google-2011",
    reads="parts of job_events and task_events, as many as there are (CPU only)",
    source="Google ClusterData2011-2, May 2011 (Reiss, Wilkes and Hellerstein; CC-BY-4.0)",
    recognises=recognises,
    read=read,
)
