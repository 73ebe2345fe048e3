"""Conservative backfilling: every waiting job has a promised start, and nobody may break it.

The *profile* says how many GPUs each node will have free from each future moment on, counting
running jobs until their expected ends and waiting jobs from their promised starts. A newcomer at
the end of the order is promised the earliest start that fits into the profile; its nodes are chosen
then and there. Promises are made anew, in order, when one of these is true:

- a running job ended at another moment than expected, or has outlived its expected end (it is then
  planned to end one second from now);
- a newcomer stands before a job that already has a promise;
- the order's keys change while jobs wait.
"""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, kernel, spliced_kernel
from yardmaster.engine.core.gangs import plan_on_available
from yardmaster.engine.core.heap import begin_walk, walk_on
from yardmaster.engine.core.nodes import add_held, copy_table
from yardmaster.engine.core.queue import key_now
from yardmaster.engine.core.room import fits_within
from yardmaster.engine.core.running import start
from yardmaster.engine.core.tenants import orders_by_tenant
from yardmaster.engine.state import (
    AVAILABLE,
    EXPECTED_END,
    EXPECTED_HEAP,
    FRONTIER,
    JOB_SHAPE,
    KEY,
    NODE_FREE,
    NODES,
    NOTHING,
    NOW,
    ORDER,
    PASSES,
    PLACEMENT,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    PROFILE,
    PROFILE_FREE,
    PROFILE_ROOM,
    PROFILE_TIME,
    PROMISE,
    PROMISE_AT,
    PROMISE_GPUS,
    PROMISE_LENGTH,
    PROMISE_NODE,
    PROMISE_ROOM,
    PROMISES,
    QUEUE,
    QUEUE_AT,
    QUEUED,
    REPLAN,
    RUNNING,
    VALUE,
    Ints,
    OrderKind,
    Reals,
    Status,
)

NO_PROMISE = -1.0
OVERDUE_S = 1.0
"""How long a job that has outlived its expected end is planned to run on, seconds."""


@spliced_kernel
def conservative_pass(ints: Ints, reals: Reals) -> int:
    """Promise every waiting job a start and start those whose moment has come."""
    if ints[QUEUED] == 0:
        return Status.PASS_DUE
    _sort_queue(ints, reals)
    if _must_replan(ints, reals):
        ints[REPLAN] = 1
        if not _lay_out_running(ints, reals):
            return _needs_room(ints)
        for place in range(ints[QUEUED]):
            reals[ints[PROMISE] + ints[ints[QUEUE] + place]] = NO_PROMISE
    else:
        _forget_the_past(ints, reals)
    for place in range(ints[QUEUED]):
        job = ints[ints[QUEUE] + place]
        if reals[ints[PROMISE] + job] == NO_PROMISE and not _promise(ints, reals, job):
            return _needs_room(ints)
    # Beside an overdue job promises are guesses, made anew at every pass until it ends.
    ints[REPLAN] = _has_overdue(ints, reals)
    _start_promised(ints, reals)
    return Status.PASS_DUE


@kernel
def _needs_room(ints: Ints) -> int:
    ints[PASSES] -= 1  # the same pass is tried again with larger arrays
    return Status.NEEDS_ROOM


@kernel
def _sort_queue(ints: Ints, reals: Reals) -> None:
    """Sort the waiting jobs by key, then row. Insertion: between two passes little changes."""
    for place in range(ints[QUEUED]):
        job = ints[ints[QUEUE] + place]
        value = key_now(ints, reals, job)
        reals[ints[KEY] + job] = value
        spot = place
        while spot > 0:
            other = ints[ints[QUEUE] + spot - 1]
            if reals[ints[KEY] + other] < value or (
                reals[ints[KEY] + other] == value and other < job
            ):
                break
            ints[ints[QUEUE] + spot] = other
            ints[ints[QUEUE_AT] + other] = spot
            spot -= 1
        ints[ints[QUEUE] + spot] = job
        ints[ints[QUEUE_AT] + job] = spot


