"""Which nodes have room, which of them a job gets, and which GPUs it holds there.

Nodes are indexed by (GPU type, number of free GPUs), so that the tightest or the emptiest node for
a single-node job is found without looking at the others. Gangs that must span nodes are planned by
a scan over all nodes. A plan is a list of (node, GPUs); `hold` carries it out.
"""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.core.bits import WORD_BITS, dice, highest_bit, lowest_bit, next_bit
from yardmaster.engine.state import (
    AVAILABLE,
    BUCKET,
    BUCKET_NEXT,
    FREE_GPUS,
    GPU_BITS,
    GPU_NODE,
    HELD,
    HELD_BITS,
    HELD_COUNT,
    HELD_NEXT,
    JOB_SHAPE,
    LEVEL_COUNT,
    LEVEL_MASK,
    LEVEL_NODES,
    LEVEL_WORDS,
    LEVELS,
    NODE_FIRST_GPU,
    NODE_FREE,
    NODE_TYPE,
    NODE_WORD,
    NODE_WORDS,
    NODES,
    NOTHING,
    PLACEMENT,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    RECORD,
    RECORDS,
    RECORDS_GPUS,
    SEED,
    SHAPE_CAP,
    SHAPE_GPUS,
    SHAPE_SINGLE,
    SHAPE_TYPES,
    TYPES,
    Ints,
    Placement,
)


@hot_kernel
def enlist(ints: Ints, node: int) -> None:
    """Enter a node into the index under its current number of free GPUs."""
    free, kind = ints[ints[NODE_FREE] + node], ints[ints[NODE_TYPE] + node]
    level = kind * ints[LEVELS] + free
    ints[ints[LEVEL_NODES] + level * ints[NODE_WORDS] + (node >> 5)] |= 1 << (node & 31)
    ints[ints[LEVEL_COUNT] + level] += 1
    ints[ints[LEVEL_MASK] + kind * ints[LEVEL_WORDS] + (free >> 5)] |= 1 << (free & 31)


@hot_kernel
def unlist(ints: Ints, node: int) -> None:
    """Take a node out of the index."""
    free, kind = ints[ints[NODE_FREE] + node], ints[ints[NODE_TYPE] + node]
    level = kind * ints[LEVELS] + free
    ints[ints[LEVEL_NODES] + level * ints[NODE_WORDS] + (node >> 5)] ^= 1 << (node & 31)
    left = ints[ints[LEVEL_COUNT] + level] - 1
    ints[ints[LEVEL_COUNT] + level] = left
    is_last = 1 if left == 0 else 0
    ints[ints[LEVEL_MASK] + kind * ints[LEVEL_WORDS] + (free >> 5)] ^= is_last << (free & 31)


@hot_kernel
def fits(ints: Ints, shape: int) -> bool:
    """Whether a job of this shape could start on the GPUs that are free now."""
    gpus = ints[ints[SHAPE_GPUS] + shape]
    if ints[FREE_GPUS] < gpus:
        return False
    types = ints[ints[SHAPE_TYPES] + shape]
    words = ints[LEVEL_WORDS]
    if ints[ints[SHAPE_SINGLE] + shape] == 1:
        for kind in range(ints[TYPES]):
            if (types >> kind) & 1 == 1 and next_bit(
                ints, ints[LEVEL_MASK] + kind * words, words, gpus
            ) >= 0:
                return True
        return False
    cap = ints[ints[SHAPE_CAP] + shape]
    levels = ints[LEVELS]
    total = 0
    for kind in range(ints[TYPES]):
        if (types >> kind) & 1 == 1:
            for free in range(1, levels):
                total += ints[ints[LEVEL_COUNT] + kind * levels + free] * min(free, cap)
    return total >= gpus


@kernel
def fits_within(ints: Ints, shape: int, room: int) -> bool:
    """Whether a job of this shape fits into the GPUs per node of the table at `room`."""
    return room_within(ints, shape, room) >= ints[ints[SHAPE_GPUS] + shape]


@kernel
def room_within(ints: Ints, shape: int, room: int) -> int:
    """Return how many GPUs a job of this shape could use at most of the table at `room`.

    For a gang that must stay within one node that is the most any allowed node has.
    """
    single = ints[ints[SHAPE_SINGLE] + shape] == 1
    cap = ints[ints[SHAPE_CAP] + shape]
    types = ints[ints[SHAPE_TYPES] + shape]
    node_type = ints[NODE_TYPE]
    most = 0
    total = 0
    for node in range(ints[NODES]):
        if (types >> ints[node_type + node]) & 1 == 1:
            gpus = ints[room + node]
            most = max(most, gpus)
            total += min(gpus, cap)
    return most if single else total


@kernel
def copy_table(ints: Ints, source: int, target: int) -> None:
    """Copy one table over nodes onto another."""
    for node in range(ints[NODES]):
        ints[target + node] = ints[source + node]


