"""Alibaba 2025: instances that serve recommendation models, `disaggregated_DLRM_trace.csv`.

One row per instance, a month of them. `HN` instances hold a GPU, `CN` instances only cores. Times
are seconds from the beginning of the trace; an instance without a creation time was there before
it, one without a deletion time outlived it, and what such instances ran is only known in part.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.judging import judged
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

TIMES = ("creation_time", "scheduled_time", "deletion_time")
FIELDS = (
    Field("instance_sn", Kind.TEXT),
    Field("role", Kind.TEXT, needed=False),
    Field("app_name", Kind.TEXT, needed=False),
    Field("cpu_request", Kind.AMOUNT, needed=False),
    Field("gpu_request", Kind.AMOUNT),
    Field("memory_request", Kind.AMOUNT, needed=False),
    *(Field(name, Kind.SECONDS, may_be_blank=True) for name in TIMES),
)
CREATED, SCHEDULED, DELETED = (pl.col(name) for name in TIMES)
MISTAKES = (
    Reason("deleted before it was scheduled", DELETED < SCHEDULED),
    Reason("deleted before it was created", DELETED < CREATED),
)
NEVER_SCHEDULED = Reason("never scheduled", CREATED.is_not_null() & SCHEDULED.is_null())


def recognises(file: TraceFile) -> bool:
    """Tell the instance list by its columns."""
    return file.has_columns("instance_sn", "app_name", "gpu_request", *TIMES)


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read the instance list."""
    rows = pl.concat([read_rows(file, FIELDS, ledger, options) for file in files])
    end_s = rows.select(pl.max_horizontal(pl.col(*TIMES).max())).item() or 0.0
    rows = rows.with_columns(asked=pl.col("gpu_request"), cpus=pl.col("cpu_request"))
    kept = judged(
        rows,
        "instances",
        mistakes=[too_large(options), *MISTAKES],
        reasons=[no_gang(options), NEVER_SCHEDULED],
        named_by="instance_sn",
        options=options,
        ledger=ledger,
    )
    ledger.remark("max_instance_per_node (instances of one app on one node) is not taken over")
    return Draft(_jobs(with_gangs(kept, options, ledger), end_s, ledger), ledger, dated=False)


def _jobs(instances: pl.DataFrame, end_s: float, ledger: Ledger) -> pl.DataFrame:
    """Return the canonical columns; `end_s` is the last second of the trace."""
    older, outlived = SCHEDULED.is_null(), DELETED.is_null()
    _book_censoring(instances.select(older=older, outlived=outlived), ledger)
    early = SCHEDULED < CREATED
    ledger.change(
        "scheduled before they were created: their wait is unknown",
        instances.select(early.sum()).item(),
    )
    return instances.select(
        "gpus",
        "milli_gpu",
        "cpus",
        id="instance_sn",
        submit_s=CREATED.fill_null(0.0),
        duration_s=DELETED.fill_null(end_s) - SCHEDULED.fill_null(0.0),
        memory_gib="memory_request",
        tenant="app_name",
        kind="role",
        status=pl.when(outlived).then(pl.lit("running"))
        .when(older).then(pl.lit("censored"))
        .otherwise(pl.lit("completed")),
        recorded_wait_s=pl.when(~early).then(SCHEDULED - CREATED),
    )  # fmt: skip


def _book_censoring(cut: pl.DataFrame, ledger: Ledger) -> None:
    """Book which run times are lower bounds, each instance once."""
    older, outlived = pl.col("older"), pl.col("outlived")
    reasons = {
        "were there before the trace: submitted at second 0": older & ~outlived,
        "outlived the trace: cut at its last second": outlived & ~older,
        "were there before the trace and outlived it: its whole length": older & outlived,
    }
    for why, holds in reasons.items():
        ledger.censor(why, cut.select(holds.sum()).item())


FORMAT = TraceFormat(
    name="alibaba-dlrm-2025",
    reads="disaggregated_DLRM_trace.csv",
    source="Alibaba cluster-trace-gpu-v2025, 2025 (Yang et al., NSDI 2025)",
    recognises=recognises,
    read=read,
)
