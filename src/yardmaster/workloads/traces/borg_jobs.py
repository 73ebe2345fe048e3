"""From the histories of Borg's jobs and tasks to gangs of slots.

A job becomes one gang: it holds the slots of all its tasks from the first start to the last end.
Borg itself starts tasks one by one and restarts them on their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.traces.borg_events import (
    AFTER_US,
    BEGIN_S,
    EVENT_CODES,
    EventCodes,
    History,
)
from yardmaster.workloads.traces.reading.account import Ledger
from yardmaster.workloads.traces.reading.draft import Draft, dropped_where
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.statuses import status

SLOT = 1 / 32
"""Share of the largest machine's CPU that is one slot unless the user says otherwise.

In the first parts of 2011, half of the tasks ask for at most one such slot, and rounding up to
whole slots adds 17 % to what tasks ask for; twice the slot would add 54 %. The usual machine there,
half as large as the largest, is a node of 16 slots.
"""


def slot_share(options: ImportOptions) -> float:
    """Return which share of the largest machine's CPU is one slot.

    Raises:
        InvalidWorkloadError: if the user wants slots larger than a machine.
    """
    slot = SLOT if options.slot_cores is None else options.slot_cores
    if slot > 1.0:
        raise InvalidWorkloadError(
            "Google's traces give CPU as a share of the largest machine: slot_cores is at most 1"
            f" (such as {SLOT:g}), got {slot:g}."
        )
    return slot


def in_slots(slot: float) -> pl.Expr:
    """Return the slots of each task: its column `cpu` rounded up, and at least one."""
    # A request of exactly two slots must not become three by rounding.
    slots = (pl.col("cpu") / slot - 1e-6).ceil().fill_null(1.0)
    return slots.clip(1.0).cast(pl.Int64)


def remark_on_slots(jobs: pl.DataFrame, slot: float, ledger: Ledger) -> None:
    """Say in the account what a slot is, and how much rounding adds.

    Args:
        jobs: one row per job, with its `slots` and the `cpu` its tasks ask for.
        slot: share of the largest machine's CPU that is one slot.
        ledger: the account.
    """
    held, asked = jobs.select(pl.sum("slots") * slot, pl.sum("cpu")).row(0)
    added = f", which adds {held / asked - 1.0:.0%}" if asked else ""
    ledger.remark(
        f"one slot is {slot:g} of the largest machine's CPU (--slot-cores); each task's request is"
        f" rounded up to whole slots{added}"
    )


@dataclass(frozen=True, slots=True)
class Clock:
    """The local clock of a trace.

    Attributes:
        second_0_s: what it shows at the trace's second 0, in seconds since 1970.
        words: which clock it is, for the account.
    """

    second_0_s: float
    words: str


def clock_of(began: datetime, zone: str, options: ImportOptions) -> Clock:
    """Return the clock of a trace that began at a known moment.

    Args:
        began: when the trace's second 600 was, with its zone.
        zone: where the machines are, or what the publisher dates the trace by.
        options: another zone, if the user wants one.
    """
    chosen = options.time_zone or zone
    local = (began - timedelta(seconds=BEGIN_S)).astimezone(ZoneInfo(chosen)).replace(tzinfo=UTC)
    words = f"{chosen} (second 600 is {began.astimezone(ZoneInfo(chosen)):%Y-%m-%d %H:%M} there)"
    return Clock(local.timestamp(), words)


def drafted(
    jobs: History | None,
    tasks: History | None,
    codes: EventCodes,
    *,
    clock: Clock,
    options: ImportOptions,
    ledger: Ledger,
) -> Draft:
    """Make one gang of each job.

    When it was submitted, started and ended comes from the table of jobs, or from its tasks if that
    table does not tell of it; how large it is comes from its tasks.
    """
    slot = slot_share(options)
    spans = [_spans(jobs, codes)] if jobs else []
    if tasks:
        of_tasks = _of_tasks(tasks.frame, slot)
        from_tasks = _spans(History(of_tasks, tasks.window), codes)
        known = [from_tasks.join(spans[0], on="job", how="anti")] if spans else [from_tasks]
        size = of_tasks.select("job", "slots", "cpu", "restarted", "guessed", most="priority")
        frame = pl.concat([*spans, *known]).join(size, on="job", how="left")
    else:
        nothing = {"restarted": False, "guessed": False, "most": None}
        frame = spans[0].with_columns(slots=1, **{k: pl.lit(v) for k, v in nothing.items()})
        ledger.remark("there are no events of tasks: every job is taken to be 1 slot")
    kept = dropped_where(frame, "jobs", _REASONS, ledger)
    _book_jobs(kept, slot if tasks else None, ledger)
    return _canonical(kept, clock, ledger)


_BEGIN = ("opened", "started")
_UNSEEN_BEGIN = (
    (pl.col("first_end") < pl.min_horizontal(*_BEGIN))
    | (pl.col("first_end").is_not_null() & pl.all_horizontal(pl.col(*_BEGIN).is_null()))
).fill_null(value=False)
"""The first that the files tell of it is an end: it ran before they begin."""

_REASONS = (
    ("had ended before the trace began", pl.col("was_over")),
    ("never scheduled", pl.col("start_s").is_null()),
    ("none of its tasks is in the files: its size is not known", pl.col("slots").is_null()),
)


def _of_tasks(tasks: pl.DataFrame, slot: float) -> pl.DataFrame:
    """Return each job as its tasks tell of it: its slots, and its first and last events."""
    open_still = pl.col("ended").is_null() | (pl.col("again") > pl.col("ended") // EVENT_CODES)
    return tasks.group_by("job").agg(
        *(
            pl.when(_UNSEEN_BEGIN).then(0).otherwise(pl.col(name)).min().alias(name)
            for name in _BEGIN
        ),
        pl.col("first_end").min(),
        # A task that has not ended keeps its job open, however late others end.
        pl.when(open_still).then(AFTER_US).otherwise(pl.col("again")).max().alias("again"),
        pl.col("ended", "priority").max(),
        in_slots(slot).sum().alias("slots"),
        pl.col("cpu").sum(),
        (pl.col("starts") > 1).any().alias("restarted"),
        pl.col("cpu").is_null().any().alias("guessed"),
        pl.col("user", "kind").drop_nulls().first(),
    )


def _spans(history: History, codes: EventCodes) -> pl.DataFrame:
    """Return when each job was submitted, started and ended, in seconds, and what is not known."""
    window = history.window
    opened, started = pl.col("opened"), pl.col("started")
    ended_us = pl.col("ended") // EVENT_CODES
    unfinished = pl.col("ended").is_null() | (pl.col("again") > ended_us).fill_null(value=False)
    before = _UNSEEN_BEGIN | (started == 0).fill_null(value=False)
    start_s = pl.when(before).then(window.begin_s).otherwise(started / 1e6)
    submit_s = pl.when(opened == 0).then(window.begin_s).otherwise(opened / 1e6)
    ending = (pl.col("ended") % EVENT_CODES).replace_strict(
        dict(codes.ended), default=None, return_dtype=pl.String
    )
    return history.frame.select(
        "job", "user", "kind", "priority",
        start_s=start_s,
        submit_s=pl.min_horizontal(submit_s, start_s),
        end_s=pl.when(unfinished).then(window.end_s).otherwise(ended_us / 1e6),
        waited=(opened > 0) & (started > 0) & ~before,
        no_submission=opened.is_null(),
        early=(opened == 0) & ~before,
        before=before,
        unfinished=unfinished,
        was_over=~unfinished & (ended_us == 0),
        ending=ending,
    )  # fmt: skip


def _book_jobs(jobs: pl.DataFrame, slot: float | None, ledger: Ledger) -> None:
    """Say in the account what is not known of the jobs, and what was assumed."""

    def count(which: pl.Expr) -> int:
        return int(jobs.select(which.fill_null(value=False).sum()).item())

    before, unfinished = pl.col("before"), pl.col("unfinished")
    began, ran = "had begun before the first event", "were still running at the last event"
    ledger.censor(began, count(before & ~unfinished))
    ledger.censor(ran, count(unfinished & ~before))
    ledger.censor(f"{began} and {ran}", count(unfinished & before))
    ledger.change(
        "were submitted before the trace; they wait from its start", count(pl.col("early"))
    )
    ledger.change(
        "have no submission in the files; their start is taken",
        count(pl.col("no_submission") & ~before),
    )
    ledger.remark(
        "a job is one gang: it holds the slots of all its tasks from first start to last end"
    )
    if slot is None:
        return
    remark_on_slots(jobs, slot, ledger)
    guessed, restarted = count(pl.col("guessed")), count(pl.col("restarted"))
    ledger.change("have tasks without a CPU request, counted as 1 slot each", guessed)
    if restarted:
        ledger.remark(
            f"{restarted:,} jobs had tasks that were stopped and started again; their run time"
            " spans it all"
        )


def _canonical(jobs: pl.DataFrame, clock: Clock, ledger: Ledger) -> Draft:
    start, end = pl.col("start_s"), pl.col("end_s")
    how = (
        pl.when("unfinished").then(pl.lit("running"))
        .when("before").then(pl.lit("censored"))
        .otherwise(status(pl.col("ending")))
    )  # fmt: skip
    frame = jobs.select(
        id="job",
        submit_s=pl.col("submit_s") + clock.second_0_s,
        duration_s=end - start,
        gpus="slots",
        user="user",
        kind="kind",
        priority=pl.coalesce("most", "priority", pl.lit(0)),
        status=how,
        recorded_wait_s=pl.when("waited").then(start - pl.col("submit_s")),
    )
    # Thousands of jobs share the trace's first second: ties must not depend on chance.
    return Draft(frame.sort("submit_s", "id"), ledger, time_zone=clock.words)
