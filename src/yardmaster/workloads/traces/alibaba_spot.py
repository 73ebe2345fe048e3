"""Alibaba 2026: jobs of a cluster that rents spare GPUs out as spot instances, `job_info_df.csv`.

One row per job, about half a year of them. A job has `worker_num` workers, each with `gpu_request`
GPUs (part of one GPU is possible) of the model it asked for. High-priority jobs (`HP`) go before
spot jobs (`Spot`), which live on what is left. Times are seconds from the first submission; when
jobs started and how they ended is not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.judging import judged
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

FIELDS = (
    Field("job_name", Kind.TEXT),
    Field("organization", Kind.TEXT, needed=False),
    Field("gpu_model", Kind.TEXT, needed=False, may_be_blank=True),
    Field("cpu_request", Kind.AMOUNT, needed=False),
    Field("gpu_request", Kind.AMOUNT),
    Field("worker_num", Kind.COUNT),
    Field("submit_time", Kind.SECONDS),
    Field("duration", Kind.SECONDS),
    Field("job_type", Kind.TEXT),
)


def recognises(file: TraceFile) -> bool:
    """Tell the job list by its columns."""
    return file.has_columns("job_name", "gpu_request", "worker_num", "job_type", "submit_time")


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read the job list."""
    rows = pl.concat([read_rows(file, FIELDS, ledger, options) for file in files])
    rows = rows.with_columns(
        asked=pl.col("gpu_request") * pl.col("worker_num"),
        cpus=pl.col("cpu_request") * pl.col("worker_num"),
    )
    kept = judged(
        rows,
        "jobs",
        mistakes=[too_large(options)],
        reasons=[no_gang(options)],
        named_by="job_name",
        options=options,
        ledger=ledger,
    )
    high = pl.col("job_type").str.to_uppercase() == "HP"
    frame = with_gangs(kept, options, ledger).select(
        "gpus",
        "milli_gpu",
        "cpus",
        id="job_name",
        submit_s="submit_time",
        duration_s="duration",
        gpu_types="gpu_model",
        tenant="organization",
        priority=high.cast(pl.Float64),
        kind="job_type",
    )
    ledger.remark("HP jobs have priority 1, Spot jobs 0; kind says which a job is")
    return Draft(frame, ledger, dated=False)


FORMAT = TraceFormat(
    name="alibaba-spot-2026",
    reads="job_info_df.csv",
    source="Alibaba cluster-trace-v2026-spot-gpu, 2026 (Duan et al., ASPLOS 2026)",
    recognises=recognises,
    read=read,
)
