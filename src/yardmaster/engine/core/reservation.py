"""EASY backfilling: one reservation, for the first job that does not fit.

Its start is the *shadow time*: the moment at which running jobs, ending when the scheduler expects
them to, have freed enough. GPUs free at that moment beyond the reservation are *extra*. Another job
may start now if it is expected to end by the shadow time, or if it takes only GPUs that are extra.
A running job that has outlived its expected end is expected to end at once.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel
from yardmaster.engine.core.heap import begin_walk, walk_on
from yardmaster.engine.core.nodes import (
    add_held,
    copy_table,
    fits,
    fits_within,
    plan_on_available,
    plan_one_node,
    room_within,
)
from yardmaster.engine.state import (
    AVAILABLE,
    EXPECTED_END,
    EXPECTED_HEAP,
    EXTRA,
    FRONTIER,
    JOB_SHAPE,
    NODE_FREE,
    NODES,
    NOW,
    PLACEMENT,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    RUNNING,
    SHAPE_GPUS,
    SHAPE_LIMIT,
    SHAPE_QUEUED,
    SHAPE_SINGLE,
    SHAPES,
    TYPES,
    Ints,
    Placement,
    Reals,
)


@kernel
def reserve(ints: Ints, reals: Reals, job: int) -> float:
    """Reserve the earliest moment for a job that does not fit; fill `extra`; return the moment."""
    shape = ints[ints[JOB_SHAPE] + job]
    copy_table(ints, ints[NODE_FREE], ints[EXTRA])
    shadow = _free_until_it_fits(ints, reals, shape)
    if ints[ints[SHAPE_SINGLE] + shape] == 1:
        plan_one_node(ints, shape, Placement.PACK.value, ints[EXTRA])
    else:
        copy_table(ints, ints[EXTRA], ints[AVAILABLE])
        plan_on_available(ints, job, Placement.PACK.value)
    for index in range(ints[PLAN]):
        ints[ints[EXTRA] + ints[ints[PLAN_NODE] + index]] -= ints[ints[PLAN_GPUS] + index]
    return shadow


@kernel
def _free_until_it_fits(ints: Ints, reals: Reals, shape: int) -> float:
    """Release running jobs into `extra`, soonest expected first, until it fits; return when."""
    needed = ints[ints[SHAPE_GPUS] + shape]
    single = ints[ints[SHAPE_SINGLE] + shape] == 1
    lacking = needed if single else needed - room_within(ints, shape, ints[EXTRA])
    size = ints[RUNNING]
    waiting = begin_walk(ints, size)
    shadow = math.inf
    while waiting > 0:
        running = ints[ints[EXPECTED_HEAP] + ints[ints[FRONTIER]]]
        moment = reals[ints[EXPECTED_END] + running]
        if moment > shadow:
            break  # everything that ends at the shadow time itself has been released
        waiting = walk_on(ints, reals, waiting, ints[EXPECTED_HEAP], ints[EXPECTED_END], size)
        found = add_held(ints, running, ints[EXTRA], shape)
        lacking = needed - found if single else lacking - found
        if shadow == math.inf and lacking <= 0:
            shadow = max(moment, reals[NOW])
    return shadow


@kernel
def limit_backfill(ints: Ints, reals: Reals, shadow: float) -> bool:
    """Set `shape_limit` to what may start without delaying the reservation; False if nothing may.

    A shape that fits into the extra GPUs may start whatever its run time; one that fits only now
    must be expected to end by the shadow time.
    """
    most = _make_available_beside(ints)
    any_shape = False
    for shape in range(ints[SHAPES]):
        limit = -1.0
        if ints[ints[SHAPE_QUEUED] + shape] > 0 and fits(ints, shape):
            beside = _fits_beside(ints, shape, most)
            limit = math.inf if beside else shadow - reals[NOW]
            any_shape = True
        reals[ints[SHAPE_LIMIT] + shape] = limit
    return any_shape


@kernel
def anything_fits(ints: Ints) -> bool:
    """Whether any waiting job would fit now: without one there is nothing to backfill."""
    for shape in range(ints[SHAPES]):
        if ints[ints[SHAPE_QUEUED] + shape] > 0 and fits(ints, shape):
            return True
    return False


@kernel
def _fits_beside(ints: Ints, shape: int, most: int) -> bool:
    """Whether the shape fits into AVAILABLE, of which no node has more than `most`."""
    if ints[ints[SHAPE_SINGLE] + shape] == 1:
        if ints[ints[SHAPE_GPUS] + shape] > most:
            return False
        if ints[TYPES] == 1:
            return True
    return fits_within(ints, shape, ints[AVAILABLE])


@kernel
def _make_available_beside(ints: Ints) -> int:
    """Set `available` to the GPUs free now and extra at the shadow time; return the most."""
    available, free, extra = ints[AVAILABLE], ints[NODE_FREE], ints[EXTRA]
    most = 0
    for node in range(ints[NODES]):
        gpus = min(ints[free + node], ints[extra + node])
        ints[available + node] = gpus
        most = max(most, gpus)
    return most


@kernel
def plan_beside(ints: Ints, job: int) -> None:
    """Plan a long job on GPUs that are free now and extra later, and use those up."""
    _make_available_beside(ints)
    plan_on_available(ints, job, ints[PLACEMENT])
    for index in range(ints[PLAN]):
        ints[ints[EXTRA] + ints[ints[PLAN_NODE] + index]] -= ints[ints[PLAN_GPUS] + index]
