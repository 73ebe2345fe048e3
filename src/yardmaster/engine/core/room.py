"""Whether there is room: GPUs, and on real clusters cores, memory, watts and parts of GPUs."""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel
from yardmaster.engine.core.bits import next_bit
from yardmaster.engine.state import (
    AVAILABLE,
    CAP_WATTS,
    FREE_GPUS,
    GPU_MIB,
    GPU_MILLI,
    GPU_NODE,
    HAS_SHARING,
    IS_REAL,
    LEVEL_COUNT,
    LEVEL_MASK,
    LEVEL_NODES,
    LEVEL_WORDS,
    LEVELS,
    NODE_CPU,
    NODE_FREE,
    NODE_MIB,
    NODE_SHARING,
    NODE_TYPE,
    NODE_WORDS,
    NODES,
    NOTHING,
    ROOM_FITS,
    ROOM_VERSION,
    SHAPE_CAP,
    SHAPE_CPU,
    SHAPE_GPU_MIB,
    SHAPE_GPUS,
    SHAPE_MIB,
    SHAPE_MILLI,
    SHAPE_ROOM,
    SHAPE_SINGLE,
    SHAPE_TYPES,
    SHAPE_WATTS,
    SHARED,
    SHARED_LIST,
    TYPES,
    VERSION,
    WATTS_USED,
    Ints,
)
from yardmaster.model.site import MIG_SLICE_MILLI, MIG_SLICES, Sharing

WHOLE_MILLI = 1000
ALL_SLICES_MILLI = MIG_SLICES * MIG_SLICE_MILLI


@hot_kernel
def fits(ints: Ints, shape: int) -> bool:
    """Whether a job of this shape could start now."""
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return _fits_really(ints, shape)
    return fits_by_count(ints, shape)


@kernel
def _fits_really(ints: Ints, shape: int) -> bool:
    """Look it up if the same was asked since the last job started or ended."""
    needs = ints[ints[SHAPE_ROOM] + shape]
    if ints[ints[ROOM_VERSION] + needs] != ints[VERSION]:
        ints[ints[ROOM_VERSION] + needs] = ints[VERSION]
        ints[ints[ROOM_FITS] + needs] = 1 if _find_room(ints, shape) else 0
    return ints[ints[ROOM_FITS] + needs] == 1


@kernel
def _find_room(ints: Ints, shape: int) -> bool:
    if not watts_fit(ints, shape):
        return False
    if is_fraction(ints, shape):
        return fits_in_part(ints, shape)
    if needs_only_gpus(ints, shape):
        return fits_by_count(ints, shape)
    return fits_on_nodes(ints, shape, ints[ints[SHAPE_GPUS] + shape])


@hot_kernel
def fits_by_count(ints: Ints, shape: int) -> bool:
    """Whether enough GPUs are free for a job that needs nothing else."""
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
def fits_on_nodes(ints: Ints, shape: int, gpus: int) -> bool:
    """Whether `gpus` GPUs for this shape are usable now, cores and memory considered."""
    if ints[FREE_GPUS] < gpus:
        return False
    if ints[ints[SHAPE_SINGLE] + shape] == 1:
        for kind in range(ints[TYPES]):
            if (ints[ints[SHAPE_TYPES] + shape] >> kind) & 1 == 1:
                node = next_roomy(ints, kind, gpus, NOTHING)
                while node != NOTHING:
                    if usable_now(ints, shape, node) >= gpus:
                        return True
                    node = next_roomy(ints, kind, gpus, node)
        return False
    cap = ints[ints[SHAPE_CAP] + shape]
    total = 0
    for node in range(ints[NODES]):
        total += min(usable_now(ints, shape, node), cap)
        if total >= gpus:
            return True
    return False


@kernel
def next_roomy(ints: Ints, kind: int, gpus: int, node: int) -> int:
    """Return the node of a GPU type with at least `gpus` free that comes after `node`, or NOTHING.

    Nodes come by free GPUs, fewest first, then by number; NOTHING asks for the first.
    """
    free, after = gpus, 0
    if node != NOTHING:
        free, after = ints[ints[NODE_FREE] + node], node + 1
    masks, words = ints[LEVEL_WORDS], ints[NODE_WORDS]
    mask = ints[LEVEL_MASK] + kind * masks
    free = next_bit(ints, mask, masks, free)
    while free >= 0:
        level = ints[LEVEL_NODES] + (kind * ints[LEVELS] + free) * words
        found = next_bit(ints, level, words, after)
        if found >= 0:
            return found
        after = 0
        free = next_bit(ints, mask, masks, free + 1)
    return NOTHING


