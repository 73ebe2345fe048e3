"""How time passes: completions, then arrivals, then one scheduling pass, instant after instant."""

from __future__ import annotations

import math

from yardmaster.engine.compilation import bare, entry_point, hot_kernel, kernel
from yardmaster.engine.core.passes import schedule
from yardmaster.engine.core.queue import enqueue
from yardmaster.engine.core.running import finish
from yardmaster.engine.state import (
    END,
    HEAP,
    JOB_SHAPE,
    JOBS,
    NEXT_ARRIVAL,
    NOW,
    ONE_ARRIVAL,
    PASS_IS_DUE,
    QUEUED,
    RUNNING,
    STOPS_AT_PASSES,
    SUBMIT,
    Ints,
    Reals,
    Status,
)


@hot_kernel
def next_instant(ints: Ints, reals: Reals) -> float:
    """Return the second of the next arrival or completion; infinity if nothing is left."""
    moment = math.inf
    if ints[NEXT_ARRIVAL] < ints[JOBS]:
        moment = reals[ints[SUBMIT] + ints[NEXT_ARRIVAL]]
    if ints[RUNNING] > 0:
        moment = min(moment, reals[ints[END] + ints[ints[HEAP] + 0]])
    return moment


@kernel
def advance(ints: Ints, reals: Reals, now: float) -> None:
    """Go to the next instant and handle its completions and arrivals."""
    reals[NOW] = now
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


@kernel
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
            if ints[STOPS_AT_PASSES] == 1:
                return Status.PASS_DUE
        if schedule(ints, reals) == Status.NEEDS_ROOM:
            return Status.NEEDS_ROOM
        ints[PASS_IS_DUE] = 0