@hot_kernel
def plan_placement(ints: Ints, job: int) -> bool:
    """Plan the nodes of a job by the scheduler's placement; False if it does not fit now."""
    shape = ints[ints[JOB_SHAPE] + job]
    if ints[ints[SHAPE_SINGLE] + shape] == 1 and ints[PLACEMENT] != Placement.RANDOM:
        node = _indexed_node(ints, shape)
        ints[ints[PLAN_NODE]] = node
        ints[ints[PLAN_GPUS]] = ints[ints[SHAPE_GPUS] + shape]
        ints[PLAN] = 1
        return node != NOTHING
    if not fits(ints, shape):
        return False
    copy_table(ints, ints[NODE_FREE], ints[AVAILABLE])
    return plan_on_available(ints, job, ints[PLACEMENT])


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
def plan_on_available(ints: Ints, job: int, placement: int) -> bool:
    """Plan a job's nodes within AVAILABLE; False, with the plan void, if it does not fit.

    A gang that spans nodes takes the most it can from each node chosen: `pack` prefers few nodes
    and fits the rest tightly, `spread` goes by emptiness, `first` by number.
    """
    shape = ints[ints[JOB_SHAPE] + job]
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


@hot_kernel
def hold(ints: Ints, job: int) -> None:
    """Give the planned GPUs to the job: the lowest-numbered free ones of each node."""
    ints[ints[HELD] + job] = NOTHING
    for index in range(ints[PLAN]):
        node = ints[ints[PLAN_NODE] + index]
        wanted = ints[ints[PLAN_GPUS] + index]
        unlist(ints, node)
        ints[ints[NODE_FREE] + node] -= wanted
        ints[FREE_GPUS] -= wanted
        enlist(ints, node)
        word = ints[ints[NODE_WORD] + node]
        while wanted > 0:
            if ints[ints[GPU_BITS] + word] != 0:
                wanted -= _hold_in_word(ints, job, node, word, wanted)
            word += 1


@hot_kernel
def _hold_in_word(ints: Ints, job: int, node: int, word: int, wanted: int) -> int:
    """Take up to `wanted` GPUs of one word of free bits as a new holding; return how many."""
    before = ints[ints[GPU_BITS] + word]
    left = before
    taken = 0
    while left != 0 and taken < wanted:
        left &= left - 1  # clears the lowest set bit
        taken += 1
    ints[ints[GPU_BITS] + word] = left
    first = (word - ints[ints[NODE_WORD] + node]) * WORD_BITS + lowest_bit(before)
    holding = ints[ints[NODE_FIRST_GPU] + node] + first
    ints[ints[HELD_BITS] + holding] = before ^ left
    ints[ints[HELD_COUNT] + holding] = taken
    ints[ints[HELD_NEXT] + holding] = ints[ints[HELD] + job]
    ints[ints[HELD] + job] = holding
    if ints[RECORDS_GPUS] == 1:
        ints[ints[RECORD] + ints[RECORDS]] = (word << WORD_BITS) + (before ^ left)
        ints[RECORDS] += 1
    return taken


@hot_kernel
def release(ints: Ints, job: int) -> None:
    """Take the job's GPUs back."""
    holding = ints[ints[HELD] + job]
    ints[ints[HELD] + job] = NOTHING
    while holding != NOTHING:
        node = ints[ints[GPU_NODE] + holding]
        word = (holding - ints[ints[NODE_FIRST_GPU] + node]) >> 5
        freed = ints[ints[HELD_COUNT] + holding]
        unlist(ints, node)
        ints[ints[GPU_BITS] + ints[ints[NODE_WORD] + node] + word] |= ints[
            ints[HELD_BITS] + holding
        ]
        ints[ints[NODE_FREE] + node] += freed
        ints[FREE_GPUS] += freed
        enlist(ints, node)
        holding = ints[ints[HELD_NEXT] + holding]


@kernel
def add_held(ints: Ints, job: int, target: int, shape: int) -> int:
    """Add the GPUs a running job holds on each node to the table that begins at `target`.

    Return what that means for a job of `shape` (NOTHING to ignore this): for a gang within one
    node the most that any node touched now has, for one across nodes the usable GPUs gained.
    """
    most = 0
    gained = 0
    holding = ints[ints[HELD] + job]
    while holding != NOTHING:
        node = ints[ints[GPU_NODE] + holding]
        before = ints[target + node]
        after = before + ints[ints[HELD_COUNT] + holding]
        ints[target + node] = after
        if shape != NOTHING:
            types = ints[ints[SHAPE_TYPES] + shape]
            if (types >> ints[ints[NODE_TYPE] + node]) & 1 == 1:
                cap = ints[ints[SHAPE_CAP] + shape]
                most = max(most, after)
                gained += min(after, cap) - min(before, cap)
        holding = ints[ints[HELD_NEXT] + holding]
    if shape != NOTHING and ints[ints[SHAPE_SINGLE] + shape] == 1:
        return most
    return gained