@kernel
def usable(ints: Ints, shape: int, node: int, gpus: int, cpu: int, mib: int) -> int:
    """Return how many GPUs a job of this shape could use on a node.

    `gpus`, `cpu` and `mib` are where tables of free GPUs, cores and host memory by node begin.
    """
    if (ints[ints[SHAPE_TYPES] + shape] >> ints[ints[NODE_TYPE] + node]) & 1 == 0:
        return 0
    room = ints[gpus + node]
    # Multiplying first: a division takes longer than all the rest, and is rarely needed.
    need = ints[ints[SHAPE_CPU] + shape]
    if room * need > ints[cpu + node]:
        room = ints[cpu + node] // need
    need = ints[ints[SHAPE_MIB] + shape]
    if room * need > ints[mib + node]:
        room = ints[mib + node] // need
    return room


@kernel
def usable_now(ints: Ints, shape: int, node: int) -> int:
    """Return how many GPUs a job of this shape could use on a node now."""
    return usable(ints, shape, node, ints[NODE_FREE], ints[NODE_CPU], ints[NODE_MIB])


@kernel
def make_usable_available(ints: Ints, shape: int) -> None:
    """Set AVAILABLE to what a job of this shape could use of every node now."""
    for node in range(ints[NODES]):
        ints[ints[AVAILABLE] + node] = usable_now(ints, shape, node)


@kernel
def needs_only_gpus(ints: Ints, shape: int) -> bool:
    """Whether cores and host memory are of no concern to this shape."""
    return ints[ints[SHAPE_CPU] + shape] == 0 and ints[ints[SHAPE_MIB] + shape] == 0


@kernel
def watts_fit(ints: Ints, shape: int) -> bool:
    """Whether the power cap leaves enough for a job of this shape."""
    return ints[WATTS_USED] + ints[ints[SHAPE_WATTS] + shape] <= ints[CAP_WATTS]


@kernel
def is_fraction(ints: Ints, shape: int) -> bool:
    """Whether a job of this shape may share its GPU somewhere in this cluster."""
    return ints[HAS_SHARING] == 1 and ints[ints[SHAPE_MILLI] + shape] < WHOLE_MILLI


@kernel
def share_taken(ints: Ints, shape: int, node: int) -> int:
    """Return the thousandths of a GPU that a fractional job takes on this node."""
    sharing = ints[ints[NODE_SHARING] + node]
    milli = ints[ints[SHAPE_MILLI] + shape]
    if sharing == Sharing.MPS:
        return milli
    taken = WHOLE_MILLI
    if sharing == Sharing.MIG:
        taken = MIG_SLICE_MILLI * ((milli + MIG_SLICE_MILLI - 1) // MIG_SLICE_MILLI)
    return taken if taken <= ALL_SLICES_MILLI else WHOLE_MILLI


@kernel
def can_join(ints: Ints, shape: int, gpu: int) -> bool:
    """Whether a fractional job of this shape could join those on a shared GPU."""
    node = ints[ints[GPU_NODE] + gpu]
    return (
        (ints[ints[SHAPE_TYPES] + shape] >> ints[ints[NODE_TYPE] + node]) & 1 == 1
        and ints[ints[GPU_MILLI] + gpu] >= share_taken(ints, shape, node)
        and ints[ints[GPU_MIB] + gpu] >= ints[ints[SHAPE_GPU_MIB] + shape]
        and ints[ints[NODE_CPU] + node] >= ints[ints[SHAPE_CPU] + shape]
        and ints[ints[NODE_MIB] + node] >= ints[ints[SHAPE_MIB] + shape]
    )


@kernel
def fits_in_part(ints: Ints, shape: int) -> bool:
    """Whether a fractional job could join a shared GPU or take a fresh one."""
    for place in range(ints[SHARED]):
        if can_join(ints, shape, ints[ints[SHARED_LIST] + place]):
            return True
    return fits_on_nodes(ints, shape, 1)


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
