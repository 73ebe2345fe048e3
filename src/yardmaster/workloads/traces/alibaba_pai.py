"""Alibaba PAI 2020: two months of a platform for machine learning, in tables without headers.

A job of `pai_job_table` has tasks in `pai_task_table` (such as `ps` and `worker`), a task has
`inst_num` equal instances, and `plan_gpu` and `plan_cpu` are hundredths of a GPU and of a core *per
instance*. A job asks for what its tasks ask for together, waits until the first of them starts and
runs until the last of them ends; its `start_time` is its submission. `pai_group_tag_table` adds the
GPU type a job insisted on and what it worked on. The tables of instances, sensors and machines are
not needed.

The publisher moved all times by a constant that keeps hours and weekdays in China: the dates are
wrong, the rest is right. Blank cells are common, and a time of 0 means that it is not known.

`pai_job_…_100K.csv` of the publisher's simulator is a sample of these jobs, one row per job, with a
header, on a clock that starts at 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.alibaba_pai_tables import Role, read_table, role
from yardmaster.workloads.traces.formats import TraceFormat
from yardmaster.workloads.traces.reading.account import Dropped, Ledger
from yardmaster.workloads.traces.reading.cells import Field, Kind
from yardmaster.workloads.traces.reading.delimited import Reason, read_rows
from yardmaster.workloads.traces.reading.draft import Draft
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.judging import judged
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import status
from yardmaster.workloads.traces.reading.trace_files import TraceFile

CHINA_S = 8 * 3_600.0
"""Seconds that clocks in China are ahead of UTC."""

SUBMITTED, STARTED, ENDED = pl.col("start_time"), pl.col("started"), pl.col("ended")
STATUS = pl.col("status")
REASONS = (
    Reason("a further row of the same job", ~pl.col("job_name").is_first_distinct()),
    Reason("were still waiting when the trace ended", STATUS == "waiting"),
    Reason("have no task in the task table", pl.col("tasks").is_null()),
    Reason("no submission time", SUBMITTED.is_null()),
)
UNFINISHED = (
    Reason("never started", STARTED.is_null()),
    Reason("no end recorded", ENDED.is_null()),
    Reason("ended before they started", ENDED < STARTED),
)


def read(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Join the tables of jobs, tasks and tags."""
    tables = {kind: [file for file in files if role(file) == kind] for kind in Role}
    if not tables[Role.JOBS] or not tables[Role.TASKS]:
        raise TraceFormatError(
            f"{', '.join(file.name for file in files)}: the tables pai_job_table and"
            " pai_task_table are both needed; name both, or the folder that holds them."
        )
    jobs, tasks, tags = (
        [read_table(file, kind, options, ledger) for file in tables[kind]] for kind in Role
    )
    joined = _joined(pl.concat(jobs), pl.concat(tasks), ledger)
    kept = judged(
        joined,
        "jobs",
        mistakes=[too_large(options)],
        reasons=[*REASONS, no_gang(options), *UNFINISHED],
        named_by="job_name",
        options=options,
        ledger=ledger,
    )
    if options.time_zone is not None:
        ledger.remark("--time-zone is not used: times of this trace are in China's time")
    frame = _canonical(with_gangs(_tagged(kept, tags, ledger), options, ledger), ledger)
    zone = "China; the publisher shifted the dates, hours and weekdays are true"
    return Draft(frame, ledger, time_zone=zone)