@kernel
def _must_replan(ints: Ints, reals: Reals) -> bool:
    order = ints[ORDER]
    if ints[REPLAN] == 1 or order == OrderKind.AGEING or order == OrderKind.SHUFFLED:
        return True
    if REAL_CLUSTERS and orders_by_tenant(ints):
        return True
    if _has_overdue(ints, reals):
        return True
    seen_newcomer = False
    for place in range(ints[QUEUED]):
        if reals[ints[PROMISE] + ints[ints[QUEUE] + place]] == NO_PROMISE:
            seen_newcomer = True
        elif seen_newcomer:
            return True
    return False


@kernel
def _has_overdue(ints: Ints, reals: Reals) -> bool:
    """Whether a running job has outlived its expected end."""
    if ints[RUNNING] == 0:
        return False
    return bool(reals[ints[EXPECTED_END] + ints[ints[EXPECTED_HEAP]]] <= reals[NOW])


@kernel
def _lay_out_running(ints: Ints, reals: Reals) -> bool:
    """Start a fresh profile from the running jobs alone; False if it does not fit."""
    nodes = ints[NODES]
    now = reals[NOW]
    ints[PROMISES] = 0
    ints[PROFILE] = 1
    reals[ints[PROFILE_TIME] + 0] = now
    for node in range(nodes):
        ints[ints[PROFILE_FREE] + node] = ints[ints[NODE_FREE] + node]
        ints[ints[AVAILABLE] + node] = ints[ints[NODE_FREE] + node]
    size = ints[RUNNING]
    waiting = begin_walk(ints, size)
    # Overdue jobs come first in the walk but end OVERDUE_S from now, perhaps after others.
    while waiting > 0:
        job = ints[ints[EXPECTED_HEAP] + ints[ints[FRONTIER]]]
        moment = reals[ints[EXPECTED_END] + job]
        waiting = walk_on(ints, reals, waiting, ints[EXPECTED_HEAP], ints[EXPECTED_END], size)
        if moment <= now:
            moment = now + OVERDUE_S
        step = _step_at(ints, reals, moment)
        if step < 0:
            return False
        for node in range(nodes):
            ints[ints[AVAILABLE] + node] = 0
        add_held(ints, job, ints[AVAILABLE], NOTHING)
        for later in range(step, ints[PROFILE]):
            for node in range(nodes):
                ints[ints[PROFILE_FREE] + later * nodes + node] += ints[ints[AVAILABLE] + node]
    return True


@kernel
def _step_at(ints: Ints, reals: Reals, moment: float) -> int:
    """Return the profile's step that begins at `moment`, inserting it; −1 if there is no room."""
    nodes = ints[NODES]
    size = ints[PROFILE]
    step = size
    while step > 0 and reals[ints[PROFILE_TIME] + step - 1] >= moment:
        step -= 1
    if step < size and reals[ints[PROFILE_TIME] + step] == moment:
        return step
    if size == ints[PROFILE_ROOM]:
        return -1
    for later in range(size, step, -1):
        reals[ints[PROFILE_TIME] + later] = reals[ints[PROFILE_TIME] + later - 1]
        for node in range(nodes):
            ints[ints[PROFILE_FREE] + later * nodes + node] = ints[
                ints[PROFILE_FREE] + (later - 1) * nodes + node
            ]
    reals[ints[PROFILE_TIME] + step] = moment
    for node in range(nodes):
        ints[ints[PROFILE_FREE] + step * nodes + node] = ints[
            ints[PROFILE_FREE] + (step - 1) * nodes + node
        ]
    ints[PROFILE] = size + 1
    return step


@kernel
def _forget_the_past(ints: Ints, reals: Reals) -> None:
    """Drop the steps of the profile that end by now; the first one begins now."""
    nodes = ints[NODES]
    size = ints[PROFILE]
    gone = 0
    while gone + 1 < size and reals[ints[PROFILE_TIME] + gone + 1] <= reals[NOW]:
        gone += 1
    if gone > 0:
        for step in range(size - gone):
            reals[ints[PROFILE_TIME] + step] = reals[ints[PROFILE_TIME] + step + gone]
            for node in range(nodes):
                ints[ints[PROFILE_FREE] + step * nodes + node] = ints[
                    ints[PROFILE_FREE] + (step + gone) * nodes + node
                ]
        ints[PROFILE] = size - gone
    reals[ints[PROFILE_TIME] + 0] = reals[NOW]


