"""From a publisher's rows to a job table: the clock, the order and the names of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import COLUMN_NAMES, LABEL_COLUMNS
from yardmaster.workloads.traces.reading.account import Account, Dropped, Ledger

if TYPE_CHECKING:
    from yardmaster.model.workload import Workload

DAY_S, WEEK_S = 86_400.0, 604_800.0
MONDAY_S = 4 * DAY_S
"""1970-01-05, the first Monday midnight of the Unix clock."""

_WHOLE = ("gpus", "milli_gpu", "max_gpus_per_node", "min_gpus", "max_gpus")


@dataclass(frozen=True, slots=True)
class Draft:
    """Jobs as an importer leaves them: canonical columns, except for the clock.

    Attributes:
        frame: canonical columns; `submit_s` (and `deadline_s`) count from `clock`'s second 0.
        ledger: the account so far; its last stage counts the rows of `frame`.
        dated: whether times are seconds since 1970 on a local clock, and not from some second 0.
        time_zone: what the local clock is, for the account.
        begins: for a clock that is kept as it is: local date and time of its second 0 if known.
    """

    frame: pl.DataFrame
    ledger: Ledger
    dated: bool = True
    time_zone: str = ""
    begins: str = ""


@dataclass(frozen=True, slots=True)
class ImportedTrace:
    """A trace as a job table, and the account of how it came about.

    Attributes:
        name: what to call the workload.
        frame: canonical columns, sorted by submission; missing ones take their defaults.
        account: rows read, kept and dropped, and everything else worth knowing.
    """

    name: str
    frame: pl.DataFrame
    account: Account

    def workload(self) -> Workload:
        """Return the jobs as a workload."""
        from yardmaster.workloads.tables import workload_of_frame

        return workload_of_frame(
            self.frame, name=self.name, notes=self.account.notes(), begins=self.account.begins
        )

    def write(self, path: Path, *, overwrite: bool) -> None:
        """Write the jobs to a `.parquet` or `.csv` file, whole or not at all.

        Raises:
            InvalidWorkloadError: if the ending is another, or the file may not be replaced.
        """
        from yardmaster.workloads.tables import write_frame

        about = {
            "name": self.name,
            "notes": self.account.notes(),
            "begins": self.account.begins,
            "account": self.account.to_dict(),
        }
        write_frame(self.frame, path, about=about, overwrite=overwrite)


def finished(draft: Draft, name: str) -> ImportedTrace:
    """Put the jobs on the workload's clock, in order, with unique ids, and close the account.

    Dated traces get a clock whose second 0 is the Monday midnight before the first submission, so
    that hours and weekdays can be read off it. Other clocks stay as they are.

    Raises:
        InvalidWorkloadError: if no job is left.
    """
    frame, ledger = draft.frame, draft.ledger
    if frame.is_empty():
        reasons = "; ".join(
            f"{entry.count:,} {entry.reason}" for stage in ledger.stages for entry in stage.dropped
        )
        raise InvalidWorkloadError(
            f"{', '.join(ledger.files)}: no job is left: {reasons or 'the table has no rows'}."
        )
    begins = draft.begins
    if draft.dated:
        first = float(frame["submit_s"].min())  # type: ignore[arg-type]
        zero_s = MONDAY_S + WEEK_S * ((first - MONDAY_S) // WEEK_S)
        begins = _written(zero_s)
        clocked = [c for c in ("submit_s", "deadline_s") if c in frame.columns]
        frame = frame.with_columns(pl.col(*clocked) - zero_s)
    frame = _in_order(_with_ids(frame, ledger))
    account = ledger.closed(time_zone=draft.time_zone, begins=begins)
    return ImportedTrace(name, _canonical(frame), account)


def _written(epoch_s: float) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=epoch_s)
    return moment.replace(tzinfo=None).isoformat()


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    if frame["submit_s"].is_sorted():
        return frame
    return frame.sort("submit_s", maintain_order=True)


def _with_ids(frame: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Keep the publisher's ids if they are unique; number the jobs if they are not."""
    if "id" not in frame.columns:
        return frame.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("id"))
    ids = frame["id"]
    if (
        ids.dtype.is_integer()
        and ids.null_count() == 0
        and bool((ids.diff().drop_nulls() > 0).all())
    ):
        return frame  # ascending, as most logs are: no need to look for equals
    repeated = len(ids) - ids.n_unique()
    if not repeated and not ids.null_count():
        return frame
    ledger.remark(f"ids are not unique ({repeated:,} repeated): jobs are numbered from 0 instead")
    return frame.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("id"))


def _canonical(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns in canonical order and type; names as categories, which are small."""
    chosen: list[pl.Expr] = []
    for name in COLUMN_NAMES:
        if name not in frame.columns:
            continue
        column = pl.col(name)
        if name in LABEL_COLUMNS:
            column = column.cast(pl.String).cast(pl.Categorical)
        elif name in _WHOLE:
            column = column.cast(pl.Int64)
        elif name != "id":
            column = column.cast(pl.Float64)
        chosen.append(column)
    return frame.select(chosen)


def dropped_where(
    frame: pl.DataFrame, what: str, reasons: Sequence[tuple[str, pl.Expr]], ledger: Ledger
) -> pl.DataFrame:
    """Drop rows of a joined or computed table for the first reason that holds, and book it."""
    why = pl.lit(0, dtype=pl.UInt8)
    for code, (_, holds) in reversed(list(enumerate(reasons, start=1))):
        held = holds.fill_null(value=False)
        why = pl.when(held).then(pl.lit(code, dtype=pl.UInt8)).otherwise(why)
    found = frame.with_columns(why.alias("__why__")).get_column("__why__")
    counts = dict(found.value_counts().iter_rows())
    kept = frame if counts.get(0, 0) == len(frame) else frame.filter(found == 0)
    dropped = [Dropped(text, counts.get(code, 0)) for code, (text, _) in enumerate(reasons, 1)]
    ledger.stage(what, len(frame), len(kept), dropped)
    return kept
