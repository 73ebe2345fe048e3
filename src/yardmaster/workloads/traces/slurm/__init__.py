"""Slurm: what its accounting knows of jobs, in any of the ways in which it can be had.

`sacct -P` (any columns), `sacct --json`, the log of `jobcomp/filetxt`, and exports of the job table
in the accounting database. Several files, such as one export per month, are read as one log.

The tenant is the account, or the partition where there is none; the estimate is the time limit; GPU
types are those a job asked for, not those it happened to get. Names of jobs are free text and not
read: they say little of the kind of a job, and much of who works on what.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.slurm import database, jobcomp, sacct, sacct_json
from yardmaster.workloads.traces.slurm.jobs import jobs_of
from yardmaster.workloads.traces.slurm.records import Source, read_records

SOUGHT = {
    "Submit": ("Submit",),
    "Eligible": ("Eligible",),
    "Timelimit": ("TimelimitRaw", "Timelimit"),
    "State": ("State",),
    "Account": ("Account",),
    "User": ("User",),
    "Priority": ("Priority",),
    "ReqTRES": ("ReqTRES", "ReqGRES"),
}
"""What every log should tell of jobs → the columns that do, by `sacct`'s names."""


def recognises(file: TraceFile) -> bool:
    """Tell a file of Slurm's by its header or its first record; also those that are refused."""
    return (
        sacct.separator_of(file) is not None
        or sacct.is_for_eyes(file)
        or sacct.has_no_header(file)
        or sacct_json.recognises(file)
        or jobcomp.recognises(file)
        or database.separator_of(file) is not None
        or database.is_tres_table(file)
        or database.is_dump(file)
    )


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read all files as one log, each in its own dialect."""
    named = [file for file in files if database.is_tres_table(file)]
    tables = [file for file in files if file not in named]
    if not tables:
        raise TraceFormatError(f"{files[0].name} names resources; which file has the jobs?")
    names = database.tres_names(named)
    sources = [_source(file, names, options) for file in tables]
    records = pl.concat([read_records(source, options, ledger) for source in sources])
    known = set().union(*(source.known for source in sources))
    ledger.missing(ours for ours, columns in SOUGHT.items() if not known & set(columns))
    is_utc = any(source.has_unix_times for source in sources)
    written = "UTC (Unix seconds)" if is_utc else "the cluster's local time as written"
    jobs = jobs_of(records, options, ledger)
    return Draft(jobs, ledger, time_zone=options.zone_in_words(written))


def _source(file: TraceFile, names: dict[str, str], options: ImportOptions) -> Source:
    """Return the records of a file in its dialect."""
    if database.is_dump(file):
        database.refuse_dump(file)
    if sacct_json.recognises(file):
        return sacct_json.source_of(file)
    if jobcomp.recognises(file):
        return jobcomp.source_of(file)
    separator = database.separator_of(file)
    if separator is not None:
        return database.source_of(file, separator, names)
    return sacct.source_of(file, options)


FORMAT = TraceFormat(
    name="slurm",
    reads="sacct -P or --json, a jobcomp/filetxt log, or the accounting database's job table"
    " exported (with its tres_table); several files are one log",
    source="one's own cluster (SchedMD Slurm); also MIT Supercloud's slurm-log.csv",
    recognises=recognises,
    read=read,
)
