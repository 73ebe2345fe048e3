"""From the text of Slurm's records, in whichever dialect, to typed records.

Every dialect hands over its cells as text under the names that `sacct` gives to its columns, so
that what a cell means, and when it makes no sense, is said here once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import polars as pl

from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.bad_rows import LINES_NAMED, BadRows
from yardmaster.workloads.traces.reading.cells import BLANKS, epoch_s
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.slurm import fields
from yardmaster.workloads.traces.slurm.demands import condensed

LINE = "line"
TIMES = ("Submit", "Eligible", "Start", "End")
LABELS = ("User", "Account", "Partition", "Cluster", "NodeList", "Kind")
IDS = ("JobID", "JobIDRaw")

_RESOURCES = pl.Struct(
    {
        "gpus": pl.Int64, "types": pl.String, "shares": pl.Boolean, "guessed": pl.Boolean,
        "cpus": pl.Int64, "memory_mib": pl.Float64,
    }
)  # fmt: skip
_MEMORY = pl.Struct({"mib": pl.Float64, "each": pl.String})


@dataclass(frozen=True, slots=True)
class Cells:
    """What the cells of a column hold.

    Attributes:
        meaning: what they should be, in the words of a complaint.
        read: the value of one cell; `ValueError` if it makes no sense.
        stored: the type of the values.
    """

    meaning: str
    read: Callable[[str], Any]
    stored: Any


def _cells(tres_names: Mapping[str, str]) -> dict[str, Cells]:
    """Return what the columns hold whose cells repeat, so that each distinct cell is read once."""
    seconds = Cells("seconds from 0", fields.amount, pl.Float64)
    duration = Cells("a duration such as 1-02:03:04", fields.duration_s, pl.Float64)
    limit = Cells("a time limit", fields.limit_s, pl.Float64)
    number = Cells("a whole number from 0", fields.count, pl.Int64)
    tres = Cells(
        "a list such as cpu=4,gres/gpu=2",
        cache(lambda cell: fields.tres(cell, tres_names)._asdict()),
        _RESOURCES,
    )
    gres = Cells("a list such as gpu:v100:2", lambda cell: fields.gres(cell)._asdict(), _RESOURCES)
    return {
        "Elapsed": duration, "ElapsedRaw": seconds, "Suspended": duration, "SuspendedRaw": seconds,
        "Timelimit": limit, "TimelimitRaw": limit,
        "State": Cells("a state such as COMPLETED", fields.state, pl.String),
        "NNodes": number, "NCPUS": number, "ReqCPUS": number,
        "ReqTRES": tres, "AllocTRES": tres, "ReqGRES": gres, "AllocGRES": gres,
        "ReqMem": Cells("memory such as 4G", _memory, _MEMORY),
        "Priority": Cells("a number from 0", fields.amount, pl.Float64),
    }  # fmt: skip


def _memory(cell: str) -> dict[str, Any]:
    mib, each = fields.requested_mib(cell)
    return {"mib": mib, "each": each}


STORED = {
    **dict.fromkeys((*IDS, *LABELS), pl.String),
    **dict.fromkeys(TIMES, pl.Float64),
    **{name: cells.stored for name, cells in _cells({}).items()},
}
"""Every column that is looked at, by `sacct`'s name, and how its values are kept.

