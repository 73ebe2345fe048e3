"""The SimPy reference: what a job asks for, and how fast it runs where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.engine.conditions import Conditions
from yardmaster.engine.requests import UNLIMITED, Shapes
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import MIG_SLICE_MILLI, MIG_SLICES, Sharing

Plan = dict[int, int]
"""GPUs to take, by node."""

WHOLE_MILLI = 1000
"""Thousandths of a whole GPU."""


@dataclass(frozen=True, slots=True)
class Gang:
    """What one job asks for."""

    row: int
    shape: int
    gpus: int
    cap: int
    """Most GPUs on one node."""
    nodes: tuple[int, ...]
    """Nodes whose GPU type the job accepts, ascending."""
    stays_on_one_node: bool
    milli: int
    """Thousandths of its GPU."""
    gpu_mib: int
    cpu_milli: int
    """Thousandths of a core with every GPU."""
    host_mib: int
    """Host memory with every GPU."""
    watts: int
    tenant: int
    kind: int
    least: int
    """Fewest GPUs of an elastic job; most GPUs below."""
    most: int

    @property
    def is_fractional(self) -> bool:
        """Whether it asks for part of one GPU."""
        return self.milli < WHOLE_MILLI

    @property
    def is_whole_on_one_node(self) -> bool:
        """Whether it asks for whole GPUs of one node."""
        return self.stays_on_one_node and not self.is_fractional

    @property
    def is_elastic(self) -> bool:
        """Whether it can run on more or fewer GPUs."""
        return self.is_whole_on_one_node and self.least < self.most

    def fits(self, usable: Sequence[int]) -> bool:
        """Whether nodes with so many usable GPUs can hold the gang."""
        if self.stays_on_one_node:
            return any(usable[node] >= self.gpus for node in self.nodes)
        return sum(min(usable[node], self.cap) for node in self.nodes) >= self.gpus


class Rules:
    """The machines and conditions of one simulation, none of which ever change."""

    def __init__(self, conditions: Conditions, cluster: Cluster, shapes: Shapes) -> None:
        self.conditions = conditions
        self.nodes = cluster.nodes
        self.node_type: list[int] = cluster.node_type.tolist()
        self.node_rack: list[int] = cluster.node_rack.tolist()
        self.node_gpus: list[int] = cluster.node_gpus.tolist()
        self.node_first_gpu: list[int] = cluster.node_first_gpu.tolist()
        self.node_sharing: list[int] = conditions.node_sharing.tolist()
        self.gpu_node: list[int] = cluster.gpu_node.tolist()
        self.gangs = [self._gang(shapes, shape) for shape in range(len(shapes.gpus))]
        """One of every shape; their rows mean nothing."""

    def _gang(self, shapes: Shapes, shape: int) -> Gang:
        types, conditions = int(shapes.types[shape]), self.conditions
        return Gang(
            row=-1,
            shape=shape,
            gpus=int(shapes.gpus[shape]),
            cap=int(shapes.cap[shape]),
            nodes=tuple(node for node, kind in enumerate(self.node_type) if types >> kind & 1),
            stays_on_one_node=bool(shapes.single[shape]),
            milli=int(conditions.milli[shape]) if conditions.node_sharing.any() else WHOLE_MILLI,
            gpu_mib=int(conditions.gpu_mib[shape]),
            cpu_milli=int(conditions.cpu_milli[shape]),
            host_mib=int(conditions.host_mib[shape]),
            watts=int(conditions.watts[shape]),
            tenant=int(conditions.tenant[shape]),
            kind=int(conditions.kind[shape]),
            least=int(conditions.least_gpus[shape]),
            most=int(conditions.most_gpus[shape]),
        )

    def speed(self, gang: Gang, node: int) -> float:
        """Work the gang does per second on GPUs of this node alone."""
        return float(self.conditions.speed[gang.shape, self.node_type[node]])

    def rate(self, gang: Gang, plan: Plan, colocation: float = 1.0) -> float:
        """Work done per second: the slowest member's speed, times what distance and size cost."""
        base = min(self.speed(gang, node) for node in plan)
        if len({self.node_rack[node] for node in plan}) > 1:
            base = base * float(self.conditions.rack_factor[gang.shape])
        elif len(plan) > 1:
            base = base * float(self.conditions.node_factor[gang.shape])
        return self._sized(gang, base, sum(plan.values()), colocation)

    def least_rate(self, gang: Gang) -> float:
        """Work per second on the slowest type the gang accepts, when its nodes are left to luck."""
        base = min(self.speed(gang, node) for node in gang.nodes)
        return self._sized(gang, base, gang.gpus, 1.0)

    def _sized(self, gang: Gang, base: float, size: int, colocation: float) -> float:
        scale = float(self.conditions.scale[gang.shape, size])
        return ((base * scale) * colocation) * self.conditions.efficiency

    def take_milli(self, gang: Gang, node: int) -> int:
        """Thousandths that the gang takes of each of its GPUs on this node."""
        sharing = self.node_sharing[node]
        if not gang.is_fractional or sharing == Sharing.NONE:
            return WHOLE_MILLI
        if sharing == Sharing.MPS:
            return gang.milli
        slices = -(-gang.milli // MIG_SLICE_MILLI)
        return slices * MIG_SLICE_MILLI if slices <= MIG_SLICES else WHOLE_MILLI

    def fewest_nodes(self, gang: Gang) -> int:
        """Fewest nodes of the empty cluster that could hold the gang."""
        sizes = sorted((min(self.node_gpus[node], gang.cap) for node in gang.nodes), reverse=True)
        return next(nodes for nodes in range(1, len(sizes) + 1) if sum(sizes[:nodes]) >= gang.gpus)


def neutral_conditions(cluster: Cluster, shapes: Shapes) -> Conditions:
    """Return conditions under which GPUs are all equal, nothing fails and nothing is limited."""
    count, types = len(shapes.gpus), len(cluster.gpu_types)
    ones, zeros = np.ones(count), np.zeros(count, dtype=np.int64)
    placed = shapes.of_job[shapes.of_job >= 0]
    return Conditions(
        speed=np.ones((count, types)),
        node_factor=ones,
        rack_factor=ones,
        milli=np.full(count, WHOLE_MILLI),
        gpu_mib=zeros,
        cpu_milli=zeros,
        host_mib=zeros,
        tenant=zeros,
        watts=zeros,
        kind=zeros,
        least_gpus=shapes.gpus,
        most_gpus=shapes.gpus,
        scale=np.ones((count, int(shapes.gpus.max(initial=0)) + 1)),
        pair=np.ones((1, 1)),
        node_cpu_milli=np.full(cluster.nodes, UNLIMITED),
        node_mib=np.full(cluster.nodes, UNLIMITED),
        node_sharing=np.full(cluster.nodes, int(Sharing.NONE)),
        type_mib=np.full(types, UNLIMITED),
        type_watts=np.zeros(types),
        node_wake_w=np.zeros(cluster.nodes),
        guaranteed_gpus=np.zeros(0, dtype=np.int64),
        limit_gpus=np.zeros(0, dtype=np.int64),
        popularity=np.bincount(placed, minlength=count),
    )
