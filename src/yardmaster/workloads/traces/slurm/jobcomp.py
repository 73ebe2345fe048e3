"""The log of Slurm's `jobcomp/filetxt`: one line per ended job, `JobId=7 UserId=ann(1000) …`.

A job that is cancelled before it starts has a start time all the same, but no nodes. A requeued job
leaves a line for every attempt; the state of attempts that a user's requeue cut short is `PENDING`.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.slurm.lines import TEXT, lines
from yardmaster.workloads.traces.slurm.records import LINE, Source

KEYS = {
    "JobIDRaw": "JobId", "User": "UserId", "State": "JobState", "Partition": "Partition",
    "TimelimitRaw": "TimeLimit", "Start": "StartTime", "End": "EndTime", "NodeList": "NodeList",
    "NNodes": "NodeCnt", "NCPUS": "ProcCnt", "ReqTRES": "Tres", "ReqGRES": "Gres",
    "Account": "Account", "Cluster": "Cluster", "Submit": "SubmitTime",
    "Eligible": "EligibleTime",
}  # fmt: skip
"""`sacct`'s name of a column → the log's key. `Tres` is what was asked for."""

NEEDED = ("JobIDRaw", "State", "Start", "End")
NO_JOB = f"no line of a job: that has {', '.join(f'{KEYS[name]}=' for name in NEEDED)}"


def recognises(file: TraceFile) -> bool:
    """Tell the log by its first line."""
    first = (file.lines or [""])[0]
    return first.startswith("JobId=") and " JobState=" in first


def source_of(file: TraceFile) -> Source:
    """Return the records of a log."""
    source = Source(file, called=KEYS)
    source.batches = _batches(source)
    return source


def _batches(source: Source) -> Iterator[pl.DataFrame]:
    for frame in lines(source):
        # A name may hold blanks, and words that look like keys.
        nameless = pl.col(TEXT).str.replace(r" Name=.*? JobState=", " JobState=")
        found = frame.select(
            LINE, *(_value(nameless, key).alias(name) for name, key in KEYS.items())
        )
        cut = found.select(pl.any_horizontal(pl.col(NEEDED).is_null())).to_series()
        source.reject(found.filter(cut)[LINE], lambda _: NO_JOB)
        array, task = _value(nameless, "ArrayJobId"), _value(nameless, "ArrayTaskId")
        whole, part = _value(nameless, "HetJobId"), _value(nameless, "HetJobOffset")
        names = frame.select(
            JobID=pl.coalesce(
                pl.concat_str(array, pl.lit("_"), task), pl.concat_str(whole, pl.lit("+"), part)
            )
        )
        found = found.with_columns(
            pl.col("User").str.replace(r"\(\d+\)$", ""),
            JobID=pl.coalesce(names["JobID"], pl.col("JobIDRaw")),
        )
        yield found.filter(~cut)


def _value(text: pl.Expr, key: str) -> pl.Expr:
    return text.str.extract(rf"(?:^| ){key}=(\S*)")
