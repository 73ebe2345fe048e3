"""Alibaba Lingjun 2023: two weeks of a cluster for large models, `job.csv` and `worker.csv`.

A job's GPUs are those of its workers, whose `RES` cells hold JSON such as
`{"cpu": "88", "memory": "800Gi", "nvidia.com/gpu": "8"}`; workers of CPU jobs have none. Times are
written to the minute (`2023/7/15 02:19`). Jobs without `gmt_job_running` never ran. Job 8169 ran
before it was submitted, probably because it was submitted again. `topo.csv` is not needed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

import polars as pl

from yardmaster.errors import TraceFormatError
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

TIMES = ("gmt_job_submitted", "gmt_job_running", "gmt_job_stopped", "gmt_job_finished")
JOB_FIELDS = (
    Field("job_name", Kind.TEXT),
    Field("status", Kind.TEXT, may_be_blank=True),
    Field("model", Kind.TEXT, needed=False, may_be_blank=True),
    Field("tenant_id", Kind.TEXT, needed=False, may_be_blank=True),
    Field("user_id", Kind.TEXT, needed=False, may_be_blank=True),
    Field("priority", Kind.NUMBER, needed=False, may_be_blank=True),
    Field("job_max_running_time_minutes", Kind.NUMBER, needed=False, may_be_blank=True),
    *(
        Field(
            name, Kind.TIME, may_be_blank=True, needed=name != "gmt_job_stopped",
            time_format="%Y/%m/%d %H:%M",
        )
        for name in TIMES
    ),
)  # fmt: skip
WORKER_FIELDS = (
    Field("job_name", Kind.TEXT),
    Field("worker_name", Kind.TEXT),
    Field("RES", Kind.TEXT, may_be_blank=True),
)
SUBMITTED, STARTED, ENDED = (
    pl.col(name) for name in ("gmt_job_submitted", "gmt_job_running", "ended")
)
STILL_RUNNING = (pl.col("status") == "running") & ENDED.is_null()
BACKWARDS = Reason("ended before it ran", ENDED < STARTED)
REASONS = (
    Reason("a further row of the same job", ~pl.col("job_name").is_first_distinct()),
    Reason("never submitted", SUBMITTED.is_null()),
    Reason("never ran", STARTED.is_null()),
    Reason("no end recorded", ENDED.is_null() & ~STILL_RUNNING.fill_null(value=False)),
    Reason("have no worker in worker.csv", pl.col("workers").is_null()),
)
UNREADABLE = Reason(
    "RES is not JSON of quantities", pl.col("RES").is_not_null() & pl.col("gpu").is_null()
)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGTP]|[KMGTP]i)?", re.ASCII)
_UNITS = {
    "": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50,
}  # fmt: skip
"""Units in which Kubernetes writes quantities."""


def is_jobs(file: TraceFile) -> bool:
    """Tell `job.csv` by its columns."""
    return file.has_columns("job_name", "gmt_job_submitted", "gmt_job_running")


def is_workers(file: TraceFile) -> bool:
    """Tell `worker.csv` by its columns."""
    return file.has_columns("job_name", "worker_name", "res")


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Join jobs and workers."""
    job_files = [file for file in files if is_jobs(file)]
    worker_files = [file for file in files if is_workers(file)]
    if not job_files or not worker_files:
        raise TraceFormatError(
            f"{', '.join(file.name for file in files)}: job.csv and worker.csv are both needed;"
            " name both, or the folder that holds them."
        )
    jobs = pl.concat([read_rows(file, JOB_FIELDS, ledger, options) for file in job_files])
    rows = pl.concat([read_rows(file, WORKER_FIELDS, ledger, options) for file in worker_files])
    gangs = _gangs(rows, jobs, options, ledger)
    joined = jobs.join(gangs, on="job_name", how="left", maintain_order="left").with_columns(
        status(pl.col("status")), ended=pl.coalesce("gmt_job_finished", "gmt_job_stopped")
    )
    kept = judged(
        joined,
        "jobs",
        mistakes=[too_large(options), BACKWARDS],
        reasons=[*REASONS, no_gang(options)],
        named_by="job_name",
        options=options,
        ledger=ledger,
    )
    end_s = jobs.select(pl.max_horizontal(pl.col(*TIMES).max())).item() or 0.0
    return _draft(with_gangs(kept, options, ledger), end_s, options, ledger)


