"""Nodes that go away and come back."""

from __future__ import annotations

from yardmaster.engine.compilation import kernel, spliced_kernel
from yardmaster.engine.core.nodes import enlist, unlist
from yardmaster.engine.core.running import requeue, stop
from yardmaster.engine.state import (
    FAILURES,
    FREE_GPUS,
    GPU_NODE,
    HEAP,
    HELD,
    HELD_NEXT,
    NODE_DOWN,
    NODE_FREE,
    NODE_GPUS,
    NOTHING,
    NOW,
    OUTAGE,
    OUTAGE_IS_FAILURE,
    OUTAGE_NODE,
    OUTAGE_TIME,
    OUTAGES,
    RETRIES,
    RUNNING,
    SHARED_GPU,
    VERSION,
    VICTIM,
    Ints,
    Reals,
)
from yardmaster.model.schedule import Cause


@spliced_kernel
def handle_outages(ints: Ints, reals: Reals) -> None:
    """Carry out the repairs and failures of this instant."""
    while ints[OUTAGE] < ints[OUTAGES]:
        entry = ints[OUTAGE]
        if reals[ints[OUTAGE_TIME] + entry] > reals[NOW]:
            return
        ints[OUTAGE] = entry + 1
        node = ints[ints[OUTAGE_NODE] + entry]
        if ints[ints[OUTAGE_IS_FAILURE] + entry] == 1:
            _fail(ints, reals, node)
        else:
            _repair(ints, node)


@spliced_kernel
def _fail(ints: Ints, reals: Reals, node: int) -> None:
    """Kill what runs on the node, in order of row, and take the node away."""
    count = _jobs_on(ints, node)
    for place in range(count):
        job = ints[ints[VICTIM] + place]
        ints[ints[FAILURES] + job] += 1
        if ints[ints[FAILURES] + job] > ints[RETRIES]:
            stop(ints, reals, job, Cause.NODE_FAILED.value)
        else:
            requeue(ints, reals, job, Cause.NODE_FAILED.value)
    unlist(ints, node)
    ints[FREE_GPUS] -= ints[ints[NODE_FREE] + node]
    ints[ints[NODE_FREE] + node] = 0
    ints[ints[NODE_DOWN] + node] = 1
    enlist(ints, node)  # under "nothing free", where nobody looks for room
    ints[VERSION] += 1


@kernel
def _repair(ints: Ints, node: int) -> None:
    """Bring a node back, wholly free."""
    unlist(ints, node)
    ints[ints[NODE_FREE] + node] = ints[ints[NODE_GPUS] + node]
    ints[FREE_GPUS] += ints[ints[NODE_GPUS] + node]
    ints[ints[NODE_DOWN] + node] = 0
    enlist(ints, node)
    ints[VERSION] += 1


@kernel
def is_on(ints: Ints, job: int, node: int) -> bool:
    """Whether a running job holds GPUs of this node."""
    gpu = ints[ints[SHARED_GPU] + job]
    if gpu != NOTHING:
        return ints[ints[GPU_NODE] + gpu] == node
    holding = ints[ints[HELD] + job]
    while holding != NOTHING:
        if ints[ints[GPU_NODE] + holding] == node:
            return True
        holding = ints[ints[HELD_NEXT] + holding]
    return False


@kernel
def _jobs_on(ints: Ints, node: int) -> int:
    """List the jobs on a node in VICTIM, in order of row; return how many."""
    count = 0
    for place in range(ints[RUNNING]):
        job = ints[ints[HEAP] + place]
        if is_on(ints, job, node):
            spot = count
            while spot > 0 and ints[ints[VICTIM] + spot - 1] > job:
                ints[ints[VICTIM] + spot] = ints[ints[VICTIM] + spot - 1]
                spot -= 1
            ints[ints[VICTIM] + spot] = job
            count += 1
    return count
