"""Standard Workload Format: traces of parallel machines, processors read as GPUs.

A file has header lines (`; Key: value`) and one line of 18 numbers per job, of which these are
read: 1 job number, 2 submit second, 3 wait seconds, 4 run seconds, 5 processors allocated, 8 processors requested,
9 seconds requested, 11 status, 12 user, 13 group (the tenant), 14 executable (the kind). −1 means
unknown. Submit times stay as they are in the file. Every line that does not become a job is counted
in the workload's notes, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.model.workload import LARGEST_TIME_S, BoolArray, FloatArray, IntArray, Workload
from yardmaster.names import unknown
from yardmaster.workloads.files import read_bytes, stem
from yardmaster.workloads.labelling import labels_from_numbers

FIELDS = 18
COLUMNS = {
    "job": 0, "submit": 1, "wait": 2, "run": 3, "allocated": 4, "requested": 7, "time": 8,
    "status": 10, "user": 11, "group": 12, "executable": 13,
}  # fmt: skip
"""What is read, and its place in a line."""

TIMES = ("submit", "wait", "run", "time")
"""What need not be whole numbers."""

STATUS = {0: "failed", 1: "completed", 2: "partial", 5: "cancelled"}
PARTIAL = (2, 3, 4)
"""Status of lines that describe one piece of a job which was interrupted."""

LINES_NAMED = 10
"""How many broken lines the notes name; the rest are counted."""

GpusColumn = Literal["allocated", "requested"]


@dataclass(frozen=True, slots=True)
class SwfHeader:
    """What the header of an SWF file says; None where it says nothing readable.

    Attributes:
        max_procs: processors of the machine.
        max_nodes: nodes of the machine.
        max_jobs: jobs in the original log.
        max_records: job lines in the file.
        unix_start_s: Unix time of second 0 of the file's clock.
        time_zone: name of the machine's time zone.
        fields: every `Key: value` of the header; repeated keys are joined by newlines.
    """

    max_procs: int | None = None
    max_nodes: int | None = None
    max_jobs: int | None = None
    max_records: int | None = None
    unix_start_s: int | None = None
    time_zone: str | None = None
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def processors(self) -> int | None:
        """Size of the machine: its processors, or its nodes where only these are given."""
        return self.max_procs or self.max_nodes


def read_swf_header(path: str | Path) -> SwfHeader:
    """Read the header of an SWF file, plain or gzipped.

    Raises:
        InvalidWorkloadError: if the file cannot be read.
        TraceFormatError: if it is a damaged gzip file.
    """
    return _header(_lines(Path(path)))


def read_swf(path: str | Path, *, gpus_column: GpusColumn = "allocated") -> Workload:
    """Read the jobs of an SWF file, plain or gzipped.

    Processors become GPUs: those in `gpus_column`, or those in the other column where it holds
    none. Lines with run time ≤ 0, no processors or a negative submit time are skipped and counted;
    so are lines for pieces of a job that has a line of its own, and broken lines. A job number used
    twice is replaced by a new one, and counted.

    Raises:
        InvalidWorkloadError: if the file cannot be read, or no job in it can be simulated.
        TraceFormatError: if no line, or less than half of them, can be read.
        UnknownNameError: if `gpus_column` is neither `allocated` nor `requested`.
    """
    if gpus_column not in ("allocated", "requested"):
        raise unknown("gpus_column", str(gpus_column), ("allocated", "requested"))
    path = Path(path)
    lines = _lines(path)
    table, notes = _job_table(path, lines)
    header = _header(lines)
    if header.processors:
        notes.insert(0, f"the machine had {header.processors} processors")
    other = "requested" if gpus_column == "allocated" else "allocated"
    fallback = (table[gpus_column] <= 0) & (table[other] > 0)
    gpus = np.where(fallback, table[other], table[gpus_column])
    kept = _kept(table, gpus, notes)
    if (fallback & kept).any():
        count = _jobs(int(np.count_nonzero(fallback & kept)))
        notes.append(f"{count} without {gpus_column} processors: took the {other} ones")
    if not kept.any():
        raise InvalidWorkloadError(f"{path}: no job is left: {'; '.join(notes)}.")
    rows = {key: column[kept] for key, column in table.items()}
    in_order = np.argsort(rows["submit"], kind="stable")
    return _workload(
        stem(path), {key: column[in_order] for key, column in rows.items()},
        gpus[kept][in_order], notes,
    )  # fmt: skip


def _workload(
    name: str, table: dict[str, FloatArray], gpus: FloatArray, notes: list[str]
) -> Workload:
    requested = table["time"]
    unknown_time = int(np.count_nonzero(requested <= 0))
    if unknown_time:
        notes.append(f"{_jobs(unknown_time)} without a requested time: no estimate")
    return Workload.of(
        name=name,
        id=_unique_numbers(table["job"].astype(np.int64), notes),
        notes=notes,
        submit_s=table["submit"],
        duration_s=table["run"],
        gpus=gpus,
        estimate_s=np.where(requested > 0, requested, np.nan),
        user=labels_from_numbers(table["user"], lambda number: f"user-{number}"),
        tenant=labels_from_numbers(table["group"], lambda number: f"group-{number}"),
        kind=labels_from_numbers(table["executable"], lambda number: f"app-{number}"),
        status=labels_from_numbers(
            np.where(np.isin(table["status"], PARTIAL), PARTIAL[0], table["status"]),
            lambda number: STATUS.get(number, f"status-{number}"),
        ),
        recorded_wait_s=np.where(table["wait"] >= 0, table["wait"], np.nan),
    )


def _lines(path: Path) -> list[str]:
    # Latin-1 reads any byte: headers of old files are in many encodings, job lines are digits.
    text = read_bytes(path).decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _header_items(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if line.startswith(";"):
            key, colon, value = line[1:].partition(":")
            if colon and key.strip():
                yield key.strip(), value.strip()


def _header(lines: list[str]) -> SwfHeader:
    fields: dict[str, str] = {}
    for key, value in _header_items(lines):
        fields[key] = f"{fields[key]}\n{value}" if key in fields else value

    def number(key: str) -> int | None:
        first = (fields.get(key, "").split() or [""])[0]
        return int(first) if first.isascii() and first.isdigit() and len(first) < 16 else None

    return SwfHeader(
        max_procs=number("MaxProcs"),
        max_nodes=number("MaxNodes"),
        max_jobs=number("MaxJobs"),
        max_records=number("MaxRecords"),
        unix_start_s=number("UnixStartTime"),
        time_zone=fields.get("TimeZoneString"),
        fields=fields,
    )


def _job_table(path: Path, lines: list[str]) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the columns of the readable job lines, and a note on the broken ones."""
    numbered = [
        (number, line)
        for number, line in enumerate(lines, start=1)
        if line and not line.startswith(";") and not line.isspace() and line.lstrip()[0] != ";"
    ]
    if not numbered:
        raise TraceFormatError(f"{path}: not a Standard Workload Format file: it has no job lines.")
    right_length = np.array([len(line.split()) == FIELDS for _, line in numbered])
    values = np.full((len(numbered), len(COLUMNS)), np.nan)
    whole = [line for (_, line), right in zip(numbered, right_length, strict=True) if right]
    values[right_length] = _numbers(whole)
    # NaN and infinity fail the comparison, so what could not be read is broken as well.
    good: BoolArray = (np.abs(values) <= LARGEST_TIME_S).all(axis=1)
    not_times = [index for index, key in enumerate(COLUMNS) if key not in TIMES]
    good &= (values[:, not_times] == np.round(values[:, not_times])).all(axis=1)
    broken = [numbered[row][0] for row in np.flatnonzero(~good)]
    if 2 * len(broken) > len(numbered):
        raise TraceFormatError(
            f"{path}: not a Standard Workload Format file: {len(broken)} of {len(numbered)} lines "
            f"do not hold {FIELDS} numbers (lines {_some(broken)})."
        )
    notes = [f"skipped {len(broken)} broken lines: {_some(broken)}"] if broken else []
    return {key: values[good, index] for index, key in enumerate(COLUMNS)}, notes


