"""Placements that score nodes: speed, watts, fragments, tiers.

All plan within AVAILABLE, one node at a time: the node of least score, then by `pack`'s preference,
then the lowest number. The tiers of RLTune additionally bound the number of nodes: as few as the
empty cluster would need, else one more if that leaves no more nodes partly used, else `pack`.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel
from yardmaster.engine.core.room import WHOLE_MILLI, share_taken
from yardmaster.engine.state import (
    AVAILABLE,
    BUCKET,
    GPU_MILLI,
    GPU_SHARERS,
    HAS_SHARING,
    LEVELS,
    NODE_CPU,
    NODE_FIRST_GPU,
    NODE_FREE,
    NODE_GPUS,
    NODE_JOBS,
    NODE_MIB,
    NODE_SHARING,
    NODE_TYPE,
    NODES,
    NOTHING,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    POPULARITY,
    SHAPE_CAP,
    SHAPE_CPU,
    SHAPE_GPUS,
    SHAPE_MIB,
    SHAPE_MILLI,
    SHAPE_MIN_NODES,
    SHAPE_SINGLE,
    SHAPE_TYPES,
    SHAPES,
    SPEED,
    TYPE_WATTS,
    TYPES,
    WAKE_W,
    Ints,
    Placement,
    Reals,
)
from yardmaster.model.site import Sharing

BEHIND_TIGHT = 1_000_000
"""Pack ranks of nodes that cannot complete a gang begin here."""


@kernel
def plan_by_score(ints: Ints, reals: Reals, shape: int, placement: int) -> bool:
    """Plan a gang within AVAILABLE; False, with the plan void, if it does not fit."""
    if (
        placement == Placement.TIER
        or placement == Placement.DEFRAG
        or placement == Placement.LOADBALANCE
    ):
        budget = ints[ints[SHAPE_MIN_NODES] + shape]
        if _plan_within(ints, shape, placement, budget):
            return True
        if _plan_within(ints, shape, placement, budget + 1):
            if _fragments_of_plan(ints) <= 0:
                return True
            _undo_plan(ints)
    if ints[ints[SHAPE_SINGLE] + shape] == 0 and (
        placement == Placement.FASTEST or placement == Placement.POWER
    ):
        kind = _best_type(ints, reals, shape, placement)
        if kind != NOTHING:
            return _plan_on_type(ints, reals, shape, placement, kind)
    return _plan_on_type(ints, reals, shape, placement, NOTHING)


@kernel
def _best_type(ints: Ints, reals: Reals, shape: int, placement: int) -> int:
    """Return the best GPU type that holds the whole gang, or NOTHING.

    A gang works at the speed of its slowest member, so mixing types wastes the faster ones.
    """
    cap = ints[ints[SHAPE_CAP] + shape]
    best = NOTHING
    best_score = math.inf
    for kind in range(ints[TYPES]):
        speed = reals[ints[SPEED] + shape * ints[TYPES] + kind]
        score = -speed
        if placement == Placement.POWER:
            score = reals[ints[TYPE_WATTS] + kind] / speed
        if (ints[ints[SHAPE_TYPES] + shape] >> kind) & 1 == 0:
            continue
        if best != NOTHING and score >= best_score:
            continue
        room = 0
        for node in range(ints[NODES]):
            if ints[ints[NODE_TYPE] + node] == kind:
                room += min(ints[ints[AVAILABLE] + node], cap)
        if room >= ints[ints[SHAPE_GPUS] + shape]:
            best = kind
            best_score = score
    return best


@kernel
def _plan_on_type(ints: Ints, reals: Reals, shape: int, placement: int, kind: int) -> bool:
    """Plan a gang node by node, on one GPU type or (NOTHING) on any."""
    ints[PLAN] = 0
    missing = ints[ints[SHAPE_GPUS] + shape]
    while missing > 0:
        node = _best_node(ints, reals, shape, placement, missing, kind)
        if node == NOTHING:
            _undo_plan(ints)
            return False
        missing -= _take(ints, shape, node, missing)
    return True


@kernel
def _take(ints: Ints, shape: int, node: int, missing: int) -> int:
    """Add a node to the plan, marked as taken by its negative; return how many GPUs of it."""
    size = ints[PLAN]
    taken = min(ints[ints[AVAILABLE] + node], ints[ints[SHAPE_CAP] + shape], missing)
    ints[ints[PLAN_NODE] + size] = node
    ints[ints[PLAN_GPUS] + size] = taken
    ints[ints[AVAILABLE] + node] = -ints[ints[AVAILABLE] + node]
    ints[PLAN] = size + 1
    return taken


@kernel
def _undo_plan(ints: Ints) -> None:
    for index in range(ints[PLAN]):
        node = ints[ints[PLAN_NODE] + index]
        ints[ints[AVAILABLE] + node] = -ints[ints[AVAILABLE] + node]
    ints[PLAN] = 0


@kernel
def _is_allowed(ints: Ints, shape: int, node: int) -> bool:
    return (ints[ints[SHAPE_TYPES] + shape] >> ints[ints[NODE_TYPE] + node]) & 1 == 1


@kernel
def _best_node(
    ints: Ints, reals: Reals, shape: int, placement: int, missing: int, kind: int
) -> int:
    """Return the available node (of one type) of least (score, pack rank, number), or NOTHING."""
    cap = ints[ints[SHAPE_CAP] + shape]
    least = missing if ints[ints[SHAPE_SINGLE] + shape] == 1 else 1
    best = NOTHING
    best_score = math.inf
    best_rank = 0
    for node in range(ints[NODES]):
        room = ints[ints[AVAILABLE] + node]
        if room < least or not _is_allowed(ints, shape, node):
            continue
        if kind != NOTHING and ints[ints[NODE_TYPE] + node] != kind:
            continue
        score = node_score(ints, reals, shape, node, placement, min(room, cap, missing))
        rank = room if min(room, cap) >= missing else BEHIND_TIGHT - room
        if best == NOTHING or score < best_score or (score == best_score and rank < best_rank):
            best = node
            best_score = score
            best_rank = rank
    return best


@kernel
def node_score(
    ints: Ints, reals: Reals, shape: int, node: int, placement: int, taken: int
) -> float:
    """Return what speaks against taking so many GPUs of this node; lowest is best."""
    kind = ints[ints[NODE_TYPE] + node]
    speed = reals[ints[SPEED] + shape * ints[TYPES] + kind]
    if placement == Placement.FASTEST:
        return -speed
    if placement == Placement.POWER:
        wake = reals[ints[WAKE_W] + node] if ints[ints[NODE_JOBS] + node] == 0 else 0.0
        return (taken * reals[ints[TYPE_WATTS] + kind] + wake) / (taken * speed)
    if placement == Placement.FGD:
        return float(fragments_gained(ints, shape, node, taken, NOTHING))
    return 0.0


@kernel
def fragments_gained(ints: Ints, shape: int, node: int, taken: int, gpu: int) -> int:
    """Return how many thousandths become unusable if a job takes GPUs of this node.

    A whole-GPU job takes `taken` free ones (`gpu` is NOTHING); a fractional job takes its part of
    `gpu`, shared or free.
    """
    free, cpu = ints[ints[NODE_FREE] + node], ints[ints[NODE_CPU] + node]
    mib = ints[ints[NODE_MIB] + node]
    taken = min(taken, free if gpu == NOTHING else 1)  # promises may count on GPUs not free yet
    before = _fragments(ints, node, free, cpu, mib, NOTHING, -1)
    cpu -= taken * ints[ints[SHAPE_CPU] + shape]
    mib -= taken * ints[ints[SHAPE_MIB] + shape]
    if gpu == NOTHING or ints[ints[NODE_SHARING] + node] == Sharing.NONE:
        return _fragments(ints, node, free - taken, cpu, mib, NOTHING, -1) - before
    part = share_taken(ints, shape, node)
    if ints[ints[GPU_SHARERS] + gpu] > 0:
        left = ints[ints[GPU_MILLI] + gpu] - part
        return _fragments(ints, node, free, cpu, mib, gpu, left) - before
    return _fragments(ints, node, free - 1, cpu, mib, NOTHING, WHOLE_MILLI - part) - before


@kernel
def _fragments(
    ints: Ints, node: int, free: int, cpu: int, mib: int, changed: int, left: int
) -> int:
    """Return the thousandths of a node that the jobs of the workload could not use, summed.

    The shared GPU `changed` counts as having `left` thousandths; if it is NOTHING and `left` is
    not negative, there is one more shared GPU with so many left.
    """
    parts = _left_on_shared(ints, node, WHOLE_MILLI + 1, changed, left)
    total = WHOLE_MILLI * free + parts
    lost = 0
    for shape in range(ints[SHAPES]):
        unusable = total
        cpu_need, mib_need = ints[ints[SHAPE_CPU] + shape], ints[ints[SHAPE_MIB] + shape]
        is_whole = (
            ints[ints[SHAPE_MILLI] + shape] == WHOLE_MILLI
            or ints[ints[NODE_SHARING] + node] == Sharing.NONE
        )
        if not _is_allowed(ints, shape, node):
            pass
        elif is_whole:
            room = free
            if cpu_need > 0:
                room = min(room, cpu // cpu_need)
            if mib_need > 0:
                room = min(room, mib // mib_need)
            is_single = ints[ints[SHAPE_SINGLE] + shape] == 1
            if room >= (ints[ints[SHAPE_GPUS] + shape] if is_single else 1):
                unusable = parts
        else:
            part = share_taken(ints, shape, node)
            fits = free > 0 or _most_on_shared(ints, node, changed, left) >= part
            if fits and cpu >= cpu_need and mib >= mib_need:
                unusable = _left_on_shared(ints, node, part, changed, left)
        lost += ints[ints[POPULARITY] + shape] * unusable
    return lost


@kernel
def _left_on_shared(ints: Ints, node: int, below: int, changed: int, left: int) -> int:
    """Sum what is left on the node's shared GPUs that have less than `below` left."""
    total = left if changed == NOTHING and 0 <= left < below else 0
    if ints[HAS_SHARING] == 0:
        return total
    first = ints[ints[NODE_FIRST_GPU] + node]
    for gpu in range(first, first + ints[ints[NODE_GPUS] + node]):
        if ints[ints[GPU_SHARERS] + gpu] > 0:
            part = left if gpu == changed else ints[ints[GPU_MILLI] + gpu]
            if part < below:
                total += part
    return total


