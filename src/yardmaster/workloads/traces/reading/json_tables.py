"""JSON records read as rows of a table, with the promises that tables of text give.

Records are first written out as cells, one record per line, and that table is read: quickly by
polars if the records are one per line and sound, else record by record, to say which one is wrong.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.bad_rows import BadRows
from yardmaster.workloads.traces.reading.cells import Field
from yardmaster.workloads.traces.reading.delimited import Layout, Reason, read_rows
from yardmaster.workloads.traces.reading.json_records import is_array, records
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile


def read_json_rows(
    file: TraceFile,
    fields: Sequence[Field],
    ledger: Ledger,
    options: ImportOptions,
    *,
    reasons: Sequence[Reason] = (),
) -> pl.DataFrame:
    """Return the wanted values of the records that stay, and book what was read and dropped.

    A field named `request.cpus` is the value `cpus` of the object `request`. A key that a record
    does not have is a blank cell.

    Raises:
        TraceFormatError: if records are mistakes and may not be skipped; naming the first.
    """
    # Tables are read fastest if their last column is never blank.
    names = [field.name for field in sorted(fields, key=lambda field: field.blank_is_wrong)]
    layout = Layout(names=tuple(names))
    with tempfile.TemporaryDirectory(prefix="yardmaster-import-") as folder:
        path = Path(folder) / "rows.csv"
        frame = None
        if not is_array(file) and _written_fast(file, path, names):
            frame = _read_fast(TraceFile(file.name, path), fields, ledger, reasons, layout)
        if frame is None:
            table = _written_slowly(file, path, names, ledger, options)
            frame = read_rows(table, fields, ledger, options, reasons=reasons, layout=layout)
    optional = (field.name for field in fields if not field.needed)
    ledger.missing(name for name in optional if len(frame) and frame[name].is_null().all())
    return frame


def _written_fast(file: TraceFile, path: Path, names: Sequence[str]) -> bool:
    """Write sound lines of JSON as cells; tell whether they were."""
    schema: dict[str, Any] = {}
    for name in names:
        key, _, inner = name.partition(".")
        schema[key] = pl.Struct({inner: pl.String}) if inner else pl.String()
    cells = [
        pl.col(key).struct.field(inner).alias(name) if inner else pl.col(key)
        for name, (key, _, inner) in ((name, name.partition(".")) for name in names)
    ]
    try:
        scan = pl.scan_ndjson(file.path, schema=schema)
        scan.select(cells).sink_csv(path, include_header=False)
    except (pl.exceptions.PolarsError, OSError):
        return False
    return True


def _read_fast(
    table: TraceFile,
    fields: Sequence[Field],
    ledger: Ledger,
    reasons: Sequence[Reason],
    layout: Layout,
) -> pl.DataFrame | None:
    """Read a table of cells; None if anything is wrong with it, for its lines have no numbers."""
    sound = Ledger(ledger.format, [])
    try:
        frame = read_rows(table, fields, sound, ImportOptions(), reasons=reasons, layout=layout)
    except TraceFormatError:
        return None
    ledger.stages += sound.stages
    return frame


def _written_slowly(
    file: TraceFile, path: Path, names: Sequence[str], ledger: Ledger, options: ImportOptions
) -> TraceFile:
    """Write records as cells, each on the line that messages should name.

    Lines of JSON keep their numbers; the records of an array are numbered.
    """
    bad = BadRows()
    written = 0
    with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for record in records(file, bad):
            place = record.number if is_array(file) else record.line
            stream.write("\n" * (place - written - 1))
            writer.writerow([_cell(record.content, name) for name in names])
            written = place
    unreadable = bad.dropped(file.name, options, what="record")
    if bad.count:
        ledger.stage(f"rows of {file.own_name}", bad.count, 0, [unreadable])
    if not written:
        raise TraceFormatError(f"{file.name}: there is no record that can be read.")
    name = f"{file.name} (a line is a record)" if is_array(file) else file.name
    return TraceFile(name, path)


def _cell(content: dict[str, Any], name: str) -> str:
    """Return a value as one line of text."""
    value: Any = content
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else value
    if value is None:
        return ""
    return " ".join(str(value).split())
