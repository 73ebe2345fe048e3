"""How a running job gets on: its speed, its checkpoints, and when it will be done."""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel
from yardmaster.engine.core.heap import push, remove
from yardmaster.engine.state import (
    BASE_SPEED,
    DURATION,
    EFFICIENCY,
    END,
    EVERY_S,
    EXPECTED,
    EXPECTED_END,
    EXPECTED_HEAP,
    EXPECTED_HEAP_AT,
    FIELDS,
    GPU_NODE,
    HEAP,
    HEAP_AT,
    JOB_SHAPE,
    KINDS,
    LAST_SAVE,
    LEFT,
    NODE_FACTOR,
    NODE_RACK,
    NODE_SHARING,
    NODE_TYPE,
    NOTHING,
    NOW,
    ORIGIN,
    PAIR,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    PROGRESS,
    RACK_FACTOR,
    RUNNING,
    SAVED,
    SCALE,
    SHAPE_KIND,
    SHARED_GPU,
    SHARER,
    SHARER_NEXT,
    SIZES,
    SPEED,
    TRUE_ENDS,
    TYPES,
    UPDATED,
    Ints,
    Reals,
)
from yardmaster.model.site import Sharing


@kernel
def speed_of_plan(ints: Ints, reals: Reals, shape: int) -> float:
    """Return the speed of a gang on the planned nodes: its slowest member's, less for distance."""
    speed = math.inf
    first_rack = ints[ints[NODE_RACK] + ints[ints[PLAN_NODE]]]
    spans_racks = False
    size = 0
    for index in range(ints[PLAN]):
        node = ints[ints[PLAN_NODE] + index]
        kind = ints[ints[NODE_TYPE] + node]
        speed = min(speed, reals[ints[SPEED] + shape * ints[TYPES] + kind])
        spans_racks |= ints[ints[NODE_RACK] + node] != first_rack
        size += ints[ints[PLAN_GPUS] + index]
    if spans_racks:
        speed *= reals[ints[RACK_FACTOR] + shape]
    elif ints[PLAN] > 1:
        speed *= reals[ints[NODE_FACTOR] + shape]
    return speed * reals[ints[SCALE] + shape * ints[SIZES] + size]


@kernel
def work_left(ints: Ints, reals: Reals, job: int, moment: float) -> float:
    """Return the work a running job will have left at a moment, if nothing changes until then."""
    left = reals[ints[LEFT] + FIELDS * job]
    begin = max(reals[ints[UPDATED] + FIELDS * job], reals[ints[ORIGIN] + FIELDS * job])
    if moment > begin:
        left = max(left - reals[ints[PROGRESS] + FIELDS * job] * (moment - begin), 0.0)
    return left


@kernel
def last_save(ints: Ints, reals: Reals, job: int, moment: float) -> float:
    """Return the second of the segment's newest checkpoint by a moment; its origin if none."""
    origin = reals[ints[ORIGIN] + FIELDS * job]
    if reals[EVERY_S] < math.inf and moment > origin:
        count = math.floor((moment - origin) / reals[EVERY_S])
        if count >= 1:
            return origin + count * reals[EVERY_S]
    return origin


@kernel
def settle(ints: Ints, reals: Reals, job: int) -> None:
    """Book the work done and saved up to now."""
    now = reals[NOW]
    begin = max(reals[ints[UPDATED] + FIELDS * job], reals[ints[ORIGIN] + FIELDS * job])
    saved_at = last_save(ints, reals, job, now)
    if saved_at > begin:
        reals[ints[SAVED] + FIELDS * job] = work_left(ints, reals, job, saved_at)
        reals[ints[LAST_SAVE] + FIELDS * job] = saved_at
    reals[ints[LEFT] + FIELDS * job] = work_left(ints, reals, job, now)
    reals[ints[UPDATED] + FIELDS * job] = now


