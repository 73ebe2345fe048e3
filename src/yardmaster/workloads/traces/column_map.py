"""Which column of a table becomes which column of the job table, and in which unit it is written.

A map is written as users write it: canonical column → `column` or `column:unit`, such as
`{"gpus": "gpu_num", "submit_s": "when:ms", "duration_s": "hours:h"}`. Two columns that job tables
do not have may be named too: from `start_s` and `end_s` come the run time and the wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.names import did_you_mean, unknown
from yardmaster.workloads.tables import ALIASES
from yardmaster.workloads.traces.reading.trace_files import TraceFile

SECONDS_IN = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86_400.0,
}  # fmt: skip
"""Units of times, and how many seconds each is."""

GIB_IN = {
    "gib": 1.0, "mib": 2.0**-10, "kib": 2.0**-20, "b": 2.0**-30,
    "tb": 1e12 / 2**30, "gb": 1e9 / 2**30, "mb": 1e6 / 2**30, "kb": 1e3 / 2**30,
}  # fmt: skip
"""Units of memory, and how many GiB each is."""

MOMENTS = ("submit_s", "start_s", "end_s", "deadline_s")
LENGTHS = ("duration_s", "estimate_s", "recorded_wait_s")
MEMORY = ("memory_gib", "gpu_memory_gib")
COUNTS = ("milli_gpu", "max_gpus_per_node", "min_gpus", "max_gpus")
TEXTS = ("id", "gpu_types", "tenant", "user", "kind", "status")
TARGETS = (*MOMENTS, *LENGTHS, "gpus", "cpus", *MEMORY, *COUNTS, "priority", *TEXTS)
"""What a column may become: the canonical columns, and when the job started and ended."""

OTHER_NAMES = {**ALIASES, "start": "start_s", "end": "end_s"}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a column of the job table comes from.

    Attributes:
        column: the column of the file, in lower case.
        factor: how many seconds or GiB its unit is.
        unit: the unit's name, "" if it is ours.
    """

    column: str
    factor: float = 1.0
    unit: str = ""


def column_sources(
    file: TraceFile, names: Sequence[str], given: Mapping[str, str]
) -> dict[str, Source]:
    """Return where each column of the job table comes from.

    Args:
        file: the table, for messages.
        names: its columns, in lower case.
        given: the user's map; columns that bear canonical names need not be in it.

    Raises:
        UnknownNameError: if the map names a column that job tables do not have.
        InvalidWorkloadError: if a unit makes no sense, or a column is mapped twice.
        TraceFormatError: if the file lacks a column.
    """
    mapped: dict[str, Source] = {}
    for ours, theirs in given.items():
        target = OTHER_NAMES.get(ours, ours)
        if target not in TARGETS:
            raise unknown("column of a job table", ours, (*TARGETS, *OTHER_NAMES))
        mapped[target] = _source(file, names, target, theirs)
    taken = {source.column for source in mapped.values()}
    named_so = {
        OTHER_NAMES.get(name, name): Source(name)
        for name in reversed(names)
        if OTHER_NAMES.get(name, name) in TARGETS and name not in taken
    }
    chosen = named_so | mapped
    _check(file, names, chosen)
    return {target: chosen[target] for target in TARGETS if target in chosen}


def _source(file: TraceFile, names: Sequence[str], target: str, theirs: str) -> Source:
    """Read `column` or `column:unit`; the name of a column may itself hold a colon."""
    whole = theirs.strip().lower()
    if whole in names:
        return Source(whole)
    before, colon, unit = (part.strip() for part in whole.rpartition(":"))
    column = before if colon else whole
    if column not in names:
        raise TraceFormatError(
            f"{file.name}: no column {column!r}.{did_you_mean(column, names)}"
            f" It has: {', '.join(names)}."
        )
    units = GIB_IN if target in MEMORY else SECONDS_IN if target in MOMENTS + LENGTHS else {}
    if unit not in units:
        known = f"Units: {', '.join(units)}." if units else f"{target} has no unit."
        raise InvalidWorkloadError(f"{target}={theirs}: there is no unit {unit!r} here. {known}")
    return Source(column, units[unit], unit)


def _check(file: TraceFile, names: Sequence[str], chosen: Mapping[str, Source]) -> None:
    """Complain if a job would have no submission or no run time, or a column two readings."""
    lacking = [] if "submit_s" in chosen else ["submit_s"]
    if "duration_s" not in chosen and not {"start_s", "end_s"} <= set(chosen):
        lacking.append("duration_s (or start_s and end_s)")
    if lacking:
        example = lacking[0].partition(" ")[0]
        raise TraceFormatError(
            f"{file.name}: no column for {' and '.join(lacking)}; say which with --map"
            f" {example}=COLUMN. It has: {', '.join(names)}."
        )
    taken = [source.column for source in chosen.values()]
    if twice := sorted({column for column in taken if taken.count(column) > 1}):
        raise InvalidWorkloadError(f"{file.name}: mapped more than once: {', '.join(twice)}.")
