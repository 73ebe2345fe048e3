"""EASY backfilling: one reservation, for the first job that does not fit.

Its start is the *shadow time*: the moment at which running jobs, ending when the scheduler expects
them to, have freed enough. GPUs free at that moment beyond the reservation are *extra*. Another job
may start now if it is expected to end by the shadow time, or if it takes only GPUs that are extra.
A running job that has outlived its expected end is expected to end at once.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import REAL_CLUSTERS, kernel, spliced_kernel
from yardmaster.engine.core.gangs import plan_on_available, plan_one_node
from yardmaster.engine.core.heap import begin_walk, walk_on
from yardmaster.engine.core.nodes import add_held, copy_table
from yardmaster.engine.core.placement import plan_placement
from yardmaster.engine.core.progress import speed_of_plan
from yardmaster.engine.core.queue import waiting_shape, waiting_shapes
from yardmaster.engine.core.release import begin_room, change_room, room_beside, usable_extra
from yardmaster.engine.core.room import fits, fits_within, room_within, usable
from yardmaster.engine.state import (
    AVAILABLE,
    EFFICIENCY,
    EXPECTED_END,
    EXPECTED_HEAP,
    EXTRA,
    EXTRA_CPU,
    EXTRA_MIB,
    EXTRA_WATTS,
    FRONTIER,
    IS_REAL,
    JOB_SHAPE,
    NODE_CPU,
    NODE_FREE,
    NODE_MIB,
    NODES,
    NOTHING,
    NOW,
    PLACEMENT,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    PLAN_SHARED,
    ROOM_BESIDE,
    ROOM_ROUND,
    ROUND,
    RUNNING,
    SCALE,
    SHAPE_CAP,
    SHAPE_CPU,
    SHAPE_EXAMPLE,
    SHAPE_GPUS,
    SHAPE_LIMIT,
    SHAPE_MIB,
    SHAPE_PLANNED,
    SHAPE_QUEUED,
    SHAPE_ROOM,
    SHAPE_SINGLE,
    SHAPE_SPEED,
    SHAPE_TYPES,
    SHAPE_WATTS,
    SIZES,
    SPEED,
    TYPES,
    VERSION,
    Ints,
    Placement,
    Reals,
)


@kernel
def reserve(ints: Ints, reals: Reals, job: int) -> float:
    """Reserve the earliest moment for a job that does not fit; fill `extra`; return the moment.

    Infinity means that it will not fit even when everybody has left: a node is away.
    """
    shape = ints[ints[JOB_SHAPE] + job]
    begin_room(ints, reals)
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        shadow = _free_until_it_really_fits(ints, reals, shape)
        if shadow == math.inf:
            return shadow
        for node in range(ints[NODES]):
            ints[ints[AVAILABLE] + node] = usable_extra(ints, shape, node)
    else:
        shadow = _free_until_it_fits(ints, reals, shape)
        copy_table(ints, ints[EXTRA], ints[AVAILABLE])
    if ints[ints[SHAPE_SINGLE] + shape] == 1:
        plan_one_node(ints, shape, Placement.PACK.value, ints[AVAILABLE])
    else:
        plan_on_available(ints, reals, job, Placement.PACK.value)
    _take_from_extra(ints, reals, shape)
    return shadow


@kernel
def _take_from_extra(ints: Ints, reals: Reals, shape: int) -> None:
    """Use up the planned part of EXTRA and its companions."""
    for index in range(ints[PLAN]):
        node, gpus = ints[ints[PLAN_NODE] + index], ints[ints[PLAN_GPUS] + index]
        ints[ints[EXTRA] + node] -= gpus
        if REAL_CLUSTERS and ints[IS_REAL] == 1:
            ints[ints[EXTRA_CPU] + node] -= gpus * ints[ints[SHAPE_CPU] + shape]
            ints[ints[EXTRA_MIB] + node] -= gpus * ints[ints[SHAPE_MIB] + shape]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        reals[EXTRA_WATTS] -= ints[ints[SHAPE_WATTS] + shape]


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
def _free_until_it_really_fits(ints: Ints, reals: Reals, shape: int) -> float:
    """Do the same with cores, memory, watts and shared GPUs."""
    needed, cap = ints[ints[SHAPE_GPUS] + shape], ints[ints[SHAPE_CAP] + shape]
    single = ints[ints[SHAPE_SINGLE] + shape] == 1
    room = 0  # what a gang could use in all, or the most on one node
    for node in range(ints[NODES]):
        here = usable_extra(ints, shape, node)
        room = max(room, here) if single else room + min(here, cap)
    size = ints[RUNNING]
    waiting = begin_walk(ints, size)
    shadow = math.inf
    while waiting > 0:
        running = ints[ints[EXPECTED_HEAP] + ints[ints[FRONTIER]]]
        moment = reals[ints[EXPECTED_END] + running]
        if moment > shadow:
            break
        waiting = walk_on(ints, reals, waiting, ints[EXPECTED_HEAP], ints[EXPECTED_END], size)
        before = room_beside(ints, shape, running, single)
        change_room(ints, running, 1)
        after = room_beside(ints, shape, running, single)
        room = max(room, after) if single else room + after - before
        reals[EXTRA_WATTS] += ints[ints[SHAPE_WATTS] + ints[ints[JOB_SHAPE] + running]]
        has_watts = reals[EXTRA_WATTS] >= ints[ints[SHAPE_WATTS] + shape]
        if shadow == math.inf and room >= needed and has_watts:
            shadow = max(moment, reals[NOW])
    return shadow


@spliced_kernel
def limit_backfill(ints: Ints, reals: Reals, shadow: float) -> bool:
    """Set `shape_limit` to what may start without delaying the reservation; False if nothing may.

    A shape that fits into the extra GPUs may start whatever its run time; one that fits only now
    must be expected to end by the shadow time.
    """
    most = _make_available_beside(ints) if ints[IS_REAL] == 0 else 0
    ints[ROUND] += 1
    any_shape = False
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
        limit = -1.0
        if ints[ints[SHAPE_QUEUED] + shape] > 0 and fits(ints, shape):
            if REAL_CLUSTERS and ints[IS_REAL] == 1:
                beside = _fits_really_beside(ints, reals, shape, shadow)
            else:
                beside = _fits_beside(ints, shape, most)
            limit = math.inf if beside else until_shadow(ints, reals, shape, shadow)
            any_shape = True
        reals[ints[SHAPE_LIMIT] + shape] = limit
    return any_shape


@kernel
def until_shadow(ints: Ints, reals: Reals, shape: int, shadow: float) -> float:
    """Return the longest run time of a job of this shape that would be done by the shadow time."""
    window = shadow - reals[NOW]
    if REAL_CLUSTERS and ints[IS_REAL] == 1 and window < math.inf:
        return window * _speed_now(ints, reals, shape)
    return window


@kernel
def _speed_now(ints: Ints, reals: Reals, shape: int) -> float:
    """Return the speed a job of this shape would have where its placement would put it now."""
    if ints[ints[SHAPE_PLANNED] + shape] != ints[VERSION]:
        if ints[PLACEMENT] == Placement.RANDOM:
            speed = _slowest(ints, reals, shape)
        else:
            plan_placement(ints, reals, ints[ints[SHAPE_EXAMPLE] + shape])
            speed = speed_of_plan(ints, reals, shape)
        reals[ints[SHAPE_SPEED] + shape] = speed * reals[EFFICIENCY]
        ints[ints[SHAPE_PLANNED] + shape] = ints[VERSION]
    return reals[ints[SHAPE_SPEED] + shape]


@kernel
def _slowest(ints: Ints, reals: Reals, shape: int) -> float:
    """Return the least speed of the GPU types a random placement may meet."""
    speed = math.inf
    for kind in range(ints[TYPES]):
        if (ints[ints[SHAPE_TYPES] + shape] >> kind) & 1 == 1:
            speed = min(speed, reals[ints[SPEED] + shape * ints[TYPES] + kind])
    gpus = ints[ints[SHAPE_GPUS] + shape]
    return speed * reals[ints[SCALE] + shape * ints[SIZES] + gpus]


@kernel
def _fits_really_beside(ints: Ints, reals: Reals, shape: int, shadow: float) -> bool:
    """Whether a job of any length fits on what is free now and extra at the shadow time."""
    if shadow == math.inf:
        return True
    if reals[EXTRA_WATTS] < ints[ints[SHAPE_WATTS] + shape]:
        return False
    needs = ints[ints[SHAPE_ROOM] + shape]
    if ints[ints[ROOM_ROUND] + needs] != ints[ROUND]:
        ints[ints[ROOM_ROUND] + needs] = ints[ROUND]
        _make_available_really_beside(ints, shape)
        is_room = fits_within(ints, shape, ints[AVAILABLE])
        ints[ints[ROOM_BESIDE] + needs] = 1 if is_room else 0
    return ints[ints[ROOM_BESIDE] + needs] == 1


@kernel
def _make_available_really_beside(ints: Ints, shape: int) -> None:
    """Set AVAILABLE to what a job of this shape could use both now and at the shadow time."""
    for node in range(ints[NODES]):
        now = usable(ints, shape, node, ints[NODE_FREE], ints[NODE_CPU], ints[NODE_MIB])
        later = usable_extra(ints, shape, node)
        ints[ints[AVAILABLE] + node] = max(min(now, later), 0)


@kernel
def anything_fits(ints: Ints) -> bool:
    """Whether any waiting job would fit now: without one there is nothing to backfill."""
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
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
def plan_beside(ints: Ints, reals: Reals, job: int) -> None:
    """Plan a long job on GPUs that are free now and extra later, and use those up."""
    shape = ints[ints[JOB_SHAPE] + job]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        _make_available_really_beside(ints, shape)
        ints[PLAN_SHARED] = NOTHING
    else:
        _make_available_beside(ints)
    plan_on_available(ints, reals, job, ints[PLACEMENT])
    _take_from_extra(ints, reals, shape)
