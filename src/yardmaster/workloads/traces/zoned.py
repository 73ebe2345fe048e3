"""Times that are written with their distance from UTC, such as `2023-03-01 00:18:22+08:00`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from yardmaster.workloads.traces.cells import LAST_TIME_S, Field
from yardmaster.workloads.traces.options import ImportOptions
from yardmaster.workloads.traces.trace_files import TraceFile

ZONED_FORMATS = (
    "%Y-%m-%d %H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%.f%z",
    "%Y-%m-%dT%H:%M:%S%.f%z",
)  # fmt: skip
"""Ways to write a date and time with a zone, the most usual first."""

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
            return self._on_clock(pl.col(self.name), ZONED_FORMATS[0])
        # `Z` is how some programs write +00:00.
        text = pl.col(self.name).str.replace(r"(?i)z$", "+00:00")
        moment = pl.coalesce(self._on_clock(text, form) for form in ZONED_FORMATS)
        sane = pl.when(moment.is_between(0, LAST_TIME_S)).then(moment)
        return pl.coalesce(sane, Field.times(self, options, all_formats=True))

    def _on_clock(self, text: pl.Expr, form: str) -> pl.Expr:
        moment = text.str.to_datetime(form, strict=False, time_unit="us")
        return moment.dt.epoch("us") / 1e6 + self.clock_s


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
