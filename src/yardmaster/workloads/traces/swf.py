"""Standard Workload Format: traces of parallel machines, processors read as GPUs.

Of the 18 numbers in a line these are read: 1 job number, 2 submit second, 3 wait seconds, 4 run
seconds, 5 processors allocated, 8 processors requested, 9 seconds requested, 11 status, 12 user,
13 group (the tenant), 14 executable (the kind). −1 means unknown. Submit times stay as they are in
the file; the header may say when its clock begins. Every line that does not become a job is
counted, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.model.workload import FloatArray, Labels, Workload
from yardmaster.names import unknown
from yardmaster.workloads.files import stem
from yardmaster.workloads.labelling import labels_from_numbers
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.bad_rows import LINES_NAMED, BadRows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.swf_lines import FIELDS, SwfHeader, header_of, lines_of, table_of

STATUS = {0: "failed", 1: "completed", 2: "partial", 5: "cancelled"}
PARTIAL = (2, 3, 4)
"""Status of lines that describe one piece of a job which was interrupted."""

OPTIONAL = {
    "wait": "wait time", "time": "requested time", "status": "status", "user": "user",
    "group": "group", "executable": "executable",
}  # fmt: skip
"""What a log may know nothing about, in words."""

PIECE, NO_RUN, NO_PROCESSORS, NEGATIVE = (
    "for a piece of another line's job",
    "with run time ≤ 0",
    "without processors",
    "with a negative submit time",
)
REASONS = {
    PIECE: "a piece of an interrupted job that has a line of its own",
    NO_RUN: "run time 0 or −1, which means unknown",
    NO_PROCESSORS: "processors 0 or −1, which means unknown",
    NEGATIVE: "submitted before second 0",
}
"""Why lines are no jobs: in the words of a workload's notes → in the words of an account."""

NOTED_LINES = 10
"""How many broken lines the notes of a workload name; the rest are counted."""

GpusColumn = Literal["allocated", "requested"]


def read_swf_header(path: str | Path) -> SwfHeader:
    """Read the header of an SWF file, plain or gzipped.

    Raises:
        InvalidWorkloadError: if the file cannot be read.
        TraceFormatError: if it is a damaged gzip file.
    """
    return header_of(lines_of(Path(path)))


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
    lines = lines_of(path)
    header = header_of(lines)
    table, broken = table_of(str(path), lines)
    if broken.count > len(table["line"]):
        raise TraceFormatError(
            f"{path}: not a Standard Workload Format file: {broken.count} of"
            f" {broken.count + len(table['line'])} lines do not hold {FIELDS} numbers"
            f" (lines {_some(broken)})."
        )
    jobs = _judged(table, gpus_column)
    notes = _notes(header, broken, jobs)
    if not len(jobs.gpus):
        raise InvalidWorkloadError(f"{path}: no job is left: {'; '.join(notes)}.")
    columns = {**_columns(jobs), "gpus": jobs.gpus}
    return Workload.of(name=stem(path), notes=notes, begins=header.begins(), **columns)


def _notes(header: SwfHeader, broken: BadRows, jobs: _Jobs) -> list[str]:
    """Say what was skipped and changed, in the words of a workload's notes."""
    notes = [f"the machine had {header.processors} processors"] if header.processors else []
    if broken.count:
        notes.append(f"skipped {broken.count} broken lines: {_some(broken)}")
    for reason, count in jobs.skipped.items():
        notes.append(f"skipped {count} {'line' if count == 1 else 'lines'} {reason}")
    if jobs.fallback:
        count_of = _counted(jobs.fallback)
        notes.append(f"{count_of} without {jobs.taken} processors: took the {jobs.other} ones")
    if unknown_time := int(np.count_nonzero(jobs.table["time"] <= 0)):
        notes.append(f"{_counted(unknown_time)} without a requested time: no estimate")
    if jobs.renumbered:
        again = f"{_counted(jobs.renumbered)} whose number was taken (first: {jobs.example})"
        notes.append(f"renumbered {again}")
    return notes


