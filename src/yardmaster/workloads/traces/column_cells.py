"""How the cells of a mapped table are read: numbers in any unit, dates with or without a zone."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.column_map import COUNTS, LENGTHS, MOMENTS, TEXTS, Source
from yardmaster.workloads.traces.reading.cells import (
    BLANKS,
    LARGEST_COUNT,
    LARGEST_SECONDS,
    TIME_FORMATS,
    Field,
    Kind,
)
from yardmaster.workloads.traces.reading.delimited import Layout
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.reading.zoned import utc_s

WITH_OFFSET = r"^(.*\d:\d\d(?:\.\d+)?) ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)$"
"""A time and, after it, how far its clock is from UTC."""

CELLS_LOOKED_AT = 50
"""How many cells tell whether a column holds dates or numbers."""

BESIDE = {"end_s": "start_s", "milli_gpu": "gpus", "min_gpus": "gpus", "max_gpus": "gpus"}
"""Columns that must agree with another one."""

AGREES = {
    "end_s": ", not before the start",
    "milli_gpu": " up to 1000, below 1000 only for one GPU",
    "min_gpus": ", not above the GPUs",
    "max_gpus": ", not below the GPUs",
}
"""How they must agree, for messages."""


@dataclass(frozen=True, slots=True)
class Measured(Field):
    """A number in a unit of its own, judged in ours, perhaps together with another column.

    Attributes:
        factor: how many of our units one of its own is.
        smallest: least that makes sense, in our unit.
        largest: most that makes sense, in our unit.
        wrong: where it contradicts another column.
        agrees: how it must agree with another column, in words.
    """

    factor: float = 1.0
    smallest: float = 0.0
    largest: float = LARGEST_SECONDS
    wrong: pl.Expr | None = dataclass_field(default=None, compare=False)
    agrees: str = ""

    @property
    def expected(self) -> str:
        """What its cells hold, for messages."""
        return f"{self.kind.value}{self.agrees}"

    def impossible(self) -> pl.Expr:
        """Return where the number cannot be; never where it is null."""
        value = pl.col(self.name) * self.factor
        outside = ~(value.is_finite() & (value >= self.smallest) & (value <= self.largest))
        if self.wrong is not None:
            outside |= self.wrong.fill_null(value=False)
        return outside.fill_null(value=False)


@dataclass(frozen=True, slots=True)
class Dated(Field):
    """A date and time, perhaps with its distance from UTC, perhaps not before another.

    Attributes:
        offset_s: how far the clock that times are put on is ahead of UTC; None if they are written
            without a zone.
        not_before: the column this one cannot be before.
    """

    offset_s: float | None = None
    not_before: Field | None = None

    @property
    def expected(self) -> str:
        """What its cells hold, for messages."""
        return f"{self.kind.value}{AGREES['end_s'] if self.not_before else ''}"

    def times(self, options: ImportOptions, *, all_formats: bool) -> pl.Expr:
        """Return seconds since 1970 on the local clock, null if unreadable or too early."""
        if self.offset_s is None:
            moment = Field.times(self, options, all_formats=all_formats)
        else:
            others = [form for form in TIME_FORMATS if form != self.time_format]
            formats = (self.time_format, *(others if all_formats else ()))
            moment = utc_s(pl.col(self.name), formats) + self.offset_s
        if self.not_before is None:
            return moment
        earliest = self.not_before.times(options, all_formats=all_formats)
        return pl.when(earliest.is_null() | (moment >= earliest)).then(moment)


def fields_for(
    file: TraceFile, layout: Layout, sources: Mapping[str, Source], options: ImportOptions
) -> dict[str, Field]:
    """Return how to read the column of each target; first cells tell dates from numbers.

    Raises:
        TraceFormatError: if some moments are numbers and others dates, or dates have a unit.
    """
    cells = {
        target: _first_cells(file, layout, sources[target].column)
        for target in MOMENTS
        if target in sources
    }
    dated = {target: _are_dates(first) for target, first in cells.items() if first}
    if len(set(dated.values())) > 1:
        words = [f"{sources[t].column} has {'dates' if d else 'numbers'}" for t, d in dated.items()]
        raise TraceFormatError(f"{file.name}: two kinds of clock: {', '.join(words)}.")
    fields: dict[str, Field] = {}
    for target, source in sources.items():
        if target in cells and any(dated.values()):
            if source.unit:
                raise TraceFormatError(
                    f"{file.name}: {source.column} has dates, which are not in {source.unit}."
                )
            clock = _first_date(cells["submit_s"])
            sample = _first_date(cells[target]) or clock
            earlier = fields.get(BESIDE.get(target, ""))
            offset_s = _offset_of(sample, clock, options)
            fields[target] = _dated(target, source, sample, offset_s, earlier)
        else:
            fields[target] = _plain(target, source, sources)
    return fields


def written_offset_s(fields: Mapping[str, Field]) -> float | None:
    """Return how far the clock of dates is ahead of UTC, if they are written with a zone."""
    submit = fields["submit_s"]
    return submit.offset_s if isinstance(submit, Dated) else None


def _offset_of(sample: str, clock: str, options: ImportOptions) -> float | None:
    """Return how far the clock of submissions is ahead of UTC, None if a cell has no zone."""
    if not re.fullmatch(WITH_OFFSET, sample):
        return None
    if options.time_zone is not None:
        return options.winter_offset_s()
    found = re.fullmatch(WITH_OFFSET, clock)
    parts = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", found[2]) if found else None
    if parts is None:  # `Z`, `UTC` or `GMT`
        return 0.0
    seconds = 3600.0 * int(parts[2]) + 60.0 * int(parts[3] or 0)
    return -seconds if parts[1] == "-" else seconds


def _dated(
    target: str, source: Source, sample: str, offset_s: float | None, earlier: Field | None
) -> Dated:
    """Return the field of dates that are written like the sample."""
    found = re.fullmatch(WITH_OFFSET, sample)
    plain = pl.Series([found[1] if found else sample])
    time_format = next(
        (form for form in TIME_FORMATS if plain.str.to_datetime(form, strict=False)[0] is not None),
        TIME_FORMATS[0],
    )
    return Dated(
        source.column,
        Kind.TIME,
        needed=target == "submit_s",
        may_be_blank=target != "submit_s",
        time_format=time_format,
        offset_s=offset_s,
        not_before=earlier,
    )


def _plain(target: str, source: Source, sources: Mapping[str, Source]) -> Field:
    """Return the field of a number or a text."""
    if target in TEXTS:
        return Field(source.column, Kind.TEXT, needed=False)
    if target == "priority":
        return Field(source.column, Kind.NUMBER, needed=False)
    is_time = target in MOMENTS + LENGTHS
    kind = Kind.SECONDS if is_time else Kind.COUNT if target in COUNTS else Kind.AMOUNT
    return Measured(
        source.column,
        kind,
        needed=target in ("submit_s", "gpus"),
        factor=source.factor,
        smallest=1.0 if target == "milli_gpu" else 0.0,
        largest=1000.0 if target == "milli_gpu" else LARGEST_SECONDS if is_time else LARGEST_COUNT,
        wrong=_wrong(target, source, sources),
        agrees=AGREES.get(target, "") if BESIDE.get(target) in sources else "",
    )


def _wrong(target: str, source: Source, sources: Mapping[str, Source]) -> pl.Expr | None:
    """Return where a number contradicts another column, None if it cannot."""
    beside = sources.get(BESIDE.get(target, ""))
    if beside is None:
        return None
    ours = pl.col(source.column) * source.factor
    # The other column may still be text while one bad row is being explained.
    theirs = pl.col(beside.column).cast(pl.Float64, strict=False) * beside.factor
    return {
        "end_s": ours < theirs,
        "milli_gpu": (ours < 1000) & (theirs > 1),
        "min_gpus": ours > theirs,
        "max_gpus": (ours > 0) & (ours < theirs),
    }[target]


def _first_cells(file: TraceFile, layout: Layout, column: str) -> list[str]:
    """Return cells near the top of a column in which something is written."""
    place = file.columns(layout.separator).index(column)
    text = file.head.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    rows = csv.reader(text.split("\n")[file.header_line + 1 :], delimiter=layout.separator)
    found: list[str] = []
    try:
        for row in rows:
            cell = row[place].strip() if len(row) > place else ""
            if cell.lower() not in BLANKS:
                found.append(cell)
            if len(found) == CELLS_LOOKED_AT:
                break
    except csv.Error:
        pass  # reading the whole file will say what is wrong
    return found


def _are_dates(cells: list[str]) -> bool:
    """Tell dates from numbers by the majority: a few cells may be damaged."""
    return 2 * sum(map(_is_number, cells)) < len(cells)


def _first_date(cells: list[str]) -> str:
    return next((cell for cell in cells if not _is_number(cell)), "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
