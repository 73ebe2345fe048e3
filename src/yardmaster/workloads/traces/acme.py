"""Shanghai AI Laboratory Acme: `trace_seren.csv` and `trace_kalos.csv`, March to August 2023.

One row per job. The column `duration` is end − start by its description but end − submit in Kalos,
and `gpu_time` follows it, so run times and waits are computed from the three times. These carry
their distance from UTC (Seren +08:00, Kalos +00:00): the clock is the one that is written first,
and times with another distance are moved to it. A job without a start never started; one without an
end was still running. `mem_per_pod_GB` is memory of one of the job's `node_num` pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind, is_blank
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft, dropped_where
from yardmaster.workloads.traces.reading.gangs import no_gang, with_gangs
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import status
from yardmaster.workloads.traces.reading.trace_files import TraceFile
from yardmaster.workloads.traces.reading.zoned import ZonedField, first_offset_s, offset_in_words

FIELDS = (
    Field("job_id", Kind.TEXT),
    Field("user", Kind.TEXT, needed=False),
    Field("node_num", Kind.COUNT, needed=False),
    Field("gpu_num", Kind.COUNT),
    Field("cpu_num", Kind.AMOUNT, needed=False),
    Field("type", Kind.TEXT, needed=False),
    Field("state", Kind.TEXT),
)
KALOS_FIELDS = (Field("mem_per_pod_GB", Kind.AMOUNT, needed=False),)
TIMES = (
    ZonedField("submit_time", Kind.TIME),
    ZonedField("start_time", Kind.TIME, may_be_blank=True),
    ZonedField("end_time", Kind.TIME, may_be_blank=True),
)
START, END = pl.col("start_time"), pl.col("end_time")
NEVER_STARTED = Reason("never started", is_blank(START))


def recognises(file: TraceFile) -> bool:
    """Tell an Acme log by its columns: Helios's has virtual clusters, and no types."""
    return file.has_columns("job_id", "gpu_num", "type", "state", "submit_time", "gpu_time")


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read the log of one cluster, or of both on one clock."""
    written = next((found for f in files if (found := first_offset_s(f)) is not None), None)
    clock_s = (written or 0.0) if options.time_zone is None else options.winter_offset_s()
    rows = pl.concat([_rows(file, clock_s, options, ledger) for file in files])
    seen = rows.select(pl.max_horizontal(pl.col(*(f.name for f in TIMES)).max())).item() or 0.0
    no_gpu = no_gang(options)
    kept = dropped_where(
        rows,
        "jobs",
        [(no_gpu.text, no_gpu.holds), ("ended before it started", END < START)],
        ledger,
    )
    wait = START - pl.col("submit_time")
    ledger.censor("were still running when the log was written", kept["end_time"].null_count())
    ledger.change("started before they were submitted", kept.select((wait < 0).sum()).item())
    jobs = kept.select(
        "asked", "cpus", "user",
        id=_whole_if_all(kept["job_id"]),
        submit_s="submit_time",
        duration_s=END.fill_null(seen) - START,
        recorded_wait_s=pl.when(wait >= 0).then(wait),
        status=pl.when(END.is_null()).then(pl.lit("running")).otherwise(status(pl.col("state"))),
        kind="type",
        memory_gib=pl.col("mem_per_pod_GB") * pl.col("node_num"),
    )  # fmt: skip
    words = "local time, no zone written" if written is None else f"UTC{offset_in_words(clock_s)}"
    zone = options.zone_in_words(f"{words}, as written in the first row")
    return Draft(with_gangs(jobs, options, ledger), ledger, time_zone=zone)


def _rows(file: TraceFile, clock_s: float, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return one file's jobs that started, with times on the common clock."""
    kalos = KALOS_FIELDS if file.has_columns("mem_per_pod_gb") else ()
    times = (replace(field, clock_s=clock_s) for field in TIMES)
    fields = (*FIELDS, *kalos, *times)
    rows = read_rows(file, fields, ledger, options, reasons=(NEVER_STARTED,))
    if not kalos:
        rows = rows.with_columns(mem_per_pod_GB=pl.lit(None, pl.Float64))
    return rows.select(
        "job_id", "user", "type", "state", "node_num", "mem_per_pod_GB",
        *(field.name for field in TIMES),
        asked=pl.col("gpu_num").cast(pl.Float64),
        cpus="cpu_num",
    )  # fmt: skip


def _whole_if_all(ids: pl.Series) -> pl.Series:
    """Return ids as whole numbers if all of them are (Seren), as text if not (Kalos)."""
    whole = ids.cast(pl.Int64, strict=False)
    return ids if whole.null_count() else whole


FORMAT = TraceFormat(
    name="acme",
    reads="trace_seren.csv or trace_kalos.csv",
    source="Shanghai AI Laboratory Acme, 2023 (Hu et al., NSDI 2024; CC-BY-4.0)",
    recognises=recognises,
    read=read,
    one_table=True,
)
