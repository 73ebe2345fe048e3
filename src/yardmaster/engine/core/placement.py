"""Where a job goes: whole GPUs, or part of one."""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel, spliced_kernel
from yardmaster.engine.core.gangs import plan_by_count, plan_gang
from yardmaster.engine.core.room import is_fraction, watts_fit
from yardmaster.engine.core.sharing import plan_part
from yardmaster.engine.state import (
    IS_REAL,
    JOB_SHAPE,
    NOTHING,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    PLAN_SHARED,
    Ints,
    Reals,
)


@hot_kernel
def plan_placement(ints: Ints, reals: Reals, job: int) -> bool:
    """Plan the nodes of a job by the scheduler's placement; False if it does not fit now."""
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        return _plan_really(ints, reals, job)
    return plan_by_count(ints, reals, job)


@spliced_kernel
def _plan_really(ints: Ints, reals: Reals, job: int) -> bool:
    shape = ints[ints[JOB_SHAPE] + job]
    ints[PLAN_SHARED] = NOTHING
    if not watts_fit(ints, shape):
        return False
    if is_fraction(ints, shape):
        return plan_part(ints, reals, job)
    return plan_gang(ints, reals, job)


@kernel
def plan_on_node(ints: Ints, node: int, gpus: int) -> None:
    """Plan whole GPUs of a node that has them."""
    ints[PLAN] = 1
    ints[PLAN_SHARED] = NOTHING
    ints[ints[PLAN_NODE]] = node
    ints[ints[PLAN_GPUS]] = gpus
