"""Which nodes a gang of whole GPUs gets.

Single-node jobs that need nothing but GPUs are placed through the index of free nodes. Everything
else is planned by a scan over what is AVAILABLE to the job on every node: gangs that span nodes,
jobs that need cores or memory, and placements that score nodes (`core.scores`).
"""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.core.bits import dice, highest_bit, next_bit
from yardmaster.engine.core.nodes import copy_table
from yardmaster.engine.core.room import (
    fits_by_count,
    make_usable_available,
    needs_only_gpus,
    next_roomy,
    usable_now,
)
from yardmaster.engine.core.scores import plan_by_score
from yardmaster.engine.state import (
    AVAILABLE,
    BUCKET,
    BUCKET_NEXT,
    JOB_SHAPE,
    LEVEL_MASK,
    LEVEL_NODES,
    LEVEL_WORDS,
    LEVELS,
    NODE_FREE,
    NODE_TYPE,
    NODE_WORDS,
    NODES,
    NOTHING,
    PLACEMENT,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    SEED,
    SHAPE_CAP,
    SHAPE_GPUS,
    SHAPE_SINGLE,
    SHAPE_TYPES,
    SPEED,
    TYPE_BINDS,
    TYPES,
    Ints,
    Placement,
    Reals,
)


@kernel
def plan_gang(ints: Ints, reals: Reals, job: int) -> bool:
    """Plan whole GPUs for a job by the scheduler's placement, cores and memory considered."""
    shape = ints[ints[JOB_SHAPE] + job]
    placement = ints[PLACEMENT]
    if needs_only_gpus(ints, shape):
        if placement <= Placement.RANDOM:
            return plan_by_count(ints, reals, job)
        if placement == Placement.FASTEST and ints[ints[SHAPE_SINGLE] + shape] == 1:
            return _plan_fastest(ints, reals, shape)
    elif ints[ints[SHAPE_SINGLE] + shape] == 1 and (
        placement < Placement.RANDOM or placement == Placement.FASTEST
    ):
        return _plan_on_roomy(ints, reals, shape, placement)
    make_usable_available(ints, shape)
    return plan_on_available(ints, reals, job, placement)


@kernel
def _plan_on_roomy(ints: Ints, reals: Reals, shape: int, placement: int) -> bool:
    """Plan a single-node gang that needs cores or memory, looking at nodes with GPUs enough."""
    gpus = ints[ints[SHAPE_GPUS] + shape]
    best = NOTHING
    best_score, best_rank = 0.0, 0
    for kind in range(ints[TYPES]):
        if (ints[ints[SHAPE_TYPES] + shape] >> kind) & 1 == 0:
            continue
        score = 0.0
        if placement == Placement.FASTEST:
            score = -reals[ints[SPEED] + shape * ints[TYPES] + kind]
        node = next_roomy(ints, kind, gpus, NOTHING)
        while node != NOTHING:
            room = usable_now(ints, shape, node)
            if room >= gpus:
                rank = _rank(placement, room)
                better = score < best_score or (score == best_score and rank < best_rank)
                is_tie = score == best_score and rank == best_rank
                if best == NOTHING or better or (is_tie and node < best):
                    best, best_score, best_rank = node, score, rank
                if rank > 0 and ints[ints[TYPE_BINDS] + kind] == 0:
                    break  # nodes come tightest first: no other of this type is better
            node = next_roomy(ints, kind, gpus, node)
    ints[ints[PLAN_NODE]] = best
    ints[ints[PLAN_GPUS]] = gpus
    ints[PLAN] = 1
    return best != NOTHING


@kernel
def _rank(placement: int, room: int) -> int:
    """Return what a node with so much room is worth: the tightest least, unless told otherwise."""
    if placement == Placement.FIRST:
        return 0
    return -room if placement == Placement.SPREAD else room