@kernel
def expected_left(ints: Ints, reals: Reals, job: int, left: float) -> float:
    """Return the work the scheduler expects to be left when `left` really is."""
    done = reals[ints[DURATION] + job] - left
    return max(reals[ints[EXPECTED] + job] - done, 0.0)


@kernel
def colocation(ints: Ints, reals: Reals, job: int) -> float:
    """Return the factor by which the others on its GPU slow a job down: the worst of them."""
    gpu = ints[ints[SHARED_GPU] + job]
    factor = 1.0
    if gpu == NOTHING or ints[ints[NODE_SHARING] + ints[ints[GPU_NODE] + gpu]] != Sharing.MPS:
        return factor
    kind = ints[ints[SHAPE_KIND] + ints[ints[JOB_SHAPE] + job]]
    other = ints[ints[SHARER] + gpu]
    while other != NOTHING:
        if other != job:
            beside = ints[ints[SHAPE_KIND] + ints[ints[JOB_SHAPE] + other]]
            factor = min(factor, reals[ints[PAIR] + kind * ints[KINDS] + beside])
        other = ints[ints[SHARER_NEXT] + other]
    return factor


@kernel
def begin_progress(ints: Ints, reals: Reals, job: int, overhead: float) -> None:
    """Set a job going now on GPUs it already holds, after `overhead` seconds without progress."""
    now = reals[NOW]
    reals[ints[UPDATED] + FIELDS * job] = now
    reals[ints[ORIGIN] + FIELDS * job] = now + overhead
    reals[ints[LAST_SAVE] + FIELDS * job] = now + overhead
    _set_ends(ints, reals, job)


@kernel
def _set_ends(ints: Ints, reals: Reals, job: int) -> None:
    speed = reals[ints[BASE_SPEED] + FIELDS * job] * colocation(ints, reals, job)
    progress = speed * reals[EFFICIENCY]
    reals[ints[PROGRESS] + FIELDS * job] = progress
    begin = max(reals[ints[UPDATED] + FIELDS * job], reals[ints[ORIGIN] + FIELDS * job])
    left = reals[ints[LEFT] + FIELDS * job]
    reals[ints[END] + job] = begin + left / progress
    if ints[TRUE_ENDS] == 0:
        expected = expected_left(ints, reals, job, left)
        reals[ints[EXPECTED_END] + job] = begin + expected / progress


@kernel
def enter_heaps(ints: Ints, reals: Reals, job: int) -> None:
    """Enter a job among the running ones by its end and its expected end."""
    size = ints[RUNNING]
    push(ints, reals, ints[HEAP], ints[HEAP_AT], ints[END], size, job)
    if ints[TRUE_ENDS] == 0:
        expected, at = ints[EXPECTED_HEAP], ints[EXPECTED_HEAP_AT]
        push(ints, reals, expected, at, ints[EXPECTED_END], size, job)
    ints[RUNNING] = size + 1


@kernel
def leave_heaps(ints: Ints, reals: Reals, job: int) -> None:
    """Take a job out of the running ones."""
    size = ints[RUNNING]
    remove(ints, reals, ints[HEAP], ints[HEAP_AT], ints[END], size, job)
    if ints[TRUE_ENDS] == 0:
        expected, at = ints[EXPECTED_HEAP], ints[EXPECTED_HEAP_AT]
        remove(ints, reals, expected, at, ints[EXPECTED_END], size, job)
    ints[RUNNING] = size - 1


@kernel
def change_speed_of_sharers(ints: Ints, reals: Reals, gpu: int, newcomer: int) -> None:
    """Let everybody on a shared GPU go on at the speed the present company allows."""
    if ints[ints[NODE_SHARING] + ints[ints[GPU_NODE] + gpu]] != Sharing.MPS:
        return
    job = ints[ints[SHARER] + gpu]
    while job != NOTHING:
        if job != newcomer:
            leave_heaps(ints, reals, job)
            settle(ints, reals, job)
            _set_ends(ints, reals, job)
            enter_heaps(ints, reals, job)
        job = ints[ints[SHARER_NEXT] + job]
