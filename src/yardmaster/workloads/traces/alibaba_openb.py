"""Alibaba 2023: `openb_pod_list_*.csv`, the pods of a cluster in which GPUs are shared.

One row per pod. `num_gpu` GPUs; a single one may be asked for in part (`gpu_milli` thousandths).
`gpu_spec` names the GPU types a pod accepts, joined by `|`, sometimes twice. Times are seconds from
the first creation. Pods are deleted whether they have ended or not: those in phase `Running` were
stopped by their deletion, except where the list itself stops.

The lists `default` and `gpuspec…` hold times. The other lists (`multigpu…`, `gpushare…`, `cpu…`)
are drawn from `default` to stress a kind of pod and have no times at all: they are a mixture of
requests, and what is imported as their times is invented and said to be.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.judging import judged
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import status
from yardmaster.workloads.traces.reading.trace_files import TraceFile

TIMES = ("creation_time", "deletion_time", "scheduled_time")
REQUESTS = (
    Field("name", Kind.TEXT),
    Field("cpu_milli", Kind.AMOUNT, needed=False),
    Field("memory_mib", Kind.AMOUNT, needed=False),
    Field("num_gpu", Kind.COUNT),
    Field("gpu_milli", Kind.COUNT),
    Field("gpu_spec", Kind.TEXT, needed=False, may_be_blank=True),
    Field("qos", Kind.TEXT, needed=False, may_be_blank=True),
)
LIFE = (
    Field("pod_phase", Kind.TEXT, needed=False, may_be_blank=True),
    Field("creation_time", Kind.SECONDS),
    Field("deletion_time", Kind.SECONDS, may_be_blank=True),
    Field("scheduled_time", Kind.SECONDS, may_be_blank=True),
)
CREATED, DELETED, SCHEDULED = (pl.col(name) for name in TIMES)
RUNNING = pl.col("pod_phase").str.to_lowercase() == "running"
OVERFULL = Reason(
    "gpu_milli is above 1000", (pl.col("num_gpu") == 1) & (pl.col("gpu_milli") > 1000)
)
BACKWARDS = Reason(
    "deleted before it was scheduled or created", (DELETED < SCHEDULED) | (DELETED < CREATED)
)
NEVER_SCHEDULED = Reason("never scheduled", SCHEDULED.is_null())
NO_END = Reason("no deletion recorded", DELETED.is_null() & ~RUNNING.fill_null(value=False))
INVENTED_DURATION_S = 3_600.0


def recognises(file: TraceFile) -> bool:
    """Tell a pod list by its columns."""
    return file.has_columns("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read one pod list."""
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise InvalidWorkloadError(
            f"There are {len(files)} pod lists, each a whole trace;"
            f" choose with --only NAME: {names}."
        )
    (file,) = files
    timed = bool(set(TIMES) & set(file.columns()))
    fields = (*REQUESTS, *LIFE) if timed else REQUESTS
    rows = read_rows(file, fields, ledger, options).with_columns(
        # Of several GPUs a pod holds all of each, whatever gpu_milli says.
        asked=pl.when(pl.col("num_gpu") == 1).then(pl.col("gpu_milli") / 1000.0)
        .otherwise(pl.col("num_gpu").cast(pl.Float64)),
        cpus=pl.col("cpu_milli") / 1000.0,
    )  # fmt: skip
    mistakes = [too_large(options), OVERFULL, *((BACKWARDS,) if timed else ())]
    reasons = [no_gang(options), *((NEVER_SCHEDULED, NO_END) if timed else ())]
    kept = judged(
        rows,
        "pods",
        mistakes=mistakes,
        reasons=reasons,
        named_by="name",
        options=options,
        ledger=ledger,
    )
    if timed:
        end_s = rows.select(pl.max_horizontal(pl.col(*TIMES).max())).item() or 0.0
        lived = _recorded_times(kept, end_s, ledger)
    else:
        lived = _invented_times(kept, ledger)
    return Draft(_requests(with_gangs(lived, options, ledger), ledger), ledger, dated=False)


def _recorded_times(pods: pl.DataFrame, end_s: float, ledger: Ledger) -> pl.DataFrame:
    """Add when each pod was submitted, how long it ran and waited, and how it ended."""
    deleted = DELETED.fill_null(end_s)
    cut = RUNNING.fill_null(value=False) & (deleted >= end_s)
    early = SCHEDULED < CREATED
    counts = pods.select(cut=cut.sum(), stopped=(RUNNING & ~cut).sum(), early=early.sum())
    ledger.censor("were still running in the last second of the list", counts["cut"].item())
    ledger.change(
        "scheduled before they were created: their wait is unknown", counts["early"].item()
    )
    stopped = counts["stopped"].item()
    if stopped:
        ledger.remark(f"{stopped:,} pods were deleted while they ran; they count as cancelled")
    return pods.with_columns(
        submit_s=CREATED,
        duration_s=deleted - SCHEDULED,
        recorded_wait_s=pl.when(~early).then(SCHEDULED - CREATED),
        status=pl.when(cut).then(pl.lit("running"))
        .when(RUNNING).then(pl.lit("cancelled"))
        .otherwise(status(pl.col("pod_phase"))),
    )  # fmt: skip


def _invented_times(pods: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Put the pods of a list without times one second apart, in the order of the list."""
    ledger.missing((*TIMES, "pod_phase"))
    ledger.change(
        "have INVENTED times: submitted one second apart in the order of the list,"
        " each running for one hour",
        len(pods),
    )
    ledger.remark(
        "this list is a mixture of requests, not a record: it has no times, and nothing about"
        " arrivals, durations or waits can be learnt from it"
    )
    return pods.with_columns(
        submit_s=pl.int_range(pl.len(), dtype=pl.Int64).cast(pl.Float64),
        duration_s=pl.lit(INVENTED_DURATION_S),
        recorded_wait_s=pl.lit(None, pl.Float64),
        status=pl.lit(None, pl.String),
    )


def _requests(pods: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Return the canonical columns."""
    types = pl.col("gpu_spec").str.split("|").list.unique(maintain_order=True).list.join("|")
    best_effort = pl.col("qos").str.to_uppercase().is_in(("BE", "BESTEFFORT"))
    if pods["qos"].count():
        ledger.remark("tenant is the quality of service; best effort (BE) has priority 0, others 1")
    return pods.select(
        "submit_s", "duration_s", "recorded_wait_s", "status", "gpus", "milli_gpu", "cpus",
        id="name",
        gpu_types=types,
        memory_gib=pl.col("memory_mib") / 1024.0,
        tenant="qos",
        priority=pl.when(pl.col("qos").is_not_null() & ~best_effort).then(1.0).otherwise(0.0),
    )  # fmt: skip


FORMAT = TraceFormat(
    name="alibaba-openb-2023",
    reads="one openb_pod_list_*.csv; lists without times get invented ones",
    source="Alibaba cluster-trace-gpu-v2023, 2023 (Weng et al., USENIX ATC 2023)",
    recognises=recognises,
    read=read,
    one_table=True,
)
