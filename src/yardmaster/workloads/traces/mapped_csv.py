"""Tables of one's own: any delimited text with a map from our columns to its columns.

Times may be written in any unit, or as dates with or without a zone; numbers that can only be Unix
time are taken as such. The run time may come from when the job started and ended. Columns that bear
the names of a job table's need no map; columns without a use are named in the account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.traces.column_cells import Dated, fields_for, written_offset_s
from yardmaster.workloads.traces.column_map import (
    COUNTS,
    MOMENTS,
    OTHER_NAMES,
    Source,
    column_sources,
)
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.delimited import Layout, Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft, dropped_where
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import STATUSES, status
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.reading.zoned import offset_in_words

SEPARATORS = (",", "\t", ";", "|")
UNIX_TIME_S = 631_152_000.0
"""1990: a clock that starts later than this counts from 1970."""

WAITING = tuple(word for word, ours in STATUSES.items() if ours == "waiting")
WHOLE_NUMBER = r"^(0|-?[1-9]\d{0,17})$"


@dataclass(frozen=True, slots=True)
class MappedTable:
    """The rows of one table under our names, before anything is worked out from them.

    Attributes:
        frame: our columns, in our units; moments on the table's own clock.
        dated: whether moments are seconds since 1970 on a local clock.
        offset_s: how far that clock is ahead of UTC, if the dates say so.
    """

    frame: pl.DataFrame
    dated: bool
    offset_s: float | None = None


def read_mapped(
    file: TraceFile,
    columns: Mapping[str, str],
    options: ImportOptions,
    ledger: Ledger,
    *,
    separator: str = ",",
    reasons: Sequence[Reason] = (),
) -> MappedTable:
    """Read the mapped columns of a table and convert their units.

    Args:
        file: the table; its header names its columns.
        columns: our column → `column` or `column:unit` of the file.
        options: what the user says about the trace.
        ledger: where rows read and dropped are booked.
        separator: what stands between cells.
        reasons: why readable rows are dropped, besides those every table has.

    Raises:
        YardmasterError: if the map makes no sense, or rows cannot be read and may not be skipped.
    """
    names = file.columns(separator)
    sources = column_sources(file, names, columns)
    fields = fields_for(file, Layout(separator), sources, options)
    rows = read_rows(
        file,
        list(fields.values()),
        ledger,
        options,
        reasons=[*_reasons(sources, options), *reasons],
        layout=Layout(separator),
    )
    frame = rows.select(
        (pl.col(source.column) * source.factor if source.unit else pl.col(source.column)).alias(
            target
        )
        for target, source in sources.items()
    )
    _book_map(names, sources, ledger)
    return MappedTable(frame, isinstance(fields["submit_s"], Dated), written_offset_s(fields))


def _reasons(sources: Mapping[str, Source], options: ImportOptions) -> list[Reason]:
    """Return why rows of any table are no jobs to schedule."""
    reasons = []
    if "status" in sources:
        word = pl.col(sources["status"].column).str.to_uppercase()
        reasons.append(Reason("had not started when the log was written", word.is_in(WAITING)))
    if "gpus" in sources and options.slot_cores is None:
        none = pl.col(sources["gpus"].column) == 0
        reasons.append(Reason("asked for no GPU (CPU job)", none))
    if "duration_s" in sources:
        blank = pl.col(sources["duration_s"].column).is_null()
        reasons.append(Reason("has no run time", blank))
    return reasons


def _book_map(names: Sequence[str], sources: Mapping[str, Source], ledger: Ledger) -> None:
    """Say which column was read as what, and which were not read."""
    pairs = [
        f"{target} = {source.column}{' in ' + source.unit if source.unit else ''}"
        for target, source in sources.items()
        if target != source.column
    ]
    if pairs:
        ledger.remark(f"columns read: {', '.join(pairs)}")
    used = {source.column for source in sources.values()}
    unused = [name for name in names if name not in used]
    if unused:
        ledger.remark(f"columns not used: {', '.join(name or '(no name)' for name in unused)}")


# --- from mapped columns to jobs ------------------------------------------------------------------


def jobs_of(table: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return canonical columns: run times and waits from moments, whole GPUs, our words.

    Raises:
        InvalidWorkloadError: if cores are to be slots, but no column says how many there are.
    """
    frame = _with_waits(_with_run_times(table, ledger), ledger)
    frame = _with_gpus(frame, options, ledger)
    if "estimate_s" in frame.columns:
        none = pl.col("estimate_s") == 0
        count = int(frame.select(none.sum()).item())
        ledger.change("have an estimate of 0 s, which is read as none", count)
        frame = frame.with_columns(estimate_s=pl.when(~none).then("estimate_s"))
    if "id" in frame.columns:
        frame = frame.with_columns(id=_ids(frame["id"]))
    filled = {"milli_gpu": 1000, "priority": 0.0, **dict.fromkeys(COUNTS[1:], 0)}
    return frame.drop("start_s", "end_s", "share", strict=False).with_columns(
        pl.col(name).fill_null(value) for name, value in filled.items() if name in frame.columns
    )


def _ids(names: pl.Series) -> pl.Series:
    """Return names of jobs, as whole numbers if all of them are; null where there is none."""
    if names.str.contains(WHOLE_NUMBER).all(ignore_nulls=False):
        return names.cast(pl.Int64)
    return names.set(names == "", None)