def _counted(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _some(broken: BadRows) -> str:
    """Name the first lines and count the others."""
    shown = ", ".join(str(line) for line, _ in broken.first[:NOTED_LINES])
    more = broken.count - NOTED_LINES
    return shown + (f", … ({more} more)" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class _Jobs:
    """The lines that became jobs, by submit time, and what became of the others.

    Attributes:
        table: columns as in the file; job numbers are unique.
        gpus: processors of each job, from column `taken`.
        skipped: why lines are no jobs → how many.
        fallback: jobs whose processors come from the `other` column.
        renumbered: jobs whose number another job has; `example` says how the first was changed.
    """

    table: dict[str, FloatArray]
    gpus: FloatArray
    skipped: dict[str, int]
    taken: GpusColumn
    other: str
    fallback: int
    renumbered: int
    example: str


def _judged(table: dict[str, FloatArray], taken: GpusColumn) -> _Jobs:
    """Decide which lines are jobs; every other line is counted under one reason."""
    other = "requested" if taken == "allocated" else "allocated"
    fallback = (table[taken] <= 0) & (table[other] > 0)
    gpus = np.where(fallback, table[other], table[taken])
    partial = np.isin(table["status"], PARTIAL)
    of_known_job = partial.copy()
    of_known_job[partial] = np.isin(table["job"][partial], table["job"][~partial])
    kept = np.ones(len(gpus), dtype=np.bool_)
    skipped: dict[str, int] = {}
    for reason, bad in (
        (PIECE, of_known_job),
        (NO_RUN, table["run"] <= 0),
        (NO_PROCESSORS, gpus <= 0),
        (NEGATIVE, table["submit"] < 0),
    ):
        if count := int(np.count_nonzero(kept & bad)):
            skipped[reason] = count
        kept &= ~bad
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(table["submit"][rows], kind="stable")]
    jobs = {key: column[rows] for key, column in table.items()}
    jobs["job"], renumbered, example = _unique_numbers(jobs["job"])
    fell_back = int(np.count_nonzero(fallback & kept))
    return _Jobs(jobs, gpus[rows], skipped, taken, other, fell_back, renumbered, example)


def _unique_numbers(numbers: FloatArray) -> tuple[FloatArray, int, str]:
    """Return job numbers with every repeated one replaced by a number nobody uses."""
    repeated = np.ones(len(numbers), dtype=np.bool_)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    again = np.flatnonzero(repeated)
    if len(again) == 0:
        return numbers, 0, ""
    unique = numbers.copy()
    unique[again] = max(0, int(numbers.max())) + 1 + np.arange(len(again))
    return unique, len(again), f"{numbers[again[0]]:.0f} became {unique[again[0]]:.0f}"


def _columns(jobs: _Jobs) -> dict[str, Any]:
    """Return the canonical columns of the jobs, without the GPUs."""
    table = jobs.table
    status = np.where(np.isin(table["status"], PARTIAL), PARTIAL[0], table["status"])
    return {
        "id": table["job"].astype(np.int64),
        "submit_s": table["submit"],
        "duration_s": table["run"],
        "estimate_s": np.where(table["time"] > 0, table["time"], np.nan),
        "user": labels_from_numbers(table["user"], lambda number: f"user-{number}"),
        "tenant": labels_from_numbers(table["group"], lambda number: f"group-{number}"),
        "kind": labels_from_numbers(table["executable"], lambda number: f"app-{number}"),
        "status": labels_from_numbers(
            status, lambda number: STATUS.get(number, f"status-{number}")
        ),
        "recorded_wait_s": np.where(table["wait"] >= 0, table["wait"], np.nan),
    }


# --- the import with its account ------------------------------------------------------------------


def recognises(file: TraceFile) -> bool:
    """Tell a log by its name, or by lines of 18 numbers with blanks between them."""
    if file.short_name.endswith(".swf"):
        return True
    jobs = [line.split() for line in file.lines if not line.lstrip().startswith(";")][:20]
    return bool(jobs) and all(
        len(cells) == FIELDS and all(map(_is_number, cells)) for cells in jobs
    )


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdigit()


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read one log; its clock stays as it is.

    Raises:
        InvalidWorkloadError: if there are several logs, whose clocks differ.
        TraceFormatError: if lines cannot be read and may not be skipped.
    """
    if len(files) > 1:
        raise InvalidWorkloadError(
            "Every SWF log has a clock of its own: import them one by one, then merge them."
        )
    file = files[0]
    lines = lines_of(file.path)
    header = header_of(lines)
    table, broken = table_of(file.name, lines)
    count = broken.count + len(table["line"])
    table, refused = _without_early(file, table, broken, options)
    jobs = _judged(table, "allocated")
    dropped = [refused, *(Dropped(REASONS[why], lost) for why, lost in jobs.skipped.items())]
    ledger.stage(f"lines of {file.own_name}", count, len(jobs.gpus), dropped)
    columns = {**_columns(jobs), "gpus": _slots(jobs, header, options, ledger)}
    _book(jobs, header, ledger)
    frame = pl.DataFrame({key: _series(column) for key, column in columns.items()})
    begins = header.begins(options.time_zone)
    zone = options.time_zone or header.time_zone or "the header's offset from UTC"
    return Draft(frame, ledger, dated=False, begins=begins, time_zone=zone if begins else "")


def _without_early(
    file: TraceFile, table: dict[str, FloatArray], broken: BadRows, options: ImportOptions
) -> tuple[dict[str, FloatArray], Dropped]:
    """Return the lines submitted at second 0 or later; earlier ones are mistakes like broken ones.

    Raises:
        TraceFormatError: naming them, if they may not be skipped.
    """
    early = table["submit"] < 0
    mistakes = [
        (int(table["line"][row]), f"submitted at second {table['submit'][row]:g}, before second 0")
        for row in np.flatnonzero(early)[:LINES_NAMED]
    ]
    bad = BadRows(broken.count + int(early.sum()), sorted(broken.first + mistakes)[:LINES_NAMED])
    dropped = bad.dropped(file.name, options, what="line")
    return {key: column[~early] for key, column in table.items()}, dropped


def _slots(jobs: _Jobs, header: SwfHeader, options: ImportOptions, ledger: Ledger) -> FloatArray:
    """Return the GPUs of each job: one for every processor, or for every `slot_cores` of them."""
    size = f" of {header.processors:,}" if header.processors else ""
    if options.slot_cores is None:
        ledger.remark(f"every processor{size} is one slot, which is simulated as one GPU")
        return jobs.gpus
    cores = options.slot_cores
    machine = header.processors and math.ceil(header.processors / cores)
    slots = f": the machine has {machine:,}" if machine else ""
    ledger.remark(f"{cores:g} processors{size} are one slot, simulated as one GPU{slots}")
    return np.ceil(jobs.gpus / cores)


def _book(jobs: _Jobs, header: SwfHeader, ledger: Ledger) -> None:
    """Book what was altered and what the log does not know."""
    ledger.change(f"have no {jobs.taken} processors: took the {jobs.other} ones", jobs.fallback)
    ledger.change(f"renumbered: their number was taken (first: {jobs.example})", jobs.renumbered)
    ledger.missing(words for key, words in OPTIONAL.items() if (jobs.table[key] < 0).all())
    if not header.begins():
        ledger.remark("the header does not say when the clock begins")


def _series(column: FloatArray | Labels) -> pl.Series:
    if isinstance(column, Labels):
        return pl.Series(column.values(), dtype=pl.String)
    return pl.Series(column).fill_nan(None) if column.dtype.kind == "f" else pl.Series(column)


FORMAT = TraceFormat(
    name="swf",
    reads="a log of the Parallel Workloads Archive, .swf or .swf.gz",
    source="Parallel Workloads Archive (Feitelson et al.; acknowledge the log's owners)",
    recognises=recognises,
    read=read,
    one_table=True,
)
