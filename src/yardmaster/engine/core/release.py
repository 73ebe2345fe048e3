"""Room that would be there if some running jobs were gone: EXTRA and its companions.

EXTRA counts GPUs by node; on real clusters EXTRA_CPU and EXTRA_MIB count cores and host memory, and
a shared GPU comes free when the last of its sharers has been released.
"""

from __future__ import annotations

from yardmaster.engine.compilation import kernel
from yardmaster.engine.core.nodes import copy_table
from yardmaster.engine.core.room import usable
from yardmaster.engine.state import (
    CAP_WATTS,
    EXTRA,
    EXTRA_CPU,
    EXTRA_MIB,
    EXTRA_WATTS,
    GPU_NODE,
    GPU_SHARERS,
    GPU_STAYING,
    HELD,
    HELD_COUNT,
    HELD_NEXT,
    IS_REAL,
    JOB_SHAPE,
    NODE_CPU,
    NODE_FREE,
    NODE_MIB,
    NOTHING,
    SHAPE_CAP,
    SHAPE_CPU,
    SHAPE_MIB,
    SHARED,
    SHARED_GPU,
    SHARED_LIST,
    WATTS_USED,
    Ints,
    Reals,
)


@kernel
def begin_room(ints: Ints, reals: Reals) -> None:
    """Set EXTRA and its companions to what is free now."""
    copy_table(ints, ints[NODE_FREE], ints[EXTRA])
    if ints[IS_REAL] == 0:
        return
    copy_table(ints, ints[NODE_CPU], ints[EXTRA_CPU])
    copy_table(ints, ints[NODE_MIB], ints[EXTRA_MIB])
    reals[EXTRA_WATTS] = float(ints[CAP_WATTS] - ints[WATTS_USED])
    for place in range(ints[SHARED]):
        gpu = ints[ints[SHARED_LIST] + place]
        ints[ints[GPU_STAYING] + gpu] = ints[ints[GPU_SHARERS] + gpu]


@kernel
def change_room(ints: Ints, job: int, sign: int) -> None:
    """Add what a running job holds to EXTRA and its companions, or take it back (sign −1)."""
    shape = ints[ints[JOB_SHAPE] + job]
    cpu, mib = sign * ints[ints[SHAPE_CPU] + shape], sign * ints[ints[SHAPE_MIB] + shape]
    gpu = ints[ints[SHARED_GPU] + job]
    if gpu != NOTHING:
        node = ints[ints[GPU_NODE] + gpu]
        before = ints[ints[GPU_STAYING] + gpu]
        ints[ints[GPU_STAYING] + gpu] = before - sign
        if min(before, before - sign) == 0:
            ints[ints[EXTRA] + node] += sign
        ints[ints[EXTRA_CPU] + node] += cpu
        ints[ints[EXTRA_MIB] + node] += mib
        return
    holding = ints[ints[HELD] + job]
    while holding != NOTHING:
        node = ints[ints[GPU_NODE] + holding]
        gpus = ints[ints[HELD_COUNT] + holding]
        ints[ints[EXTRA] + node] += sign * gpus
        ints[ints[EXTRA_CPU] + node] += gpus * cpu
        ints[ints[EXTRA_MIB] + node] += gpus * mib
        holding = ints[ints[HELD_NEXT] + holding]


@kernel
def usable_extra(ints: Ints, shape: int, node: int) -> int:
    """Return how many GPUs a job of this shape could use of EXTRA on a node."""
    return usable(ints, shape, node, ints[EXTRA], ints[EXTRA_CPU], ints[EXTRA_MIB])


@kernel
def room_beside(ints: Ints, shape: int, job: int, single: bool) -> int:
    """Return what a job of `shape` could use of EXTRA on the nodes of a running job.

    For a gang within one node the most on any of them, for one across nodes their sum.
    """
    cap = ints[ints[SHAPE_CAP] + shape]
    room = 0
    holding = first_holding(ints, job)
    while holding != NOTHING:
        here = usable_extra(ints, shape, ints[ints[GPU_NODE] + holding])
        room = max(room, here) if single else room + min(here, cap)
        holding = holding_on_next_node(ints, job, holding)
    return room


@kernel
def first_holding(ints: Ints, job: int) -> int:
    """Return a holding of a running job: a GPU of the first of its nodes."""
    gpu = ints[ints[SHARED_GPU] + job]
    return gpu if gpu != NOTHING else ints[ints[HELD] + job]


@kernel
def holding_on_next_node(ints: Ints, job: int, holding: int) -> int:
    """Return a holding on the job's next node, or NOTHING. Holdings of one node are neighbours."""
    if ints[ints[SHARED_GPU] + job] != NOTHING:
        return NOTHING
    node = ints[ints[GPU_NODE] + holding]
    while holding != NOTHING and ints[ints[GPU_NODE] + holding] == node:
        holding = ints[ints[HELD_NEXT] + holding]
    return holding
