"""SenseTime Helios: `cluster_log.csv` of Earth, Saturn, Uranus and Venus, April to September 2020.

One row per job. `duration` is end − start and `queue` start − submit, in seconds, so only the
submission has to be read as a date. Rows with 0 GPUs are CPU jobs, more than half of all. The log
begins in the middle of March with jobs left over from before; the publisher counts from April.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft, dropped_where
from yardmaster.workloads.traces.reading.gangs import with_gangs
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import STATUSES, status
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FIELDS = (
    Field("job_id", Kind.WHOLE),
    Field("user", Kind.TEXT, needed=False),
    Field("vc", Kind.TEXT, needed=False),
    Field("gpu_num", Kind.COUNT),
    Field("cpu_num", Kind.COUNT, needed=False),
    Field("state", Kind.TEXT),
    Field("submit_time", Kind.TIME),
    Field("duration", Kind.SECONDS, may_be_blank=True),
    Field("queue", Kind.SECONDS, may_be_blank=True),
)
UNFINISHED = ("RUNNING", "SUSPENDED", "PENDING")
APRIL_S = 1_585_699_200.0
"""2020-04-01, and a month before it, on the log's own clock."""
MARCH_S = APRIL_S - 31 * 86_400.0

NO_GPU = Reason("asked for no GPU (CPU job)", pl.col("gpu_num") == 0)
NO_GPU_NO_CORE = Reason(
    "asked for neither GPUs nor cores",
    (pl.col("gpu_num") == 0) & (pl.col("cpu_num").fill_null(0) == 0),
)
# Looked at after CPU jobs are gone, for these questions take longer than reading the row.
OTHERS = (
    ("had not ended when the log was written", pl.col("state").is_in(UNFINISHED)),
    ("never started", pl.col("duration").is_null() | pl.col("queue").is_null()),
    (
        "left over from before April 2020",
        pl.col("submit_time").is_between(MARCH_S, APRIL_S, closed="left"),
    ),
)


def recognises(file: TraceFile) -> bool:
    """Tell a Helios log by its columns; Acme's has a `type` besides."""
    return file.has_columns("job_id", "vc", "gpu_num", "node_num", "submit_time", "queue")


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read one cluster's log."""
    nothing = (NO_GPU if options.slot_cores is None else NO_GPU_NO_CORE,)
    rows = pl.concat([read_rows(file, FIELDS, ledger, options, reasons=nothing) for file in files])
    frame = dropped_where(rows, "jobs", OTHERS, ledger).select(
        id="job_id",
        submit_s="submit_time",
        duration_s="duration",
        gpus="gpu_num",
        cpus="cpu_num",
        tenant="vc",
        user="user",
        status=status(pl.col("state")),
        recorded_wait_s="queue",
    )
    if options.slot_cores is not None:
        asking = frame.rename({"gpus": "asked"}).with_columns(pl.col("asked", "cpus").cast(float))
        frame = with_gangs(asking, options, ledger)
    zone = options.zone_in_words("local time as written (China, no daylight saving)")
    return Draft(frame, ledger, time_zone=zone)


FORMAT = TraceFormat(
    name="helios",
    reads="cluster_log.csv of one cluster, plain or in data.zip (choose with --only Venus)",
    source="SenseTime Helios, 2020 (Hu et al., SC 2021; CC-BY-4.0)",
    recognises=recognises,
    read=read,
    one_table=True,
)
assert set(UNFINISHED) <= set(STATUSES)  # noqa: S101
