"""The site's part of a cluster document: tenants, checkpoints, failures, power.

```toml
quantum_s = 600             # nobody is stopped, moved or resized sooner after a start
splits_gangs = false        # gangs that fit into one node stay there
equal_speeds = false        # true: all GPU types equally fast, distance free
reference_gpu = "V100"      # where the jobs' durations were measured

[[tenants]]
name = "vision"
guaranteed_gpus = 48
limit_gpus = 96             # optional

[checkpoints]
every_s = 3600
save_s = 30
restore_s = 60
on_preemption = true

[failures]                  # drawn from mtbf_h and mttr_h, or else listed
retries = 3
[[failures.outages]]
node = 5                    # nodes count from 0 through the groups
down_h = 12                 # or down_s, up_s
up_h = 14

[power]
cap_kw = 40                 # or cap_w: watts above idle
price_per_kwh = 0.25        # or 24 numbers, one for each hour of the day
carbon_g_per_kwh = 380      # likewise
sleep_after_s = 900
```

Every key is optional, and so is every table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from yardmaster.model.documents import Document
from yardmaster.model.gpus import GpuType, type_key
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Site
from yardmaster.names import unknown

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
HOURS_OF_A_DAY = 24


def _by_hour(value: Any) -> tuple[Any, ...]:
    """Read a number for all day, or one for each hour."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list) and len(value) == HOURS_OF_A_DAY:
        return tuple(value)
    got = f"{len(value)} of them" if isinstance(value, list) else repr(value)
    raise ValueError(f"must be a number or {HOURS_OF_A_DAY} numbers, got {got}")


class TenantDocument(Document):
    """`[[tenants]]`: what one tenant is entitled to."""

    name: str = Field(min_length=1)
    guaranteed_gpus: int = Field(ge=0)
    limit_gpus: int | None = Field(None, ge=1)

    @field_validator("limit_gpus")
    @classmethod
    def _covers_the_guarantee(cls, limit: int | None, info: ValidationInfo) -> int | None:
        guaranteed = info.data.get("guaranteed_gpus", 0)
        if limit is not None and limit < guaranteed:
            raise ValueError(f"{limit} is below guaranteed_gpus, {guaranteed}")
        return limit

    def quota(self) -> Quota:
        """Return the quota of the model."""
        return Quota(self.name, self.guaranteed_gpus, self.limit_gpus)