def _canonical(jobs: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Return the canonical columns, and book what is special about the jobs."""
    early = STARTED < SUBMITTED
    counts = jobs.select(running=(STATUS == "running").sum(), early=early.sum())
    ledger.censor("were still running when the trace ended", counts["running"].item())
    ledger.change(
        "started before they were submitted: their wait is unknown", counts["early"].item()
    )
    return jobs.select(
        "gpus", "milli_gpu", "cpus", "memory_gib", "user", "status",
        id="job_name",
        submit_s=SUBMITTED + CHINA_S,
        duration_s=ENDED - STARTED,
        gpu_types="gpu_type_spec",
        kind="workload",
        recorded_wait_s=pl.when(~early).then(STARTED - SUBMITTED),
    )  # fmt: skip


def _joined(jobs: pl.DataFrame, tasks: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Return the jobs with what their tasks ask for, and when these started and ended."""
    known = tasks.join(jobs, on="job_name", how="semi")
    orphans = Dropped("belong to no job of the job table", len(tasks) - len(known))
    ledger.stage("tasks", len(tasks), len(known), [orphans])
    uncounted = int(known["inst_num"].null_count())
    if uncounted:
        ledger.remark(f"{uncounted:,} tasks do not say how many instances they have: taken as one")
    last_s = pl.concat(
        [jobs.select("start_time", "end_time"), known.select("start_time", "end_time")]
    )
    end_s = last_s.select(pl.max_horizontal(pl.all().max())).item()
    instances = pl.col("inst_num").fill_null(1.0)
    per_job = known.group_by("job_name").agg(
        asked=(instances * pl.col("plan_gpu")).sum() / 100.0,
        cpus=(instances * pl.col("plan_cpu")).sum() / 100.0,
        memory_gib=(instances * pl.col("plan_mem")).sum(),
        started=pl.col("start_time").min(),
        last_end=pl.col("end_time").max(),
        tasks=pl.len(),
    )
    whole = jobs.join(per_job, on="job_name", how="left", maintain_order="left").with_columns(
        status(STATUS),
        # A sum over nothing but blanks says nothing.
        *(pl.when(pl.col(name) > 0.0).then(pl.col(name)) for name in ("cpus", "memory_gib")),
    )
    return whole.with_columns(
        ended=pl.when(STATUS == "running").then(pl.lit(end_s, pl.Float64))
        .otherwise(pl.coalesce("last_end", "end_time"))
    )  # fmt: skip


def _tagged(jobs: pl.DataFrame, tags: Sequence[pl.DataFrame], ledger: Ledger) -> pl.DataFrame:
    """Add the GPU type each job insisted on and what it worked on, where the tags say so."""
    wanted = ("gpu_type_spec", "workload")
    if not tags:
        ledger.missing(wanted)
        ledger.remark(
            "there is no pai_group_tag_table: which GPU types jobs insisted on is unknown"
        )
        return jobs.with_columns(**dict.fromkeys(wanted, pl.lit(None, pl.String)))
    first = pl.concat(tags).select("inst_id", *wanted).unique("inst_id", keep="first")
    return jobs.join(first, on="inst_id", how="left", maintain_order="left")


FORMAT = TraceFormat(
    name="alibaba-pai-2020",
    reads="pai_job_table and pai_task_table, and pai_group_tag_table if there (.csv or .tar.gz)",
    source="Alibaba cluster-trace-gpu-v2020, 2020 (Weng et al., NSDI 2022; CC-BY-4.0)",
    recognises=lambda file: role(file) is not None,
    read=read,
)


# --- the simulator's sample -----------------------------------------------------------------------

SAMPLE_FIELDS = (
    Field("job_id", Kind.TEXT),
    Field("num_inst", Kind.AMOUNT, may_be_blank=True),
    Field("submit_time", Kind.SECONDS),
    Field("num_cpu", Kind.AMOUNT, needed=False),
    Field("num_gpu", Kind.AMOUNT, may_be_blank=True),
    Field("duration", Kind.SECONDS),
    Field("user", Kind.TEXT, needed=False),
    Field("wait_time", Kind.NUMBER, needed=False),
    Field("user_dur", Kind.NUMBER, needed=False),
    Field("group_dur", Kind.NUMBER, needed=False),
)


def is_sample(file: TraceFile) -> bool:
    """Tell the simulator's sample by its columns."""
    return file.has_columns("job_id", "num_inst", "submit_time", "num_gpu", "duration")


def read_sample(files: Sequence[TraceFile], options: ImportOptions, ledger: Ledger) -> Draft:
    """Read the simulator's sample."""
    rows = pl.concat([read_rows(file, SAMPLE_FIELDS, ledger, options) for file in files])
    instances = pl.col("num_inst").fill_null(1.0)
    rows = rows.with_columns(
        asked=instances * pl.col("num_gpu").fill_null(0.0), cpus=instances * pl.col("num_cpu")
    )
    kept = judged(
        rows,
        "jobs",
        mistakes=[too_large(options)],
        reasons=[no_gang(options)],
        named_by="job_id",
        options=options,
        ledger=ledger,
    )
    guess = pl.coalesce(
        # The publisher's third guess also knows the GPU type a job ran on: nobody can before.
        pl.when(pl.col(name) > 0.0).then(pl.col(name))
        for name in ("group_dur", "user_dur")
    )
    frame = with_gangs(kept, options, ledger).select(
        "gpus", "milli_gpu", "cpus", "user",
        id="job_id",
        submit_s="submit_time",
        duration_s="duration",
        estimate_s=guess,
        recorded_wait_s=pl.when(pl.col("wait_time") >= 0.0).then(pl.col("wait_time")),
    )  # fmt: skip
    if frame["estimate_s"].count():
        ledger.remark(
            "estimate_s is the publisher's group_dur (user_dur where that is blank): predicted from"
            " other jobs of the same group; whether only from earlier ones is not published"
        )
    ledger.remark("gpu_type says where a job ran, not what it asked for, and is not taken over")
    return Draft(frame, ledger, dated=False)


SAMPLE_FORMAT = TraceFormat(
    name="alibaba-pai-simulator",
    reads="pai_job_no_estimate_100K.csv or pai_job_duration_estimate_100K.csv",
    source="simulator of Alibaba cluster-trace-gpu-v2020 (Weng et al., NSDI 2022; CC-BY-4.0)",
    recognises=is_sample,
    read=read_sample,
    one_table=True,
)
FORMATS = (FORMAT, SAMPLE_FORMAT)
