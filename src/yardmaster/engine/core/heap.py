"""A binary heap of jobs from which any member can be removed.

A heap is three tables: `heap` holds jobs, `key` orders them, `at` says where each job stands. The
arguments are where those tables begin in the state. Equal keys go by row.

A heap can also be *walked* in order without taking it apart: the frontier, itself a small heap,
holds the places whose parents have been visited; its first entry is the next place in order.
"""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.state import (
    FRONTIER,
    NOTHING,
    Ints,
    Reals,
)


@hot_kernel
def push(ints: Ints, reals: Reals, heap: int, at: int, key: int, size: int, job: int) -> None:
    """Add a job to a heap of `size` members."""
    _rise(ints, reals, heap, at, key, size, job)


@hot_kernel
def remove(ints: Ints, reals: Reals, heap: int, at: int, key: int, size: int, job: int) -> None:
    """Take a job out of a heap of `size` members."""
    place = ints[at + job]
    ints[at + job] = NOTHING
    last = ints[heap + size - 1]
    if last != job:
        hole = _sink(ints, reals, heap, at, key, size - 1, place)
        _rise(ints, reals, heap, at, key, hole, last)


@hot_kernel
def _rise(ints: Ints, reals: Reals, heap: int, at: int, key: int, place: int, job: int) -> None:
    """Put `job` at `place` or as far above it as its key demands."""
    value = reals[key + job]
    while place > 0:
        parent = (place - 1) >> 1
        above = ints[heap + parent]
        other = reals[key + above]
        if other < value or (other == value and above < job):
            break
        ints[heap + place] = above
        ints[at + above] = place
        place = parent
    ints[heap + place] = job
    ints[at + job] = place


@hot_kernel
def _sink(ints: Ints, reals: Reals, heap: int, at: int, key: int, size: int, place: int) -> int:
    """Let a hole sink to the bottom, the lesser child rising at each step; return where it ends.

    Going all the way down and filling the hole from below compares less than stopping on the way,
    and which child is lesser is computed rather than branched on: no processor can guess it.
    """
    child = 2 * place + 1
    while child < size:
        left = ints[heap + child]
        right = ints[heap + min(child + 1, size - 1)]
        left_key, right_key = reals[key + left], reals[key + right]
        goes_right = (right_key < left_key) | ((right_key == left_key) & (right < left))
        lesser = right if goes_right else left
        ints[heap + place] = lesser
        ints[at + lesser] = place
        place = child + 1 if goes_right else child
        child = 2 * place + 1
    return place


@kernel
def begin_walk(ints: Ints, size: int) -> int:
    """Start a walk over a heap of `size` members; return how many places wait in the frontier."""
    if size == 0:
        return 0
    ints[ints[FRONTIER]] = 0
    return 1


@kernel
def walk_on(ints: Ints, reals: Reals, waiting: int, heap: int, key: int, size: int) -> int:
    """Leave the place at the frontier's front, enter its children; return how many wait now."""
    frontier = ints[FRONTIER]
    place = ints[frontier]
    waiting -= 1
    _sink_place(ints, reals, heap, key, waiting, ints[frontier + waiting])
    for child in range(2 * place + 1, min(2 * place + 3, size)):
        _rise_place(ints, reals, heap, key, waiting, child)
        waiting += 1
    return waiting


@kernel
def _rise_place(ints: Ints, reals: Reals, heap: int, key: int, slot: int, place: int) -> None:
    frontier = ints[FRONTIER]
    value = reals[key + ints[heap + place]]
    while slot > 0:
        above = ints[frontier + ((slot - 1) >> 1)]
        if reals[key + ints[heap + above]] <= value:
            break
        ints[frontier + slot] = above
        slot = (slot - 1) >> 1
    ints[frontier + slot] = place


@kernel
def _sink_place(ints: Ints, reals: Reals, heap: int, key: int, size: int, place: int) -> None:
    frontier = ints[FRONTIER]
    value = reals[key + ints[heap + place]]
    slot = 0
    child = 1
    while child < size:
        below = ints[frontier + child]
        if child + 1 < size:
            right = ints[frontier + child + 1]
            if reals[key + ints[heap + right]] < reals[key + ints[heap + below]]:
                child += 1
                below = right
        if value <= reals[key + ints[heap + below]]:
            break
        ints[frontier + slot] = below
        slot = child
        child = 2 * slot + 1
    ints[frontier + slot] = place
