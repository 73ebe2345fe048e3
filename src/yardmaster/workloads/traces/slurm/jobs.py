"""From Slurm's records to jobs: which records are jobs, when they came, what they held.

- A job that could not start when it was submitted (a dependency, a begin time, a hold, an array's
  limit) counts as submitted when it became eligible, as in Slurm's own account of waiting.
- A job's run time is what Slurm calls elapsed: without the time it was suspended.
- A job is what its last record says. Earlier attempts of requeued jobs, and records that stand in
  two exports, are left out.
- Larger priorities are more urgent. They are Slurm's own numbers (age, fair share, QOS and size
  together) when it last looked at the job.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from yardmaster.workloads.traces.account import Ledger
from yardmaster.workloads.traces.draft import dropped_where
from yardmaster.workloads.traces.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.options import ImportOptions
from yardmaster.workloads.traces.slurm.fields import INTERRUPTED, UNFINISHED, WAITING
from yardmaster.workloads.traces.slurm.records import ALLOCATED
from yardmaster.workloads.traces.statuses import status

MIB_PER_GIB = 1024.0
_SUBMIT, _START, _END, _STATE = (pl.col(name) for name in ("Submit", "Start", "End", "State"))
_UNFINISHED = _STATE.is_in(UNFINISHED) | (_STATE.is_null() & _END.is_null())
_READY = (pl.col("Eligible") > _SUBMIT) & (pl.col("Eligible") <= _START)
"""Whether a job became eligible only after it was submitted."""


def jobs_of(records: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return the jobs among typed records in canonical columns, and book the others."""
    seen = _with_resources(_in_last_record(records).with_columns(run_s=_run_s()))
    options = _with_slots(seen, options, ledger)
    large = too_large(options)
    reasons = [
        ("its job has a later record (requeued, or exported twice)", pl.col("superseded")),
        ("was waiting in the queue when the log was written", _STATE.is_in(WAITING)),
        ("never started", _START.is_null() | ~pl.col(ALLOCATED)),
        ("ended at an unknown time", pl.col("run_s").is_null() & ~_UNFINISHED),
        (
            "asked for shares of a GPU (shards, MPS), whose size the log does not tell",
            pl.col("shares") & pl.col("asked").is_null(),
        ),
        (no_gang(options).text, no_gang(options).holds),
        (large.text, large.holds),
    ]
    kept = dropped_where(seen, "jobs", reasons, ledger)
    _book(kept, ledger)
    return _canonical(with_gangs(kept, options, ledger), _last_second(seen))


def _in_last_record(records: pl.DataFrame) -> pl.DataFrame:
    """Say which records a later one of the same job replaces.

    Numbers are used again after years, or when a cluster is set up anew: a job that ended is
    replaced only by a record of the same submission.
    """
    raw = pl.coalesce("JobIDRaw", "JobID")
    key = pl.concat_str(pl.col("Cluster").fill_null(""), pl.lit(" "), raw)
    ordered = records.with_row_index("row").sort(
        key, _SUBMIT, _START, "ElapsedRaw", "Elapsed", maintain_order=True
    )
    followed = (key == key.shift(-1)).fill_null(value=False)
    again = (_SUBMIT.shift(-1) == _SUBMIT).fill_null(value=False)
    goes_on = _STATE.is_in(INTERRUPTED).fill_null(value=False)
    marked = ordered.with_columns(superseded=followed & (again | goes_on))
    return marked.sort("row").drop("row")


def _run_s() -> pl.Expr:
    """Return how long jobs have run; null for unfinished ones whose record does not say."""
    raw = pl.col("SuspendedRaw")  # holds the second of suspension while a job is suspended
    suspended = pl.coalesce("Suspended", pl.when(raw < 1e9).then(raw), 0.0)
    spanned = (_END - _START - suspended).clip(0.0)
    return pl.coalesce("ElapsedRaw", "Elapsed", pl.when(~_UNFINISHED).then(spanned))


def _with_resources(records: pl.DataFrame) -> pl.DataFrame:
    """Add what jobs held, or asked for where nothing is known of what they held."""
    got, gres, wanted, wanted_gres = (
        pl.col(name).struct for name in ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES")
    )
    nodes = pl.col("NNodes").clip(1).fill_null(1)
    cores = pl.when(pl.col("NCPUS") > 0).then("NCPUS")
    return records.with_columns(
        asked=pl.coalesce(
            got.field("gpus"),
            gres.field("gpus"),
            wanted.field("gpus"),
            wanted_gres.field("gpus") * nodes,  # Slurm asks for them per node
        ).cast(pl.Float64),
        types=pl.coalesce(wanted.field("types"), wanted_gres.field("types")),
        shares=pl.any_horizontal(s.field("shares") for s in (got, gres, wanted, wanted_gres)),
        guessed=pl.coalesce(got.field("guessed"), wanted.field("guessed")),
        cpus=pl.coalesce(got.field("cpus"), cores, wanted.field("cpus"), "ReqCPUS"),
    ).with_columns(memory_mib=_memory_mib(nodes))