def _numbers(lines: list[str]) -> FloatArray:
    """Return the columns that are read, NaN in lines with anything that is not a number there."""
    places = tuple(COLUMNS.values())
    if not lines:
        return np.empty((0, len(places)))
    try:
        return np.loadtxt(lines, comments=None, usecols=places, ndmin=2, dtype=np.float64)
    except ValueError:  # at least one line is broken: find out which
        return np.array([_numbers_of_line(line.split(), places) for line in lines])


def _numbers_of_line(cells: list[str], places: tuple[int, ...]) -> list[float]:
    try:
        return [float(cells[place]) for place in places]
    except ValueError:
        return [np.nan] * len(places)


def _kept(table: dict[str, FloatArray], gpus: FloatArray, notes: list[str]) -> BoolArray:
    """Return the mask of lines that become jobs; each other line is counted under one reason."""
    partial = np.isin(table["status"], PARTIAL)
    of_known_job = partial.copy()
    of_known_job[partial] = np.isin(table["job"][partial], table["job"][~partial])
    kept = np.ones(len(gpus), dtype=np.bool_)
    for reason, bad in (
        ("for a piece of another line's job", of_known_job),
        ("with run time ≤ 0", table["run"] <= 0),
        ("without processors", gpus <= 0),
        ("with a negative submit time", table["submit"] < 0),
    ):
        count = int(np.count_nonzero(kept & bad))
        if count:
            notes.append(f"skipped {count} {'line' if count == 1 else 'lines'} {reason}")
        kept &= ~bad
    return kept


def _unique_numbers(numbers: IntArray, notes: list[str]) -> IntArray:
    """Return job numbers with every repeated one replaced by a number nobody uses."""
    repeated = np.ones(len(numbers), dtype=np.bool_)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    again = np.flatnonzero(repeated)
    if len(again) == 0:
        return numbers
    renumbered = numbers.copy()
    renumbered[again] = max(0, int(numbers.max())) + 1 + np.arange(len(again))
    example = f"{numbers[again[0]]} became {renumbered[again[0]]}"
    notes.append(f"renumbered {_jobs(len(again))} whose number was taken (first: {example})")
    return renumbered


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _some(numbers: list[Any]) -> str:
    shown = ", ".join(map(str, numbers[:LINES_NAMED]))
    return shown + (
        f", … ({len(numbers) - LINES_NAMED} more)" if len(numbers) > LINES_NAMED else ""
    )
