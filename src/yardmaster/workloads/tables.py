"""Job tables in files: Parquet and CSV with the canonical columns of `model.workload.COLUMNS`.

Columns that a file does not have take their defaults, and so do empty cells; the submit time, the
duration and, where the column exists, the id may not be empty. Some short names are read as the
canonical ones (`ALIASES`). Parquet keeps everything, including name and notes. CSV keeps the jobs:
text ids that all look like whole numbers come back as whole numbers, and the name is the file's.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import (
    COLUMN_NAMES,
    LABEL_COLUMNS,
    MISTAKES_SHOWN,
    Labels,
    Workload,
)
from yardmaster.names import did_you_mean
from yardmaster.workloads.files import read_bytes, stem, whole_file

if TYPE_CHECKING:
    import polars as pl

ALIASES = {
    "job_id": "id", "submit": "submit_s", "duration": "duration_s", "estimate": "estimate_s",
}  # fmt: skip
"""Short column names and the canonical columns they are read as."""

NEVER_EMPTY = ("id", "submit_s", "duration_s")
EMPTY_MEANS = {
    "gpus": 1.0, "milli_gpu": 1000.0, "max_gpus_per_node": 0.0, "min_gpus": 0.0, "max_gpus": 0.0,
    "priority": 0.0,
}  # fmt: skip
"""Value of an empty cell in the columns that cannot hold NaN."""

METADATA_KEY = "yardmaster"
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def read_table(path: str | Path) -> Workload:
    """Read a job table from a `.parquet` or `.csv` file.

    Raises:
        InvalidWorkloadError: naming the file and, where there is one, the row and the column.
    """
    path = Path(path)
    if _ending(path) == ".parquet":
        return _read_parquet(path)
    frame = _csv_frame(path)
    try:
        return _workload(path, frame, whole_ids=True)
    except InvalidWorkloadError as error:
        message = f"{error}\n  (row 0 is the first job after the header line)"
        raise InvalidWorkloadError(message) from None


def write_table(workload: Workload, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a job table to a `.parquet` or `.csv` file, whole or not at all.

    Args:
        workload: the jobs.
        path: the file; its ending decides the format.
        overwrite: whether a file that is there already is replaced.

    Raises:
        InvalidWorkloadError: if the file name has another ending, the file is there and may not be
            replaced, or it cannot be written.
    """
    import polars as pl

    frame = pl.DataFrame(
        {key: pl.Series(_plain(getattr(workload, key))) for key in COLUMN_NAMES},
        schema_overrides=dict.fromkeys(LABEL_COLUMNS, pl.String),
    )
    about = {"name": workload.name, "notes": workload.notes, "begins": workload.begins}
    write_frame(frame, Path(path), about=about, overwrite=overwrite)


def write_frame(
    frame: pl.DataFrame, path: Path, *, about: Mapping[str, Any], overwrite: bool
) -> None:
    """Write columns that are known to be a sound job table, and what is known about it.

    Raises:
        InvalidWorkloadError: as `write_table` does.
    """
    ending = _ending(path)
    with whole_file(path, overwrite=overwrite) as unfinished:
        if ending == ".parquet":
            metadata = {METADATA_KEY: json.dumps(about, ensure_ascii=False)}
            # Compression would make up half of the writing, and dictionaries keep names small.
            frame.write_parquet(
                unfinished, compression="uncompressed", statistics=False, metadata=metadata
            )
        else:
            frame.fill_nan(None).write_csv(unfinished)


def refuse_other_endings(path: Path) -> None:
    """Complain, before any long work, if a job table cannot have this file name.

    Raises:
        InvalidWorkloadError: if it ends neither in `.parquet` nor in `.csv`.
    """
    _ending(path)


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in {".parquet", ".csv"}:
        raise InvalidWorkloadError(f"{path}: a job table ends in .parquet or .csv.")
    return ending


def _plain(column: Any) -> Any:
    if isinstance(column, Labels):
        return column.values()
    return column.tolist() if column.dtype.kind == "U" else column


