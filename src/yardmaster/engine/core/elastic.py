"""Elastic jobs: started with what there is, shrunk to let others in, grown when that pays."""

from __future__ import annotations

from yardmaster.engine.compilation import kernel, spliced_kernel
from yardmaster.engine.core.placement import plan_on_node, plan_placement
from yardmaster.engine.core.preemption import may_be_stopped
from yardmaster.engine.core.progress import expected_left, work_left
from yardmaster.engine.core.queue import admit_all, next_job
from yardmaster.engine.core.room import fits, fits_on_nodes, is_fraction, usable_now, watts_fit
from yardmaster.engine.core.running import requeue, start
from yardmaster.engine.core.tenants import spare_gpus
from yardmaster.engine.state import (
    CHOSEN,
    DESTINATION,
    EFFICIENCY,
    FIELDS,
    GPU_NODE,
    HEAP,
    HELD,
    JOB_SHAPE,
    NODE_CPU,
    NODE_FREE,
    NODE_MIB,
    NODE_TYPE,
    NODES,
    NOTHING,
    NOW,
    PROGRESS,
    RESTORE_S,
    RUNNING,
    SAVE_S,
    SCALE,
    SHAPE_CPU,
    SHAPE_GPUS,
    SHAPE_LEAST,
    SHAPE_LIMIT,
    SHAPE_MIB,
    SHAPE_MOST,
    SHAPE_SINGLE,
    SHAPE_TYPES,
    SIZE,
    SIZES,
    SPEED,
    TYPES,
    VICTIM,
    Ints,
    Reals,
)
from yardmaster.model.schedule import Cause


@spliced_kernel
def elastic_pass(ints: Ints, reals: Reals) -> None:
    """Start waiting jobs in order, with fewer GPUs if need be, then let running ones grow."""
    admit_all(ints, reals)
    while True:
        job = next_job(ints, reals)
        if job == NOTHING:
            break
        shape = ints[ints[JOB_SHAPE] + job]
        if not (_starts(ints, reals, job) or _starts_by_shrinking(ints, reals, job)):
            reals[ints[SHAPE_LIMIT] + shape] = -1.0
    _grow(ints, reals)


@kernel
def is_elastic(ints: Ints, shape: int) -> bool:
    """Whether jobs of this shape can change their size."""
    return ints[ints[SHAPE_LEAST] + shape] < ints[ints[SHAPE_MOST] + shape]


@spliced_kernel
def _starts(ints: Ints, reals: Reals, job: int) -> bool:
    """Start a job if it fits, an elastic one with the most GPUs up to its own number that do."""
    shape = ints[ints[JOB_SHAPE] + job]
    gpus = ints[ints[SHAPE_GPUS] + shape]
    if not is_elastic(ints, shape):
        if not fits(ints, shape):
            return False
        plan_placement(ints, reals, job)
        start(ints, reals, job)
        return True
    if not watts_fit(ints, shape):
        return False
    size = min(gpus, spare_gpus(ints, shape))
    while size >= ints[ints[SHAPE_LEAST] + shape] and not fits_on_nodes(ints, shape, size):
        size -= 1
    if size < ints[ints[SHAPE_LEAST] + shape]:
        return False
    ints[ints[SHAPE_GPUS] + shape] = size  # for this plan, the shape is a gang of that size
    plan_placement(ints, reals, job)
    ints[ints[SHAPE_GPUS] + shape] = gpus
    start(ints, reals, job)
    return True


@spliced_kernel
def _starts_by_shrinking(ints: Ints, reals: Reals, job: int) -> bool:
    """Start a job on the node where the fewest GPUs must be given back by others."""
    shape = ints[ints[JOB_SHAPE] + job]
    if ints[ints[SHAPE_SINGLE] + shape] == 0 or is_fraction(ints, shape):
        return False
    if not watts_fit(ints, shape):
        return False
    best = NOTHING
    best_need = 0
    for node in range(ints[NODES]):
        need = _needed_on(ints, reals, shape, node)
        if need != NOTHING and (best == NOTHING or need < best_need):
            best = node
            best_need = need
    if best == NOTHING:
        return False
    _needed_on(ints, reals, shape, best)
    # The walk over the best node left the givers in VICTIM and what each gives in DESTINATION.
    givers = ints[ints[DESTINATION] + ints[RUNNING]]
    for place in range(givers):
        ints[ints[CHOSEN] + place] = ints[ints[VICTIM] + place]
    for place in range(givers):
        other = ints[ints[CHOSEN] + place]
        size = ints[ints[SIZE] + other] - ints[ints[DESTINATION] + place]
        _resize(ints, reals, other, best, size)
    plan_on_node(ints, best, ints[ints[SHAPE_LEAST] + shape])
    start(ints, reals, job)
    return True


