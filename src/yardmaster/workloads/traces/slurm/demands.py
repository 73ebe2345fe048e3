"""What a record says in many columns, said in few: how long a job ran and what it held."""

from __future__ import annotations

import polars as pl

from yardmaster.workloads.traces.slurm.fields import UNFINISHED

MIB_PER_GIB = 1024.0
STATE, START, END = (pl.col(name) for name in ("State", "Start", "End"))
IS_UNFINISHED = pl.when(STATE.is_null()).then(END.is_null()).otherwise(STATE.is_in(UNFINISHED))
_SECOND_OF_SUSPENSION = 1e9
"""While a job is suspended, the database holds when that began, not how long it took."""


def condensed(records: pl.DataFrame) -> pl.DataFrame:
    """Return typed records with one column for each fact.

    What a job held counts; what it asked for, where nothing is known of that. `run_s` is null for
    unfinished jobs whose record does not say how long they have run.
    """
    raw = pl.col("SuspendedRaw")
    paused = pl.when(raw < _SECOND_OF_SUSPENSION).then(raw)
    narrow = records.with_columns(suspended_s=pl.coalesce("Suspended", paused, 0.0))
    return narrow.select(
        "JobID", "JobIDRaw", "Cluster", "State", "Submit", "Eligible", "Start", "End", "Allocated",
        "Priority", "suspended_s",
        run_s=_run_s(),
        limit_s=pl.coalesce("TimelimitRaw", "Timelimit"),
        memory_gib=_memory_mib() / MIB_PER_GIB,
        tenant=pl.coalesce("Account", "Partition").cast(pl.Categorical),
        user=pl.col("User").cast(pl.Categorical),
        kind=pl.col("Kind").cast(pl.Categorical),
        **_gpus(),
        cpus=_cpus(),
    )  # fmt: skip


def _run_s() -> pl.Expr:
    spanned = (END - START - pl.col("suspended_s")).clip(0.0)
    return pl.coalesce("ElapsedRaw", "Elapsed", pl.when(~IS_UNFINISHED).then(spanned))


def _part(column: str, name: str) -> pl.Expr:
    return pl.col(column).struct.field(name)


def _nodes() -> pl.Expr:
    return pl.col("NNodes").clip(1).fill_null(1)


def _gpus() -> dict[str, pl.Expr]:
    all_four = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES")
    per_node = _part("ReqGRES", "gpus") * _nodes()  # the only one that is not of the whole job
    held = [_part(column, "gpus") for column in all_four[:3]]
    return {
        "asked": pl.coalesce(*held, per_node).cast(pl.Float64),
        "types": pl.coalesce(_part("ReqTRES", "types"), _part("ReqGRES", "types")),
        "shares": pl.any_horizontal(_part(column, "shares") for column in all_four),
        "guessed": pl.coalesce(_part("AllocTRES", "guessed"), _part("ReqTRES", "guessed")),
    }


def _cpus() -> pl.Expr:
    counted = pl.when(pl.col("NCPUS") > 0).then("NCPUS")
    return pl.coalesce(_part("AllocTRES", "cpus"), counted, _part("ReqTRES", "cpus"), "ReqCPUS")


def _memory_mib() -> pl.Expr:
    each = _part("ReqMem", "each")
    times = pl.when(each == "n").then(_nodes()).when(each == "c").then(_cpus()).otherwise(1)
    asked = _part("ReqMem", "mib") * times
    return pl.coalesce(_part("AllocTRES", "memory_mib"), _part("ReqTRES", "memory_mib"), asked)
