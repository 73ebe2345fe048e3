"""Moving running jobs together so that a gang fits: the discipline `defrag`.

Free GPUs may suffice and yet be scattered. Small jobs are then moved off one node, if the GPU-time
that the waiting gang gains is worth more than the GPU-time the moves cost.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel, spliced_kernel
from yardmaster.engine.core.elastic import is_elastic
from yardmaster.engine.core.placement import plan_on_node, plan_placement
from yardmaster.engine.core.preemption import may_be_stopped
from yardmaster.engine.core.queue import admit_all, next_job
from yardmaster.engine.core.release import usable_extra
from yardmaster.engine.core.reservation import reserve
from yardmaster.engine.core.room import fits, is_fraction, usable_now, watts_fit
from yardmaster.engine.core.running import requeue, start
from yardmaster.engine.state import (
    CHOSEN,
    COST,
    DESTINATION,
    EXTRA,
    EXTRA_CPU,
    EXTRA_MIB,
    GPU_NODE,
    HEAP,
    HELD,
    JOB_SHAPE,
    NODE_CPU,
    NODE_FREE,
    NODE_MIB,
    NODES,
    NOTHING,
    NOW,
    RESTORE_S,
    RUNNING,
    SAVE_S,
    SHAPE_CPU,
    SHAPE_GPUS,
    SHAPE_LIMIT,
    SHAPE_MIB,
    SHAPE_SINGLE,
    SHARED_GPU,
    SIZE,
    VICTIM,
    Ints,
    Reals,
)
from yardmaster.model.schedule import Cause


@spliced_kernel
def defrag_pass(ints: Ints, reals: Reals) -> None:
    """Start jobs in order, passing over those that do not fit even after moving others."""
    admit_all(ints, reals)
    while True:
        job = next_job(ints, reals)
        if job == NOTHING:
            return
        shape = ints[ints[JOB_SHAPE] + job]
        if fits(ints, shape):
            plan_placement(ints, reals, job)
            start(ints, reals, job)
        elif not _starts_by_moving(ints, reals, job):
            reals[ints[SHAPE_LIMIT] + shape] = -1.0


@spliced_kernel
def _starts_by_moving(ints: Ints, reals: Reals, job: int) -> bool:
    shape = ints[ints[JOB_SHAPE] + job]
    if (
        ints[ints[SHAPE_SINGLE] + shape] == 0
        or is_fraction(ints, shape)
        or not watts_fit(ints, shape)
        or _room_in_pieces(ints, shape) < ints[ints[SHAPE_GPUS] + shape]
    ):
        return False
    _list_movable(ints, reals)
    best = NOTHING
    best_cost = math.inf
    for node in range(ints[NODES]):
        cost = _clear(ints, reals, shape, node)
        if cost < best_cost:
            best = node
            best_cost = cost
    if best == NOTHING:
        return False
    gain = ints[ints[SHAPE_GPUS] + shape] * (reserve(ints, reals, job) - reals[NOW])
    if not gain > best_cost:
        return False
    _clear(ints, reals, shape, best)
    _move_chosen(ints, reals)
    plan_on_node(ints, best, ints[ints[SHAPE_GPUS] + shape])
    start(ints, reals, job)
    return True


@kernel
def _room_in_pieces(ints: Ints, shape: int) -> int:
    total = 0
    for node in range(ints[NODES]):
        total += usable_now(ints, shape, node)
    return total


@kernel
def _list_movable(ints: Ints, reals: Reals) -> None:
    """List the jobs that may be moved in VICTIM, cheapest first, and behind them how many."""
    count = 0
    for place in range(ints[RUNNING]):
        job = ints[ints[HEAP] + place]
        shape = ints[ints[JOB_SHAPE] + job]
        if (
            ints[ints[SHARED_GPU] + job] != NOTHING
            or ints[ints[SHAPE_SINGLE] + shape] == 0
            or is_fraction(ints, shape)
            or is_elastic(ints, shape)
            or not may_be_stopped(ints, reals, job)
        ):
            continue
        cost = ints[ints[SIZE] + job] * (reals[SAVE_S] + reals[RESTORE_S])
        reals[ints[COST] + job] = cost
        spot = count
        while spot > 0:
            above = ints[ints[VICTIM] + spot - 1]
            other = reals[ints[COST] + above]
            if other < cost or (other == cost and above < job):
                break
            ints[ints[VICTIM] + spot] = above
            spot -= 1
        ints[ints[VICTIM] + spot] = job
        count += 1
    ints[ints[VICTIM] + ints[RUNNING]] = count


@kernel
def _clear(ints: Ints, reals: Reals, shape: int, node: int) -> float:
    """Return what it costs to clear enough of a node; infinity if it cannot be done.

    CHOSEN then lists who moves, DESTINATION where to, and behind CHOSEN how many there are.
    """
    for other in range(ints[NODES]):
        ints[ints[EXTRA] + other] = ints[ints[NODE_FREE] + other]
        ints[ints[EXTRA_CPU] + other] = ints[ints[NODE_CPU] + other]
        ints[ints[EXTRA_MIB] + other] = ints[ints[NODE_MIB] + other]
    gpus = ints[ints[SHAPE_GPUS] + shape]
    moving = 0
    cost = 0.0
    for place in range(ints[ints[VICTIM] + ints[RUNNING]]):
        job = ints[ints[VICTIM] + place]
        if ints[ints[GPU_NODE] + ints[ints[HELD] + job]] != node:
            continue
        target = _destination(ints, job, node)
        if target == NOTHING:
            continue
        _shift(ints, job, node, 1)
        _shift(ints, job, target, -1)
        ints[ints[CHOSEN] + moving] = job
        ints[ints[DESTINATION] + moving] = target
        moving += 1
        cost += reals[ints[COST] + job]
        if usable_extra(ints, shape, node) >= gpus:
            ints[ints[CHOSEN] + ints[RUNNING]] = moving
            return cost
    return math.inf


@kernel
def _shift(ints: Ints, job: int, node: int, sign: int) -> None:
    """Give a job's GPUs, cores and memory to EXTRA on a node, or take them there (sign −1)."""
    shape = ints[ints[JOB_SHAPE] + job]
    gpus = sign * ints[ints[SIZE] + job]
    ints[ints[EXTRA] + node] += gpus
    ints[ints[EXTRA_CPU] + node] += gpus * ints[ints[SHAPE_CPU] + shape]
    ints[ints[EXTRA_MIB] + node] += gpus * ints[ints[SHAPE_MIB] + shape]


@kernel
def _destination(ints: Ints, job: int, node: int) -> int:
    """Return the tightest other node that would hold a job, or NOTHING."""
    shape = ints[ints[JOB_SHAPE] + job]
    best = NOTHING
    best_room = 0
    for other in range(ints[NODES]):
        room = usable_extra(ints, shape, other)
        is_possible = other != node and room >= ints[ints[SIZE] + job]
        if is_possible and (best == NOTHING or room < best_room):
            best = other
            best_room = room
    return best


@kernel
def _move_chosen(ints: Ints, reals: Reals) -> None:
    """Carry out the moves that `_clear` found."""
    count = ints[ints[CHOSEN] + ints[RUNNING]]
    for place in range(count):
        job = ints[ints[CHOSEN] + place]
        requeue(ints, reals, job, Cause.MIGRATED.value)
        plan_on_node(ints, ints[ints[DESTINATION] + place], ints[ints[SIZE] + job])
        start(ints, reals, job)
