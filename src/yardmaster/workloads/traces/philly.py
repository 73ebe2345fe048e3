"""Microsoft Philly: the JSON array `cluster_job_log`, August to December 2017.

One object per job, with a list of attempts: a job may be started again after a failure. Its GPUs
are those of its first attempt; it ran from the start of its first attempt to the end of its last,
so the time between attempts counts as run time. A time that is not known is null, empty or the text
`None`. A job whose last attempt has no end was still running when the log was written.

Times are Pacific local times without a zone. Taken as written, the clock jumps back by an hour on
2017-11-05, which makes run times over that night an hour too short; with the time zone
`America/Los_Angeles` they are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.bad_rows import BadRows
from yardmaster.workloads.traces.reading.cells import BLANKS, epoch_s
from yardmaster.workloads.traces.reading.draft import Draft, dropped_where
from yardmaster.workloads.traces.reading.json_records import records
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import status
from yardmaster.workloads.traces.reading.trace_files import TraceFile

NAMES = {"jobid": "id", "vc": "tenant", "user": "user", "status": "status"}
"""Keys of a job that hold names → canonical columns."""

TIMES = {
    "submit": "submitted_time", "start": "start_time of the first attempt",
    "again": "start_time of the last attempt", "end": "end_time of the last attempt",
}  # fmt: skip
"""Times of a job → what to call them in messages."""

_SCHEMA = {
    **dict.fromkeys((*NAMES.values(), *TIMES), pl.String),
    "attempts": pl.Int64, "gpus": pl.Int64, "line": pl.Int64, "number": pl.Int64,
}  # fmt: skip
_REASONS = (
    ("never started", pl.col("start").is_null()),
    ("no GPU is recorded for the first attempt", pl.col("gpus") == 0),
    ("ended before it started (clocks go back in November)", pl.col("end") < pl.col("start")),
)


class UnreadableError(Exception):
    """What is wrong with a record; the reader adds where it stands."""


def recognises(file: TraceFile) -> bool:
    """Tell the job log by the keys of its first jobs."""
    head = file.head.lstrip()
    return head[:1] == b"[" and (
        all(key in head for key in (b'"attempts"', b'"submitted_time"', b'"vc"'))
        or file.short_name.startswith("cluster_job_log")
    )


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read the job log."""
    jobs = pl.concat([_jobs(file, options, ledger) for file in files])
    seen = jobs.select(pl.max_horizontal(pl.col(*TIMES).max())).item()
    kept = dropped_where(jobs, "jobs", _REASONS, ledger)
    running = pl.col("end").is_null()
    wait = pl.col("start") - pl.col("submit")
    ledger.censor("were still running when the log was written", kept["end"].null_count())
    ledger.change("have no submission time; their start is taken", kept["submit"].null_count())
    ledger.change("started before they were submitted", kept.select((wait < 0).sum()).item())
    again = kept.select((pl.col("attempts") > 1).sum()).item()
    if again:
        ledger.remark(f"{again:,} jobs were started more than once; their run time spans it all")
    frame = kept.select(
        "id", "gpus", "tenant", "user",
        submit_s=pl.coalesce("submit", "start"),
        duration_s=pl.col("end").fill_null(seen or 0.0) - pl.col("start"),
        recorded_wait_s=pl.when(wait >= 0).then(wait),
        status=pl.when(running).then(pl.lit("running")).otherwise(status(pl.col("status"))),
    )  # fmt: skip
    zone = options.zone_in_words("US Pacific as written, daylight saving included")
    return Draft(frame, ledger, time_zone=zone)