def _read_parquet(path: Path) -> Workload:
    import polars as pl

    content = read_bytes(path)
    try:
        frame = pl.read_parquet(io.BytesIO(content))
        about = json.loads(pl.read_parquet_metadata(io.BytesIO(content)).get(METADATA_KEY, "{}"))
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise InvalidWorkloadError(f"{path} is not a Parquet file: {error}") from None
    workload = _workload(path, frame, whole_ids=False)
    if not isinstance(about, dict):  # someone else's metadata under our key
        return workload
    return replace(
        workload,
        name=str(about.get("name", workload.name)),
        notes=tuple(str(note) for note in about.get("notes", ())),
        begins=str(about.get("begins", "")),
    )


def _csv_frame(path: Path) -> pl.DataFrame:
    """Read every cell as text; rows with too few or too many cells are mistakes."""
    import polars as pl

    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n") + b"\n"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidWorkloadError(f"{path}: line {line} is not UTF-8 text.") from None
    header = _csv_header(path, text)
    _check_names(path, header)
    try:
        frame = pl.read_csv(content, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        mistakes = _ragged_rows(text, len(header)) or [str(error).splitlines()[0]]
        raise _invalid(path, mistakes) from None
    # Polars fills up short rows silently; without quotes, counting the separators shows them.
    if '"' in text or content.count(b",") != (len(frame) + 1) * (len(header) - 1):
        mistakes = _ragged_rows(text, len(header))
        if mistakes:
            raise _invalid(path, mistakes)
    return frame.rename(dict(zip(frame.columns, header, strict=True)))


def _csv_header(path: Path, text: str) -> list[str]:
    if not text.strip():
        raise InvalidWorkloadError(f"{path}: the file is empty.")
    try:
        header = next(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise InvalidWorkloadError(f"{path}: cannot read the header line: {error}.") from None
    if len(header) == 1 and ";" in header[0]:
        raise InvalidWorkloadError(f"{path}: cells must be separated by ',', not by ';'.")
    return [name.strip() for name in header]


def _ragged_rows(text: str, width: int) -> list[str]:
    """List the lines that do not have as many cells as the header."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [
            f"line {rows.line_num}: {len(row)} cells, but the header has {width}"
            for row in rows
            if len(row) != width
        ]
    except csv.Error as error:
        return [f"line {rows.line_num}: {error}"]


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Refuse unknown columns and columns that are there twice, under one name or two."""
    known = (*COLUMN_NAMES, *ALIASES)
    canonical = [ALIASES.get(name, name) for name in names]
    mistakes = [
        f"unknown column {name!r}.{did_you_mean(name, known)}"
        for name in names
        if name not in known
    ]
    mistakes += [
        f"column {name!r} is there more than once"
        for name in dict.fromkeys(canonical)
        if canonical.count(name) > 1
    ]
    mistakes += [
        f"column {name!r} is required" for name in ("submit_s", "duration_s")
        if name not in canonical
    ]  # fmt: skip
    if mistakes:
        raise _invalid(path, mistakes)


def read_account(path: str | Path) -> dict[str, Any] | None:
    """Return the account of the import that made a job table, None if there is none."""
    import polars as pl

    path = Path(path)
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return None
    try:
        about = json.loads(pl.read_parquet_metadata(path).get(METADATA_KEY, "{}"))
    except (pl.exceptions.PolarsError, OSError, ValueError):
        return None  # whoever reads the jobs says what is wrong with the file
    account = about.get("account") if isinstance(about, dict) else None
    return account if isinstance(account, dict) else None


def workload_of_frame(
    frame: pl.DataFrame, *, name: str, notes: Sequence[str] = (), begins: str = ""
) -> Workload:
    """Return a polars frame of canonical columns as a workload, checked.

    Raises:
        InvalidWorkloadError: with every mistake found, each naming its row and column.
    """
    workload = _workload(Path(name), frame, whole_ids=False)
    return replace(workload, name=name, notes=tuple(notes), begins=begins)


def _workload(path: Path, frame: pl.DataFrame, *, whole_ids: bool) -> Workload:
    """Convert the columns and check the jobs; row numbers refer to the file."""
    _check_names(path, frame.columns)
    mistakes: list[str] = []
    columns: dict[str, Any] = {}
    for name in frame.columns:
        key = ALIASES.get(name, name)
        if key in LABEL_COLUMNS:
            columns[key] = _labels(frame[name], key, mistakes)
        elif key == "id":
            columns[key] = _ids(frame[name], mistakes, whole_ids=whole_ids)
        else:
            columns[key] = _numbers(frame[name], key, mistakes)
    if mistakes:
        raise _invalid(path, mistakes)
    return Workload.of(name=str(path), **columns).renamed(stem(path))


def _numbers(series: pl.Series, key: str, mistakes: list[str]) -> Any:
    import polars as pl

    cells = series
    if series.dtype == pl.String:
        cells = series.str.strip_chars()
        cells = cells.set(cells == "", None)
    elif not series.dtype.is_numeric() and series.dtype != pl.Null:
        mistakes.append(f"column {key!r} holds {series.dtype}, not numbers")
        return None
    numbers = cells.cast(pl.Float64, strict=False)
    mistakes.extend(
        f"row {row}: {key} is {series[row]!r}, not a number"
        for row in (numbers.is_null() & cells.is_not_null()).arg_true()
    )
    if key in NEVER_EMPTY:
        mistakes.extend(f"row {row}: {key} is empty" for row in cells.is_null().arg_true())
    return numbers.fill_null(EMPTY_MEANS.get(key, np.nan)).to_numpy()


def _labels(series: pl.Series, key: str, mistakes: list[str]) -> Labels:
    """Return a column of names; codes of categories carry over without looking at each cell."""
    import polars as pl

    if series.dtype != pl.Categorical:
        return Labels.of(_texts(series, key, mistakes))
    used = series.drop_nulls().unique(maintain_order=True)
    names = used.cast(pl.String).to_list()
    if "" in names:
        return Labels.of(series.cast(pl.String).fill_null("").to_list())
    # Polars numbers categories as it meets them in any column: number these from 0.
    ours = np.full(int(used.to_physical().max() or 0) + 2, -1, dtype=np.int32)  # type: ignore[arg-type]
    ours[used.to_physical().to_numpy()] = np.arange(len(names), dtype=np.int32)
    codes = series.to_physical().cast(pl.Int64).fill_null(len(ours) - 1).to_numpy()
    return Labels(ours[codes], tuple(names))


def _texts(series: pl.Series, key: str, mistakes: list[str]) -> list[str]:
    """Return the cells as texts, "" where empty."""
    import polars as pl

    if series.dtype.is_nested() or series.dtype in {pl.Binary, pl.Object}:
        mistakes.append(f"column {key!r} holds {series.dtype}, not names")
        return [""] * len(series)
    return series.cast(pl.String).fill_null("").to_list()


def _ids(series: pl.Series, mistakes: list[str], *, whole_ids: bool) -> Any:
    import polars as pl

    if series.dtype.is_signed_integer() and not series.null_count():
        return series.cast(pl.Int64).to_numpy()
    texts = _texts(series, "id", mistakes)
    mistakes.extend(f"row {row}: id is empty" for row, text in enumerate(texts) if not text)
    whole_ids = whole_ids or series.dtype.is_integer()
    if whole_ids and all(map(_WHOLE_NUMBER.fullmatch, texts)):
        return np.array(texts, dtype=np.str_).astype(np.int64)
    return np.array(texts, dtype=np.str_)


def _invalid(path: Path, mistakes: Sequence[str]) -> InvalidWorkloadError:
    shown = [f"  - {mistake}" for mistake in mistakes[:MISTAKES_SHOWN]]
    if len(mistakes) > MISTAKES_SHOWN:
        shown.append(f"  … and {len(mistakes) - MISTAKES_SHOWN} more")
    plural = "mistake" if len(mistakes) == 1 else "mistakes"
    return InvalidWorkloadError(f"{path}: {len(mistakes)} {plural}\n" + "\n".join(shown))
