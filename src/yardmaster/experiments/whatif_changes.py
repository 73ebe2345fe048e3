"""What could be different: changes to a cluster or its load, as a user writes them.

A change is a function from one cluster to another plus a factor on the load. The jobs themselves
never change: a generated workload is the one made for the cluster as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from yardmaster.errors import YardmasterError
from yardmaster.metrics.catalogue import metric
from yardmaster.model.cluster import Cluster
from yardmaster.model.reshape import (
    Nodes,
    add_nodes,
    most_common_nodes,
    parse_nodes,
    remove_nodes,
    replace_nodes,
    resize,
    with_quota,
)
from yardmaster.model.site import Quota
from yardmaster.model.workload import Workload

MOST_STEPS = 200
"""Points of a sweep beyond this are a typing mistake."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One way in which things could be different."""

    name: str
    reshape: Callable[[Cluster], Cluster]
    load: float = 1.0
    """Factor on the offered load."""


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """A row of changes of one kind, for a curve."""

    axis: str
    """What is swept, for the axis of the curve."""
    amounts: tuple[float, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What a metric must be, such as `mean_wait_s<600`."""

    metric: str
    below: bool
    value: float

    def is_met(self, value: float) -> bool:
        """Whether a value meets the target; no value never does."""
        return value < self.value if self.below else value > self.value

    def __str__(self) -> str:
        return f"{self.metric} {'<' if self.below else '>'} {self.value:g}"


def adding(nodes: str) -> Change:
    """More nodes: `4x A100:8`."""
    parse_nodes(nodes)
    return Change(f"add {nodes.strip()}", lambda cluster: add_nodes(cluster, nodes))


def removing(nodes: str) -> Change:
    """Fewer nodes, the last of their type: `2x V100`."""
    parse_nodes(nodes)
    return Change(f"remove {nodes.strip()}", lambda cluster: remove_nodes(cluster, nodes))


def replacing(text: str) -> Change:
    """Some nodes for others: `8x V100=4x H100:8`."""
    old, equals, new = text.partition("=")
    if not equals:
        raise YardmasterError(f"Cannot read --replace {text!r}: write '8x V100=4x H100:8'.")
    parse_nodes(old), parse_nodes(new)
    return Change(
        f"replace {old.strip()} by {new.strip()}",
        lambda cluster: replace_nodes(cluster, old, new),
    )


def unit_of(cluster: Cluster) -> str:
    """Return what a cluster grows by: a `node`, or a `GPU` of a pool, which has no nodes."""
    return "GPU" if cluster.is_pool else "node"


def resizing(text: str | int, like: Nodes | None = None, unit: str = "node") -> Change:
    """More or fewer nodes of the commonest kind (or of the kind `like`): `+4` or `-2`.

    `unit` is what they are called (see `unit_of`).
    """
    try:
        nodes = int(text)
    except ValueError:
        raise YardmasterError(
            f"Cannot read --nodes {text!r}: write a whole number such as +4 or -2."
        ) from None
    plural = unit if abs(nodes) == 1 else f"{unit}s"
    kind = "" if like is None else f" of {like.type_name}"
    kind += f":{like.gpus}" if like is not None and like.gpus and unit == "node" else ""
    return Change(
        f"{nodes:+d} {plural}{kind}".replace("-", "−") if nodes else "as it is",
        lambda cluster: resize(cluster, nodes, like),
    )


def changing_quota(text: str, workloads: Sequence[Workload]) -> Change:
    """Another guarantee, and perhaps a limit, for a tenant: `vc1=64` or `vc1=64:96`."""
    match = re.fullmatch(r"\s*(.+?)\s*=\s*(\d{1,9})\s*(?::\s*(\d{1,9}))?\s*", text)
    if not match:
        raise YardmasterError(
            f"Cannot read --quota {text!r}: write TENANT=GPUS or TENANT=GPUS:LIMIT."
        )
    quota = Quota(match[1], int(match[2]), int(match[3]) if match[3] else None)
    tenants = frozenset(name for workload in workloads for name in workload.tenant.names)

    def reshape(cluster: Cluster) -> Cluster:
        changed = with_quota(cluster, quota, tenants=tenants)
        promised = sum(each.guaranteed_gpus for each in changed.site.quotas)
        if promised > cluster.gpus:
            raise YardmasterError(
                f"--quota {text.strip()!r} would guarantee {promised} GPUs in all, but"
                f" {cluster.name} has only {cluster.gpus}."
            )
        return changed

    return Change(f"quota {text.strip()}", reshape)


def scaling_load(factor: float) -> Change:
    """The same jobs, submitted faster or more slowly."""
    if not 0 < factor < 1000:
        raise YardmasterError(f"Cannot scale the load by {factor:g}: write a factor such as 1.2.")
    return Change(f"load × {factor:g}", lambda cluster: cluster, factor)


def combined(changes: Sequence[Change]) -> Change:
    """Return all changes at once, in the order given."""
    load = 1.0
    for change in changes:
        load *= change.load

    def reshape(cluster: Cluster) -> Cluster:
        for change in changes:
            cluster = change.reshape(cluster)
        return cluster

    return Change("; ".join(change.name for change in changes), reshape, load)


_SWEEP = re.compile(
    r"\s*(load|nodes(?::(?P<kind>[\w.\-]+(?::\d+)?))?)\s*="
    r"\s*(?P<low>[-+]?[\d.]+)\s*\.\.\s*(?P<high>[-+]?[\d.]+?)\s*(?::\s*(?P<step>[\d.]+))?\s*"
)


def sweeping(text: str, cluster: Cluster) -> Sweep:
    """Read `nodes=-4..8:2`, `nodes:A100:8=0..8`, or `load=0.8..1.4:0.1`.

    Raises:
        YardmasterError: if it cannot be read, or goes nowhere or on for ever.
    """
    match = _SWEEP.fullmatch(text)
    if not match:
        raise YardmasterError(
            f"Cannot read --sweep {text!r}: write nodes=LOW..HIGH:STEP, such as nodes=-4..8:2,"
            " or load=0.8..1.4:0.1."
        )
    amounts = _steps(text, match["low"], match["high"], match["step"])
    if match[1] == "load":
        changes = tuple(scaling_load(amount) for amount in amounts)
        return Sweep("load, as a multiple of today's", amounts, changes)
    if any(amount != round(amount) for amount in amounts):
        raise YardmasterError(f"Cannot read --sweep {text!r}: nodes come in whole numbers.")
    like = parse_nodes(match["kind"]) if match["kind"] else most_common_nodes(cluster)
    unit = unit_of(cluster)
    changes = tuple(resizing(round(amount), like, unit) for amount in amounts)
    return Sweep(f"{unit}s of {like.type_name} more or fewer than today", amounts, changes)


def _steps(text: str, low: str, high: str, step: str | None) -> tuple[float, ...]:
    try:
        first, last, by = float(low), float(high), float(step or 1)
    except ValueError:
        raise YardmasterError(f"Cannot read --sweep {text!r}: not a number.") from None
    if by <= 0 or last < first:
        raise YardmasterError(f"Cannot read --sweep {text!r}: it goes from low to high.")
    count = int((last - first) / by + 1e-9) + 1
    if count > MOST_STEPS:
        raise YardmasterError(f"--sweep {text!r} has {count} steps; at most {MOST_STEPS}.")
    return tuple(round(first + place * by, 9) for place in range(count))


_TARGET = re.compile(r"\s*(\w+)\s*([<>])\s*([\d.]+(?:e[-+]?\d+)?)\s*(s|min|h|d|%)?\s*")
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "%": 0.01}


def reading_target(text: str) -> Target:
    """Read `mean_wait_s<600`, `p95_wait_s < 2h` or `utilisation>60%`.

    Raises:
        YardmasterError: if it cannot be read.
        UnknownNameError: if there is no such metric.
    """
    match = _TARGET.fullmatch(text)
    try:
        value = float(match[3]) * _UNITS[match[4] or "s"] if match else None
    except ValueError:
        value = None
    if match is None or value is None:
        raise YardmasterError(
            f"Cannot read --target {text!r}: write METRIC<VALUE, such as 'mean_wait_s<600' or"
            " 'p95_wait_s<2h'."
        )
    return Target(metric(match[1]).name, match[2] == "<", value)
