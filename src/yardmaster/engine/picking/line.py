"""The line: the waiting jobs in the order of the window, and sums over them and the running ones.

The core keeps the waiting jobs in a list without order (see `QueueKind.LIST`). Here they are sorted
by the key of the window's order; equal keys go by row. Keys that change while jobs wait are looked
up anew at every instant.
"""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.core.queue import key_now
from yardmaster.engine.picking.places import (
    BOOK,
    BSLD_RATE,
    BUSY_GPUS,
    FACTS,
    IS_FIXED,
    KNOWS,
    LINE_FIRST,
    LINE_LENGTH,
    PURSE,
    RUN,
    SHORT_S,
    SLD_RATE,
    SUBMIT_SUM,
    WORK_ENDS,
    WORK_WAITING,
)
from yardmaster.engine.state import (
    DURATION,
    END,
    HEAP,
    JOB_SHAPE,
    QUEUE,
    QUEUED,
    RUNNING,
    SHAPE_GPUS,
    SUBMIT,
    Ints,
    Reals,
)


@hot_kernel
def gpus_of(ints: Ints, job: int) -> int:
    """Return the GPUs a job asks for."""
    return ints[ints[SHAPE_GPUS] + ints[ints[JOB_SHAPE] + job]]


@hot_kernel
def known_run_s(rules: Ints, facts: Reals, job: int) -> float:
    """Return the run time of a job as the policy knows it, seconds; 0 if it is blind."""
    return facts[FACTS + RUN + job] if rules[KNOWS] == 1 else 0.0


@hot_kernel
def at_place(book: Ints, place: int) -> int:
    """Return the job at a place of the line."""
    return book[BOOK + book[LINE_FIRST] + place]


@kernel
def join_line(ints: Ints, reals: Reals, book: Ints, purse: Reals, job: int) -> None:
    """Let a job that now waits stand in line, behind all whose key is not larger."""
    key = key_now(ints, reals, job)
    purse[PURSE + job] = key
    _insert(book, purse, book[LINE_LENGTH], job, key)
    book[LINE_LENGTH] += 1
    _count(ints, reals, purse, job, 1.0)


@hot_kernel
def _insert(book: Ints, purse: Reals, place: int, job: int, key: float) -> None:
    """Put a job at a place, or as far before it as its key demands."""
    first = BOOK + book[LINE_FIRST]
    while place > 0:
        before = book[first + place - 1]
        other = purse[PURSE + before]
        if other < key or (other == key and before < job):
            break
        book[first + place] = before
        place -= 1
    book[first + place] = job


@kernel
def leave_line(ints: Ints, reals: Reals, book: Ints, purse: Reals, place: int) -> int:
    """Take the job at a place out of the line; return the job.

    Those before it move up, not those behind: it stands in the window, and the line may be long.
    """
    first = BOOK + book[LINE_FIRST]
    job = book[first + place]
    length = book[LINE_LENGTH] - 1
    for index in range(place, 0, -1):
        book[first + index] = book[first + index - 1]
    book[LINE_FIRST] += 1
    book[LINE_LENGTH] = length
    _count(ints, reals, purse, job, -1.0)
    if length == 0:  # sums of many small numbers do not cancel exactly; none waiting is exact
        purse[SUBMIT_SUM] = 0.0
        purse[WORK_WAITING] = 0.0
        purse[BSLD_RATE] = 0.0
        purse[SLD_RATE] = 0.0
    return job


@hot_kernel
def _count(ints: Ints, reals: Reals, purse: Reals, job: int, sign: float) -> None:
    """Count a job in or out of the sums over waiting jobs."""
    run_s = reals[ints[DURATION] + job]
    purse[SUBMIT_SUM] += sign * reals[ints[SUBMIT] + job]
    purse[WORK_WAITING] += sign * run_s * gpus_of(ints, job)
    purse[BSLD_RATE] += sign / max(run_s, SHORT_S)
    purse[SLD_RATE] += sign / max(run_s, 1.0)


@kernel
def sort_line(ints: Ints, reals: Reals, rules: Ints, book: Ints, purse: Reals) -> None:
    """Look up all keys anew and sort the line by them, if they can have changed."""
    if rules[IS_FIXED] == 1:
        return
    for place in range(book[LINE_LENGTH]):
        job = at_place(book, place)
        key = key_now(ints, reals, job)
        purse[PURSE + job] = key
        _insert(book, purse, place, job, key)


@kernel
def recount(ints: Ints, reals: Reals, book: Ints, purse: Reals) -> None:
    """Rebuild the line and the sums from the core, after nodes failed and jobs came back."""
    book[LINE_FIRST] = 0
    book[LINE_LENGTH] = 0
    purse[SUBMIT_SUM] = 0.0
    purse[WORK_WAITING] = 0.0
    purse[BSLD_RATE] = 0.0
    purse[SLD_RATE] = 0.0
    for place in range(ints[QUEUED]):
        join_line(ints, reals, book, purse, ints[ints[QUEUE] + place])
    book[BUSY_GPUS] = 0
    purse[WORK_ENDS] = 0.0
    for place in range(ints[RUNNING]):
        job = ints[ints[HEAP] + place]
        book[BUSY_GPUS] += gpus_of(ints, job)
        purse[WORK_ENDS] += gpus_of(ints, job) * reals[ints[END] + job]