@hot_kernel
def plan_by_count(ints: Ints, reals: Reals, job: int) -> bool:
    """Plan for a job that needs nothing but GPUs."""
    shape = ints[ints[JOB_SHAPE] + job]
    if ints[ints[SHAPE_SINGLE] + shape] == 1 and ints[PLACEMENT] != Placement.RANDOM:
        node = _indexed_node(ints, shape)
        ints[ints[PLAN_NODE]] = node
        ints[ints[PLAN_GPUS]] = ints[ints[SHAPE_GPUS] + shape]
        ints[PLAN] = 1
        return node != NOTHING
    if not fits_by_count(ints, shape):
        return False
    copy_table(ints, ints[NODE_FREE], ints[AVAILABLE])
    return plan_on_available(ints, reals, job, ints[PLACEMENT])


@kernel
def _plan_fastest(ints: Ints, reals: Reals, shape: int) -> bool:
    """Plan a single-node gang on the tightest node of the fastest type that has one."""
    gpus, words = ints[ints[SHAPE_GPUS] + shape], ints[LEVEL_WORDS]
    best = NOTHING
    best_free = 0
    best_speed = 0.0
    for kind in range(ints[TYPES]):
        if (ints[ints[SHAPE_TYPES] + shape] >> kind) & 1 == 0:
            continue
        free = next_bit(ints, ints[LEVEL_MASK] + kind * words, words, gpus)
        if free < 0:
            continue
        speed = reals[ints[SPEED] + shape * ints[TYPES] + kind]
        node = _first_at_level(ints, kind, free)
        tighter = free < best_free or (free == best_free and node < best)
        if best == NOTHING or speed > best_speed or (speed == best_speed and tighter):
            best, best_free, best_speed = node, free, speed
    ints[ints[PLAN_NODE]] = best
    ints[ints[PLAN_GPUS]] = gpus
    ints[PLAN] = 1
    return best != NOTHING


@hot_kernel
def _indexed_node(ints: Ints, shape: int) -> int:
    """Return the node for a single-node job: tightest, emptiest or first; lowest number on ties."""
    gpus = ints[ints[SHAPE_GPUS] + shape]
    placement = ints[PLACEMENT]
    words = ints[LEVEL_WORDS]
    best = NOTHING
    best_free = 0
    for kind in range(ints[TYPES]):
        if (ints[ints[SHAPE_TYPES] + shape] >> kind) & 1 == 0:
            continue
        if placement == Placement.SPREAD:
            free = highest_bit(ints, ints[LEVEL_MASK] + kind * words, words)
            if free < gpus:
                continue
        else:
            free = next_bit(ints, ints[LEVEL_MASK] + kind * words, words, gpus)
            if free < 0:
                continue
        node = _first_at_level(ints, kind, free)
        if placement == Placement.FIRST:
            free = next_bit(ints, ints[LEVEL_MASK] + kind * words, words, free + 1)
            while free >= 0:
                node = min(node, _first_at_level(ints, kind, free))
                free = next_bit(ints, ints[LEVEL_MASK] + kind * words, words, free + 1)
            if best == NOTHING or node < best:
                best = node
            continue
        better = free > best_free if placement == Placement.SPREAD else free < best_free
        if best == NOTHING or better or (free == best_free and node < best):
            best = node
            best_free = free
    return best


@hot_kernel
def _first_at_level(ints: Ints, kind: int, free: int) -> int:
    """Return the lowest-numbered node of this type with exactly `free` GPUs free."""
    words = ints[NODE_WORDS]
    first = (kind * ints[LEVELS] + free) * words
    return next_bit(ints, ints[LEVEL_NODES] + first, words, 0)


@kernel
def plan_on_available(ints: Ints, reals: Reals, job: int, placement: int) -> bool:
    """Plan a job's nodes within AVAILABLE; False, with the plan void, if it does not fit.

    A gang that spans nodes takes the most it can from each node chosen: `pack` prefers few nodes
    and fits the rest tightly, `spread` goes by emptiness, `first` by number.
    """
    shape = ints[ints[JOB_SHAPE] + job]
    if REAL_CLUSTERS and placement > Placement.RANDOM:
        return plan_by_score(ints, reals, shape, placement)
    remaining = ints[ints[SHAPE_GPUS] + shape]
    cap = ints[ints[SHAPE_CAP] + shape]
    least = remaining if ints[ints[SHAPE_SINGLE] + shape] == 1 else 1
    if placement == Placement.PACK or placement == Placement.SPREAD:
        if least > 1:
            return plan_one_node(ints, shape, placement, ints[AVAILABLE])
        _sort_into_buckets(ints, shape)
    size = 0
    node = NOTHING
    while remaining > 0:
        if placement == Placement.FIRST:
            node = _next_by_number(ints, shape, least, node + 1)
        elif placement == Placement.RANDOM:
            node = _any_node(ints, job, least, size)
        else:
            node = _from_buckets(ints, placement, cap, remaining)
        if node == NOTHING:
            ints[PLAN] = 0
            return False
        taken = min(ints[ints[AVAILABLE] + node], cap, remaining)
        ints[ints[PLAN_NODE] + size] = node
        ints[ints[PLAN_GPUS] + size] = taken
        ints[ints[AVAILABLE] + node] = 0  # one share per node
        remaining -= taken
        size += 1
    ints[PLAN] = size
    return True


