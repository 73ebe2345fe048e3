"""The rules of a site: what a cluster's owner decides besides which machines to buy.

Everything here is off by default. A site may guarantee GPUs to tenants, save running jobs now and
then, lose nodes and repair them, cap its power, and let gangs spread over nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

MIG_SLICES = 7
MIG_SLICE_MILLI = 142
"""Thousandths of a GPU in one of its seven slices."""


class Sharing(IntEnum):
    """Whether several fractional jobs may run on one GPU of a node, and how."""

    NONE = 0
    """A job that asks for part of a GPU holds a whole one."""
    MPS = 1
    """Jobs share a GPU in thousandths and slow each other down."""
    MIG = 2
    """A GPU is cut into seven slices; a job takes as many as it needs and is not slowed down."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one tenant is entitled to."""

    tenant: str
    guaranteed_gpus: int
    """Jobs within this many GPUs go before everybody who borrows."""
    limit_gpus: int | None = None
    """Most GPUs at once, borrowed ones included; None: as many as are free."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """How running jobs are saved, and what stopping one costs."""

    every_s: float = math.inf
    """Seconds from one periodic checkpoint to the next; infinite: none are taken."""
    save_s: float = 0.0
    """Seconds without progress for one checkpoint."""
    restore_s: float = 0.0
    """Seconds without progress when a job that has been saved starts again."""
    on_preemption: bool = True
    """Whether a job that must make room saves itself first; otherwise it falls back to its last
    periodic checkpoint."""


@dataclass(frozen=True, slots=True)
class Outage:
    """One node that is away for a while."""

    node: int
    down_s: float
    up_s: float


@dataclass(frozen=True, slots=True)
class Failures:
    """Node failures: drawn from a mean time between failures, or listed one by one."""

    mtbf_h: float = math.inf
    """Mean hours from a node's repair to its next failure."""
    mttr_h: float = 1.0
    """Mean hours of a repair."""
    outages: tuple[Outage, ...] = ()
    retries: int | None = None
    """How often a job is started again after failures; None: always."""


@dataclass(frozen=True, slots=True)
class Power:
    """What electricity costs and how much of it there is."""

    cap_w: float = math.inf
    """Most watts above idle that running jobs may draw together."""
    price_per_kwh: tuple[float, ...] = ()
    """Price of a kilowatt-hour in each hour of the day; one number for a flat price."""
    carbon_g_per_kwh: tuple[float, ...] = ()
    """Grams of CO₂ per kilowatt-hour in each hour of the day; one number for a flat figure."""
    sleep_after_s: float = math.inf
    """Seconds without a job after which a node goes to sleep and draws nothing."""


@dataclass(frozen=True, slots=True)
class Site:
    """The rules of one cluster."""

    quotas: tuple[Quota, ...] = ()
    checkpoints: Checkpoints = Checkpoints()
    failures: Failures = Failures()
    power: Power = Power()
    quantum_s: float = 0.0
    """A job that has started runs at least so long before it may be stopped, moved or resized."""
    splits_gangs: bool = False
    """Whether a gang that could be within one node may be spread over several."""
    equal_speeds: bool = False
    """Whether all GPU types are taken as equally fast, and distance as free."""
    reference_gpu: str = ""
    """GPU type on which the jobs' durations were measured; empty: the most numerous type."""