@kernel
def _most_on_shared(ints: Ints, node: int, changed: int, left: int) -> int:
    most = left if changed == NOTHING else -1
    first = ints[ints[NODE_FIRST_GPU] + node]
    for gpu in range(first, first + ints[ints[NODE_GPUS] + node]):
        if ints[ints[GPU_SHARERS] + gpu] > 0:
            most = max(most, left if gpu == changed else ints[ints[GPU_MILLI] + gpu])
    return most


@kernel
def _plan_within(ints: Ints, shape: int, placement: int, budget: int) -> bool:
    """Plan a gang on at most `budget` nodes; False, with the plan void, if that cannot be."""
    ints[PLAN] = 0
    mean = _mean_use(ints)
    missing = ints[ints[SHAPE_GPUS] + shape]
    while missing > 0:
        _count_rooms(ints, shape)
        node = _best_in_tier(ints, shape, placement, missing, budget - ints[PLAN], mean)
        if node == NOTHING:
            _undo_plan(ints)
            return False
        missing -= _take(ints, shape, node, missing)
    return True


@kernel
def _count_rooms(ints: Ints, shape: int) -> None:
    """Count the nodes not taken yet by what the gang could use of each."""
    for level in range(ints[LEVELS]):
        ints[ints[BUCKET] + level] = 0
    cap = ints[ints[SHAPE_CAP] + shape]
    for node in range(ints[NODES]):
        room = min(ints[ints[AVAILABLE] + node], cap)
        if room > 0 and _is_allowed(ints, shape, node):
            ints[ints[BUCKET] + room] += 1


