"""What the cells of a publisher's table hold, and which of them make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from yardmaster.workloads.traces.reading.options import ImportOptions

LARGEST_COUNT = 10_000_000
"""More GPUs, cores or workers than this in one job is a damaged cell."""

LARGEST_SECONDS = 1e12
"""Times beyond this many seconds are damaged cells."""

LAST_TIME_S = 7_258_118_400.0
"""The year 2200, in seconds since 1970: no trace is from later."""

BLANKS = ("", "none", "null", "nan", "na", "n/a", "unknown", "\\n")
"""Cells, in lower case, in which nothing is written; `\\N` is how databases export it."""

WRITTEN_BLANKS = tuple(
    dict.fromkeys(form for word in BLANKS for form in (word, word.upper(), word.title(), "NaN"))
)
"""The same as they are usually written."""

TIME_FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M",
)  # fmt: skip
"""Ways to write a date and time without a zone, the most usual first."""


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    WHOLE = "a whole number"
    COUNT = "a whole number from 0"
    NUMBER = "a number"
    AMOUNT = "a number from 0"
    SECONDS = "seconds from 0"
    TIME = "a date and time"


_STORED = {
    Kind.TEXT: pl.String, Kind.WHOLE: pl.Int64, Kind.COUNT: pl.Int64, Kind.NUMBER: pl.Float64,
    Kind.AMOUNT: pl.Float64, Kind.SECONDS: pl.Float64, Kind.TIME: pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a publisher's table, as an importer wants it.

    Attributes:
        name: its name in the header (case and blanks around it do not matter).
        kind: what its cells hold.
        needed: whether a file without this column is refused; others lack it, which is counted.
        may_be_blank: whether cells may hold nothing (`BLANKS`); they are null then. Cells of
            columns that are not needed may be empty in any case.
        time_format: how its times are usually written; all of `TIME_FORMATS` are read.
    """

    name: str
    kind: Kind
    needed: bool = True
    may_be_blank: bool = False
    time_format: str = TIME_FORMATS[0]

    @property
    def stored(self) -> pl.DataType:
        """How the raw column is kept: times as text until they are known to be wanted."""
        return _STORED[self.kind]()

    @property
    def expected(self) -> str:
        """What its cells hold, for messages."""
        return self.kind.value

    @property
    def blank_is_wrong(self) -> bool:
        """Whether a cell with nothing in it is a mistake."""
        return self.needed and not self.may_be_blank

    def parsed(self, text: pl.Expr) -> pl.Expr:
        """Return the typed value of trimmed text cells, null where blank or unreadable.

        Times stay text: only those of jobs that stay are read.
        """
        if self.kind in (Kind.TEXT, Kind.TIME):
            return pl.when(~self.blank(text)).then(text)
        number = text.cast(pl.Float64, strict=False)
        if self.kind in (Kind.WHOLE, Kind.COUNT):
            # "8.0" is 8, but an id of 18 digits must not pass through a real number.
            exact = text.cast(pl.Int64, strict=False)
            rounded = pl.when(number == number.round(0)).then(number)
            return pl.coalesce(exact, rounded.cast(pl.Int64, strict=False))
        return number.fill_nan(None)

    def blank(self, text: pl.Expr) -> pl.Expr:
        """Return where nothing is written; "None" may be a name, but not a number or a time."""
        if self.kind == Kind.TEXT and not self.may_be_blank:
            return text.is_null() | (text == "")
        return is_blank(text)

    def impossible(self) -> pl.Expr:
        """Return where a typed number cannot be, such as −3 GPUs; never where it is null."""
        value = pl.col(self.name)
        if self.kind == Kind.COUNT:
            wrong = (value < 0) | (value > LARGEST_COUNT)
        elif self.kind == Kind.AMOUNT:
            wrong = ~(value.is_finite() & (value >= 0) & (value <= 1e15))
        elif self.kind == Kind.SECONDS:
            wrong = ~(value.is_finite() & (value >= 0) & (value <= LARGEST_SECONDS))
        elif self.kind == Kind.NUMBER:
            wrong = ~value.is_finite()
        else:
            return pl.lit(value=False)
        return wrong.fill_null(value=False)

    def times(self, options: ImportOptions, *, all_formats: bool) -> pl.Expr:
        """Return the column's times as seconds since 1970 on the local clock, null if unreadable.

        Args:
            options: in which time zone they were written, if the user says so.
            all_formats: try every known way to write a time, and let no insane year pass, which
                takes longer.
        """
        if not all_formats:
            return _seconds(pl.col(self.name), options, (self.time_format,))
        others = [form for form in TIME_FORMATS if form != self.time_format]
        return epoch_s(pl.col(self.name), options, (self.time_format, *others))


def is_blank(text: pl.Expr) -> pl.Expr:
    """Return where nothing is written."""
    return text.is_null() | text.str.to_lowercase().is_in(BLANKS)


def epoch_s(
    text: pl.Expr, options: ImportOptions, formats: Sequence[str] = TIME_FORMATS
) -> pl.Expr:
    """Return date-times as seconds since 1970-01-01 00:00 on the clock they were written by.

    With a time zone, daylight saving is taken out: all are on the zone's winter time, so that
    differences are true. The hour that comes twice in autumn is taken as its first. Dates before
    1970 and after 2199 are null.
    """
    seconds = _seconds(text, options, formats)
    return pl.when(seconds.is_between(0, LAST_TIME_S)).then(seconds)


def _seconds(text: pl.Expr, options: ImportOptions, formats: Sequence[str]) -> pl.Expr:
    read = [text.str.to_datetime(form, strict=False, time_unit="us") for form in formats]
    moment = pl.coalesce(read) if len(read) > 1 else read[0]
    if options.time_zone is None:
        return moment.dt.epoch("us") / 1e6
    zoned = moment.dt.replace_time_zone(
        options.time_zone, ambiguous="earliest", non_existent="null"
    )
    return zoned.dt.epoch("us") / 1e6 + options.winter_offset_s()
