"""One environment: carry out an action, let time pass until the next decision, look.

See `Pace` for when a policy is asked. Under the normal pace several jobs may start at one instant:
time passes only when no job of the window fits, or when the policy chooses to wait.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel, spliced_kernel
from yardmaster.engine.core.events import next_instant
from yardmaster.engine.core.outages import handle_outages
from yardmaster.engine.core.placement import plan_placement
from yardmaster.engine.core.queue import enqueue
from yardmaster.engine.core.reservation import plan_beside, until_shadow
from yardmaster.engine.core.running import finish, start
from yardmaster.engine.core.tenants import book_usage
from yardmaster.engine.picking.features import (
    forbid_all,
    may_start,
    show_standard,
    survey,
)
from yardmaster.engine.picking.line import (
    at_place,
    gpus_of,
    join_line,
    leave_line,
    recount,
    sort_line,
)
from yardmaster.engine.picking.other_features import (
    show_drl_scheduler,
    show_gpu_optimizer,
    show_rltune,
)
from yardmaster.engine.picking.places import (
    BOOK,
    CHOSEN,
    FEATURES,
    HEAD,
    HORIZON_S,
    INVALID_STEPS,
    IS_OVER,
    LINE_LENGTH,
    MAX_STEPS,
    NOOPS,
    PACE,
    PLACES_BESIDE,
    SHADOW,
    STEPS,
    TICK_S,
    WINDOW,
    WORK,
    WORK_COMING,
    End,
    Features,
    Pace,
    Term,
)
from yardmaster.engine.picking.terms import (
    begin_step,
    earn,
    note_end,
    note_over,
    note_start,
    pass_seconds,
    work_left,
)
from yardmaster.engine.state import (
    ARRIVAL,
    ARRIVAL_JOB,
    DURATION,
    END,
    HEAP,
    IS_REAL,
    JOB_SHAPE,
    JOBS,
    NEXT_ARRIVAL,
    NOTHING,
    NOW,
    OUTAGE,
    PASSES,
    RUNNING,
    SHAPE_LIMIT,
    SHAPES,
    SUBMIT,
    VALUE,
    Ints,
    Reals,
)

TO_THE_FIRST_INSTANT = 2


@kernel
def begin(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    legal: Ints,
) -> None:
    """Begin an episode: let time pass until the first decision."""
    purse[WORK_COMING] = facts[WORK]
    begin_step(purse)
    _pass_time(ints, reals, rules, scales, facts, book, purse, legal, TO_THE_FIRST_INSTANT)
    if book[IS_OVER] != End.NOT_YET and not survey(ints, rules, book, legal):
        forbid_all(rules, legal)


@kernel
def step(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    legal: Ints,
    action: int,
) -> None:
    """Carry out an action and go on to the next decision or to the end of the episode.

    An action that makes no sense counts as the no-op.
    """
    begin_step(purse)
    book[STEPS] += 1
    must_pass = 0
    if _is_pick(rules, book, purse, legal, action):
        job = at_place(book, action)
        if not _start(ints, reals, rules, facts, book, purse, job):
            if rules[PACE] == Pace.COMMIT:
                book[CHOSEN] = job + 1
            else:  # every action is legal here: it waits
                must_pass = 1
    else:
        must_pass = _hold_back(ints, reals, rules, facts, book, purse)
    _pass_time(ints, reals, rules, scales, facts, book, purse, legal, must_pass)
    is_limit_reached = 0 < rules[MAX_STEPS] <= book[STEPS]
    if book[IS_OVER] == End.NOT_YET and is_limit_reached:
        book[IS_OVER] = End.CUT
    if book[IS_OVER] != End.NOT_YET:
        note_over(ints, reals, rules, facts, book, purse)
        if not survey(ints, rules, book, legal):
            forbid_all(rules, legal)


@spliced_kernel
def _is_pick(rules: Ints, book: Ints, purse: Reals, legal: Ints, action: int) -> bool:
    """Whether an action picks a job; one that makes no sense is counted."""
    window = rules[WINDOW]
    is_valid = 0 <= action <= window and legal[action] == 1
    is_pick = is_valid and action < window and action < book[LINE_LENGTH]
    if not is_valid or (action < window and not is_pick):
        book[INVALID_STEPS] += 1
        earn(purse, Term.INVALID, 1.0)
    return is_pick


@spliced_kernel
def _hold_back(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals
) -> int:
    """Start nothing; return 1 if time must pass before the next decision.

    If nothing could ever happen then, the first job that fits starts instead.
    """
    book[NOOPS] += 1
    for place in range(min(book[LINE_LENGTH], rules[WINDOW])):
        shape = ints[ints[JOB_SHAPE] + at_place(book, place)]
        if book[BOOK + ints[JOBS] + ints[SHAPES] + shape] == 1:  # it fits, legal or not
            earn(purse, Term.HELD_BACK, work_left(reals, book, purse) / facts[WORK])
            if rules[PACE] == Pace.DECISION and next_instant(ints, reals) == math.inf:
                _start(ints, reals, rules, facts, book, purse, at_place(book, place))
                return 0
            return 1
    return 1


@kernel
def _start(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals, job: int
) -> bool:
    """Start a waiting job if it fits now.

    A job that would outlast the reservation goes beside it where it can: choosing a harmless job
    must do no harm.
    """
    shape = ints[ints[JOB_SHAPE] + job]
    if not may_start(ints, shape):
        return False
    if (
        rules[PLACES_BESIDE] == 1
        and book[HEAD] != NOTHING
        and book[HEAD] != job
        and reals[ints[SHAPE_LIMIT] + shape] == math.inf
        and purse[SHADOW] < math.inf
        and reals[ints[VALUE] + job] > until_shadow(ints, reals, shape, purse[SHADOW])
    ):
        plan_beside(ints, reals, job)
    elif not plan_placement(ints, reals, job):
        return False
    place = 0
    while at_place(book, place) != job:
        place += 1
    leave_line(ints, reals, book, purse, place)
    start(ints, reals, job)
    note_start(ints, reals, facts, book, purse, job)
    return True


@kernel
def _pass_time(
    ints: Ints,
    reals: Reals,
    rules: Ints,
    scales: Reals,
    facts: Reals,
    book: Ints,
    purse: Reals,
    legal: Ints,
    must_pass: int,
) -> None:
    """Let time pass until there is something to decide, or the episode ends.

    With `must_pass` something must happen first: the policy chose to wait.
    """
    pace = rules[PACE]
    is_asked_at_choices = pace == Pace.DECISION or pace == Pace.COMMIT
    until = math.inf
    if pace == Pace.TICK:
        until = reals[NOW] + (0.0 if must_pass == TO_THE_FIRST_INSTANT else scales[TICK_S])
    must_happen = must_pass != 0 or not is_asked_at_choices
    while True:
        if not must_happen:
            chosen = book[CHOSEN] - 1
            if chosen >= 0 and _start(ints, reals, rules, facts, book, purse, chosen):
                book[CHOSEN] = 0
            if book[CHOSEN] == 0 and survey(ints, rules, book, legal):
                return
        must_happen = not is_asked_at_choices
        moment = next_instant(ints, reals)
        if moment == math.inf and (pace != Pace.TICK or book[LINE_LENGTH] == 0):
            # Only a policy that may wait for ever can leave jobs behind.
            book[IS_OVER] = End.DONE if book[LINE_LENGTH] == 0 else End.CUT
            break
        if is_asked_at_choices and moment >= facts[HORIZON_S]:
            _cut(ints, reals, rules, scales, facts, book, purse)
            break
        if moment > until:
            pass_seconds(ints, reals, rules, scales, facts, book, purse, until - reals[NOW])
            reals[NOW] = until
            break
        _go_on(ints, reals, rules, scales, facts, book, purse, moment)
        if pace == Pace.EVENT:
            break
    if not is_asked_at_choices:
        _be_asked(ints, reals, rules, facts, book, purse, legal)


@spliced_kernel
def _be_asked(
    ints: Ints, reals: Reals, rules: Ints, facts: Reals, book: Ints, purse: Reals, legal: Ints
) -> None:
    """Look around after an event or a tick, whether anything fits or not."""
    is_left = ints[RUNNING] > 0 or ints[NEXT_ARRIVAL] < ints[JOBS] or book[LINE_LENGTH] > 0
    if not is_left:
        book[IS_OVER] = End.DONE
    elif reals[NOW] >= facts[HORIZON_S]:
        book[IS_OVER] = End.CUT
    sort_line(ints, reals, rules, book, purse)
    survey(ints, rules, book, legal)


@spliced_kernel
def _cut(
    ints: Ints, reals: Reals, rules: Ints, scales: Reals, facts: Reals, book: Ints, purse: Reals
) -> None:
    """End the episode at its horizon."""
    seconds = facts[HORIZON_S] - reals[NOW]
    pass_seconds(ints, reals, rules, scales, facts, book, purse, seconds)
    reals[NOW] = facts[HORIZON_S]
    book[IS_OVER] = End.CUT


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
    """Go to the next instant: completions, repairs and failures, arrivals.

    Under `Pace.EVENT` exactly one arrival or completion happens; arrivals come first.
    """
    pass_seconds(ints, reals, rules, scales, facts, book, purse, moment - reals[NOW])
    reals[NOW] = moment
    ints[PASSES] += 1
    is_real = REAL_CLUSTERS and ints[IS_REAL] == 1
    events = 1 if rules[PACE] == Pace.EVENT else ints[JOBS] + ints[RUNNING]
    if events == 1 and _next_arrival(ints, reals) <= moment:
        events = 0
    if is_real:
        book_usage(ints, reals)
    while events > 0 and ints[RUNNING] > 0 and reals[ints[END] + ints[ints[HEAP] + 0]] <= moment:
        _end(ints, reals, facts, book, purse)
        events -= 1
    if is_real:
        outages = ints[OUTAGE]
        handle_outages(ints, reals)
        if ints[OUTAGE] != outages:
            recount(ints, reals, book, purse)
    events = 1 if rules[PACE] == Pace.EVENT else ints[JOBS]
    while events > 0 and _next_arrival(ints, reals) <= moment:
        _admit(ints, reals, book, purse)
        events -= 1
    sort_line(ints, reals, rules, book, purse)


@spliced_kernel
def _end(ints: Ints, reals: Reals, facts: Reals, book: Ints, purse: Reals) -> None:
    """End the running job that ends first."""
    job = ints[ints[HEAP] + 0]
    note_end(ints, reals, facts, book, purse, job)
    finish(ints, reals, job)


@hot_kernel
def _next_arrival(ints: Ints, reals: Reals) -> float:
    """Return the second of the next arrival; infinity if there is none."""
    if ints[NEXT_ARRIVAL] >= ints[JOBS]:
        return math.inf
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return reals[ints[ARRIVAL] + ints[ints[ARRIVAL_JOB] + ints[NEXT_ARRIVAL]]]
    return reals[ints[SUBMIT] + ints[NEXT_ARRIVAL]]


@spliced_kernel
def _admit(ints: Ints, reals: Reals, book: Ints, purse: Reals) -> None:
    """Let the next job join the line, unless it can never be placed."""
    job = ints[NEXT_ARRIVAL]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        job = ints[ints[ARRIVAL_JOB] + ints[NEXT_ARRIVAL]]
    ints[NEXT_ARRIVAL] += 1
    if ints[ints[JOB_SHAPE] + job] >= 0:
        enqueue(ints, reals, job)
        join_line(ints, reals, book, purse, job)
        purse[WORK_COMING] -= reals[ints[DURATION] + job] * gpus_of(ints, job)


@kernel
def look(
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
    """Write what the policy sees."""
    features = rules[FEATURES]
    if features == Features.STANDARD:
        show_standard(ints, reals, rules, scales, facts, cards, book, purse, view)
    elif features == Features.GPU_OPTIMIZER:
        show_gpu_optimizer(ints, reals, rules, scales, facts, book, view)
    elif features == Features.DRL_SCHEDULER:
        show_drl_scheduler(ints, rules, scales, facts, book, view)
    else:
        show_rltune(ints, reals, rules, book, view)