class CheckpointsDocument(Document):
    """`[checkpoints]`: how running jobs are saved."""

    every_s: Positive | None = None
    save_s: NotNegative = 0.0
    restore_s: NotNegative = 0.0
    on_preemption: bool = True

    @field_validator("save_s")
    @classmethod
    def _leaves_time_to_work(cls, save_s: float, info: ValidationInfo) -> float:
        every_s = info.data.get("every_s")
        if every_s is not None and save_s >= every_s:
            raise ValueError(f"{save_s:g} must be less than every_s, {every_s:g}")
        return save_s

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints of the model."""
        every_s = math.inf if self.every_s is None else self.every_s
        return Checkpoints(every_s, self.save_s, self.restore_s, self.on_preemption)


class OutageDocument(Document):
    """`[[failures.outages]]`: one node that is away for a while."""

    node: int = Field(ge=0)
    down_s: NotNegative | None = None
    down_h: NotNegative | None = Field(None, validate_default=True)
    up_s: NotNegative | None = None
    up_h: NotNegative | None = Field(None, validate_default=True)

    @field_validator("node")
    @classmethod
    def _exists(cls, node: int, info: ValidationInfo) -> int:
        machines = _machines(info)
        if machines is not None and node >= machines.nodes:
            raise ValueError(f"there is no node {node}: the last one is {machines.nodes - 1}")
        return node

    @field_validator("down_h", "up_h")
    @classmethod
    def _is_given_once(cls, hours: float | None, info: ValidationInfo) -> float | None:
        in_hours = str(info.field_name)
        in_seconds = in_hours.removesuffix("h") + "s"
        if in_seconds in info.data and (hours is None) is (info.data[in_seconds] is None):
            raise ValueError(f"give either {in_seconds} or {in_hours}")
        return hours

    @field_validator("up_h")
    @classmethod
    def _ends_after_it_began(cls, up_h: float | None, info: ValidationInfo) -> float | None:
        if {"down_s", "down_h", "up_s"} <= info.data.keys():
            down_s = _seconds(info.data["down_s"], info.data["down_h"])
            up_s = _seconds(info.data["up_s"], up_h)
            if up_s <= down_s:
                raise ValueError(f"the node is up at {up_s:g} s, but goes down at {down_s:g} s")
        return up_h

    def outage(self) -> Outage:
        """Return the outage of the model."""
        down_s, up_s = _seconds(self.down_s, self.down_h), _seconds(self.up_s, self.up_h)
        return Outage(self.node, down_s, up_s)


def _seconds(seconds: float | None, hours: float | None) -> float:
    """Return a time given in one unit or the other."""
    return (seconds or 0.0) + (hours or 0.0) * 3600.0


class FailuresDocument(Document):
    """`[failures]`: nodes that break, at random or as listed."""

    mtbf_h: Positive | None = None
    mttr_h: Positive | None = None
    retries: int | None = Field(None, ge=0)
    outages: tuple[OutageDocument, ...] = ()

    @field_validator("mttr_h")
    @classmethod
    def _repairs_something(cls, mttr_h: float | None, info: ValidationInfo) -> float | None:
        if mttr_h is not None and info.data.get("mtbf_h", mttr_h) is None:
            raise ValueError("means nothing without mtbf_h")
        return mttr_h

    @field_validator("outages")
    @classmethod
    def _are_apart(
        cls, outages: tuple[OutageDocument, ...], info: ValidationInfo
    ) -> tuple[OutageDocument, ...]:
        if outages and info.data.get("mtbf_h") is not None:
            raise ValueError("give either outages or mtbf_h: listed outages are the only ones")
        by_node = sorted(
            (away.outage() for away in outages), key=lambda away: (away.node, away.down_s)
        )
        for first, second in pairwise(by_node):
            if first.node == second.node and second.down_s < first.up_s:
                raise ValueError(
                    f"node {first.node} goes down at {second.down_s:g} s"
                    f" while it is already away, from {first.down_s:g} to {first.up_s:g} s"
                )
        return outages

    def failures(self) -> Failures:
        """Return the failures of the model, listed outages in order of time."""
        outages = sorted(
            (away.outage() for away in self.outages), key=lambda away: (away.down_s, away.node)
        )
        return Failures(
            mtbf_h=math.inf if self.mtbf_h is None else self.mtbf_h,
            mttr_h=1.0 if self.mttr_h is None else self.mttr_h,
            outages=tuple(outages),
            retries=self.retries,
        )


class PowerDocument(Document):
    """`[power]`: what electricity costs and how much of it there is."""

    cap_w: Positive | None = None
    cap_kw: Positive | None = None
    price_per_kwh: Annotated[tuple[float, ...], BeforeValidator(_by_hour)] = ()
    carbon_g_per_kwh: Annotated[tuple[NotNegative, ...], BeforeValidator(_by_hour)] = ()
    sleep_after_s: NotNegative | None = None

    @field_validator("cap_kw")
    @classmethod
    def _is_the_only_cap(cls, cap_kw: float | None, info: ValidationInfo) -> float | None:
        if cap_kw is not None and info.data.get("cap_w") is not None:
            raise ValueError("give either cap_w or cap_kw")
        return cap_kw

    def power(self) -> Power:
        """Return the power rules of the model."""
        cap_w = self.cap_w if self.cap_kw is None else self.cap_kw * 1000.0
        return Power(
            cap_w=math.inf if cap_w is None else cap_w,
            price_per_kwh=self.price_per_kwh,
            carbon_g_per_kwh=self.carbon_g_per_kwh,
            sleep_after_s=math.inf if self.sleep_after_s is None else self.sleep_after_s,
        )


class SiteDocument(Document):
    """The keys and tables of a cluster document that are rules, not machines."""

    tenants: tuple[TenantDocument, ...] = ()
    checkpoints: CheckpointsDocument = CheckpointsDocument()
    failures: FailuresDocument = FailuresDocument()
    power: PowerDocument = PowerDocument()
    quantum_s: NotNegative = 0.0
    splits_gangs: bool = False
    equal_speeds: bool = False
    reference_gpu: str = ""

    @field_validator("tenants")
    @classmethod
    def _have_names_and_room(
        cls, tenants: tuple[TenantDocument, ...], info: ValidationInfo
    ) -> tuple[TenantDocument, ...]:
        names = [tenant.name for tenant in tenants]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two tenants are called {twice[0]!r}")
        guaranteed = sum(tenant.guaranteed_gpus for tenant in tenants)
        machines = _machines(info)
        if machines is not None and guaranteed > machines.gpus:
            raise ValueError(
                f"{guaranteed} GPUs are guaranteed, but the cluster has only {machines.gpus}"
            )
        return tenants

    @field_validator("reference_gpu")
    @classmethod
    def _is_in_the_cluster(cls, name: str, info: ValidationInfo) -> str:
        machines = _machines(info)
        if machines is None:
            return name
        if type_key(name) not in {type_key(other) for other in machines.types}:
            raise ValueError(str(unknown("GPU type of this cluster", name, machines.types)))
        return name

    def site(self, types: Sequence[GpuType]) -> Site:
        """Return the rules; `types` are those of the cluster's nodes, which the reference names."""
        reference = {type_key(kind.name): kind.name for kind in types}
        return Site(
            quotas=tuple(tenant.quota() for tenant in self.tenants),
            checkpoints=self.checkpoints.checkpoints(),
            failures=self.failures.failures(),
            power=self.power.power(),
            quantum_s=self.quantum_s,
            splits_gangs=self.splits_gangs,
            equal_speeds=self.equal_speeds,
            reference_gpu=reference[type_key(self.reference_gpu)] if self.reference_gpu else "",
        )


@dataclass(frozen=True, slots=True)
class _Machines:
    """What the site's rules are held against."""

    nodes: int
    gpus: int
    types: tuple[str, ...]


def _machines(info: ValidationInfo) -> _Machines | None:
    """Return what the raw document says about nodes, None if that has mistakes of its own."""
    document: Mapping[str, Any] = (info.context or {}).get("document", {})
    groups = document.get("nodes")
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        return None
    counts = [group.get("count", 1) for group in groups]
    gpus = [group.get("gpus") for group in groups]
    types = [group.get("gpu_type") for group in groups]
    if {type(value) for value in counts + gpus} != {int} or {type(name) for name in types} != {str}:
        return None
    nodes = 1 if document.get("pool") is True else sum(counts)
    total = sum(count * each for count, each in zip(counts, gpus, strict=True))
    return _Machines(nodes, total, tuple(dict.fromkeys(types)))