def _with_run_times(table: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Work out run times from starts and ends; jobs without an end ran until the log's end."""
    frame = table
    if "status" not in frame.columns:
        frame = frame.with_columns(status=pl.lit(None, dtype=pl.String))
    frame = frame.with_columns(status(pl.col("status")))
    open_ended = 0
    if "duration_s" not in frame.columns:
        never = pl.col("start_s").is_null()
        frame = dropped_where(frame, "jobs", [("never started", never)], ledger)
        last = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
        has_no_end = pl.col("end_s").is_null()
        open_ended = frame["end_s"].null_count()
        frame = frame.with_columns(
            duration_s=pl.col("end_s").fill_null(last) - pl.col("start_s"),
            status=pl.when(has_no_end).then(pl.lit("running")).otherwise("status"),
        )
    running = int((frame["status"] == "running").sum()) - open_ended
    ledger.censor("have no end: they ran until the last moment in the log", open_ended)
    ledger.censor("were still running when the log was written", running)
    return frame


def _with_waits(frame: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Work out waits from submissions and starts where they are not written."""
    if "start_s" not in frame.columns or "recorded_wait_s" in frame.columns:
        return frame
    wait = pl.col("start_s") - pl.col("submit_s")
    early = int(frame.select((wait < 0).sum()).item())
    ledger.change("started before they were submitted: their wait is unknown", early)
    return frame.with_columns(recorded_wait_s=pl.when(wait >= 0).then(wait))


def _with_gpus(frame: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return whole GPUs or part of one; with slots, jobs that ask for cores only have GPUs too."""
    if options.slot_cores is not None:
        if "cpus" not in frame.columns:
            raise InvalidWorkloadError(
                "--slot-cores makes slots of cores, but no column has cores: --map cpus=COLUMN."
            )
        if "gpus" not in frame.columns:
            frame = frame.with_columns(gpus=0.0)
    if "gpus" not in frame.columns:
        ledger.remark("no column says how many GPUs: every job takes one")
        return frame
    shares = [pl.col("milli_gpu").alias("share")] if "milli_gpu" in frame.columns else []
    asking = frame.rename({"gpus": "asked"}).with_columns(shares)
    if options.slot_cores is not None:
        reasons = [no_gang(options), too_large(options)]
        asking = dropped_where(asking, "jobs", [(r.text, r.holds) for r in reasons], ledger)
    gangs = with_gangs(asking, options, ledger)
    return gangs.with_columns(milli_gpu=pl.coalesce("share", "milli_gpu")) if shares else gangs


def draft_of(
    tables: Sequence[MappedTable], options: ImportOptions, ledger: Ledger, *, zone: str
) -> Draft:
    """Put the jobs of tables that share a clock together.

    Args:
        tables: the parts of the trace.
        options: what the user says about the trace.
        ledger: the account.
        zone: what is known of the local clock of dates that are written without a zone.

    Raises:
        InvalidWorkloadError: if some parts are dated and others are not.
    """
    if len({(table.dated, table.offset_s) for table in tables}) > 1:
        raise InvalidWorkloadError(
            f"{', '.join(ledger.files)}: their clocks differ; import them one by one."
        )
    merged = pl.concat([table.frame for table in tables], how="diagonal")
    frame = jobs_of(merged, options, ledger)
    if tables[0].dated:
        return Draft(frame, ledger, time_zone=_zone_words(tables[0].offset_s, options, zone))
    first = frame["submit_s"].min()
    if not isinstance(first, float) or first < UNIX_TIME_S:
        return Draft(frame, ledger, dated=False)
    ledger.remark("submissions are numbers after 1990: read as Unix time")
    clocked = [name for name in MOMENTS if name in frame.columns]
    frame = frame.with_columns(pl.col(*clocked) + options.winter_offset_s())
    words = options.zone_in_words("UTC: --time-zone puts Unix time on a local clock")
    return Draft(frame, ledger, time_zone=words)


def _zone_words(offset_s: float | None, options: ImportOptions, zone: str) -> str:
    if offset_s is None or options.time_zone is not None:
        return options.zone_in_words(zone)
    return f"UTC{offset_in_words(offset_s)}, as the first date is written"


# --- the format -----------------------------------------------------------------------------------


def separator_of(file: TraceFile, chosen: str = ",") -> str:
    """Return what stands between cells: what the user chose, or what the header shows."""
    if chosen == "," and len(file.columns(",")) == 1:
        return max(SEPARATORS, key=lambda separator: len(file.columns(separator)))
    return chosen


def recognises(file: TraceFile) -> bool:
    """Tell a table of jobs by its columns for submission and run time."""
    targets = {OTHER_NAMES.get(name, name) for name in file.columns(separator_of(file))}
    return {"submit_s", "duration_s"} <= targets


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read tables with the same columns."""
    tables = [
        read_mapped(
            file,
            options.columns,
            options,
            ledger,
            separator=separator_of(file, options.separator),
        )
        for file in files
    ]
    return draft_of(tables, options, ledger, zone="local time as written")


FORMAT = TraceFormat(
    name="csv",
    reads="any table with a header line; --map says which column is what, in which unit",
    source="one's own",
    recognises=recognises,
    read=read,
)
