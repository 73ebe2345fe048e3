"""Which GPUs are free, on which nodes, and who holds the others.

Nodes are indexed by (GPU type, number of free GPUs), so that the tightest or the emptiest node for
a single-node job is found without looking at the others. A plan is a list of (node, GPUs); `hold`
carries it out.
"""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.core.bits import WORD_BITS, lowest_bit
from yardmaster.engine.state import (
    FREE_GPUS,
    GPU_BITS,
    GPU_NODE,
    HELD,
    HELD_BITS,
    HELD_COUNT,
    HELD_NEXT,
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
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    RECORD,
    RECORDS,
    RECORDS_GPUS,
    SHAPE_CAP,
    SHAPE_SINGLE,
    SHAPE_TYPES,
    Ints,
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


@kernel
def copy_table(ints: Ints, source: int, target: int) -> None:
    """Copy one table over nodes onto another."""
    for node in range(ints[NODES]):
        ints[target + node] = ints[source + node]


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


@kernel
def lowest_free_gpu(ints: Ints, node: int) -> int:
    """Return the lowest-numbered free GPU of a node that has one."""
    first = ints[ints[NODE_WORD] + node]
    word = first
    while ints[ints[GPU_BITS] + word] == 0:
        word += 1
    bit = lowest_bit(ints[ints[GPU_BITS] + word])
    return ints[ints[NODE_FIRST_GPU] + node] + (word - first) * WORD_BITS + bit