@kernel
def _largest_rooms(ints: Ints, count: int, without: int) -> int:
    """Sum the `count` largest rooms counted, one of size `without` left out."""
    total = 0
    level = ints[LEVELS] - 1
    while level > 0 and count > 0:
        nodes = ints[ints[BUCKET] + level] - (1 if level == without else 0)
        used = min(nodes, count)
        total += used * level
        count -= used
        level -= 1
    return total


@kernel
def _best_in_tier(
    ints: Ints, shape: int, placement: int, missing: int, budget: int, mean: float
) -> int:
    """Return the best node from which the gang can still be completed within the budget."""
    cap = ints[ints[SHAPE_CAP] + shape]
    single = ints[ints[SHAPE_SINGLE] + shape] == 1
    best = NOTHING
    best_first, best_second, best_third = 0.0, 0.0, 0.0
    for node in range(ints[NODES]):
        room = min(ints[ints[AVAILABLE] + node], cap)
        if room < (missing if single else 1) or not _is_allowed(ints, shape, node):
            continue
        taken = min(room, missing)
        if taken + _largest_rooms(ints, budget - 1, room) < missing:
            continue
        if placement == Placement.TIER:
            return node
        frag, stranded = float(_frag(ints, node, taken)), float(_stranded(ints, node, taken))
        balance = _balance(ints, node, taken, mean)
        first, second, third = frag, stranded, balance
        if placement == Placement.LOADBALANCE:
            first, second, third = balance, frag, stranded
        if (
            best == NOTHING
            or first < best_first
            or (first == best_first and second < best_second)
            or (first == best_first and second == best_second and third < best_third)
        ):
            best = node
            best_first, best_second, best_third = first, second, third
    return best