def _memory_mib(nodes: pl.Expr) -> pl.Expr:
    asked, each = pl.col("ReqMem").struct.field("mib"), pl.col("ReqMem").struct.field("each")
    times = pl.when(each == "n").then(nodes).when(each == "c").then(pl.col("cpus")).otherwise(1)
    got, wanted = (pl.col(n).struct.field("memory_mib") for n in ("AllocTRES", "ReqTRES"))
    return pl.coalesce(got, wanted, asked * times)


def _with_slots(records: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> ImportOptions:
    """Take cores as slots in a log that knows no GPUs at all."""
    has_gpus = records.select((pl.col("asked").is_not_null() | pl.col("shares")).any()).item()
    if has_gpus or options.slot_cores is not None:
        return options
    ledger.remark(
        "no record names GPUs, so each core counts as a slot (--slot-cores). If jobs did use GPUs,"
        " the cluster's slurm.conf lacks AccountingStorageTRES=gres/gpu"
    )
    return replace(options, slot_cores=1.0)


def _last_second(records: pl.DataFrame) -> float:
    """Return the last second that the log knows of."""
    began = pl.when(~_STATE.is_in(WAITING).fill_null(value=False)).then(_START)
    latest = records.select(
        pl.max_horizontal(_SUBMIT.max(), began.max(), _END.max(), (began + pl.col("run_s")).max())
    ).item()
    return float(latest or 0.0)


def _book(jobs: pl.DataFrame, ledger: Ledger) -> None:
    """Say what was altered, and what the reader must know."""

    def number(holds: pl.Expr) -> int:
        return int(jobs.select(holds.fill_null(value=False).sum()).item())

    ledger.censor("were still running when the log was written", number(_UNFINISHED))
    for what, holds in {
        "could not start at once (dependency, begin time, hold, array limit): they count as"
        " submitted when they became eligible": _READY,
        "have no submission time; their start is taken": _SUBMIT.is_null(),
        "started before they were submitted": _START < _SUBMIT,
        "were suspended for a while, which their run times leave out": pl.any_horizontal(
            pl.col("Suspended", "SuspendedRaw") > 0
        ),
        "are parts of heterogeneous jobs, taken as jobs of their own": pl.col("JobID").str.contains(
            "+", literal=True
        ),
        "asked for several GPU types at once: any of these will do": pl.col("types").str.contains(
            "|", literal=True
        ),
    }.items():
        ledger.change(what, number(holds))
    if guessed := number(pl.col("guessed")):
        ledger.remark(
            f"resources numbered 1001 and above are taken for GPUs ({guessed:,} jobs); give the"
            " database's tres_table as a further file to have them named"
        )
    if len(jobs) and not number(pl.col("JobIDRaw").is_not_null() | pl.col("JobID").is_not_null()):
        ledger.remark("the numbers of jobs were rounded by the publisher: they are counted from 0")
    if number(pl.col("Priority").is_not_null()):
        ledger.remark("priority is Slurm's own number, in which age and fair share are counted")


def _canonical(jobs: pl.DataFrame, last_s: float) -> pl.DataFrame:
    """Return the canonical columns of jobs, leaving out those that nothing is known of."""
    submit = pl.when(_READY).then("Eligible").otherwise(pl.coalesce(_SUBMIT, _START))
    wait = pl.when(_SUBMIT.is_not_null()).then(_START - submit)
    frame = jobs.select(
        "gpus", "milli_gpu",
        id=pl.coalesce("JobID", "JobIDRaw"),
        submit_s=submit,
        duration_s=pl.col("run_s").fill_null((last_s - _START).clip(0.0)),
        estimate_s=pl.coalesce("TimelimitRaw", "Timelimit"),
        gpu_types="types",
        cpus="cpus",
        memory_gib=pl.col("memory_mib") / MIB_PER_GIB,
        tenant=pl.coalesce("Account", "Partition"),
        user="User",
        priority="Priority",
        kind="Kind",
        status=pl.when(_UNFINISHED).then(pl.lit("running")).otherwise(status(_STATE)),
        recorded_wait_s=pl.when(wait >= 0).then(wait),
    )  # fmt: skip
    known = [name for name in frame.columns if frame[name].null_count() < len(frame)]
    frame = frame.select(known if len(frame) else frame.columns)
    if "priority" in frame.columns:
        frame = frame.with_columns(pl.col("priority").fill_null(0.0))
    if "id" in frame.columns and bool(frame["id"].str.contains(r"^\d+$").all()):
        frame = frame.with_columns(pl.col("id").cast(pl.Int64))
    return frame