def _jobs(file: TraceFile, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return the jobs that can be read, their times as seconds since 1970."""
    bad = BadRows()
    rows: list[dict[str, Any]] = []
    for record in records(file, bad):
        try:
            rows.append(_row(record.content) | {"line": record.line, "number": record.number})
        except UnreadableError as mistake:
            bad.add(record.line, f"record {record.number}: {mistake}")
    text = pl.DataFrame(rows, schema=_SCHEMA)
    parsed = {name: epoch_s(pl.col(name), options) for name in TIMES}
    lost = {name: parsed[name].is_null() & pl.col(name).is_not_null() for name in TIMES}
    judged = text.with_columns(pl.any_horizontal(*lost.values()).alias("lost"))
    for row in judged.filter("lost").iter_rows(named=True):
        bad.add(row["line"], f"record {row['number']}: {_unreadable(row, options)}")
    unreadable = bad.dropped(file.name, options, what="record")
    kept = judged.filter(~pl.col("lost")).with_columns(**parsed).drop("lost", "line", "number")
    ledger.stage(f"records of {file.own_name}", len(kept) + bad.count, len(kept), [unreadable])
    return kept


def _row(job: dict[str, Any]) -> dict[str, Any]:
    """Return what counts of one job, or say what is wrong with it."""
    attempts = job.get("attempts")
    if not isinstance(attempts, list) or not all(isinstance(entry, dict) for entry in attempts):
        raise UnreadableError("attempts is missing or no list of objects")
    row: dict[str, Any] = {ours: _name(job, theirs) for theirs, ours in NAMES.items()}
    if row["id"] is None:
        raise UnreadableError("jobid is missing")
    started = [entry for entry in attempts if _written(entry, "start_time") is not None]
    row |= {"submit": _written(job, "submitted_time"), "attempts": len(started), "gpus": 0}
    if started:
        row |= {
            "start": _written(started[0], "start_time"),
            "again": _written(started[-1], "start_time"),
            "end": _written(started[-1], "end_time"),
            "gpus": _gpus(started[0]),
        }
    return row


def _name(entry: dict[str, Any], key: str) -> str | None:
    """Return a name, None where there is none; a number may be one."""
    value = entry.get(key)
    if not isinstance(value, str | int | None):
        raise UnreadableError(f"{key} is {str(value)[:40]!r}, not a name")
    return None if value is None else _text(key, str(value)) or None


def _written(entry: dict[str, Any], key: str) -> str | None:
    """Return a text, None where nothing is written."""
    value = entry.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise UnreadableError(f"{key} is {str(value)[:40]!r}, not text")
    text = _text(key, value)
    return None if text.lower() in BLANKS else text


def _text(key: str, value: str) -> str:
    """Return text without blanks around it; JSON can also write half a letter, which is none."""
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise UnreadableError(f"{key} is no text")
    return value.strip()


def _gpus(attempt: dict[str, Any]) -> int:
    """Return how many GPUs an attempt held, over all its machines."""
    detail = attempt.get("detail")
    machines = [] if detail is None else detail
    if not isinstance(machines, list) or not all(isinstance(entry, dict) for entry in machines):
        raise UnreadableError("detail of an attempt is no list of objects")
    held = [entry.get("gpus") or [] for entry in machines]
    if not all(isinstance(gpus, list) for gpus in held):
        raise UnreadableError("gpus of an attempt is no list")
    return sum(map(len, held))


def _unreadable(row: dict[str, Any], options: ImportOptions) -> str:
    """Say which time of a job cannot be read."""
    times = pl.DataFrame(
        {name: [row[name]] for name in TIMES}, schema=dict.fromkeys(TIMES, pl.String)
    )
    for name, words in TIMES.items():
        if row[name] and times.select(epoch_s(pl.col(name), options)).item() is None:
            return f"{words} is {row[name][:40]!r}, not a date and time"
    return "a time makes no sense"


FORMAT = TraceFormat(
    name="philly",
    reads="cluster_job_log, plain or in trace-data.tar.gz",
    source="Microsoft Philly, 2017 (Jeon et al., ATC 2019; CC-BY-4.0)",
    recognises=recognises,
    read=read,
    one_table=True,
)