@kernel
def _is_partial(ints: Ints, node: int, free: int) -> bool:
    return 0 < free < ints[ints[NODE_GPUS] + node]


@kernel
def _frag(ints: Ints, node: int, taken: int) -> int:
    """Return the change in the number of partly used nodes."""
    free = ints[ints[NODE_FREE] + node]
    after = 1 if _is_partial(ints, node, free - taken) else 0
    return after - (1 if _is_partial(ints, node, free) else 0)


@kernel
def _stranded(ints: Ints, node: int, taken: int) -> int:
    """Return the change in the number of free GPUs on partly used nodes."""
    free = ints[ints[NODE_FREE] + node]
    after = free - taken if _is_partial(ints, node, free - taken) else 0
    return after - (free if _is_partial(ints, node, free) else 0)


@kernel
def _mean_use(ints: Ints) -> float:
    total = 0.0
    for node in range(ints[NODES]):
        total += 1.0 - ints[ints[NODE_FREE] + node] / ints[ints[NODE_GPUS] + node]
    return total / ints[NODES]


@kernel
def _balance(ints: Ints, node: int, taken: int, mean: float) -> float:
    """Return the change in the variance of the nodes' use, times the number of nodes."""
    gpus = ints[ints[NODE_GPUS] + node]
    use = 1.0 - ints[ints[NODE_FREE] + node] / gpus
    more = taken / gpus
    return more * ((2.0 * use + more) - 2.0 * mean) - (more * more) / ints[NODES]


@kernel
def _fragments_of_plan(ints: Ints) -> int:
    total = 0
    for index in range(ints[PLAN]):
        total += _frag(ints, ints[ints[PLAN_NODE] + index], ints[ints[PLAN_GPUS] + index])
    return total