def _draft(jobs: pl.DataFrame, end_s: float, options: ImportOptions, ledger: Ledger) -> Draft:
    """Return the canonical columns, and book what is special about them."""
    early = STARTED < SUBMITTED
    ledger.censor(
        "were still running when the trace ended", jobs.select(STILL_RUNNING.sum()).item()
    )
    ledger.change(
        "ran before they were submitted: their wait is unknown", jobs.select(early.sum()).item()
    )
    limit_s = pl.col("job_max_running_time_minutes") * 60.0
    frame = jobs.select(
        "gpus", "milli_gpu", "cpus", "memory_gib", "status",
        id="job_name",
        submit_s=SUBMITTED,
        duration_s=ENDED.fill_null(end_s) - STARTED,
        estimate_s=pl.when(limit_s > 0.0).then(limit_s),
        tenant="tenant_id",
        user="user_id",
        kind="model",
        priority=pl.col("priority").fill_null(0.0),
        recorded_wait_s=pl.when(~early).then(STARTED - SUBMITTED),
    )  # fmt: skip
    ledger.remark("times are written to the minute: short waits and durations may be 0")
    return Draft(frame, ledger, time_zone=options.zone_in_words("local time as written (China)"))


# --- workers --------------------------------------------------------------------------------------


def _gangs(
    rows: pl.DataFrame, jobs: pl.DataFrame, options: ImportOptions, ledger: Ledger
) -> pl.DataFrame:
    """Return what the workers of each job ask for together."""
    cells = rows["RES"].drop_nulls().unique(maintain_order=True).to_list()
    read = pl.DataFrame(
        [(cell, *(_resources(cell) or (None, None, None))) for cell in cells],
        schema={"RES": pl.String, "gpu": pl.Float64, "cpu": pl.Float64, "memory": pl.Float64},
        orient="row",
    )
    known = jobs.select("job_name", known=pl.lit(value=True)).unique("job_name")
    workers = rows.join(read, on="RES", how="left", maintain_order="left").join(
        known, on="job_name", how="left", maintain_order="left"
    )
    same = pl.struct("job_name", "worker_name").is_first_distinct()
    kept = judged(
        workers,
        "workers",
        mistakes=[UNREADABLE],
        reasons=[
            Reason("belong to no job of job.csv", pl.col("known").is_null()),
            Reason("a further row of the same worker", ~same),
        ],
        named_by="worker_name",
        options=options,
        ledger=ledger,
    )
    return kept.group_by("job_name").agg(
        asked=pl.col("gpu").sum(),
        cpus=pl.col("cpu").sum(),
        memory_gib=pl.col("memory").sum() / 2.0**30,
        workers=pl.len(),
    )


def _resources(cell: str) -> tuple[float, float, float] | None:
    """Return GPUs, cores and bytes of memory of a worker, None if the cell cannot be read."""
    try:
        content = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    gpus, cores, memory = (
        _quantity(content.get(key, 0)) for key in ("nvidia.com/gpu", "cpu", "memory")
    )
    if gpus is None or cores is None or memory is None:
        return None
    return gpus, cores, memory


def _quantity(value: object) -> float | None:
    """Return a quantity as Kubernetes writes it, such as 8, "500m" or "800Gi"."""
    match = (
        _QUANTITY.fullmatch(str(value).strip()) if isinstance(value, str | int | float) else None
    )
    if match is None:
        return None
    number = float(match[1]) * _UNITS[match[2] or ""]
    return number if math.isfinite(number) and number < 1e18 else None


FORMAT = TraceFormat(
    name="lingjun-2023",
    reads="job.csv and worker.csv",
    source="Alibaba Lingjun dataset, 2023 (Cao et al., SIGCOMM 2024)",
    recognises=lambda file: is_jobs(file) or is_workers(file),
    read=read,
)
