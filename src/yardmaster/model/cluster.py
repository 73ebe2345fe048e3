"""A cluster: nodes, each holding GPUs of one type.

A cluster may also be one *pool*: a single unit in which any GPU is as good as any other, as in
simulators that count processors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from yardmaster.errors import InvalidClusterError
from yardmaster.model.gpus import GpuType, gpu_type, type_key
from yardmaster.model.site import Sharing, Site
from yardmaster.model.workload import FloatArray, IntArray

LARGEST_CLUSTER_GPUS = 4_000_000
"""Sizes beyond this are typing mistakes."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Cluster:
    """Nodes × GPU type × count, with racks, host resources and power.

    Attributes:
        name: name for tables and reports.
        gpu_types: the GPU types present; `node_type` points into it.
        node_type: (nodes,) index into `gpu_types`.
        node_gpus: (nodes,) GPUs in the node, ≥ 1.
        node_rack: (nodes,) rack number.
        node_cpus: (nodes,) CPU cores, NaN if unknown.
        node_memory_gib: (nodes,) host memory, NaN if unknown.
        node_overhead_w: (nodes,) watts a node draws besides its GPUs.
        is_pool: True when the one "node" stands for interchangeable GPUs without node borders.
        node_sharing: (nodes,) a `Sharing`: how fractional jobs share the node's GPUs.
        site: the owner's rules: quotas, checkpoints, failures, power.
    """

    name: str
    gpu_types: tuple[GpuType, ...]
    node_type: IntArray
    node_gpus: IntArray
    node_rack: IntArray
    node_cpus: FloatArray
    node_memory_gib: FloatArray
    node_overhead_w: FloatArray
    is_pool: bool = False
    node_sharing: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    site: Site = field(default_factory=Site)

    def __post_init__(self) -> None:
        if len(self.node_sharing) != self.nodes:
            object.__setattr__(self, "node_sharing", np.zeros(self.nodes, dtype=np.int64))

    @classmethod
    def of(cls, *groups: str, name: str | None = None) -> Cluster:
        """Build a cluster from groups such as `"8x A100:8"` (8 nodes of 8 A100 each).

        Raises:
            InvalidClusterError: if a group cannot be read.
            UnknownNameError: if a GPU type is not in the catalogue.
        """
        if not groups:
            raise InvalidClusterError("A cluster needs at least one group, such as '8x A100:8'.")
        return from_groups(
            [_parse_group(group) for group in groups], name=name or " + ".join(groups)
        )

    @classmethod
    def pool(cls, gpus: int, type_name: str = "V100", *, name: str | None = None) -> Cluster:
        """Build a pool of interchangeable GPUs without node borders."""
        group = NodeGroup(count=1, gpu_type=gpu_type(type_name), gpus=gpus)
        return from_groups([group], name=name or f"pool of {gpus}", is_pool=True)

    def under(self, site: Site) -> Cluster:
        """Return the same machines under other rules."""
        return replace(self, site=site)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_gpus)

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return int(self.node_gpus.sum())

    @property
    def node_first_gpu(self) -> IntArray:
        """(nodes,) number of each node's first GPU; GPUs count through the nodes in order."""
        return np.concatenate(([0], np.cumsum(self.node_gpus)[:-1])).astype(np.int64)

    @property
    def gpu_node(self) -> IntArray:
        """(gpus,) node of each GPU."""
        return np.repeat(np.arange(self.nodes), self.node_gpus)

    def describe(self) -> str:
        """Return one line: nodes, GPUs and types."""
        counts = [
            f"{int(self.node_gpus[self.node_type == index].sum())} {kind.name}"
            for index, kind in enumerate(self.gpu_types)
        ]
        place = "one pool" if self.is_pool else f"{self.nodes} nodes"
        return f"{self.name}: {place}, {self.gpus} GPUs ({', '.join(counts)})"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes: how many, and what is in each."""

    count: int
    gpu_type: GpuType
    gpus: int
    nodes_per_rack: int = 0
    """0 puts the whole group into one rack."""
    cpus: float = float("nan")
    memory_gib: float = float("nan")
    overhead_w: float = 0.0
    sharing: Sharing = Sharing.NONE


_GROUP = re.compile(r"\s*(?:(\d{1,9})\s*[xX×]\s*)?([A-Za-z][\w.\-]*)\s*(?::\s*(\d{1,9}))?\s*")


def _parse_group(text: str) -> NodeGroup:
    match = _GROUP.fullmatch(text)
    if not match:
        raise InvalidClusterError(
            f"Cannot read node group {text!r}: write 'NODESx TYPE:GPUS', such as '8x A100:8'."
        )
    count, type_name, gpus = match.groups()
    return NodeGroup(count=int(count or 1), gpu_type=gpu_type(type_name), gpus=int(gpus or 1))


def from_groups(
    groups: Sequence[NodeGroup], *, name: str, is_pool: bool = False, site: Site | None = None
) -> Cluster:
    """Lay out node groups one after the other; racks are numbered through the cluster.

    Raises:
        InvalidClusterError: if a group makes no sense, or two types share a name.
    """
    if not groups:
        raise InvalidClusterError(f"{name}: a cluster needs at least one node group.")
    for group in groups:
        _check(group, name)
    if sum(group.count * group.gpus for group in groups) > LARGEST_CLUSTER_GPUS:
        raise InvalidClusterError(f"{name}: more than {LARGEST_CLUSTER_GPUS:,} GPUs.")
    kinds = list(dict.fromkeys(group.gpu_type for group in groups))
    if len({type_key(kind.name) for kind in kinds}) < len(kinds):
        raise InvalidClusterError(f"{name}: two different GPU types share a name.")
    counts = [group.count for group in groups]
    types = [kinds.index(group.gpu_type) for group in groups]
    return Cluster(
        name=name,
        gpu_types=tuple(kinds),
        node_type=np.repeat(np.array(types, dtype=np.int64), counts),
        node_gpus=np.repeat(np.array([group.gpus for group in groups], dtype=np.int64), counts),
        node_rack=_racks(groups),
        node_cpus=np.repeat([float(group.cpus) for group in groups], counts),
        node_memory_gib=np.repeat([float(group.memory_gib) for group in groups], counts),
        node_overhead_w=np.repeat([float(group.overhead_w) for group in groups], counts),
        is_pool=is_pool,
        node_sharing=np.repeat([int(group.sharing) for group in groups], counts),
        site=site or Site(),
    )


def _check(group: NodeGroup, name: str) -> None:
    """Refuse a group of nothing, or with host resources that no machine has."""
    if group.count < 1 or group.gpus < 1:
        raise InvalidClusterError(f"{name}: a node group needs at least 1 node and 1 GPU.")
    if group.nodes_per_rack < 0:
        raise InvalidClusterError(f"{name}: nodes per rack must not be negative.")
    for what, value in (("CPU cores", group.cpus), ("memory", group.memory_gib)):
        if value < 0 or math.isinf(value):
            raise InvalidClusterError(f"{name}: {what} must be finite and not negative.")
    if not 0 <= group.overhead_w < math.inf:
        raise InvalidClusterError(f"{name}: overhead watts must be finite and not negative.")


def _racks(groups: Sequence[NodeGroup]) -> IntArray:
    """Return the rack of every node; a group never shares a rack with another."""
    racks: list[IntArray] = []
    first = 0
    for group in groups:
        per_rack = min(group.nodes_per_rack or group.count, group.count)
        racks.append(first + np.arange(group.count, dtype=np.int64) // per_rack)
        first = int(racks[-1][-1]) + 1
    return np.concatenate(racks)
