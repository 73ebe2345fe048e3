"""One environment: put a scheduler to work, let time pass until the next decision, look.

The chooser is asked before the first scheduling pass of all, so that no other scheduler has a part
in what follows, and then before a pass in which there is something to choose: at least two jobs
wait and a GPU is free, and `every_s` seconds have passed since the last decision. All passes until
the next decision are the chosen scheduler's.
"""

from __future__ import annotations

import math

from yardmaster.engine.choosing.accounts import (
    begin_step,
    earn,
    move_marks,
    note_arrival,
    note_end,
    note_start,
    pass_seconds,
    recount,
)
from yardmaster.engine.choosing.places import (
    ASKED_S,
    CHOICES_AT,
    CURRENT,
    EVERY_S,
    HORIZON_S,
    IS_OVER,
    MAX_STEPS,
    MEMBERS,
    MENU_AT,
    MENU_CLIP_LOW,
    MENU_DISCIPLINE,
    MENU_FIELDS,
    MENU_OFFSET,
    MENU_ORDER,
    MENU_PLACEMENT,
    MENU_RATE,
    MENU_SINCE,
    PLACEABLE,
    STEPS,
    SWITCHES,
    End,
    Term,
)
from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel, spliced_kernel
from yardmaster.engine.core.events import next_instant
from yardmaster.engine.core.outages import handle_outages
from yardmaster.engine.core.passes import schedule
from yardmaster.engine.core.queue import admit_all, enqueue
from yardmaster.engine.core.running import finish
from yardmaster.engine.core.tenants import book_usage
from yardmaster.engine.state import (
    ARRIVAL,
    ARRIVAL_JOB,
    CLIP_HIGH,
    CLIP_LOW,
    COMMITTED,
    DISCIPLINE,
    END,
    FREE_GPUS,
    HAS_SHARING,
    HEAP,
    IS_REAL,
    JOB_SHAPE,
    JOBS,
    NEXT_ARRIVAL,
    NOTHING,
    NOW,
    OFFSET,
    ORDER,
    OUTAGE,
    PLACEMENT,
    QUEUED,
    RATE,
    RUNNING,
    SEGMENT_JOB,
    SEGMENTS,
    SINCE,
    SUBMIT,
    Ints,
    Reals,
)


@kernel
def put_to_work(ints: Ints, reals: Reals, facts: Reals, book: Ints, member: int) -> None:
    """Let a scheduler of the menu decide from now on; no job is touched."""
    at = int(facts[MENU_AT]) + member * MENU_FIELDS
    book[CURRENT] = member
    ints[ORDER] = ints[at + MENU_ORDER]
    ints[DISCIPLINE] = ints[at + MENU_DISCIPLINE]
    ints[PLACEMENT] = ints[at + MENU_PLACEMENT]
    ints[OFFSET] = ints[at + MENU_OFFSET]
    ints[RATE] = ints[at + MENU_RATE]
    ints[SINCE] = ints[at + MENU_SINCE]
    reals[CLIP_LOW] = reals[ints[at + MENU_CLIP_LOW]]
    reals[CLIP_HIGH] = reals[ints[at + MENU_CLIP_LOW] + 1]
    ints[COMMITTED] = NOTHING  # what another scheduler promised does not bind this one
    admit_all(ints, reals)  # nor do the limits that its backfilling has left


@kernel
def begin(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
) -> None:
    """Begin an episode: let time pass until the first decision, before which nobody decides."""
    begin_step(purse)
    purse[ASKED_S] = -math.inf
    put_to_work(ints, reals, facts, book, 0)
    book[CURRENT] = NOTHING  # to choose at first is not to change
    _pass_time(ints, reals, rules, scales, facts, book, purse)


@kernel
def step(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    action: int,
) -> None:
    """Put the chosen scheduler to work and go on to the next decision or to the episode's end.

    A number that is not on the menu leaves the scheduler as it is, at first the menu's first. An
    episode in which there is never anything to choose ends with its first step.
    """
    if book[STEPS] > 0:  # what accrued before the first decision is earned with it
        begin_step(purse)
    book[STEPS] += 1
    if 0 <= action < rules[MEMBERS]:
        book[CHOICES_AT + action] += 1
        if action != book[CURRENT]:
            if book[CURRENT] != NOTHING:
                book[SWITCHES] += 1
                earn(purse, Term.SWITCH, 1.0 / facts[PLACEABLE])
            put_to_work(ints, reals, facts, book, action)
    purse[ASKED_S] = reals[NOW]
    _start_jobs(ints, reals, rules, facts, book, purse)
    _pass_time(ints, reals, rules, scales, facts, book, purse)
    if book[IS_OVER] == End.NOT_YET and 0 < rules[MAX_STEPS] <= book[STEPS]:
        book[IS_OVER] = End.CUT


