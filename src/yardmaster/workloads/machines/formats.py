"""The machine lists that can be imported, and how one is told from another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from yardmaster.errors import InvalidClusterError, TraceFormatError
from yardmaster.names import unknown
from yardmaster.workloads.machines.listing import MachineFormat, MachineOptions
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.trace_files import TraceFile, opened

if TYPE_CHECKING:
    from yardmaster.workloads.machines.document import ImportedCluster

MODULES = ("philly", "helios", "alibaba", "google")
"""Where the formats are."""


@cache
def machine_formats() -> dict[str, MachineFormat]:
    """Return every format by name, in the order in which they are tried."""
    modules = (import_module(f"yardmaster.workloads.machines.{name}") for name in MODULES)
    return {entry.name: entry for module in modules for entry in module.FORMATS}


def is_machine_list(file: TraceFile) -> bool:
    """Tell whether a file lists machines, in any known format; it does not hold jobs then."""
    return any(entry.recognises(file) for entry in machine_formats().values())


def import_machines(
    paths: Sequence[str | Path],
    format_name: str | None = None,
    *,
    only: str | None = None,
    options: MachineOptions | None = None,
) -> ImportedCluster:
    """Read a publisher's list of machines.

    Args:
        paths: its files, as downloaded: plain, gzipped, zipped, tarred, or folders of these.
        format_name: a name of `machine_formats`; None finds out.
        only: pattern for the names of files in folders and archives, such as `Venus`.
        options: what the list does not say itself.

    Raises:
        UnknownNameError: if there is no such format, or no such GPU type.
        InvalidWorkloadError: if a file is missing.
        InvalidClusterError: if no machine is left, or there are several lists.
        TraceFormatError: if the file is not in that format, naming lines, or in none.
    """
    from yardmaster.workloads.machines.document import made_into_cluster

    known = machine_formats()
    if format_name is not None and format_name not in known:
        raise unknown("machine list format", format_name, known)
    if not paths:
        raise InvalidClusterError("Which file? Name a list of machines.")
    chosen = options or MachineOptions()
    with opened([Path(path) for path in paths], only=only) as files:
        entry, file = _list(files, known[format_name] if format_name else None)
        ledger = Ledger(entry.name, [file.name])
        listed = entry.read(file, chosen, ledger)
        name = file.own_name.partition(".")[0] or "cluster"
        return made_into_cluster(listed, entry, chosen, ledger, name)


def _list(
    files: Sequence[TraceFile], given: MachineFormat | None
) -> tuple[MachineFormat, TraceFile]:
    """Return the one list among the files, and its format."""
    entries = [given] if given else list(machine_formats().values())
    found = [(entry, file) for entry in entries for file in files if entry.recognises(file)]
    if not found and given and len(files) == 1:
        return given, files[0]
    if not found:
        reads = "; ".join(f"{entry.name}: {entry.reads}" for entry in entries)
        names = ", ".join(file.name for file in files[:3])
        raise TraceFormatError(f"{names}: no list of machines. Known are {reads}.")
    if len(found) > 1:
        names = ", ".join(file.name for _, file in found)
        raise InvalidClusterError(
            f"There are {len(found)} lists of machines; choose with --only NAME: {names}."
        )
    return found[0]