@kernel
def plan_one_node(ints: Ints, shape: int, placement: int, room: int) -> bool:
    """Plan a gang within one node of the table at `room`: the tightest for `pack`, or emptiest."""
    needed = ints[ints[SHAPE_GPUS] + shape]
    types = ints[ints[SHAPE_TYPES] + shape]
    node_type = ints[NODE_TYPE]
    best = NOTHING
    best_available = 0
    for node in range(ints[NODES]):
        value = ints[room + node]
        if value >= needed and (types >> ints[node_type + node]) & 1 == 1:
            tighter = value < best_available
            if placement == Placement.SPREAD:
                tighter = value > best_available
            if best == NOTHING or tighter:
                best = node
                best_available = value
    ints[PLAN] = 0
    if best != NOTHING:
        ints[PLAN] = 1
        ints[ints[PLAN_NODE]] = best
        ints[ints[PLAN_GPUS]] = needed
    return best != NOTHING


@kernel
def _sort_into_buckets(ints: Ints, shape: int) -> None:
    """Chain the allowed nodes by GPUs available, lowest number first."""
    bucket, following, available = ints[BUCKET], ints[BUCKET_NEXT], ints[AVAILABLE]
    types = ints[ints[SHAPE_TYPES] + shape]
    for level in range(ints[LEVELS]):
        ints[bucket + level] = NOTHING
    node_type = ints[NODE_TYPE]
    for node in range(ints[NODES] - 1, -1, -1):
        level = ints[available + node]
        if level > 0 and (types >> ints[node_type + node]) & 1 == 1:
            ints[following + node] = ints[bucket + level]
            ints[bucket + level] = node


@kernel
def _from_buckets(ints: Ints, placement: int, cap: int, wanted: int) -> int:
    """Take the next node of a plan: the emptiest, or for `pack` the tightest that completes it."""
    bucket = ints[BUCKET]
    level = ints[LEVELS] - 1
    while level > 0 and ints[bucket + level] == NOTHING:
        level -= 1
    if placement == Placement.PACK and min(level, cap) >= wanted:
        level = wanted
        while ints[bucket + level] == NOTHING:
            level += 1
    node = ints[bucket + level]
    if level > 0 and node != NOTHING:
        ints[bucket + level] = ints[ints[BUCKET_NEXT] + node]
        return node
    return NOTHING


@kernel
def _next_by_number(ints: Ints, shape: int, least: int, start: int) -> int:
    """Return the first allowed node from `start` on with at least `least` GPUs available."""
    types = ints[ints[SHAPE_TYPES] + shape]
    for node in range(start, ints[NODES]):
        allowed = (types >> ints[ints[NODE_TYPE] + node]) & 1 == 1
        if allowed and ints[ints[AVAILABLE] + node] >= least:
            return node
    return NOTHING


@kernel
def _any_node(ints: Ints, job: int, least: int, pick: int) -> int:
    """Return a random allowed node with at least `least` GPUs available."""
    shape = ints[ints[JOB_SHAPE] + job]
    candidates = 0
    node = _next_by_number(ints, shape, least, 0)
    while node != NOTHING:
        candidates += 1
        node = _next_by_number(ints, shape, least, node + 1)
    if candidates == 0:
        return NOTHING
    node = _next_by_number(ints, shape, least, 0)
    for _ in range(dice(ints[SEED], job, pick) % candidates):
        node = _next_by_number(ints, shape, least, node + 1)
    return node