@kernel
def _list_givers(ints: Ints, reals: Reals, node: int) -> int:
    """List elastic jobs on a node that may shrink in VICTIM, largest surplus first."""
    count = 0
    for place in range(ints[RUNNING]):
        other = ints[ints[HEAP] + place]
        shape = ints[ints[JOB_SHAPE] + other]
        if not is_elastic(ints, shape) or not may_be_stopped(ints, reals, other):
            continue
        if ints[ints[GPU_NODE] + ints[ints[HELD] + other]] != node:
            continue
        surplus = _surplus(ints, other)
        spot = count
        while spot > 0:
            above = ints[ints[VICTIM] + spot - 1]
            if _surplus(ints, above) > surplus or (
                _surplus(ints, above) == surplus and above < other
            ):
                break
            ints[ints[VICTIM] + spot] = above
            spot -= 1
        ints[ints[VICTIM] + spot] = other
        count += 1
    return count


@kernel
def _surplus(ints: Ints, job: int) -> int:
    return ints[ints[SIZE] + job] - ints[ints[SHAPE_LEAST] + ints[ints[JOB_SHAPE] + job]]


@kernel
def _needed_on(ints: Ints, reals: Reals, shape: int, node: int) -> int:
    """Return how many GPUs others must give back on a node for a job to start; NOTHING if in vain.

    VICTIM then lists the givers, DESTINATION what each gives, and behind that how many there are.
    """
    wanted = ints[ints[SHAPE_LEAST] + shape]
    if (ints[ints[SHAPE_TYPES] + shape] >> ints[ints[NODE_TYPE] + node]) & 1 == 0:
        return NOTHING
    gpus, cpu = ints[ints[NODE_FREE] + node], ints[ints[NODE_CPU] + node]
    mib = ints[ints[NODE_MIB] + node]
    cpu_need, mib_need = ints[ints[SHAPE_CPU] + shape], ints[ints[SHAPE_MIB] + shape]
    givers = _list_givers(ints, reals, node)
    need = 0
    for place in range(givers):
        other = ints[ints[VICTIM] + place]
        kind = ints[ints[JOB_SHAPE] + other]
        given = 0
        while given < _surplus(ints, other):
            given += 1
            gpus += 1
            cpu += ints[ints[SHAPE_CPU] + kind]
            mib += ints[ints[SHAPE_MIB] + kind]
            is_enough = gpus >= wanted and cpu >= wanted * cpu_need and mib >= wanted * mib_need
            if is_enough:
                ints[ints[DESTINATION] + place] = given
                ints[ints[DESTINATION] + ints[RUNNING]] = place + 1
                return need + given
        need += given
        ints[ints[DESTINATION] + place] = given
    return NOTHING


@kernel
def _resize(ints: Ints, reals: Reals, job: int, node: int, size: int) -> None:
    """Let a running job go on with another number of GPUs of its node."""
    requeue(ints, reals, job, Cause.RESIZED.value)
    plan_on_node(ints, node, size)
    start(ints, reals, job)


@spliced_kernel
def _grow(ints: Ints, reals: Reals) -> None:
    """Let elastic jobs grow into free GPUs of their nodes, in order of row, where it pays."""
    count = 0
    for place in range(ints[RUNNING]):
        job = ints[ints[HEAP] + place]
        shape = ints[ints[JOB_SHAPE] + job]
        if (
            is_elastic(ints, shape)
            and ints[ints[SIZE] + job] < ints[ints[SHAPE_MOST] + shape]
            and may_be_stopped(ints, reals, job)
        ):
            spot = count
            while spot > 0 and ints[ints[VICTIM] + spot - 1] > job:
                ints[ints[VICTIM] + spot] = ints[ints[VICTIM] + spot - 1]
                spot -= 1
            ints[ints[VICTIM] + spot] = job
            count += 1
    for place in range(count):
        _grow_one(ints, reals, ints[ints[VICTIM] + place])


@kernel
def _grow_one(ints: Ints, reals: Reals, job: int) -> None:
    shape = ints[ints[JOB_SHAPE] + job]
    node = ints[ints[GPU_NODE] + ints[ints[HELD] + job]]
    size = ints[ints[SIZE] + job]
    larger = min(ints[ints[SHAPE_MOST] + shape], size + usable_now(ints, shape, node))
    larger = min(larger, size + spare_gpus(ints, shape))
    if larger <= size:
        return
    left = expected_left(ints, reals, job, work_left(ints, reals, job, reals[NOW]))
    base = reals[ints[SPEED] + shape * ints[TYPES] + ints[ints[NODE_TYPE] + node]]
    speed = (base * reals[ints[SCALE] + shape * ints[SIZES] + larger]) * reals[EFFICIENCY]
    cost = reals[SAVE_S] + reals[RESTORE_S]
    if left / reals[ints[PROGRESS] + FIELDS * job] > cost + left / speed:
        _resize(ints, reals, job, node, larger)
