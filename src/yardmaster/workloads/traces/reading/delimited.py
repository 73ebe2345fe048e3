"""Tables of text: fast where they are sound, line by line where they are not.

A sound file goes through polars in one pass. Anything polars stumbles over (cells that are no
numbers, rows with too few or too many cells, text that is not UTF-8) sends the file through
Python's own reader, which is slower but can say which line is wrong and why.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.names import did_you_mean
from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.bad_rows import LINES_NAMED, BadRows
from yardmaster.workloads.traces.reading.cells import LAST_TIME_S, WRITTEN_BLANKS, Field, Kind
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

CHUNK = 100_000
REASON, LINE, LOST, GARBLED = "__reason__", "__line__", "__lost__", "__garbled__"
SHORT, LONG, EXTRA = "__short__", "__long__", "__extra__"
_UNREADABLE, _KEPT = 255, 0


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is written.

    Attributes:
        separator: what stands between cells.
        names: the columns in order, for files without a header line.
    """

    separator: str = ","
    names: tuple[str, ...] | None = None


COMMAS = Layout()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a readable row does not become a job: the first reason that holds counts."""

    text: str
    holds: pl.Expr


@dataclass(frozen=True, slots=True)
class _Table:
    """A file and everything wanted of it."""

    file: TraceFile
    names: tuple[str, ...]
    present: Sequence[Field]
    fields: Sequence[Field]
    reasons: Sequence[Reason]
    layout: Layout
    options: ImportOptions

    @property
    def lines_above(self) -> int:
        """Lines before the first row."""
        return 0 if self.layout.names else self.file.header_line + 1


def read_rows(
    file: TraceFile,
    fields: Sequence[Field],
    ledger: Ledger,
    options: ImportOptions,
    *,
    reasons: Sequence[Reason] = (),
    layout: Layout = COMMAS,
) -> pl.DataFrame:
    """Return the wanted columns of the rows that stay, and book what was read and dropped.

    Rows are judged in this order: numbers that cannot be read are mistakes; then `reasons`, which
    may use every field that is not a time; then, in what is left, times that cannot be read are
    mistakes. Times come out as seconds since 1970 on the clock they were written by; optional
    columns the file does not have come out null.

    Raises:
        TraceFormatError: if columns are missing, or rows are mistakes and may not be skipped;
            naming the first lines.
    """
    if not file.head.strip():
        raise TraceFormatError(f"{file.name}: the file is empty.")
    names = layout.names or file.columns(layout.separator)
    present = _present(file, names, fields, ledger)
    what = f"rows of {file.own_name}"
    table = _Table(file, tuple(names), present, fields, reasons, layout, options)
    fast = _read_fast(table)
    if fast is not None:
        frame, counts = fast
        ledger.stage(what, sum(counts.values()), len(frame), _dropped(reasons, counts))
        return frame
    frame, counts, bad = _read_slowly(table)
    unreadable = bad.dropped(file.name, options)
    read = sum(counts.values()) + bad.count
    ledger.stage(what, read, len(frame), [unreadable, *_dropped(reasons, counts)])
    return frame


def _present(
    file: TraceFile, names: Sequence[str], fields: Sequence[Field], ledger: Ledger
) -> list[Field]:
    """Return the fields the file has; complain about needed ones it has not."""
    known = set(names)
    lacking = [field for field in fields if field.name.lower() not in known]
    needed = [field.name for field in lacking if field.needed]
    if needed:
        hints = "".join(did_you_mean(name, sorted(known)) for name in needed)
        raise TraceFormatError(
            f"{file.name}: no column {', '.join(map(repr, needed))}.{hints}"
            f" It has: {', '.join(names)}."
        )
    repeated = sorted({name for name in names if names.count(name) > 1 and name})
    wanted = {field.name.lower() for field in fields}
    if wanted & set(repeated):
        raise TraceFormatError(f"{file.name}: columns are there twice: {', '.join(repeated)}.")
    ledger.missing(field.name for field in lacking)
    return [field for field in fields if field.name.lower() in known]


def _dropped(reasons: Sequence[Reason], counts: dict[int, int]) -> list[Dropped]:
    return [
        Dropped(reason.text, counts.get(code, 0)) for code, reason in enumerate(reasons, start=1)
    ]


# --- the fast way ---------------------------------------------------------------------------------


def _read_fast(table: _Table) -> tuple[pl.DataFrame, dict[int, int]] | None:
    """Read a sound file; None if anything at all is wrong with it."""
    if b"\n" not in table.file.head and b"\r" in table.file.head:
        return None  # lines as old Macs wrote them, which polars does not know
    fields = table.fields
    typed = _with_all(_scanned(table), table.present, fields)
    judged = typed.with_columns(
        _reason(fields, table.reasons, _empty_where_wrong(fields)).alias(REASON)
    )
    kept = judged.filter(pl.col(REASON) == _KEPT).drop(REASON, SHORT, LONG)
    times = [field for field in table.present if field.kind == Kind.TIME]
    kept = kept.with_columns(
        *(field.times(table.options, all_formats=False).alias(field.name) for field in times)
    )
    codes = (*range(len(table.reasons) + 1), _UNREADABLE)
    why = pl.col(REASON)
    tally = judged.select(
        pl.col(SHORT, LONG).any(),
        *((why == code).sum().alias(str(code)) for code in codes),
        *(((why == _KEPT) & pl.col(f.name).is_not_null()).sum().alias(f.name) for f in times),
    )
    try:
        counted, frame = pl.collect_all([tally, kept], engine="streaming")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    counts = {code: int(counted[str(code)].item()) for code in codes}
    written = {field: int(counted[field.name].item()) for field in times}
    if counts[_UNREADABLE] or counted[LONG].item() or _is_time_lost(frame, written):
        return None
    if counted[SHORT].item() and not _is_even(table, rows=sum(counts.values())):
        return None
    return _tidied(frame, table), counts


def _tidied(frame: pl.DataFrame, table: _Table) -> pl.DataFrame:
    """Return text without the blanks around it; looking for some is quicker than cutting them."""
    names = [field.name for field in table.present if field.kind == Kind.TEXT]
    if not names:
        return frame
    texts = pl.col(names)
    # What is padded is padded with spaces; a lone tab would only look odd in a name.
    untidy = texts.str.starts_with(" ") | texts.str.ends_with(" ") | (texts == "")
    if not any(frame.select(untidy.any()).row(0)):
        return frame
    return frame.with_columns(texts.str.strip_chars().replace("", None))


def _is_time_lost(frame: pl.DataFrame, written: dict[Field, int]) -> bool:
    """Tell whether a time was not read, is not there though it must be, or is in no sane year."""
    for field, count in written.items():
        times = frame[field.name]
        first, last = times.min(), times.max()
        if len(times) - times.null_count() != count or (
            field.blank_is_wrong and count < len(times)
        ):
            return True
        if count and not (float(first) >= 0 and float(last) <= LAST_TIME_S):  # type: ignore[arg-type]
            return True
    return False


def _scanned(table: _Table) -> pl.LazyFrame:
    """Return the wanted columns as polars reads them, and which rows may have a wrong length."""
    wanted = {field.name.lower(): field for field in table.present}
    columns = [f"{name}.{place}" for place, name in enumerate(table.names)]
    scan = pl.scan_csv(
        table.file.path,
        separator=table.layout.separator,
        has_header=False,
        skip_lines=table.lines_above,
        schema={
            column: wanted[name].stored if name in wanted else pl.String()
            for column, name in zip(columns, table.names, strict=True)
        }
        | {EXTRA: pl.String()},
        missing_columns="insert",
        raise_if_empty=False,
    )
    chosen = [
        _trimmed(pl.col(column), wanted[name]).alias(wanted[name].name)
        for column, name in zip(columns, table.names, strict=True)
        if name in wanted
    ]
    # Polars fills short rows up with nulls, and here one cell too many fills the column after the
    # last: a row without its last cell may be a short one, so it is worth a closer look.
    short, long = pl.col(columns[-1]).is_null(), pl.col(EXTRA).is_not_null()
    return scan.select(*chosen, short.alias(SHORT), long.alias(LONG))


def _is_even(table: _Table, *, rows: int) -> bool:
    """Tell whether rows that are not too long are not too short either, by counting separators."""
    separator, quote = ord(table.layout.separator), ord('"')
    found = 0
    with table.file.path.open("rb") as stream:
        for _ in itertools.islice(stream, table.lines_above):
            pass
        while block := stream.read(1 << 22):
            cells = np.frombuffer(block, dtype=np.uint8)
            if np.any(cells == quote):
                return False  # a separator inside quotes is none
            found += int(np.count_nonzero(cells == separator))
    return found == rows * (len(table.names) - 1)


def _trimmed(column: pl.Expr, field: Field) -> pl.Expr:
    """Return a column as read, null where nothing is written and that is allowed.

    Other text is trimmed once it is known which rows stay, because that takes longer than reading.
    """
    if field.may_be_blank and field.kind in (Kind.TEXT, Kind.TIME):
        return column.str.strip_chars().replace(dict.fromkeys(WRITTEN_BLANKS))
    return column


def _with_all(
    frame: pl.LazyFrame, present: Sequence[Field], fields: Sequence[Field]
) -> pl.LazyFrame:
    """Add the columns the file does not have, empty."""
    lacking = [field for field in fields if field not in present]
    return frame.with_columns(
        *(
            pl.lit(None, dtype=pl.Float64 if f.kind == Kind.TIME else f.stored).alias(f.name)
            for f in lacking
        )
    )


def _reason(fields: Sequence[Field], reasons: Sequence[Reason], unreadable: pl.Expr) -> pl.Expr:
    """Return why each row is dropped: 255 if it cannot be read, 0 if it stays."""
    why = pl.lit(_KEPT, dtype=pl.UInt8)
    for code, reason in reversed(list(enumerate(reasons, start=1))):
        held = reason.holds.fill_null(value=False)
        why = pl.when(held).then(pl.lit(code, dtype=pl.UInt8)).otherwise(why)
    wrong = pl.any_horizontal(unreadable, *(field.impossible() for field in fields))
    return pl.when(wrong).then(pl.lit(_UNREADABLE, dtype=pl.UInt8)).otherwise(why)


def _empty_where_wrong(fields: Sequence[Field]) -> pl.Expr:
    """Return the rows in which a number or a name that must be there is not."""
    wrong = [
        pl.col(field.name).is_null()
        for field in fields
        if field.blank_is_wrong and field.kind != Kind.TIME
    ]
    return pl.any_horizontal(pl.lit(value=False), *wrong)


# --- the slow way ---------------------------------------------------------------------------------


def _read_slowly(table: _Table) -> tuple[pl.DataFrame, dict[int, int], BadRows]:
    """Read any file line by line: the good rows, why others are dropped, and the bad ones."""
    places = {field.name: table.names.index(field.name.lower()) for field in table.present}
    bad = BadRows()
    counts: dict[int, int] = {}
    frames = [
        _judged(_strings(rows, places), table, bad, counts)
        for rows in itertools.chain([[]], _chunks(table, bad))
    ]
    return pl.concat(frames), counts, bad


def _chunks(table: _Table, bad: BadRows) -> Iterator[list[tuple[int, list[str]]]]:
    """Yield rows with the numbers of their first lines; rows of the wrong width are bad."""
    file, above, width = table.file, table.lines_above, len(table.names)
    with file.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        for _ in itertools.islice(stream, above):
            pass
        reader = csv.reader(stream, delimiter=table.layout.separator)
        chunk: list[tuple[int, list[str]]] = []
        line, following = 0, above + 1
        try:
            for row in reader:
                line, following = following, above + reader.line_num + 1
                if len(row) != width:
                    if row:
                        bad.add(line, f"{len(row)} cells, but there are {width} columns")
                elif any(map(_is_not_text, row)):
                    bad.add(line, "not UTF-8 text")
                else:
                    chunk.append((line, row))
                if len(chunk) == CHUNK:
                    yield chunk
                    chunk = []
        except csv.Error as error:
            raise TraceFormatError(
                f"{file.name}: line {following} cannot be read: {error}."
            ) from None
        yield chunk


def _is_not_text(cell: str) -> bool:
    """Tell whether some byte of the cell was not UTF-8."""
    return not cell.isascii() and any("\udc80" <= letter <= "\udcff" for letter in cell)


def _strings(rows: list[tuple[int, list[str]]], places: dict[str, int]) -> pl.DataFrame:
    """Return the wanted cells as trimmed text, and the line of each row."""
    columns = {
        name: pl.Series([row[place] for _, row in rows], dtype=pl.String).str.strip_chars()
        for name, place in places.items()
    }
    return pl.DataFrame(columns | {LINE: pl.Series([n for n, _ in rows], dtype=pl.Int64)})


def _judged(
    text: pl.DataFrame, table: _Table, bad: BadRows, counts: dict[int, int]
) -> pl.DataFrame:
    """Return the rows of a chunk that stay; count the dropped ones, remember the bad ones."""
    present, fields = table.present, table.fields
    numbers = [field for field in present if field.kind not in (Kind.TEXT, Kind.TIME)]
    garbled = [
        field.parsed(pl.col(field.name)).is_null() & ~field.blank(pl.col(field.name))
        for field in numbers
    ]
    typed = text.lazy().with_columns(
        pl.any_horizontal(pl.lit(value=False), *garbled).alias(GARBLED),
        *(field.parsed(pl.col(field.name)).alias(field.name) for field in present),
    )
    unreadable = pl.col(GARBLED) | _empty_where_wrong(fields)
    reason = _reason(fields, table.reasons, unreadable).alias(REASON)
    reasoned = _with_all(typed, present, fields).with_columns(reason)
    times = {
        f.name: f.times(table.options, all_formats=True) for f in present if f.kind == Kind.TIME
    }
    wrong = [
        times[f.name].is_null() & (True if f.blank_is_wrong else ~f.blank(pl.col(f.name)))
        for f in present
        if f.kind == Kind.TIME
    ]
    lost_time = pl.any_horizontal(pl.lit(value=False), *wrong)
    judged = reasoned.with_columns(**times, **{LOST: lost_time}).collect()
    lost = (judged[REASON] == _UNREADABLE) | ((judged[REASON] == _KEPT) & judged[LOST])
    for row in lost.arg_true().to_list():
        if bad.count < LINES_NAMED:
            bad.add(text[LINE][row], _explained(text.row(row, named=True), table))
        else:
            bad.count += 1
    good = judged.filter(~lost)
    for code, count in good[REASON].value_counts().iter_rows():
        counts[code] = counts.get(code, 0) + count
    kept = good.filter(pl.col(REASON) == _KEPT)
    return kept.drop(REASON, LOST, LINE, GARBLED)


def _explained(row: dict[str, str], table: _Table) -> str:
    """Say which cell of a bad row is wrong."""
    frame = pl.DataFrame({name: [cell] for name, cell in row.items() if name != LINE})
    for field in table.present:
        cell = pl.col(field.name)
        blank = frame.select(field.blank(cell)).item()
        if blank:
            if field.blank_is_wrong:
                return f"{field.name} is empty"
            continue
        typed = frame.with_columns(field.parsed(cell).alias(field.name))
        value = field.times(table.options, all_formats=True) if field.kind == Kind.TIME else cell
        if typed.select(value.is_null() | field.impossible()).item():
            return f"{field.name} is {row[field.name][:60]!r}, not {field.expected}"
    return "a cell makes no sense"
