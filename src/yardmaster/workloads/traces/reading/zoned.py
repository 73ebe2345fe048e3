"""Times that are written with their distance from UTC, such as `2023-03-01 00:18:22+08:00`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from yardmaster.workloads.traces.reading.cells import LAST_TIME_S, TIME_FORMATS, Field
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

_OFFSET = re.compile(r":\d\d(?:\.\d+)?([+-])(\d\d):?(\d\d)\b")


@dataclass(frozen=True, slots=True)
class ZonedField(Field):
    """A column of times with zones, all put on one clock.

    Differences of such times are true differences, whatever zone each of them is written in. Times
    without a zone are taken to be on the clock already.

    Attributes:
        clock_s: how far the clock is ahead of UTC, in seconds.
    """

    clock_s: float = 0.0

    def times(self, options: ImportOptions, *, all_formats: bool) -> pl.Expr:
        """Return the times as seconds since 1970 on the clock, null if unreadable."""
        if not all_formats:
            usual = pl.col(self.name).str.to_datetime(f"{self.time_format}%z", strict=False)
            return usual.dt.epoch("us") / 1e6 + self.clock_s
        moment = utc_s(pl.col(self.name), TIME_FORMATS) + self.clock_s
        sane = pl.when(moment.is_between(0, LAST_TIME_S)).then(moment)
        return pl.coalesce(sane, Field.times(self, options, all_formats=True))


def utc_s(text: pl.Expr, formats: Sequence[str]) -> pl.Expr:
    """Return times that say how far they are from UTC as seconds since 1970 in UTC.

    Args:
        text: times followed by `+08:00`, `-0330`, `+02`, `Z`, `UTC` or `GMT`.
        formats: how what stands before may be written.
    """
    plain = text.str.strip_chars().str.replace(r" ?(?:Z|UTC|GMT)$", "+00:00")
    plain = plain.str.replace(r" ?([+-]\d\d)$", "$1:00").str.replace(r" ([+-]\d\d:?\d\d)$", "$1")
    read = [plain.str.to_datetime(f"{form}%z", strict=False, time_unit="us") for form in formats]
    return pl.coalesce(read).dt.epoch("us") / 1e6


def first_offset_s(file: TraceFile) -> float | None:
    """Return how far the first time in a file says it is ahead of UTC, in seconds, if it does."""
    found = next((match for line in file.lines if (match := _OFFSET.search(line))), None)
    if found is None:
        return None
    sign, hours, minutes = found.groups()
    return (-1.0 if sign == "-" else 1.0) * (3600.0 * int(hours) + 60.0 * int(minutes))


def offset_in_words(offset_s: float) -> str:
    """Return a distance from UTC as it is written, such as `+08:00`."""
    minutes = round(abs(offset_s) / 60.0)
    return f"{'-' if offset_s < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
