"""`sacct -P` or `-p`: the accounting database as a table, with whatever columns were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.slurm.lines import cells
from yardmaster.workloads.traces.slurm.records import STORED, Source

COMMAND = (
    "sacct -a -X -P -S YYYY-MM-DD --format=JobIDRaw,JobID,User,Account,Partition,Submit,Eligible,"
    "Start,End,ElapsedRaw,Suspended,TimelimitRaw,State,NNodes,NCPUS,ReqTRES,AllocTRES,Priority,"
    "NodeList"
)
"""What to run; `JobName` and `Comment` are left out because they may hold anything."""

SEPARATORS = ("|", "\t", ";", ",")
ALIASES = {"alloccpus": "NCPUS", "allocnodes": "NNodes", "uid": "User"}
"""Columns that say the same as another, used where that one is missing."""

NEEDED = (
    ("JobIDRaw", "JobID"),
    ("Submit",),
    ("Start",),
    ("ElapsedRaw", "Elapsed", "End"),
)
"""Columns without which rows are no jobs; one of each group is enough."""

RESOURCES = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
CORES = ("AllocTRES", "ReqTRES", "NCPUS", "ReqCPUS")
_OURS = {name.lower(): name for name in STORED if name not in ("Kind", "SuspendedRaw")}
_ID = re.compile(r"\d+(?:_\d+|_\[.*\]|\+\d+)?(?:\.\w+)?", re.ASCII)
_STATE = re.compile(r"[A-Z_]{6,}(?: by \d+)?\+?")


def separator_of(file: TraceFile) -> str | None:
    """Return what separates the columns of a `sacct` table; None if it is no such table."""
    for separator in SEPARATORS:
        columns = set(file.columns(separator))
        known = columns & (set(_OURS) | set(ALIASES))
        if columns & {"jobid", "jobidraw"} and len(known) > 3:
            return separator
    return None


def is_for_eyes(file: TraceFile) -> bool:
    """Tell `sacct` without -P: columns of fixed width above a line of dashes."""
    first = file.lines[0].split() if file.lines else []
    dashes = len(file.lines) > 1 and set(file.lines[1]) == {"-", " "}
    return dashes and any(word.lower() in ("jobid", "jobidraw") for word in first)


def has_no_header(file: TraceFile) -> bool:
    """Tell `sacct -n`: a job's number and its state, but no names of columns."""
    row = (file.lines or [""])[0].split("|")
    return len(row) > 3 and any(map(_ID.fullmatch, row)) and any(map(_STATE.fullmatch, row))


def source_of(file: TraceFile, options: ImportOptions) -> Source:
    """Return the records of a `sacct` table.

    Raises:
        TraceFormatError: if it has no header, or columns are missing; saying what to run.
    """
    if is_for_eyes(file):
        raise TraceFormatError(f"{file.name}: sacct's table for the eye cuts cells. Run: {COMMAND}")
    separator = separator_of(file)
    if separator is None:
        raise TraceFormatError(
            f"{file.name}: no line names the columns. Run, without -n: {COMMAND}"
        )
    written = file.columns(separator)
    names = _names(written)
    _refuse_missing(file, names, options)
    source = Source(file, called=_called(written, names))
    source.batches = cells(source, separator, names)
    return source


def _names(written: Iterable[str]) -> list[str]:
    """Return the columns by the names used here, "" for those that are not wanted."""
    columns = list(written)
    aliases = {alias: name for alias, name in ALIASES.items() if name.lower() not in columns}
    names: list[str] = []
    for column in columns:
        name = aliases.get(column) or _OURS.get(column, "")
        names.append("" if name in names else name)  # a column may be asked for twice
    return names


def _called(written: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return the names of columns that stand for another."""
    pairs = zip(names, written, strict=True)
    return {name: column for name, column in pairs if name and name.lower() != column}


def _refuse_missing(file: TraceFile, names: list[str], options: ImportOptions) -> None:
    groups = [*NEEDED, RESOURCES if options.slot_cores is None else CORES]
    lacking = [" or ".join(group) for group in groups if not set(group) & set(names)]
    if lacking:
        raise TraceFormatError(
            f"{file.name}: no column {', and no '.join(lacking)}. Run: {COMMAND}"
        )
