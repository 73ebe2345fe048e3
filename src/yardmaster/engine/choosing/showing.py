"""What a chooser sees: statistics of the queue, of the cluster and of the recent past.

Every number is between 0 and 1 (or −1 and 1 where things can be opposite). Times are shown as
t / (t + unit) and amounts by the number of GPUs, so that clusters of any size look alike.
"""

from __future__ import annotations

import math

from yardmaster.engine.choosing.accounts import gpus_of
from yardmaster.engine.choosing.places import (
    AGE_COUNT,
    AGES,
    AHEAD,
    BUCKET,
    BUCKET_S,
    BUCKETS,
    BUSY_GPUS,
    CURRENT,
    GPUS_SUM,
    KNOWS,
    LABEL_AT,
    LABELS,
    MEMBERS,
    MOST_LOOKED_AT,
    NO_DEADLINE,
    OLDEST,
    PAST,
    PAST_ARRIVALS,
    PAST_BUSY,
    PAST_BY_DEADLINE,
    PAST_BY_PRIORITY,
    PAST_BY_RUN,
    PAST_BY_SIZE,
    PAST_ENDS,
    PAST_GPUS,
    PAST_PATIENCE,
    PAST_QUEUE,
    PAST_RUN_S,
    PAST_WORK,
    PRIORITY_SUM,
    PURSE,
    RECENT_AT,
    RUN_SQUARES,
    RUN_SUM,
    SHOWS_AGES,
    SHOWS_CHOICE,
    SLACK_COUNT,
    SLACKS,
    SUBMIT_SQUARES,
    SUBMIT_SUM,
    TIME_UNIT_S,
    WITH_DEADLINE,
    WORK_ENDS,
    WORK_SUM,
)
from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.state import (
    EXPECTED_END,
    EXPECTED_HEAP,
    FREE_GPUS,
    GPUS,
    NEXT_ARRIVAL,
    NOW,
    QUEUED,
    RUNNING,
    SUBMIT,
    Ints,
    Reals,
)

MANY_JOBS = math.log(1001.0)
LARGE = 16.0
"""Doublings of the number of GPUs at which the size of the cluster is shown as 1."""

QUEUE_FEATURES = (
    ("queued", "log(1 + waiting jobs) / log(1001), at most 1"),
    ("queued_per_gpu", "x / (1 + x) of waiting jobs by GPUs"),
    ("gpus_wanted", "x / (1 + x) of the GPUs that waiting jobs ask for by GPUs"),
    ("work_waiting", "t / (t + unit) of the waiting jobs' GPU-seconds by GPUs"),
    ("mean_width", "mean GPUs of waiting jobs by GPUs"),
    ("mean_run", "t / (t + unit) of the waiting jobs' mean run time"),
    ("run_spread", "x / (1 + x) of their standard deviation by their mean"),
    ("mean_priority", "p / (1 + |p|) of the waiting jobs' mean priority"),
    ("with_deadline", "share of waiting jobs that have a deadline"),
    ("free", "share of the GPUs that is free"),
    ("running", "running jobs by GPUs, at most 1"),
    ("work_running", "t / (t + unit) of the running jobs' GPU-seconds left by GPUs"),
    ("cluster", "log2(GPUs) / 16, at most 1"),
)
"""Numbers of now, in this order; those about run times are 0 for blind choosers."""

