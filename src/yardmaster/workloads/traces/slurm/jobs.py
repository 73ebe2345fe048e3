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

from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.draft import dropped_where
from yardmaster.workloads.traces.reading.gangs import no_gang, too_large, with_gangs
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import status
from yardmaster.workloads.traces.slurm.demands import END, IS_UNFINISHED, START, STATE
from yardmaster.workloads.traces.slurm.fields import INTERRUPTED, WAITING

_SUBMIT = pl.col("Submit")
_READY = (pl.col("Eligible") > _SUBMIT) & (pl.col("Eligible") <= START)
"""Whether a job became eligible only after it was submitted."""

CHANGES = {
    "could not start at once (dependency, begin time, hold, array limit): they count as"
    " submitted when they became eligible": _READY,
    "have no submission time; their start is taken": _SUBMIT.is_null(),
    "started before they were submitted": START < _SUBMIT,
    "were suspended for a while, which their run times leave out": pl.col("suspended_s") > 0,
    "are parts of heterogeneous jobs, taken as jobs of their own": pl.col("JobID").str.contains(
        "+", literal=True
    ),
    "asked for several GPU types at once: any of these will do": pl.col("types").str.contains(
        "|", literal=True
    ),
}
"""What is altered of jobs, in the words of the account."""


def jobs_of(records: pl.DataFrame, options: ImportOptions, ledger: Ledger) -> pl.DataFrame:
    """Return the jobs among condensed records in canonical columns, and book the others."""
    seen = _in_last_record(records)
    options = _with_slots(seen, options, ledger)
    large = too_large(options)
    reasons = [
        ("its job has a later record (requeued, or exported twice)", pl.col("superseded")),
        ("was waiting in the queue when the log was written", STATE.is_in(WAITING)),
        ("never started", START.is_null() | ~pl.col("Allocated")),
        ("ended at an unknown time", pl.col("run_s").is_null() & ~IS_UNFINISHED),
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
    name = pl.coalesce("JobID", "JobIDRaw")
    key = pl.concat_str(pl.col("Cluster").fill_null(""), pl.lit(" "), name)
    ordered = records.with_row_index("row").sort(key, _SUBMIT, START, "run_s", maintain_order=True)
    followed = (key == key.shift(-1)).fill_null(value=False)
    again = (_SUBMIT.shift(-1) == _SUBMIT).fill_null(value=False)
    goes_on = STATE.is_in(INTERRUPTED).fill_null(value=False)
    marked = ordered.with_columns(superseded=followed & (again | goes_on))
    return marked.sort("row").drop("row")


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
    began = pl.when(~STATE.is_in(WAITING).fill_null(value=False)).then(START)
    latest = records.select(
        pl.max_horizontal(_SUBMIT.max(), began.max(), END.max(), (began + pl.col("run_s")).max())
    ).item()
    return float(latest or 0.0)


def _book(jobs: pl.DataFrame, ledger: Ledger) -> None:
    """Say what was altered, and what the reader must know."""

    def number(holds: pl.Expr) -> int:
        return int(jobs.select(holds.fill_null(value=False).sum()).item())

    ledger.censor("were still running when the log was written", number(IS_UNFINISHED))
    for what, holds in CHANGES.items():
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
    submit = pl.when(_READY).then("Eligible").otherwise(pl.coalesce(_SUBMIT, START))
    wait = pl.when(_SUBMIT.is_not_null()).then(START - submit)
    frame = jobs.select(
        "gpus", "milli_gpu", "cpus", "memory_gib", "tenant", "user", "kind",
        id=pl.coalesce("JobID", "JobIDRaw"),
        submit_s=submit,
        duration_s=pl.col("run_s").fill_null((last_s - START).clip(0.0)),
        estimate_s="limit_s",
        gpu_types="types",
        priority="Priority",
        status=pl.when(IS_UNFINISHED).then(pl.lit("running")).otherwise(status(STATE)),
        recorded_wait_s=pl.when(wait >= 0).then(wait),
    )  # fmt: skip
    known = [name for name in frame.columns if frame[name].null_count() < len(frame)]
    frame = frame.select(known if len(frame) else frame.columns)
    if "priority" in frame.columns:
        frame = frame.with_columns(pl.col("priority").fill_null(0.0))
    if "id" in frame.columns and bool(frame["id"].str.contains(r"^\d+$").all()):
        frame = frame.with_columns(pl.col("id").cast(pl.Int64))
    return frame
