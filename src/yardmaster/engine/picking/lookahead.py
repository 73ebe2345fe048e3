"""The GPU slots of an observation: when GPUs are expected to become free.

There are `SLOTS` slots for `GPUS` GPUs; with fewer slots than GPUs each slot stands for neighbours
and holds their mean. Time left is a number from 0 (free) to 1 (see `share_left`). A blind policy
sees 1 for every GPU in use.
"""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.core.bits import WORD_BITS
from yardmaster.engine.core.heap import begin_walk, walk_on
from yardmaster.engine.picking.line import gpus_of
from yardmaster.engine.picking.places import (
    FEATURES,
    KNOWS,
    LONGEST_S,
    LOOKAHEAD,
    SLOTS,
    SLOTS_AT,
    TIME_UNIT_S,
    Features,
    Lookahead,
)
from yardmaster.engine.state import (
    EXPECTED_END,
    EXPECTED_HEAP,
    FRONTIER,
    GPUS,
    HELD,
    HELD_BITS,
    HELD_COUNT,
    HELD_NEXT,
    IS_REAL,
    JOB_SHAPE,
    NOTHING,
    NOW,
    RUNNING,
    SHAPE_GPUS,
    SHARED_GPU,
    Ints,
    Reals,
)


@hot_kernel
def share_left(rules: Ints, scales: Reals, left_s: float) -> float:
    """Return seconds left as a number from 0 to 1."""
    if rules[KNOWS] == 0:
        return 1.0
    left = max(left_s, 0.0)
    if rules[FEATURES] == Features.GPU_OPTIMIZER:
        return min(left / scales[LONGEST_S], 1.0)
    return left / (left + scales[TIME_UNIT_S])


@kernel
def show_gpus(ints: Ints, reals: Reals, rules: Ints, scales: Reals, view: Reals) -> None:
    """Write the GPU slots into an observation."""
    if rules[SLOTS] == 0:
        return
    mode, first = rules[LOOKAHEAD], rules[SLOTS_AT]
    for slot in range(rules[SLOTS]):
        view[first + slot] = 0.0
    if mode == Lookahead.PER_GPU:
        _show_each(ints, reals, rules, scales, view)
    elif mode == Lookahead.SORTED:
        _show_sorted(ints, reals, rules, scales, view)
    elif mode == Lookahead.CDF:
        _show_shares(ints, reals, rules, scales, view)


@hot_kernel
def _add(ints: Ints, rules: Ints, view: Reals, gpu: int, value: float) -> None:
    """Add one GPU's part to the mean of its slot."""
    slots, gpus = rules[SLOTS], ints[GPUS]
    slot = gpu * slots // gpus
    members = -(-(slot + 1) * gpus // slots) - -(-slot * gpus // slots)
    view[rules[SLOTS_AT] + slot] += value / members


@kernel
def _show_each(ints: Ints, reals: Reals, rules: Ints, scales: Reals, view: Reals) -> None:
    """Time left of every GPU, in the order of the GPUs."""
    for place in range(ints[RUNNING]):
        job = ints[ints[EXPECTED_HEAP] + place]
        value = share_left(rules, scales, reals[ints[EXPECTED_END] + job] - reals[NOW])
        if REAL_CLUSTERS and ints[IS_REAL] == 1 and ints[ints[SHARED_GPU] + job] != NOTHING:
            _add(ints, rules, view, ints[ints[SHARED_GPU] + job], value)
            continue
        holding = ints[ints[HELD] + job]
        while holding != NOTHING:
            bits, left = ints[ints[HELD_BITS] + holding], ints[ints[HELD_COUNT] + holding]
            # A holding is named after its lowest GPU: the lowest bit stands for that one.
            gpu, bit = holding, 0
            while (bits >> bit) & 1 == 0:
                bit += 1
            while left > 0 and bit < WORD_BITS:
                if (bits >> bit) & 1 == 1:
                    _add(ints, rules, view, gpu, value)
                    left -= 1
                bit += 1
                gpu += 1
            holding = ints[ints[HELD_NEXT] + holding]


@kernel
def _show_sorted(ints: Ints, reals: Reals, rules: Ints, scales: Reals, view: Reals) -> None:
    """Time left of every GPU, shortest first."""
    busy = 0
    for place in range(ints[RUNNING]):
        busy += gpus_of(ints, ints[ints[EXPECTED_HEAP] + place])
    gpu = max(ints[GPUS] - busy, 0)
    size = ints[RUNNING]
    waiting = begin_walk(ints, size)
    while waiting > 0:
        job = ints[ints[EXPECTED_HEAP] + ints[ints[FRONTIER]]]
        waiting = walk_on(ints, reals, waiting, ints[EXPECTED_HEAP], ints[EXPECTED_END], size)
        value = share_left(rules, scales, reals[ints[EXPECTED_END] + job] - reals[NOW])
        for _ in range(gpus_of(ints, job)):
            _add(ints, rules, view, min(gpu, ints[GPUS] - 1), value)
            gpu += 1


@kernel
def _show_shares(ints: Ints, reals: Reals, rules: Ints, scales: Reals, view: Reals) -> None:
    """Share of the GPUs whose time left is at most 1/slots, 2/slots, … 1."""
    slots, first = rules[SLOTS], rules[SLOTS_AT]
    share, now, unit = 1.0 / ints[GPUS], reals[NOW], scales[TIME_UNIT_S]
    is_squashed = rules[KNOWS] == 1 and rules[FEATURES] != Features.GPU_OPTIMIZER
    running, ends = ints[EXPECTED_HEAP], ints[EXPECTED_END]
    shapes, shape_gpus = ints[JOB_SHAPE], ints[SHAPE_GPUS]
    busy = 0
    for place in range(ints[RUNNING]):
        job = ints[running + place]
        left_s = max(reals[ends + job] - now, 0.0)
        value = left_s / (left_s + unit) if is_squashed else share_left(rules, scales, left_s)
        gpus = ints[shape_gpus + ints[shapes + job]]
        busy += gpus
        slot = min(int(value * slots), slots - 1)
        if value * slots <= slot and slot > 0:  # exactly on a step: it counts there already
            slot -= 1
        view[first + slot] += gpus * share
    total = max(ints[GPUS] - busy, 0) * share
    for slot in range(slots):
        total += view[first + slot]
        view[first + slot] = min(total, 1.0)  # parts of a whole may round up to more