AGE_FEATURES = (
    ("mean_age", "t / (t + unit) of the mean time that waiting jobs have waited"),
    ("age_spread", "t / (t + unit) of its standard deviation"),
    ("oldest", "t / (t + unit) of the longest such time"),
    *((f"older_{age:g}", f"share of waiting jobs older than {age:g} units") for age in AGES),
)
SLACK_FEATURES = tuple(
    (f"slack_{slack:g}", f"share of waiting jobs that are late unless begun within {slack:g} units")
    for slack in SLACKS
)
AHEAD_FEATURES = tuple(
    (f"ahead_{ahead:g}", f"share of the GPUs free {ahead:g} units from now, if nothing starts")
    for ahead in AHEAD
)
PAST_FEATURES = (
    ("arrivals", "x / (1 + x) of jobs submitted by GPUs"),
    ("load", "x / (1 + x) of work submitted by what all GPUs can do in that time"),
    ("width", "mean GPUs of jobs submitted by GPUs"),
    ("run", "t / (t + unit) of their mean run time"),
    ("patience", "their mean time to the deadline by run time, at most 8, by 8"),
    ("ends", "x / (1 + x) of jobs finished by GPUs"),
    ("queue", "x / (1 + x) of the mean queue by GPUs"),
    ("busy", "mean share of the GPUs in use"),
    ("run_tells", "pairs of ended jobs whose longer one the known run time told, less the others"),
    ("priority_tells", "the same of priorities, the urgent being shorter"),
    ("deadline_tells", "the same of times to the deadline"),
    ("size_tells", "the same of numbers of GPUs"),
)
"""Numbers of every span of the recent past, the newest first."""


@hot_kernel
def squashed(value: float) -> float:
    """Return x / (1 + x), and 0 for anything negative."""
    return value / (1.0 + value) if value > 0.0 else 0.0


@kernel
def look(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
) -> None:
    """Write what the chooser sees; marks must have been moved to now."""
    at = _show_queue(ints, reals, rules, scales, book, purse, view)
    if rules[SHOWS_AGES] == 1:
        at = _show_ages(ints, reals, scales, book, purse, view, at)
    at = _show_slacks(ints, book, view, at)
    at = _show_ahead(ints, reals, rules, scales, view, at)
    if rules[SHOWS_CHOICE] == 1:
        for member in range(rules[MEMBERS]):
            view[at + member] = 1.0 if member == book[CURRENT] else 0.0
        at += rules[MEMBERS]
    for label in range(rules[LABELS]):
        view[at + label] = facts[LABEL_AT + label]
    _show_past(ints, rules, scales, book, purse, view)


@kernel
def _show_queue(
    ints: Ints, reals: Reals, rules: Ints, scales: Reals, book: Ints, purse: Reals, view: Reals
) -> int:
    """Show the sums over waiting and running jobs; return how many numbers that is."""
    unit, gpus = scales[TIME_UNIT_S], float(ints[GPUS])
    queued = float(ints[QUEUED])
    each = 1.0 / queued if queued > 0.0 else 0.0
    view[0] = min(math.log(1.0 + queued) / MANY_JOBS, 1.0)
    view[1] = squashed(queued / gpus)
    view[2] = squashed(purse[GPUS_SUM] / gpus)
    view[3] = squashed(purse[WORK_SUM] / (gpus * unit))
    view[4] = min(purse[GPUS_SUM] * each / gpus, 1.0)
    mean = purse[RUN_SUM] * each
    view[5] = squashed(mean / unit)
    variance = max(purse[RUN_SQUARES] * each - mean * mean, 0.0)
    # A second more: of jobs that all take no time the spread is nothing.
    view[6] = squashed(math.sqrt(variance) / (mean + 1.0)) if rules[KNOWS] == 1 else 0.0
    priority = purse[PRIORITY_SUM] * each
    view[7] = priority / (1.0 + abs(priority))
    view[8] = book[WITH_DEADLINE] * each
    view[9] = ints[FREE_GPUS] / gpus
    view[10] = min(ints[RUNNING] / gpus, 1.0)
    left = purse[WORK_ENDS] - reals[NOW] * book[BUSY_GPUS]
    view[11] = squashed(left / (gpus * unit)) if rules[KNOWS] == 1 else 0.0
    view[12] = min(math.log(gpus) / (LARGE * math.log(2.0)), 1.0)
    return len(QUEUE_FEATURES)