`Kind` and `SuspendedRaw` are ours.
"""
ALLOCATED = "Allocated"
"""Whether a record shows that the job ever held nodes."""

NOTHING = (*BLANKS, "(null)", "none assigned", "invalid")
"""Cells, in lower case, in which nothing is written; limits have more (`fields.NO_LIMIT`)."""

_JOB = r"^\d{1,18}(?:_\d+|_\[[^\]|]*\]|\+\d+)?$"
_STEP = r"^\d{1,18}(?:[_+][^.|]*)?\.[\w+.-]+$"
_NOT_READ = r"(?:^|,)(?:energy|3|billing|5)=[^,]*"
_UNIX = r"^\d{1,12}(?:\.0*)?$"
_CLOCK_CHANGE_S = 3600.0


@dataclass(slots=True)
class Source:
    """One file of records, while it is read.

    Attributes:
        file: the file.
        batches: text columns by `sacct`'s names, and the `LINE` of each row.
        read: rows seen so far, readable or not.
        bad: rows that cannot be read.
        dropped: rows that the dialect itself leaves out, by reason.
        ids_may_be_rounded: whether jobs may have no number of their own.
        has_unix_times: whether times were seen that are Unix seconds.
        known: columns in which something is written.
        called: `sacct`'s name of a column → its name in this dialect, where it is another.
        tres_names: names of resources that the dialect numbers.
    """

    file: TraceFile
    batches: Iterator[pl.DataFrame] = field(default_factory=lambda: iter(()))
    read: int = 0
    bad: BadRows = field(default_factory=BadRows)
    dropped: dict[str, int] = field(default_factory=dict)
    ids_may_be_rounded: bool = False
    has_unix_times: bool = False
    known: set[str] = field(default_factory=set)
    called: Mapping[str, str] = field(default_factory=dict)
    tres_names: Mapping[str, str] = field(default_factory=lambda: fields.TRES_NAMES)

    def name(self, column: str) -> str:
        """Return what the dialect calls a column."""
        return self.called.get(column, column)

    def reject(self, lines: pl.Series, why: Callable[[int], str]) -> None:
        """Count rows that cannot be read.

        Args:
            lines: where they stand.
            why: what is wrong with the row at a place of `lines`; asked only for the first.
        """
        named = max(0, LINES_NAMED - self.bad.count)
        for place, line in enumerate(lines.head(named)):
            self.bad.add(line, why(place))
        self.bad.count += max(0, len(lines) - named)


def read_records(source: Source, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return a file's records without those of job steps, and book what was read and dropped.

    Times are seconds since 1970 on the local clock; for the columns see `condensed`.

    Raises:
        TraceFormatError: if rows cannot be read and may not be skipped, naming the first lines.
    """
    cells = _cells(source.tres_names)
    frames: list[pl.DataFrame] = []
    steps = 0
    for batch in source.batches:
        of_jobs = batch.filter(~_is_step(batch.columns))
        steps += len(batch) - len(of_jobs)
        frames.append(condensed(_typed(of_jobs, cells, source, options)))
    unreadable = source.bad.dropped(source.file.name, options, what="record")
    empty = pl.DataFrame(schema={**STORED, ALLOCATED: pl.Boolean})
    records = pl.concat([condensed(empty), *frames])
    source.dropped["a step of a job, which has a row of its own"] = steps
    dropped = [unreadable, *(Dropped(why, number) for why, number in source.dropped.items())]
    ledger.stage(f"rows of {source.file.own_name}", source.read, len(records), dropped)
    return records


def _is_step(columns: list[str]) -> pl.Expr:
    """Return the rows of steps, such as 123.batch."""
    present = [pl.col(name).str.contains(_STEP) for name in IDS if name in columns]
    return pl.any_horizontal(pl.lit(value=False), *present).fill_null(value=False)


def _typed(
    batch: pl.DataFrame, cells: Mapping[str, Cells], source: Source, options: ImportOptions
) -> pl.DataFrame:
    """Return the records of a batch that make sense, typed; remember the others."""
    text = batch.with_columns(_without_blanks(name) for name in batch.columns if name != LINE)
    columns: dict[str, pl.Series] = {}
    wrong: dict[str, pl.Series] = {}
    if "Submit" in text.columns and text["Submit"].str.contains(_UNIX).any():
        source.has_unix_times = True
    source.known |= {name for name in text.columns if text[name].null_count() < len(text)}
    for name in text.columns:
        columns[name], wrong[name] = _read(text[name], cells, options)
    frame = pl.DataFrame(columns)
    wrong |= _senseless(frame, source)
    unreadable = pl.DataFrame(wrong).select(pl.any_horizontal(pl.all())).to_series()
    rows = unreadable.arg_true()

    def why(place: int) -> str:
        row = rows[place]
        name = next(name for name in wrong if wrong[name][row])
        if name not in columns:
            return name
        return f"{source.name(name)} is {batch[name][row][:60]!r}, not {_meaning(name, cells)}"

    source.reject(batch[LINE].gather(rows), why)
    lacking = [
        pl.lit(None, stored).alias(name) for name, stored in STORED.items() if name not in columns
    ]
    sound = frame.filter(~unreadable).with_columns(_allocated(frame.columns))
    return sound.with_columns(lacking).select(*STORED, ALLOCATED)