@kernel
def _start_jobs(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals
) -> None:
    """Carry out the scheduling pass of this instant."""
    first = ints[SEGMENTS]
    schedule(ints, reals)
    for segment in range(first, ints[SEGMENTS]):
        note_start(ints, reals, rules, facts, book, purse, ints[ints[SEGMENT_JOB] + segment])


@kernel
def _pass_time(
    ints: Ints, reals: Reals, rules: Ints, scales: Reals, facts: Reals, book: Ints, purse: Reals
) -> None:
    """Let time pass until there is something to choose, or the episode ends."""
    while True:
        moment = next_instant(ints, reals)
        if moment == math.inf:
            book[IS_OVER] = End.DONE if ints[QUEUED] == 0 else End.CUT
            return
        if moment >= facts[HORIZON_S]:
            seconds = facts[HORIZON_S] - reals[NOW]
            pass_seconds(ints, reals, rules, scales, facts, book, purse, seconds)
            reals[NOW] = facts[HORIZON_S]
            book[IS_OVER] = End.CUT
            return
        _go_on(ints, reals, rules, scales, facts, book, purse, moment)
        if _is_asked(ints, reals, scales, purse):
            move_marks(ints, reals, scales, facts, book)
            return
        _start_jobs(ints, reals, rules, facts, book, purse)


@hot_kernel
def _is_asked(ints: Ints, reals: Reals, scales: Reals, purse: Reals) -> bool:
    """Whether there is something to choose now."""
    if purse[ASKED_S] == -math.inf:
        return ints[QUEUED] >= 1
    has_room = ints[FREE_GPUS] > 0 or ints[HAS_SHARING] == 1
    is_due = reals[NOW] - purse[ASKED_S] >= scales[EVERY_S]
    return ints[QUEUED] >= 2 and has_room and is_due


@spliced_kernel
def _go_on(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    moment: float,
) -> None:
    """Go to the next instant: completions, repairs and failures, arrivals."""
    pass_seconds(ints, reals, rules, scales, facts, book, purse, moment - reals[NOW])
    reals[NOW] = moment
    is_real = REAL_CLUSTERS and ints[IS_REAL] == 1
    if is_real:
        book_usage(ints, reals)
    while ints[RUNNING] > 0 and reals[ints[END] + ints[ints[HEAP] + 0]] <= moment:
        job = ints[ints[HEAP] + 0]
        note_end(ints, reals, rules, facts, book, purse, job)
        finish(ints, reals, job)
    if is_real:
        outages = ints[OUTAGE]
        handle_outages(ints, reals)
        if ints[OUTAGE] != outages:
            recount(ints, reals, facts, book, purse)
    while _next_arrival(ints, reals) <= moment:
        _admit(ints, reals, rules, facts, book, purse)


@hot_kernel
def _next_arrival(ints: Ints, reals: Reals) -> float:
    """Return the second of the next arrival; infinity if there is none."""
    if ints[NEXT_ARRIVAL] >= ints[JOBS]:
        return math.inf
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return reals[ints[ARRIVAL] + ints[ints[ARRIVAL_JOB] + ints[NEXT_ARRIVAL]]]
    return reals[ints[SUBMIT] + ints[NEXT_ARRIVAL]]


@spliced_kernel
def _admit(ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals) -> None:
    """Let the next job enter the queue, unless it can never be placed."""
    job = ints[NEXT_ARRIVAL]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        job = ints[ints[ARRIVAL_JOB] + ints[NEXT_ARRIVAL]]
    ints[NEXT_ARRIVAL] += 1
    if ints[ints[JOB_SHAPE] + job] >= 0:
        enqueue(ints, reals, job)
        note_arrival(ints, reals, rules, facts, book, purse, job)