@kernel
def _show_ages(
    ints: Ints, reals: Reals, scales: Reals, book: Ints, purse: Reals, view: Reals, at: int
) -> int:
    """Show how long waiting jobs have waited; return where the next number goes."""
    unit, queued = scales[TIME_UNIT_S], float(ints[QUEUED])
    each = 1.0 / queued if queued > 0.0 else 0.0
    mean = purse[SUBMIT_SUM] * each
    view[at] = squashed((reals[NOW] - mean) / unit) if queued > 0.0 else 0.0
    variance = max(purse[SUBMIT_SQUARES] * each - mean * mean, 0.0)
    view[at + 1] = squashed(math.sqrt(variance) / unit)
    view[at + 2] = 0.0
    if queued > 0.0 and book[OLDEST] < ints[NEXT_ARRIVAL]:
        view[at + 2] = squashed((reals[NOW] - reals[ints[SUBMIT] + book[OLDEST]]) / unit)
    for index in range(len(AGES)):
        view[at + 3 + index] = book[AGE_COUNT + index] * each
    return at + len(AGE_FEATURES)


@kernel
def _show_slacks(ints: Ints, book: Ints, view: Reals, at: int) -> int:
    """Show how close waiting jobs are to their deadlines; return where the next number goes."""
    each = 1.0 / float(ints[QUEUED]) if ints[QUEUED] > 0 else 0.0
    for index in range(len(SLACKS)):
        view[at + index] = book[SLACK_COUNT + index] * each
    return at + len(SLACKS)


@kernel
def _show_ahead(ints: Ints, reals: Reals, rules: Ints, scales: Reals, view: Reals, at: int) -> int:
    """Show how many GPUs will be free when; return where the next number goes."""
    for index in range(len(AHEAD)):
        view[at + index] = ints[FREE_GPUS] / float(ints[GPUS]) if rules[KNOWS] == 1 else 0.0
    if rules[KNOWS] == 1:
        for place in range(min(ints[RUNNING], MOST_LOOKED_AT)):
            job = ints[ints[EXPECTED_HEAP] + place]
            left = (reals[ints[EXPECTED_END] + job] - reals[NOW]) / scales[TIME_UNIT_S]
            share = gpus_of(ints, job) / float(ints[GPUS])
            for index in range(len(AHEAD)):
                if left <= AHEAD[index]:
                    view[at + index] = min(view[at + index] + share, 1.0)
    return at + len(AHEAD)


@kernel
def _show_past(
    ints: Ints, rules: Ints, scales: Reals, book: Ints, purse: Reals, view: Reals
) -> None:
    """Show the spans of the recent past, the one that is now first."""
    gpus, unit, width = float(ints[GPUS]), scales[TIME_UNIT_S], scales[BUCKET_S]
    buckets = rules[BUCKETS]
    for back in range(buckets):
        at = rules[RECENT_AT] + back * len(PAST_FEATURES)
        number = book[BUCKET] - back
        if number < 0:
            for index in range(len(PAST_FEATURES)):
                view[at + index] = 0.0
            continue
        past = PURSE + PAST * (number % buckets)
        arrivals = purse[past + PAST_ARRIVALS]
        each = 1.0 / arrivals if arrivals > 0.0 else 0.0
        view[at] = squashed(arrivals / gpus)
        view[at + 1] = squashed(purse[past + PAST_WORK] / (gpus * width))
        view[at + 2] = min(purse[past + PAST_GPUS] * each / gpus, 1.0)
        view[at + 3] = squashed(purse[past + PAST_RUN_S] * each / unit)
        view[at + 4] = purse[past + PAST_PATIENCE] * each / NO_DEADLINE
        view[at + 5] = squashed(purse[past + PAST_ENDS] / gpus)
        view[at + 6] = squashed(purse[past + PAST_QUEUE] / (gpus * width))
        view[at + 7] = purse[past + PAST_BUSY] / (gpus * width)
        pairs = max(purse[past + PAST_ENDS], 1.0)
        view[at + 8] = purse[past + PAST_BY_RUN] / pairs
        view[at + 9] = purse[past + PAST_BY_PRIORITY] / pairs
        view[at + 10] = purse[past + PAST_BY_DEADLINE] / pairs
        view[at + 11] = purse[past + PAST_BY_SIZE] / pairs
