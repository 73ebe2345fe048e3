"""The waiting jobs, and which of them comes next.

Three forms (see `QueueKind`), chosen by the caller once per simulation:

- *heaps*, one per shape, for orders whose keys never change: entering and leaving cost the
  logarithm of the jobs waiting, and nothing else is touched.
- *trees*, one per shape, likewise, where jobs may be passed over for being long: the floors of a
  tree hold the least expected run time of each eight entries of the floor below, so that "the first
  job in order that runs at most t seconds" costs the logarithm of the number of jobs.
- *a list*, for orders whose keys change while jobs wait: scanned once per job started.

All answer `next_job`, limited per shape by `shape_limit`: −1 keeps the whole shape out, infinity
lets every job of it in, anything between lets in jobs expected to run no longer than that.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.core.bits import dice
from yardmaster.engine.core.heap import push, remove
from yardmaster.engine.core.progress import expected_left
from yardmaster.engine.core.room import fits
from yardmaster.engine.core.tenants import HELD_BACK, class_of, orders_by_tenant, tenant_key
from yardmaster.engine.state import (
    CLIP_HIGH,
    CLIP_LOW,
    DISCIPLINE,
    FIELDS,
    GROUP,
    GROUPS,
    HELD_S,
    HISTORY_JOBS,
    HISTORY_KEY,
    HISTORY_S,
    IS_REAL,
    IS_WEIGHTED,
    JOB_SHAPE,
    LEFT,
    NEXT_ARRIVAL,
    NOTHING,
    NOW,
    OFFSET,
    ORDER,
    PASSES,
    QUEUE,
    QUEUE_AT,
    QUEUE_KIND,
    QUEUED,
    RANK,
    RATE,
    ROUNDS,
    SEED,
    SHAPE_DEPTH,
    SHAPE_FIRST_SLOT,
    SHAPE_FLOORS,
    SHAPE_GPUS,
    SHAPE_HEAD,
    SHAPE_LIMIT,
    SHAPE_QUEUED,
    SHAPES,
    SINCE,
    SLOT,
    SLOT_JOB,
    TENANTS,
    THRESHOLD,
    THRESHOLDS,
    VALUE,
    WAITING,
    WAITING_AT,
    WAITING_SHAPE,
    Discipline,
    Ints,
    OrderKind,
    QueueKind,
    Reals,
)

MOST_FLOORS = 9
"""Floors of the highest tree: eight to the ninth is more jobs than memory holds."""

BEHIND_ALL = 1 << 60
"""A rank behind every job's."""


@hot_kernel
def enqueue(ints: Ints, reals: Reals, job: int) -> None:
    """Let a job wait."""
    shape = ints[ints[JOB_SHAPE] + job]
    kind = ints[QUEUE_KIND]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        _set_key(ints, reals, job)
        if ints[ints[SHAPE_QUEUED] + shape] == 0:
            _list_shape(ints, reals, shape)
    if kind == QueueKind.HEAPS:
        heap = ints[QUEUE] + ints[ints[SHAPE_FIRST_SLOT] + shape]
        size = ints[ints[SHAPE_QUEUED] + shape]
        push(ints, reals, heap, ints[QUEUE_AT], ints[OFFSET], size, job)
    elif kind == QueueKind.TREES:
        _enter_tree(ints, reals, shape, ints[ints[SLOT] + job], reals[ints[VALUE] + job])
        head = ints[ints[SHAPE_HEAD] + shape]
        if head == NOTHING or ints[ints[RANK] + job] < ints[ints[RANK] + head]:
            ints[ints[SHAPE_HEAD] + shape] = job
    else:
        if ints[HISTORY_KEY] > 0 and _is_new(ints, job):
            usual_s = _usual_run_time(ints, reals, ints[ints[GROUP] + job])
            reals[ints[HISTORY_KEY] + job] = ints[ints[SHAPE_GPUS] + shape] * usual_s
        ints[ints[QUEUE] + ints[QUEUED]] = job
        ints[ints[QUEUE_AT] + job] = ints[QUEUED]
    ints[ints[SHAPE_QUEUED] + shape] += 1
    ints[QUEUED] += 1


@kernel
def _is_new(ints: Ints, job: int) -> bool:
    """Whether a job has its key still to come: it has never run, and does not go by turns."""
    if ints[IS_REAL] == 0:
        return True
    return ints[DISCIPLINE] != Discipline.TIMESLICE and ints[ints[ROUNDS] + job] == 0


