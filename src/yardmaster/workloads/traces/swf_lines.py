"""The lines of a Standard Workload Format file: what its header says, and the numbers of its jobs.

A file has header lines (`; Key: value`) and one line of 18 numbers per job; −1 means unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.model.workload import LARGEST_TIME_S, BoolArray, FloatArray
from yardmaster.workloads.files import read_bytes
from yardmaster.workloads.traces.reading.bad_rows import LINES_NAMED, BadRows

FIELDS = 18
COLUMNS = {
    "job": 0, "submit": 1, "wait": 2, "run": 3, "allocated": 4, "requested": 7, "time": 8,
    "status": 10, "user": 11, "group": 12, "executable": 13,
}  # fmt: skip
"""What is read, and its place in a line."""

TIMES = ("submit", "wait", "run", "time")
"""What need not be whole numbers."""


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

    def begins(self, zone_name: str | None = None) -> str:
        """Return the local date and time of second 0, "" if the header does not tell.

        Args:
            zone_name: the machine's time zone, if the user knows better than the header.
        """
        zone = _zone(zone_name or self.time_zone, self.fields.get("TimeZone", ""))
        if not self.unix_start_s or zone is None:
            return ""
        try:
            moment = datetime.fromtimestamp(self.unix_start_s, zone)
        except (ValueError, OverflowError, OSError):
            return ""
        return moment.replace(tzinfo=None).isoformat()


def _zone(name: str | None, offset_s: str) -> tzinfo | None:
    """Return the named zone; where nobody knows it, the one so many seconds ahead of UTC."""
    if name:
        try:
            return ZoneInfo(name.partition("\n")[0].strip())
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass  # headers are written by hand: the offset may still be there
    try:
        return timezone(timedelta(seconds=int(offset_s.partition("\n")[0])))
    except (ValueError, OverflowError):
        return None


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file, plain or gzipped, whatever ends them.

    Raises:
        InvalidWorkloadError: if the file cannot be read.
        TraceFormatError: if it is a damaged gzip file.
    """
    # Latin-1 reads any byte: headers of old files are in many encodings, job lines are digits.
    text = read_bytes(path).removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def header_of(lines: list[str]) -> SwfHeader:
    """Return what the header lines say."""
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


def _header_items(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if line.startswith(";"):
            key, colon, value = line[1:].partition(":")
            if colon and key.strip():
                yield key.strip(), value.strip()


def table_of(where: str, lines: list[str]) -> tuple[dict[str, FloatArray], BadRows]:
    """Return the columns of the readable job lines and their line numbers, and the broken lines.

    Raises:
        TraceFormatError: if there is no job line at all.
    """
    text = pl.DataFrame({"text": lines}, schema={"text": pl.String})
    jobs = text.with_row_index("line", offset=1).filter(~pl.col("text").str.contains(r"^\s*(;|$)"))
    if jobs.is_empty():
        raise TraceFormatError(
            f"{where}: not a Standard Workload Format file: it has no job lines."
        )
    cells = jobs.select(pl.col("text").str.extract_all(r"\S+"))["text"]
    table = {key: _numbers(cells, place) for key, place in COLUMNS.items()}
    good: BoolArray = (cells.list.len() == FIELDS).to_numpy()
    good = good & np.logical_and.reduce([_sound(*column) for column in table.items()])
    table["line"] = jobs["line"].cast(pl.Float64).to_numpy()
    bad = np.flatnonzero(~good)
    broken = BadRows(count=len(bad))
    for row in bad[:LINES_NAMED].tolist():
        broken.first.append((jobs["line"][row], _mistake(cells[row].to_list())))
    return {key: column[good] for key, column in table.items()}, broken


def _numbers(cells: pl.Series, place: int) -> FloatArray:
    """Return the numbers at one place of the lines, NaN where there is none."""
    column = cells.list.get(place, null_on_oob=True).cast(pl.Float64, strict=False)
    return column.fill_null(np.nan).to_numpy()


def _sound(key: str, values: FloatArray) -> BoolArray:
    """Return where a column holds what it can hold: finite numbers, whole ones if no times."""
    # NaN and infinity fail the comparison, so what could not be read is broken as well.
    finite: BoolArray = np.abs(values) <= LARGEST_TIME_S
    return finite if key in TIMES else finite & (values == np.round(values))


def _mistake(cells: list[str]) -> str:
    """Say what is wrong with a broken line."""
    if len(cells) != FIELDS:
        return f"{len(cells)} numbers, not {FIELDS}"
    line = pl.Series([cells])
    place, key = next(
        (place, key)
        for key, place in COLUMNS.items()
        if not _sound(key, _numbers(line, place)).all()
    )
    kind = "a number" if key in TIMES else "a whole number"
    return f"field {place + 1} ({key}) is {cells[place][:40]!r}, not {kind}"