@kernel
def _promise(ints: Ints, reals: Reals, job: int) -> bool:
    """Promise the job its earliest start and enter it into the profile; False without room."""
    step = 0
    while not _window_fits(ints, reals, job, step):
        step += 1  # the last step, when all has ended, always fits
    begin = reals[ints[PROFILE_TIME] + step]
    plan_on_available(ints, reals, job, ints[PLACEMENT])
    length = ints[PLAN]
    at = ints[PROMISES]
    if at + length > ints[PROMISE_ROOM]:
        return False
    after = _step_at(ints, reals, begin + reals[ints[VALUE] + job])
    if after < 0:
        return False
    reals[ints[PROMISE] + job] = begin
    ints[ints[PROMISE_AT] + job] = at
    ints[ints[PROMISE_LENGTH] + job] = length
    for index in range(length):
        node = ints[ints[PLAN_NODE] + index]
        ints[ints[PROMISE_NODE] + at + index] = node
        ints[ints[PROMISE_GPUS] + at + index] = ints[ints[PLAN_GPUS] + index]
        for later in range(step, after):
            ints[ints[PROFILE_FREE] + later * ints[NODES] + node] -= ints[ints[PLAN_GPUS] + index]
    ints[PROMISES] = at + length
    return True


@kernel
def _window_fits(ints: Ints, reals: Reals, job: int, step: int) -> bool:
    """Whether the job fits from this step on for as long as it is expected to run.

    Leaves in `available` what each node has free throughout.
    """
    nodes = ints[NODES]
    until = reals[ints[PROFILE_TIME] + step] + reals[ints[VALUE] + job]
    for node in range(nodes):
        ints[ints[AVAILABLE] + node] = ints[ints[PROFILE_FREE] + step * nodes + node]
    later = step + 1
    while fits_within(ints, ints[ints[JOB_SHAPE] + job], ints[AVAILABLE]):
        if later >= ints[PROFILE] or reals[ints[PROFILE_TIME] + later] >= until:
            return True
        for node in range(nodes):
            ints[ints[AVAILABLE] + node] = min(
                ints[ints[AVAILABLE] + node], ints[ints[PROFILE_FREE] + later * nodes + node]
            )
        later += 1
    return False


@kernel
def _start_promised(ints: Ints, reals: Reals) -> None:
    """Start, in order, every job whose promised moment has come, on its promised nodes.

    A job of no length takes no room in the profile, so more may be promised this moment than there
    are GPUs; those that find none free keep their promise until the next pass of the same instant.
    """
    copy_table(ints, ints[NODE_FREE], ints[AVAILABLE])
    due = 0
    for place in range(ints[QUEUED]):
        job = ints[ints[QUEUE] + place]
        if reals[ints[PROMISE] + job] <= reals[NOW] and _take_promised(ints, job):
            ints[ints[FRONTIER] + due] = job
            due += 1
    for index in range(due):
        job = ints[ints[FRONTIER] + index]
        for entry in range(ints[ints[PROMISE_LENGTH] + job]):
            ints[ints[PLAN_NODE] + entry] = ints[
                ints[PROMISE_NODE] + ints[ints[PROMISE_AT] + job] + entry
            ]
            ints[ints[PLAN_GPUS] + entry] = ints[
                ints[PROMISE_GPUS] + ints[ints[PROMISE_AT] + job] + entry
            ]
        ints[PLAN] = ints[ints[PROMISE_LENGTH] + job]
        start(ints, reals, job)


@kernel
def _take_promised(ints: Ints, job: int) -> bool:
    """Take the promised GPUs out of `available`; False, taking nothing, if some are not there."""
    nodes = ints[PROMISE_NODE] + ints[ints[PROMISE_AT] + job]
    gpus = ints[PROMISE_GPUS] + ints[ints[PROMISE_AT] + job]
    length = ints[ints[PROMISE_LENGTH] + job]
    for entry in range(length):
        if ints[ints[AVAILABLE] + ints[nodes + entry]] < ints[gpus + entry]:
            return False
    for entry in range(length):
        ints[ints[AVAILABLE] + ints[nodes + entry]] -= ints[gpus + entry]
    return True
