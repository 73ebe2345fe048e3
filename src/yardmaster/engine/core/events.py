"""How time passes, instant after instant.

At each: completions, on real clusters repairs and failures, arrivals, then one scheduling pass.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import (
    REAL_CLUSTERS,
    bare,
    entry_point,
    hot_kernel,
    kernel,
    spliced_kernel,
)
from yardmaster.engine.core.outages import handle_outages
from yardmaster.engine.core.passes import schedule
from yardmaster.engine.core.queue import enqueue
from yardmaster.engine.core.running import finish, start
from yardmaster.engine.core.tenants import book_usage
from yardmaster.engine.state import (
    ARRIVAL,
    ARRIVAL_JOB,
    DECIDES,
    DISCIPLINE,
    END,
    GPUS,
    HEAP,
    IS_REAL,
    IS_REVIEWED,
    JOB_SHAPE,
    JOBS,
    NEXT_ARRIVAL,
    NEXT_REVIEW,
    NOW,
    ONE_ARRIVAL,
    OUTAGE,
    OUTAGE_TIME,
    OUTAGES,
    PASS_IS_DUE,
    QUANTUM_S,
    QUEUED,
    RECORD_ROOM,
    RECORDS,
    RUNNING,
    SEGMENT_ROOM,
    SEGMENTS,
    STOPS_AT_PASSES,
    SUBMIT,
    Discipline,
    Ints,
    Reals,
    Status,
)


@hot_kernel
def next_instant(ints: Ints, reals: Reals) -> float:
    """Return the second of the next event; infinity if nothing is left."""
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return _next_real_instant(ints, reals)
    moment = math.inf
    if ints[NEXT_ARRIVAL] < ints[JOBS]:
        moment = reals[ints[SUBMIT] + ints[NEXT_ARRIVAL]]
    if ints[RUNNING] > 0:
        moment = min(moment, reals[ints[END] + ints[ints[HEAP] + 0]])
    return moment


@kernel
def _next_real_instant(ints: Ints, reals: Reals) -> float:
    moment = math.inf
    if ints[NEXT_ARRIVAL] < ints[JOBS]:
        moment = reals[ints[ARRIVAL] + ints[ints[ARRIVAL_JOB] + ints[NEXT_ARRIVAL]]]
    if ints[RUNNING] > 0:
        moment = min(moment, reals[ints[END] + ints[ints[HEAP] + 0]])
    # Without jobs there is nobody left whom an outage could concern.
    is_over = moment == math.inf and ints[QUEUED] == 0
    if ints[OUTAGE] < ints[OUTAGES] and not is_over:
        moment = min(moment, reals[ints[OUTAGE_TIME] + ints[OUTAGE]])
    return min(moment, reals[NEXT_REVIEW])


@spliced_kernel
def _advance_really(ints: Ints, reals: Reals, now: float) -> None:
    book_usage(ints, reals)
    while ints[RUNNING] > 0 and reals[ints[END] + ints[ints[HEAP] + 0]] <= now:
        finish(ints, reals, ints[ints[HEAP] + 0])
    handle_outages(ints, reals)
    while ints[NEXT_ARRIVAL] < ints[JOBS]:
        job = ints[ints[ARRIVAL_JOB] + ints[NEXT_ARRIVAL]]
        if reals[ints[ARRIVAL] + job] > now:
            return
        ints[NEXT_ARRIVAL] += 1
        if ints[ints[JOB_SHAPE] + job] >= 0:
            enqueue(ints, reals, job)


@kernel
def _set_next_review(ints: Ints, reals: Reals) -> None:
    """Have running jobs looked at again when a quantum has passed, if that can change anything."""
    is_useful = ints[QUEUED] > 0 or ints[DISCIPLINE] == Discipline.ELASTIC
    if ints[IS_REVIEWED] == 1 and is_useful and ints[RUNNING] > 0:
        quantum = reals[QUANTUM_S]
        count = math.floor(reals[NOW] / quantum) + 1
        if count * quantum <= reals[NOW]:  # the quotient was rounded down
            count += 1
        reals[NEXT_REVIEW] = count * quantum
    else:
        reals[NEXT_REVIEW] = math.inf


@kernel
def _lacks_room(ints: Ints) -> bool:
    """Whether the tables of segments might not hold what the next pass records."""
    jobs = ints[QUEUED] + 2 * ints[RUNNING] + 2
    return (
        ints[SEGMENTS] + jobs > ints[SEGMENT_ROOM]
        or ints[RECORDS] + jobs + 3 * ints[GPUS] > ints[RECORD_ROOM]
    )


@spliced_kernel
def advance(ints: Ints, reals: Reals, now: float) -> None:
    """Go to the next instant and handle its completions and arrivals."""
    reals[NOW] = now
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        _advance_really(ints, reals, now)
        return
    if ints[ONE_ARRIVAL] == 1:
        _advance_one_arrival(ints, reals, now)
        return
    while ints[RUNNING] > 0 and reals[ints[END] + ints[ints[HEAP] + 0]] == now:
        finish(ints, reals, ints[ints[HEAP] + 0])
    while _arrives(ints, reals, now):
        _admit(ints, reals)


@hot_kernel
def _arrives(ints: Ints, reals: Reals, now: float) -> bool:
    index = ints[NEXT_ARRIVAL]
    return index < ints[JOBS] and reals[ints[SUBMIT] + index] == now


@hot_kernel
def _admit(ints: Ints, reals: Reals) -> None:
    """Let the next job in submission order enter the queue, unless it can never be placed."""
    job = ints[NEXT_ARRIVAL]
    ints[NEXT_ARRIVAL] = job + 1
    if ints[ints[JOB_SHAPE] + job] >= 0:
        enqueue(ints, reals, job)


@kernel
def _advance_one_arrival(ints: Ints, reals: Reals, now: float) -> None:
    """Arrivals before completions, and only one of them when nobody was waiting.

    This is how RLScheduler and its descendants move time; it exists to reproduce their tables.
    """
    was_empty = ints[QUEUED] == 0
    while _arrives(ints, reals, now):
        _admit(ints, reals)
        if was_empty and ints[QUEUED] > 0:
            return
    while ints[RUNNING] > 0 and reals[ints[END] + ints[ints[HEAP] + 0]] == now:
        finish(ints, reals, ints[ints[HEAP] + 0])


@entry_point
def replay(ints: Ints, reals: Reals, until: float) -> int:
    """Run the simulation in these two contiguous arrays; see `run`."""
    return run(bare(ints), bare(reals), until)


@spliced_kernel
def run(ints: Ints, reals: Reals, until: float) -> int:
    """Run until nothing is left, `until` would be passed, or the caller is needed.

    The caller is needed before every pass if it asked to be (to set keys, or to decide itself), and
    when a table is full. Called again, the core goes on with the pass that was due.
    """
    while True:
        if ints[PASS_IS_DUE] == 0:
            now = next_instant(ints, reals)
            if now > until or now == math.inf:
                return Status.DONE
            advance(ints, reals, now)
            ints[PASS_IS_DUE] = 1
        if ints[PASS_IS_DUE] == 1:
            if REAL_CLUSTERS and ints[IS_REAL] == 1 and _lacks_room(ints):
                return Status.NEEDS_ROOM
            ints[PASS_IS_DUE] = 2
            if ints[STOPS_AT_PASSES] == 1:
                return Status.PASS_DUE
        if ints[DECIDES] == 0 and schedule(ints, reals) == Status.NEEDS_ROOM:
            return Status.NEEDS_ROOM
        ints[PASS_IS_DUE] = 0
        if REAL_CLUSTERS and ints[IS_REAL] == 1:
            _set_next_review(ints, reals)


@entry_point
def start_planned(ints: Ints, reals: Reals, job: int) -> None:
    """Start a waiting job on the nodes the caller has written into the plan."""
    start(bare(ints), bare(reals), job)
