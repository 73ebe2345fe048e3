"""Slurm's text files in pieces that fit into memory: lines, and cells between separators."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.slurm.records import LINE, Source

CHUNK_BYTES = 1 << 24
CHUNK_ROWS = 50_000
TEXT = "text"
_UNREADABLE = "�"
"""What stands for bytes that are no UTF-8."""


def lines(source: Source, *, above: int = 0, header: str = "") -> Iterator[pl.DataFrame]:
    """Yield the lines of a file with their numbers, without blank ones; count and check them.

    Args:
        source: the file; lines that are not UTF-8 text are noted as bad.
        above: how many lines come before the first record.
        header: what the line with the columns' names says; exports put together repeat it.
    """
    first = 1
    for chunk in _chunks(source):
        text = pl.Series(TEXT, [chunk]).str.split("\n").explode().str.strip_suffix("\r")
        frame = pl.DataFrame({LINE: pl.int_range(first, first + len(text), eager=True), TEXT: text})
        first += len(text)
        is_record = (pl.col(TEXT).str.strip_chars() != "") & (pl.col(TEXT) != header)
        frame = frame.filter((pl.col(LINE) > above) & is_record)
        source.read += len(frame)
        garbled = frame[TEXT].str.contains(_UNREADABLE, literal=True)
        source.reject(frame.filter(garbled)[LINE], lambda _: "not UTF-8 text")
        yield frame.filter(~garbled)


def _chunks(source: Source) -> Iterator[str]:
    """Yield the file's text in pieces of whole lines, without the last line's end."""
    rest = b""
    with source.file.path.open("rb") as stream:
        while piece := stream.read(CHUNK_BYTES):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            if newline:
                yield whole.decode("utf-8-sig", "replace")
    if rest:
        yield rest.decode("utf-8-sig", "replace")


def cells(source: Source, separator: str, names: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the cells of a table with a header as text; rows of the wrong width are noted as bad.

    Cells between commas may be in quotes, as in CSV; `sacct` and `mysql` quote nothing.

    Args:
        source: the file.
        separator: what stands between cells.
        names: the columns, all different; columns called "" are left out.
    """
    above = source.file.header_line + 1
    if separator == ",":
        yield from _quoted_cells(source, separator, names, above)
        return
    header = source.file.head.decode("utf-8", "replace").split("\n")[above - 1].strip("\r")
    for frame in lines(source, above=above, header=header):
        width = frame[TEXT].str.count_matches(separator, literal=True) + 1
        fits = width == len(names)
        found = width.filter(~fits)
        source.reject(frame.filter(~fits)[LINE], lambda row: wrong_width(found[row], names))  # noqa: B023
        parts = pl.col(TEXT).str.split_exact(separator, len(names) - 1)
        wanted = [
            parts.struct.field(f"field_{place}").alias(name)
            for place, name in enumerate(names)
            if name
        ]
        yield frame.filter(fits).select(LINE, *wanted)


def wrong_width(found: int, names: Sequence[str]) -> str:
    """Say that a row does not have a cell for each column."""
    why = " (leave out columns that may hold anything, such as JobName)" if "JobID" in names else ""
    return f"{found} cells, but there are {len(names)} columns{why if found > len(names) else ''}"


def _quoted_cells(
    source: Source, separator: str, names: Sequence[str], above: int
) -> Iterator[pl.DataFrame]:
    path = source.file.path
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        for _ in islice(stream, above):
            pass
        reader = csv.reader(stream, delimiter=separator)
        try:
            while chunk := list(islice(_sound_rows(reader, source, names, above), CHUNK_ROWS)):
                columns = zip(*chunk, strict=True)
                frame = dict(zip((LINE, *names), columns, strict=True))
                yield pl.DataFrame({name: frame[name] for name in (LINE, *filter(None, names))})
        except csv.Error as error:
            line = above + reader.line_num
            message = f"{source.file.name}: line {line} cannot be read: {error}."
            raise TraceFormatError(message) from None


def _sound_rows(
    reader: Any, source: Source, names: Sequence[str], above: int
) -> Iterator[tuple[int | str, ...]]:
    for row in reader:
        if not row:
            continue
        source.read += 1
        line = above + reader.line_num
        if len(row) != len(names):
            source.bad.add(line, wrong_width(len(row), names))
        elif any(_UNREADABLE in cell for cell in row):
            source.bad.add(line, "not UTF-8 text")
        else:
            yield (line, *row)