def _without_blanks(name: str) -> pl.Expr:
    """Return trimmed cells, null where nothing is written; Unix time 0 is never."""
    text = pl.col(name).str.strip_chars()
    if name.endswith("TRES"):  # new numbers for every job, of which nothing is read
        text = text.str.replace_all(_NOT_READ, "").str.strip_chars_start(",")
    nothing = (*NOTHING, "0", "0.0") if name in TIMES else NOTHING
    return pl.when(~text.str.to_lowercase().is_in(nothing)).then(text).alias(name)


def _read(
    text: pl.Series, cells: Mapping[str, Cells], options: ImportOptions
) -> tuple[pl.Series, pl.Series]:
    """Return the values of a column, and where a cell makes no sense."""
    if text.name in TIMES:
        read: pl.Series = text.to_frame().select(_time(pl.col(text.name), options)).to_series()
        return read, read.is_null() & text.is_not_null()
    if text.name in IDS:
        return text, ~text.str.contains(_JOB).fill_null(value=True)
    if text.name in cells:
        return _by_value(text, cells[text.name])
    return text, pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(text))


def _time(text: pl.Expr, options: ImportOptions) -> pl.Expr:
    """Return times as seconds since 1970 on the local clock: dates, or Unix seconds."""
    dates = epoch_s(text, options, ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"))
    unix = pl.when(text.str.contains(_UNIX)).then(text).cast(pl.Float64, strict=False)
    read = pl.coalesce(dates, unix + options.winter_offset_s())
    return pl.when(read >= 0.0).then(read)


def _by_value(text: pl.Series, cells: Cells) -> tuple[pl.Series, pl.Series]:
    distinct = text.drop_nulls().unique()
    values, wrong = [], []
    for cell in distinct:
        try:
            values.append(cells.read(cell))
            wrong.append(False)
        except ValueError:
            values.append(None)
            wrong.append(True)
    known = pl.DataFrame(
        {
            text.name: distinct,
            "value": pl.Series(values, dtype=cells.stored),
            "wrong": pl.Series(wrong, dtype=pl.Boolean),
        }
    )
    joined = text.to_frame().join(known, on=text.name, how="left", maintain_order="left")
    return joined["value"].alias(text.name), joined["wrong"].fill_null(value=False)


def _meaning(name: str, cells: Mapping[str, Cells]) -> str:
    if name in cells:
        return cells[name].meaning
    return "a date and time" if name in TIMES else "the number of a job"


def _allocated(columns: list[str]) -> pl.Expr:
    """Return whether jobs held nodes: cancelled ones may have a start time without."""
    ran = [pl.col(name) for name in ("ElapsedRaw", "Elapsed") if name in columns]
    if {"Start", "End"} <= set(columns):
        ran.append(pl.col("End") - pl.col("Start"))
    signs = [pl.col(name).is_null() for name in ("NodeList", "AllocTRES") if name in columns]
    if "NNodes" in columns:
        signs.append((pl.col("NNodes") == 0).fill_null(value=False))
    unseen = pl.any_horizontal(pl.lit(value=False), *signs)
    return (~unseen | (pl.coalesce(*ran, 0.0) > 0)).alias(ALLOCATED)


def _senseless(frame: pl.DataFrame, source: Source) -> dict[str, pl.Series]:
    """Return what is wrong with records whose cells make sense one by one."""
    present = set(frame.columns)
    problems: dict[str, pl.Expr] = {}
    ids = [pl.col(name).is_null() for name in IDS if name in present]
    if ids and not source.ids_may_be_rounded:
        problems["the job has no number"] = pl.all_horizontal(ids)
    if {"Start", "End"} <= present:
        # Where the run time is written down as well, an hour is forgiven: clocks go back in autumn.
        slack = _CLOCK_CHANGE_S if present & {"Elapsed", "ElapsedRaw"} else 0.0
        backwards = (pl.col("End") + slack < pl.col("Start")).fill_null(value=False)
        problems[f"{source.name('End')} is before {source.name('Start')}"] = backwards
    return {why: frame.select(holds).to_series() for why, holds in problems.items()}