@hot_kernel
def dequeue(ints: Ints, reals: Reals, job: int) -> None:
    """Let a waiting job go."""
    shape = ints[ints[JOB_SHAPE] + job]
    kind = ints[QUEUE_KIND]
    if kind == QueueKind.HEAPS:
        heap = ints[QUEUE] + ints[ints[SHAPE_FIRST_SLOT] + shape]
        size = ints[ints[SHAPE_QUEUED] + shape]
        remove(ints, reals, heap, ints[QUEUE_AT], ints[OFFSET], size, job)
    elif kind == QueueKind.TREES:
        _leave_tree(ints, reals, shape, ints[ints[SLOT] + job])
        if ints[ints[SHAPE_HEAD] + shape] == job:
            ints[ints[SHAPE_HEAD] + shape] = _first_within(ints, reals, shape, math.inf)
    else:
        place = ints[ints[QUEUE_AT] + job]
        last = ints[ints[QUEUE] + ints[QUEUED] - 1]
        ints[ints[QUEUE] + place] = last
        ints[ints[QUEUE_AT] + last] = place
        ints[ints[QUEUE_AT] + job] = NOTHING
    ints[ints[SHAPE_QUEUED] + shape] -= 1
    ints[QUEUED] -= 1
    if REAL_CLUSTERS and ints[IS_REAL] == 1 and ints[ints[SHAPE_QUEUED] + shape] == 0:
        _unlist_shape(ints, shape)


@hot_kernel
def waiting_shapes(ints: Ints) -> int:
    """Return how many shapes are to be looked at for waiting jobs.

    A plain cluster has a dozen shapes, and all are looked at. Kinds and tenants make hundreds, so
    those with jobs waiting are listed.
    """
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return ints[WAITING]
    return ints[SHAPES]


@hot_kernel
def waiting_shape(ints: Ints, index: int) -> int:
    """Return one of them."""
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return ints[ints[WAITING_SHAPE] + index]
    return index


@kernel
def admit_all(ints: Ints, reals: Reals) -> None:
    """Let every waiting job be considered again, as at the beginning of a pass."""
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
        reals[ints[SHAPE_LIMIT] + shape] = math.inf


@kernel
def _list_shape(ints: Ints, reals: Reals, shape: int) -> None:
    """List a shape that has its first job waiting; nothing keeps it out."""
    reals[ints[SHAPE_LIMIT] + shape] = math.inf
    ints[ints[WAITING_SHAPE] + ints[WAITING]] = shape
    ints[ints[WAITING_AT] + shape] = ints[WAITING]
    ints[WAITING] += 1


@kernel
def _unlist_shape(ints: Ints, shape: int) -> None:
    place = ints[ints[WAITING_AT] + shape]
    last = ints[ints[WAITING_SHAPE] + ints[WAITING] - 1]
    ints[ints[WAITING_SHAPE] + place] = last
    ints[ints[WAITING_AT] + last] = place
    ints[WAITING] -= 1


@hot_kernel
def next_job(ints: Ints, reals: Reals) -> int:
    """Return the first waiting job in order that `shape_limit` lets through, or NOTHING."""
    if ints[QUEUED] == 0:
        return NOTHING
    if REAL_CLUSTERS and ints[IS_REAL] == 1 and ints[TENANTS] > 0:
        return _next_by_class(ints, reals)
    kind = ints[QUEUE_KIND]
    if kind == QueueKind.HEAPS:
        return _next_in_heaps(ints, reals)
    if kind == QueueKind.TREES:
        return _next_in_trees(ints, reals)
    return _next_in_list(ints, reals)


@hot_kernel
def _next_in_heaps(ints: Ints, reals: Reals) -> int:
    """Limits are all or nothing here: the first of a shape stands for all of it."""
    if ints[QUEUED] == 1 and ints[IS_REAL] == 0:
        job = ints[NEXT_ARRIVAL] - 1  # most often the one that waits is the one that just came
        if ints[ints[QUEUE_AT] + job] != NOTHING:
            limit = reals[ints[SHAPE_LIMIT] + ints[ints[JOB_SHAPE] + job]]
            return job if limit >= 0.0 else NOTHING
    best = NOTHING
    best_key = math.inf
    limits, queued = ints[SHAPE_LIMIT], ints[SHAPE_QUEUED]
    queue, first, keys = ints[QUEUE], ints[SHAPE_FIRST_SLOT], ints[OFFSET]
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
        if ints[queued + shape] > 0 and reals[limits + shape] >= 0.0:
            job = ints[queue + ints[first + shape]]
            key = reals[keys + job]
            if best == NOTHING or key < best_key or (key == best_key and job < best):
                best = job
                best_key = key
    return best


