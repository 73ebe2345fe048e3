"""The trace formats that can be imported, and how one is told from another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.names import unknown
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile, opened, some

if TYPE_CHECKING:
    from yardmaster.workloads.traces.reading.draft import Draft, ImportedTrace

MODULES = (
    "slurm",
    "philly",
    "acme",
    "helios",
    "alibaba_pai",
    "alibaba_openb",
    "alibaba_spot",
    "alibaba_dlrm",
    "lingjun",
    "google_2019",
    "google_2011",
    "conversions",
    "rltune_csv",
    "rlmetadqn_csv",
    "swf",
    "mapped_csv",
)
"""Where the formats are; a file is taken for the first format that recognises it."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """One publisher's format.

    Attributes:
        name: what users call it, such as `helios`.
        reads: which of the publisher's files it reads.
        source: who published the trace, when, under which licence.
        recognises: tells from a file's name and first lines whether it is a table of this format.
        read: turns the files into jobs.
        one_table: whether every file is a whole trace of its own, so that several files in one
            folder or archive are a question to the user, not parts of one trace.
    """

    name: str
    reads: str
    source: str
    recognises: Callable[[TraceFile], bool]
    read: Callable[[Sequence[TraceFile], ImportOptions, Ledger], Draft]
    one_table: bool = False


@cache
def trace_formats() -> dict[str, TraceFormat]:
    """Return every format by name, in the order in which they are tried."""
    modules = (import_module(f"yardmaster.workloads.traces.{name}") for name in MODULES)
    return {
        entry.name: entry
        for module in modules
        for entry in (module.FORMATS if hasattr(module, "FORMATS") else (module.FORMAT,))
    }


def add_trace_format(entry: TraceFormat) -> None:
    """Let `import_trace` read a format of one's own, in this program; it is tried before others.

    Raises:
        TraceFormatError: if a format of that name comes with Yardmaster.
    """
    known = trace_formats()
    own = known.get(entry.name)
    if own is not None and own.read.__module__.startswith("yardmaster."):
        raise TraceFormatError(f"{entry.name!r} is a built-in format; give yours another name.")
    others = {name: other for name, other in known.items() if name != entry.name}
    known.clear()
    known.update({entry.name: entry} | others)


def import_trace(
    paths: Sequence[str | Path],
    format_name: str | None = None,
    *,
    only: str | None = None,
    options: ImportOptions | None = None,
) -> ImportedTrace:
    """Read a trace in its publisher's format.

    Args:
        paths: its files, as downloaded: plain, gzipped, zipped, tarred, or folders of these.
        format_name: a name of `trace_formats`; None finds out.
        only: pattern for the names of files in folders and archives, such as `Venus`.
        options: what the trace does not say itself.

    Raises:
        UnknownNameError: if there is no such format.
        InvalidWorkloadError: if a file is missing or no job is left.
        TraceFormatError: if the files are not in that format, naming lines, or in none.
    """
    known = trace_formats()
    if format_name is not None and format_name not in known:
        raise unknown("trace format", format_name, known)
    if not paths:
        raise InvalidWorkloadError("Which files? Name at least one file or folder.")
    with opened([Path(path) for path in paths], only=only) as files:
        chosen = known[format_name] if format_name else detected(files)
        return imported(chosen, files, options, is_named=format_name is not None)


def imported(
    chosen: TraceFormat,
    files: Sequence[TraceFile],
    options: ImportOptions | None = None,
    *,
    is_named: bool,
) -> ImportedTrace:
    """Read open files in one format, which need not be registered.

    Args:
        chosen: the format.
        files: the files; those that it does not recognise are left out and told.
        options: what the trace does not say itself.
        is_named: whether somebody named the format, so that it must read what it cannot recognise.

    Raises:
        InvalidWorkloadError: if no job is left.
        TraceFormatError: if the files are not in that format, naming lines.
    """
    from yardmaster.workloads.traces.reading.draft import finished

    tables = _tables(chosen, files, given=is_named)
    ledger = Ledger(chosen.name, [file.name for file in tables])
    unread = [file.name for file in files if file not in tables]
    if unread:
        ledger.remark(f"not read, because no table of this format: {some(unread)}")
    try:
        draft = chosen.read(tables, options or ImportOptions(), ledger)
    except TraceFormatError as error:
        raise TraceFormatError(f"{error}{_looks_like(chosen, files)}") from None
    return finished(draft, _name(tables) or chosen.name)


def detected(files: Sequence[TraceFile]) -> TraceFormat:
    """Return the format of the first file that any format recognises.

    Raises:
        TraceFormatError: if none does.
    """
    from yardmaster.workloads.machines.formats import is_machine_list

    for entry in trace_formats().values():
        if any(entry.recognises(file) for file in files):
            return entry
    if any(map(is_machine_list, files)):
        raise TraceFormatError(
            f"{some(file.name for file in files)}: a list of machines, not of jobs;"
            " `yardmaster cluster import` makes a cluster of it."
        )
    raise TraceFormatError(
        f"{some(file.name for file in files)}: no known trace format. Name it, or read any"
        " table with: csv --map submit_s=… duration_s=… gpus=…. `workload list` shows the formats."
    )


def _looks_like(chosen: TraceFormat, files: Sequence[TraceFile]) -> str:
    """Return a hint if another format would recognise what the one that was named does not."""
    if any(map(chosen.recognises, files)):
        return ""
    others = (entry.name for entry in trace_formats().values() if any(map(entry.recognises, files)))
    other = next(others, None)
    return f"\nNot {chosen.name}? It looks like {other}." if other else ""


def _tables(
    entry: TraceFormat, files: Sequence[TraceFile], *, given: bool
) -> tuple[TraceFile, ...]:
    """Return the files the format reads: those it recognises, or all if it was named."""
    tables = tuple(file for file in files if entry.recognises(file))
    if not tables and given:
        tables = tuple(files)
    found_in = [file.given for file in tables]
    if entry.one_table and len(found_in) > len(set(found_in)):
        raise InvalidWorkloadError(
            f"There are {len(tables)} traces here, each of its own cluster; choose with --only"
            f" NAME, or name files to merge: {some(file.name for file in tables)}."
        )
    return tables


def _name(files: Sequence[TraceFile]) -> str:
    """Return what to call the workload: its only file's name without folder and endings, or ""."""
    return files[0].own_name.partition(".")[0] if len(files) == 1 else ""
