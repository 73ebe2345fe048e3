"""What a policy sees: which jobs of the window fit, and the standard observation.

The standard observation (version 1) has a token per job of the window, the GPU slots (see
`lookahead`), and globals. All numbers are between −1 and 1. Durations without bound are shown as
t / (t + unit), so that no scale must be known and order is kept.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.core.reservation import limit_backfill, reserve
from yardmaster.engine.core.room import fits
from yardmaster.engine.core.tenants import HELD_BACK, class_of
from yardmaster.engine.picking.line import at_place
from yardmaster.engine.picking.lookahead import show_gpus
from yardmaster.engine.picking.places import (
    BOOK,
    CARD,
    DEADLINE,
    FACTS,
    GLOBALS_AT,
    HEAD,
    IS_OVER,
    IS_UNMASKED,
    KNOWS,
    LINE_FIRST,
    LINE_LENGTH,
    NOOP,
    PACE,
    RANK_KEY,
    RANKS,
    RESERVES,
    RUN,
    SHADOW,
    SHORT_S,
    SHOWN,
    SPARE,
    STAMP,
    TIME_UNIT_S,
    TOKEN,
    TOKENS_AT,
    WINDOW,
    End,
    NoOp,
    Pace,
)
from yardmaster.engine.state import (
    EXTRA,
    FREE_GPUS,
    GPUS,
    HAS_SHARING,
    IS_REAL,
    JOB_SHAPE,
    JOBS,
    NEXT_ARRIVAL,
    NODE_FREE,
    NODES,
    NOTHING,
    NOW,
    RUNNING,
    SHAPE_LIMIT,
    SHAPE_QUEUED,
    SHAPES,
    SUBMIT,
    TENANTS,
    VALUE,
    Ints,
    Reals,
)

JOB_FEATURES = (
    "present",
    "gpus_log",
    "gpus",
    "run_time",
    "area",
    "priority",
    "wait",
    "stretch",
    "fits",
    "reserved",
    "harmless",
    "slack",
    "deadline",
)
CARDS = 6
"""Numbers at the beginning of a token that never change while a job waits."""
GLOBAL_FEATURES = ("free", "waiting", "hidden", "running", "shadow", "spare")


@kernel
def survey(ints: Ints, rules: Ints, book: Ints, legal: Ints) -> bool:
    """Find which jobs of the window fit and what is legal; whether there is anything to decide."""
    shown = min(book[LINE_LENGTH], rules[WINDOW])
    book[HEAD] = NOTHING
    pace = rules[PACE]
    is_full = ints[FREE_GPUS] == 0 and ints[HAS_SHARING] == 0
    is_asked_at_choices = pace == Pace.DECISION and book[IS_OVER] == End.NOT_YET
    if is_asked_at_choices and (shown == 0 or is_full):
        return False  # `legal` stays as it is: nobody is asked
    is_real = REAL_CLUSTERS and ints[IS_REAL] == 1
    if not is_real and not _note_fits(ints, book) and is_asked_at_choices:
        return False
    book[STAMP] += 1
    shapes, fits_at = ints[JOB_SHAPE], BOOK + ints[JOBS] + ints[SHAPES]
    line, head = BOOK + book[LINE_FIRST], NOTHING
    is_overtaken, fitting = 0, 0
    for place in range(shown):
        job = book[line + place]
        if is_real:
            is_fitting = _fits_now(ints, book, job)
        else:
            is_fitting = book[fits_at + ints[shapes + job]] == 1
        legal[place] = 1 if is_fitting or pace == Pace.COMMIT else 0
        if is_fitting:
            fitting += 1
            if head != NOTHING:
                is_overtaken = 1
        elif head == NOTHING:
            head = job
    book[HEAD] = head
    for place in range(shown, book[SHOWN]):
        legal[place] = 0
    if rules[IS_UNMASKED] == 1:
        for place in range(rules[WINDOW]):
            legal[place] = 1
    legal[rules[WINDOW]] = _may_wait(ints, rules, is_overtaken, fitting)
    if pace == Pace.COMMIT:
        return shown > 0
    return fitting > 0 or pace != Pace.DECISION


@hot_kernel
def _note_fits(ints: Ints, book: Ints) -> bool:
    """Note of every shape on a plain cluster whether a waiting job of it fits; whether any does."""
    fits_at, queued = BOOK + ints[JOBS] + ints[SHAPES], ints[SHAPE_QUEUED]
    fitting = 0
    for shape in range(ints[SHAPES]):
        is_fitting = 1 if ints[queued + shape] > 0 and fits(ints, shape) else 0
        book[fits_at + shape] = is_fitting
        fitting += is_fitting
    return fitting > 0


@kernel
def forbid_all(rules: Ints, legal: Ints) -> None:
    """Leave only the no-op: the episode is over."""
    for place in range(rules[WINDOW]):
        legal[place] = 0
    legal[rules[WINDOW]] = 1


@hot_kernel
def _fits_now(ints: Ints, book: Ints, job: int) -> bool:
    """Whether a job could start on a real cluster; looked up once per shape and survey."""
    shape = ints[ints[JOB_SHAPE] + job]
    stamps = BOOK + ints[JOBS]
    if book[stamps + shape] != book[STAMP]:
        book[stamps + shape] = book[STAMP]
        book[stamps + ints[SHAPES] + shape] = 1 if may_start(ints, shape) else 0
    return book[stamps + ints[SHAPES] + shape] == 1


@hot_kernel
def may_start(ints: Ints, shape: int) -> bool:
    """Whether a job of this shape fits now, and its tenant may hold so much."""
    if REAL_CLUSTERS and ints[IS_REAL] == 1 and _is_at_limit(ints, shape):
        return False
    return fits(ints, shape)


@kernel
def _is_at_limit(ints: Ints, shape: int) -> bool:
    """Whether the tenant of this shape would hold more than it may."""
    return ints[TENANTS] > 0 and class_of(ints, shape) >= HELD_BACK


@hot_kernel
def _may_wait(ints: Ints, rules: Ints, is_overtaken: int, fitting: int) -> int:
    """Return 1 if the no-op is legal: something must be able to happen meanwhile."""
    if rules[PACE] == Pace.COMMIT:
        return 0
    if rules[PACE] != Pace.DECISION:
        return 1
    can_happen = ints[RUNNING] > 0 or ints[NEXT_ARRIVAL] < ints[JOBS]
    if fitting == 0:
        return 1
    if rules[NOOP] == NoOp.WHEN_BLOCKED:
        return 1 if is_overtaken == 1 and can_happen else 0
    return 1 if rules[NOOP] == NoOp.ALWAYS and can_happen else 0


@kernel
def make_reservation(ints: Ints, reals: Reals, rules: Ints, book: Ints, purse: Reals) -> None:
    """Reserve the earliest moment for the first blocked job of the window."""
    purse[SHADOW] = math.inf
    purse[SPARE] = float(ints[FREE_GPUS])
    if rules[RESERVES] == 0 or book[HEAD] == NOTHING:
        return
    purse[SHADOW] = reserve(ints, reals, book[HEAD])
    limit_backfill(ints, reals, purse[SHADOW])
    if purse[SHADOW] < math.inf:
        spare = 0
        for node in range(ints[NODES]):
            spare += max(min(ints[ints[NODE_FREE] + node], ints[ints[EXTRA] + node]), 0)
        purse[SPARE] = float(spare)


@hot_kernel
def _squashed(seconds: float, unit_s: float) -> float:
    """Return seconds of any sign as a number between −1 and 1."""
    return seconds / (abs(seconds) + unit_s)


@kernel
def show_standard(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    cards: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
) -> None:
    """Write the standard observation; only what changed beyond the last token is blanked."""
    make_reservation(ints, reals, rules, book, purse)
    shown = min(book[LINE_LENGTH], rules[WINDOW])
    size, first = rules[TOKEN], rules[TOKENS_AT]
    _show_tokens(ints, reals, rules, scales, facts, cards, book, purse, view, shown)
    for blank in range(first + shown * size, first + book[SHOWN] * size):
        view[blank] = 0.0
    book[SHOWN] = shown
    if rules[RANKS] > 0:
        _show_ranks(ints, rules, facts, book, view, shown)
    show_gpus(ints, reals, rules, scales, view)
    _show_globals(ints, reals, rules, scales, book, purse, view, shown)


@kernel
def _show_tokens(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    cards: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    shown: int,
) -> None:
    """Write the tokens. What is the same for all is looked up once: writing could change it."""
    now, unit, knows = reals[NOW], scales[TIME_UNIT_S], rules[KNOWS] == 1
    line, fitting = BOOK + book[LINE_FIRST], BOOK + ints[JOBS] + ints[SHAPES]
    shapes, submit, value = ints[JOB_SHAPE], ints[SUBMIT], ints[VALUE]
    limits, deadlines = ints[SHAPE_LIMIT], FACTS + DEADLINE * ints[JOBS]
    head, until = book[HEAD], purse[SHADOW] - now
    is_reserved = rules[RESERVES] == 1 and head != NOTHING
    is_promised = is_reserved and purse[SHADOW] < math.inf
    card_size, size, at = rules[CARD], rules[TOKEN], rules[TOKENS_AT]
    for place in range(shown):
        job = book[line + place]
        shape = ints[shapes + job]
        for index in range(CARDS):
            view[at + index] = cards[card_size * job + index]
        run_s = facts[FACTS + RUN + job] if knows else 0.0
        wait_s = now - reals[submit + job]
        view[at + 6] = wait_s / (wait_s + unit)
        view[at + 7] = wait_s / (wait_s + max(run_s, SHORT_S)) if knows else 0.0
        is_fitting = book[fitting + shape] == 1
        view[at + 8] = 1.0 if is_fitting else 0.0
        view[at + 9] = 1.0 if job == head else 0.0
        is_harmless = is_fitting and (
            not is_reserved or reals[value + job] <= reals[limits + shape]
        )
        view[at + 10] = 1.0 if is_harmless else 0.0
        view[at + 11] = _squashed(until - run_s, unit) if is_promised else 0.0
        deadline_s = facts[deadlines + job]
        is_due = not math.isnan(deadline_s)
        view[at + 12] = _squashed(deadline_s - now - run_s, unit) if is_due else 0.0
        at += size


@kernel
def _show_ranks(ints: Ints, rules: Ints, facts: Reals, book: Ints, view: Reals, shown: int) -> None:
    """Write each job's place in the window under known heuristics: 1/n for the first, 1 the last.

    The window holds a few dozen jobs, so comparing all with all is quicker than sorting.
    """
    size, first = rules[TOKEN], rules[TOKENS_AT]
    for heuristic in range(rules[RANKS]):
        keys = FACTS + (RANK_KEY + heuristic) * ints[JOBS]
        at = first + size - rules[RANKS] + heuristic
        for place in range(shown):
            job = at_place(book, place)
            key = facts[keys + job]
            if math.isnan(key):  # the order the window is in already
                view[at + place * size] = (place + 1) / shown
                continue
            before = 1
            for other_place in range(shown):
                other = at_place(book, other_place)
                other_key = facts[keys + other]
                if other_key < key or (other_key == key and other < job):
                    before += 1
            view[at + place * size] = before / shown


@hot_kernel
def _show_globals(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    book: Ints,
    purse: Reals,
    view: Reals,
    shown: int,
) -> None:
    at, gpus = rules[GLOBALS_AT], float(ints[GPUS])
    waiting = book[LINE_LENGTH]
    view[at] = ints[FREE_GPUS] / gpus
    view[at + 1] = waiting / (waiting + float(rules[WINDOW]))
    view[at + 2] = (waiting - shown) / (waiting + 1.0)
    view[at + 3] = min(ints[RUNNING] / gpus, 1.0)
    view[at + 4] = 0.0
    if purse[SHADOW] < math.inf:
        view[at + 4] = _squashed(purse[SHADOW] - reals[NOW], scales[TIME_UNIT_S])
    view[at + 5] = purse[SPARE] / gpus