@hot_kernel
def _next_in_trees(ints: Ints, reals: Reals) -> int:
    best = NOTHING
    best_rank = BEHIND_ALL
    head, limits = ints[SHAPE_HEAD], ints[SHAPE_LIMIT]
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
        limit = reals[limits + shape]
        job = ints[head + shape]
        # The head is the lowest rank of the shape: if it cannot win, no job of the shape can.
        if job == NOTHING or limit < 0.0 or ints[ints[RANK] + job] >= best_rank:
            continue
        if reals[ints[VALUE] + job] > limit:
            job = _first_within(ints, reals, shape, limit)
        if job != NOTHING and ints[ints[RANK] + job] < best_rank:
            best = job
            best_rank = ints[ints[RANK] + job]
    return best


@kernel
def _next_in_list(ints: Ints, reals: Reals) -> int:
    best = NOTHING
    best_key = math.inf
    for place in range(ints[QUEUED]):
        job = ints[ints[QUEUE] + place]
        if reals[ints[VALUE] + job] <= reals[ints[SHAPE_LIMIT] + ints[ints[JOB_SHAPE] + job]]:
            key = key_now(ints, reals, job)
            if best == NOTHING or key < best_key or (key == best_key and job < best):
                best = job
                best_key = key
    return best


@kernel
def next_fitting(ints: Ints, reals: Reals) -> int:
    """Return the first job by (class of its tenant, key, row) that fits now, or NOTHING."""
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
        reals[ints[SHAPE_LIMIT] + shape] = math.inf if fits(ints, shape) else -1.0
    return next_job(ints, reals)


@kernel
def _next_by_class(ints: Ints, reals: Reals) -> int:
    """Return the first job by (class of its tenant, key, row) that the limits let through."""
    if ints[QUEUE_KIND] == QueueKind.LIST:
        return _next_in_list_by_class(ints, reals)
    best = NOTHING
    best_class = HELD_BACK
    best_key = math.inf
    for index in range(waiting_shapes(ints)):
        shape = waiting_shape(ints, index)
        limit = reals[ints[SHAPE_LIMIT] + shape]
        if ints[ints[SHAPE_QUEUED] + shape] == 0 or limit < 0.0:
            continue
        level = class_of(ints, shape)
        if level >= HELD_BACK or level > best_class:
            continue
        if ints[QUEUE_KIND] == QueueKind.HEAPS:
            job = ints[ints[QUEUE] + ints[ints[SHAPE_FIRST_SLOT] + shape]]
        else:
            job = _first_within(ints, reals, shape, limit)
        if job == NOTHING:
            continue
        key = key_now(ints, reals, job)
        better = key < best_key or (key == best_key and job < best)
        if level < best_class or (level == best_class and better):
            best = job
            best_class = level
            best_key = key
    return best


@kernel
def _next_in_list_by_class(ints: Ints, reals: Reals) -> int:
    best = NOTHING
    best_class = HELD_BACK
    best_key = math.inf
    for place in range(ints[QUEUED]):
        job = ints[ints[QUEUE] + place]
        shape = ints[ints[JOB_SHAPE] + job]
        level = class_of(ints, shape)
        if level >= HELD_BACK or reals[ints[VALUE] + job] > reals[ints[SHAPE_LIMIT] + shape]:
            continue
        key = key_now(ints, reals, job)
        better = key < best_key or (key == best_key and job < best)
        if level < best_class or (level == best_class and better):
            best = job
            best_class = level
            best_key = key
    return best


@kernel
def _set_key(ints: Ints, reals: Reals, job: int) -> None:
    """Give a job that enters the queue the key that its progress so far earns it."""
    if ints[DISCIPLINE] == Discipline.TIMESLICE:
        reals[ints[OFFSET] + job] = float(ints[ints[ROUNDS] + job])
    elif ints[ORDER] == OrderKind.REMAINING:
        left = reals[ints[LEFT] + FIELDS * job]
        reals[ints[OFFSET] + job] = expected_left(ints, reals, job, left)
    elif ints[ORDER] == OrderKind.ATTAINED:
        reals[ints[OFFSET] + job] = attained_key(ints, reals, job, reals[ints[HELD_S] + job])


