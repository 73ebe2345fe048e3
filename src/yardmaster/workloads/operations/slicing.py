"""A part of a workload: a window of time, some tenants, users, endings or sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.workload import BoolArray, Labels, Workload
from yardmaster.names import did_you_mean
from yardmaster.workloads.arguments import whole_number
from yardmaster.workloads.clock import (
    DAY_S,
    WEEK_S,
    Moment,
    covered,
    in_words,
    second_of,
    since_monday_s,
)

MOST_NAMES = 12
"""Names listed in a message before the rest are only counted."""

Condition = tuple[str, BoolArray]
"""What is asked of a job, in words, and which jobs are so."""


def sliced(
    workload: Workload,
    *,
    start: Moment | None = None,
    end: Moment | None = None,
    tenants: Sequence[str] = (),
    not_tenants: Sequence[str] = (),
    users: Sequence[str] = (),
    not_users: Sequence[str] = (),
    statuses: Sequence[str] = (),
    not_statuses: Sequence[str] = (),
    min_gpus: int | None = None,
    max_gpus: int | None = None,
    restart_clock: bool = False,
) -> Workload:
    """Return the jobs that fulfil every condition given, on the same clock.

    Jobs without a tenant are not of tenant `a`, and are therefore kept by `not_tenants=["a"]`;
    users and statuses likewise.

    Args:
        workload: the jobs to choose from.
        start: keep jobs submitted at this moment or later (see `workloads.clock`).
        end: keep jobs submitted before this moment.
        tenants: keep jobs of these tenants only.
        not_tenants: leave out jobs of these tenants.
        users: keep jobs of these users only.
        not_users: leave out jobs of these users.
        statuses: keep jobs that ended so only.
        not_statuses: leave out jobs that ended so.
        min_gpus: keep jobs of at least so many GPUs.
        max_gpus: keep jobs of at most so many GPUs.
        restart_clock: make `start` (without one: the first submission that is kept) second 0. The
            date of second 0 moves along, so hours and weekdays stay true where it is known.

    Raises:
        UnknownNameError: if the workload has no such tenant, user or status.
        InvalidWorkloadError: if a moment cannot be read, nothing is asked for, or no job is left.
    """
    conditions = [
        *_window(workload, start, end),
        *_named(workload, "tenant", tenants, not_tenants),
        *_named(workload, "user", users, not_users),
        *_named(workload, "status", statuses, not_statuses),
        *_sizes(workload, min_gpus, max_gpus),
    ]
    if not conditions and not restart_clock:
        raise InvalidWorkloadError("Nothing to cut: name a window, tenants, users or sizes.")
    kept = _fulfilling(workload, conditions)
    words = "; ".join(text for text, _ in conditions) or "all of them"
    note = f"slice: {np.count_nonzero(kept):,} of {len(workload):,} jobs ({words})"
    part = workload.select(kept).renamed(workload.name, note)
    if not restart_clock:
        return part
    return restarted(part, float(part.submit_s[0]) if start is None else second_of(part, start))


def restarted(workload: Workload, origin_s: float) -> Workload:
    """Return the same jobs with `origin_s` as second 0, and say what becomes of hours and days.

    Prices by the hour begin at second 0 of any clock, so it matters whether that is a midnight.
    """
    note = f"clock: second 0 is what was {in_words(workload, origin_s)}"
    moved = workload.starting_at(origin_s)
    if not workload.begins and origin_s % WEEK_S:
        note += "; if that clock began on a Monday at midnight, this one does not"
    elif since_monday_s(moved) % DAY_S:
        note += ", which is not a midnight: prices by the hour begin there all the same"
    return moved.renamed(workload.name, note)


def _window(workload: Workload, start: Moment | None, end: Moment | None) -> Iterator[Condition]:
    begin_s = None if start is None else second_of(workload, start)
    end_s = None if end is None else second_of(workload, end)
    if begin_s is not None and end_s is not None and end_s <= begin_s:
        raise InvalidWorkloadError(
            f"The window is empty: it ends at {in_words(workload, end_s)} and begins at"
            f" {in_words(workload, begin_s)}; {covered(workload)}."
        )
    if begin_s is not None:
        yield f"submitted from {in_words(workload, begin_s)}", workload.submit_s >= begin_s
    if end_s is not None:
        yield f"submitted before {in_words(workload, end_s)}", workload.submit_s < end_s


def _named(
    workload: Workload, column: str, wanted: Sequence[str], unwanted: Sequence[str]
) -> Iterator[Condition]:
    labels: Labels = getattr(workload, column)
    plural = f"{column}es" if column == "status" else f"{column}s"
    if wanted:
        yield f"{plural} {', '.join(wanted)}", _is_one_of(workload, labels, column, wanted)
    if unwanted:
        is_one = _is_one_of(workload, labels, column, unwanted)
        yield f"not {plural} {', '.join(unwanted)}", ~is_one


def _is_one_of(workload: Workload, labels: Labels, column: str, names: Iterable[str]) -> BoolArray:
    used = labels.compact()
    codes = {name: code for code, name in enumerate(used.names)}
    for name in names:
        if name not in codes:
            raise _unknown(workload, column, name, used.names)
    return np.isin(used.codes, [codes[name] for name in names])


def _unknown(workload: Workload, column: str, name: str, known: Sequence[str]) -> UnknownNameError:
    if not known:
        return UnknownNameError(f"{workload.name} names no {column} for any job.")
    shown = ", ".join(sorted(known)[:MOST_NAMES])
    rest = f" and {len(known) - MOST_NAMES:,} more" if len(known) > MOST_NAMES else ""
    hint = did_you_mean(name, known)
    return UnknownNameError(
        f"{workload.name} has no {column} {name!r}.{hint} It has: {shown}{rest}."
    )


def _sizes(workload: Workload, smallest: int | None, largest: int | None) -> Iterator[Condition]:
    if smallest is not None:
        smallest = whole_number("min_gpus", smallest, smallest=1)
        yield f"at least {smallest} GPUs", workload.gpus >= smallest
    if largest is not None:
        largest = whole_number("max_gpus", largest, smallest=1)
        yield f"at most {largest} GPUs", workload.gpus <= largest


def _fulfilling(workload: Workload, conditions: Sequence[Condition]) -> BoolArray:
    """Return the jobs that fulfil all conditions; complain, with the count after each, if none."""
    kept = np.ones(len(workload), dtype=np.bool_)
    counts = []
    for text, fulfils in conditions:
        kept &= fulfils
        counts.append(f"\n  - {text}: {np.count_nonzero(kept):,} left")
    if not kept.any():
        raise InvalidWorkloadError(f"No job is left; {covered(workload)}.{''.join(counts)}")
    return kept
