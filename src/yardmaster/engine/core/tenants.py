"""Tenants: who is within what it is guaranteed, who borrows, and who has had how much."""

from __future__ import annotations

from yardmaster.engine.compilation import kernel
from yardmaster.engine.state import (
    DISCIPLINE,
    GPUS,
    GUARANTEED,
    LAST_INSTANT,
    LIMIT,
    NOW,
    ORDER,
    SHAPE_GPUS,
    SHAPE_LEAST,
    SHAPE_TENANT,
    TENANT_CPU,
    TENANT_MIB,
    TENANT_USED,
    TENANTS,
    TOTAL_CPU,
    TOTAL_MIB,
    USAGE,
    Discipline,
    Ints,
    OrderKind,
    Reals,
)

WITHIN_GUARANTEE = 0
BORROWING = 1
HELD_BACK = 2
"""The tenant is at its limit: the job is passed over, whatever the discipline."""


@kernel
def class_of(ints: Ints, shape: int) -> int:
    """Return in which class a job of this shape would start now; lower classes go first."""
    if ints[TENANTS] == 0:
        return WITHIN_GUARANTEE
    tenant = ints[ints[SHAPE_TENANT] + shape]
    gpus = ints[ints[SHAPE_GPUS] + shape]
    if ints[DISCIPLINE] == Discipline.ELASTIC:
        gpus = ints[ints[SHAPE_LEAST] + shape]
    wanted = ints[ints[TENANT_USED] + tenant] + gpus
    if wanted <= ints[ints[GUARANTEED] + tenant]:
        return WITHIN_GUARANTEE
    return BORROWING if wanted <= ints[ints[LIMIT] + tenant] else HELD_BACK


@kernel
def spare_gpus(ints: Ints, shape: int) -> int:
    """Return how many GPUs more the tenant of this shape may hold."""
    if ints[TENANTS] == 0:
        return ints[GPUS]
    tenant = ints[ints[SHAPE_TENANT] + shape]
    return ints[ints[LIMIT] + tenant] - ints[ints[TENANT_USED] + tenant]


@kernel
def orders_by_tenant(ints: Ints) -> bool:
    """Whether the order's key is a number of the tenant's; taking turns, it is not."""
    is_tenants = ints[ORDER] == OrderKind.SHARE or ints[ORDER] == OrderKind.USAGE
    return is_tenants and ints[DISCIPLINE] != Discipline.TIMESLICE


@kernel
def tenant_key(ints: Ints, reals: Reals, shape: int) -> float:
    """Return the tenant's dominant share now, or what it has used so far by its guarantee."""
    tenant = ints[ints[SHAPE_TENANT] + shape]
    if ints[ORDER] == OrderKind.USAGE:
        return reals[ints[USAGE] + tenant] / max(ints[ints[GUARANTEED] + tenant], 1)
    share = ints[ints[TENANT_USED] + tenant] / ints[GPUS]
    if reals[TOTAL_CPU] > 0.0:
        share = max(share, ints[ints[TENANT_CPU] + tenant] / reals[TOTAL_CPU])
    if reals[TOTAL_MIB] > 0.0:
        share = max(share, ints[ints[TENANT_MIB] + tenant] / reals[TOTAL_MIB])
    return share


@kernel
def book_usage(ints: Ints, reals: Reals) -> None:
    """Add the GPU-seconds since the last instant to what each tenant has used."""
    if ints[ORDER] == OrderKind.USAGE:
        passed = reals[NOW] - reals[LAST_INSTANT]
        for tenant in range(ints[TENANTS]):
            reals[ints[USAGE] + tenant] += ints[ints[TENANT_USED] + tenant] * passed
    reals[LAST_INSTANT] = reals[NOW]