@kernel
def attained_key(ints: Ints, reals: Reals, job: int, held_s: float) -> float:
    """Return the key of a job that has been served for so many seconds."""
    value = held_s
    if ints[IS_WEIGHTED] == 1:
        value *= ints[ints[SHAPE_GPUS] + ints[ints[JOB_SHAPE] + job]]
    if ints[THRESHOLDS] == 0:
        return value
    level = 0
    while level < ints[THRESHOLDS] and reals[ints[THRESHOLD] + level] <= value:
        level += 1
    return float(level)


@kernel
def key_now(ints: Ints, reals: Reals, job: int) -> float:
    """Return the key of a job in a list queue at this moment; lowest goes first."""
    order = ints[ORDER]
    if order == OrderKind.AGEING:
        age = min(max(reals[NOW] - reals[ints[SINCE] + job], reals[CLIP_LOW]), reals[CLIP_HIGH])
        return reals[ints[OFFSET] + job] + reals[ints[RATE] + job] * age
    if order == OrderKind.SHUFFLED:
        return float(dice(ints[SEED], ints[PASSES], job))
    if REAL_CLUSTERS and orders_by_tenant(ints):
        return tenant_key(ints, reals, ints[ints[JOB_SHAPE] + job])
    if ints[QUEUE_KIND] == QueueKind.TREES:
        return float(ints[ints[RANK] + job])
    return reals[ints[OFFSET] + job]


@hot_kernel
def remember_run_time(ints: Ints, reals: Reals, job: int, run_time: float) -> None:
    """Add a finished job to the history that `HISTORY` orders consult."""
    if ints[HISTORY_KEY] > 0:
        group = ints[ints[GROUP] + job]
        everyone = ints[GROUPS]
        reals[ints[HISTORY_S] + group] += run_time
        ints[ints[HISTORY_JOBS] + group] += 1
        reals[ints[HISTORY_S] + everyone] += run_time
        ints[ints[HISTORY_JOBS] + everyone] += 1


@kernel
def _usual_run_time(ints: Ints, reals: Reals, group: int) -> float:
    """Return the mean run time of the group's finished jobs, else of all, else 0."""
    everyone = ints[GROUPS]
    source = group if ints[ints[HISTORY_JOBS] + group] > 0 else everyone
    return reals[ints[HISTORY_S] + source] / max(ints[ints[HISTORY_JOBS] + source], 1)


@hot_kernel
def _enter_tree(ints: Ints, reals: Reals, shape: int, slot: int, value: float) -> None:
    """Fill an empty leaf and lower the minima above it."""
    floors = ints[SHAPE_FLOORS] + shape * MOST_FLOORS
    for floor in range(ints[ints[SHAPE_DEPTH] + shape]):
        place = ints[floors + floor] + slot
        if reals[place] <= value:
            break
        reals[place] = value
        slot >>= 3


@hot_kernel
def _leave_tree(ints: Ints, reals: Reals, shape: int, slot: int) -> None:
    """Empty a leaf and raise the minima above it that were its own."""
    floors = ints[SHAPE_FLOORS] + shape * MOST_FLOORS
    value = reals[ints[floors] + slot]
    least = math.inf
    for floor in range(ints[ints[SHAPE_DEPTH] + shape]):
        place = ints[floors + floor] + slot
        if floor > 0 and reals[place] < value:
            break  # another job below is shorter: nothing above changes either
        reals[place] = least
        first = ints[floors + floor] + ((slot >> 3) << 3)
        for entry in range(first, first + 8):
            least = min(least, reals[entry])
        slot >>= 3


@hot_kernel
def _first_within(ints: Ints, reals: Reals, shape: int, limit: float) -> int:
    """Return the shape's first waiting job in order expected to run at most `limit` seconds."""
    floors = ints[SHAPE_FLOORS] + shape * MOST_FLOORS
    # Empty leaves are infinite, so "any job" means "anything finite".
    bound = min(limit, 1e300)
    slot = 0
    for floor in range(ints[ints[SHAPE_DEPTH] + shape] - 1, -1, -1):
        place = ints[floors + floor] + slot
        end = slot + 8
        while slot < end and reals[place] > bound:
            slot += 1
            place += 1
        if slot == end:
            return NOTHING  # only on the top floor: a minimum within bounds has a child within
        slot <<= 3
    return ints[ints[SLOT_JOB] + ints[ints[SHAPE_FIRST_SLOT] + shape] + (slot >> 3)]
