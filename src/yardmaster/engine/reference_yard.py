"""The SimPy reference: gangs, the order of the queue, and who holds which GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import simpy

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import Shapes
from yardmaster.engine.setup import Options
from yardmaster.engine.state import OrderKind, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

Plan = dict[int, int]
"""GPUs to take, by node."""


def dice(seed: int, first: int, second: int) -> int:
    """Throw the same dice as the core: 32 bits that depend only on the three numbers.

    They are written out again so that nothing here depends on whether the core is compiled.
    """
    return _mixed(_mixed(_mixed(seed) ^ first) + second)


def _mixed(value: int) -> int:
    value &= 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        value = (value ^ value >> shift) * factor & 0xFFFFFFFF
    return value


@dataclass(frozen=True, slots=True)
class Gang:
    """What one job asks for."""

    row: int
    gpus: int
    cap: int
    """Most GPUs on one node."""
    nodes: tuple[int, ...]
    """Nodes whose GPU type the job accepts, ascending."""
    stays_on_one_node: bool

    def fits(self, free: Sequence[int]) -> bool:
        """Whether nodes with so many free GPUs can hold the gang."""
        if self.stays_on_one_node:
            return any(free[node] >= self.gpus for node in self.nodes)
        return sum(min(free[node], self.cap) for node in self.nodes) >= self.gpus

    def placed(self, free: Sequence[int], placement: Placement, seed: int) -> Plan:
        """Choose nodes one at a time, each at most once, until the gang is complete."""
        plan: Plan = {}
        while missing := self.gpus - sum(plan.values()):
            least = missing if self.stays_on_one_node else 1
            usable = [node for node in self.nodes if node not in plan and free[node] >= least]
            enough = [node for node in usable if min(free[node], self.cap) >= missing]
            # `min` and `max` take the first of equals, which is the lowest-numbered node.
            if placement == Placement.FIRST:
                node = usable[0]
            elif placement == Placement.RANDOM:
                node = usable[dice(seed, self.row, len(plan)) % len(usable)]
            elif placement == Placement.PACK and enough:
                node = min(enough, key=free.__getitem__)
            else:
                node = max(usable, key=free.__getitem__)
            plan[node] = min(free[node], self.cap, missing)
        return plan


@dataclass(slots=True)
class Run:
    """One job on its GPUs, from start to end: a segment of the schedule."""

    row: int
    start_s: float
    expected_end_s: float
    plan: Plan
    gpus: list[int]
    end_s: float = math.nan


class Order:
    """Sorts the waiting jobs; the lowest key goes first, ties by row."""

    def __init__(self, keys: OrderKeys, seed: int) -> None:
        self.keys = keys
        self.seed = seed
        self.offset: list[float] = keys.offset.tolist()
        self.history: dict[int | None, tuple[float, int]] = {}
        """Run time and number of finished jobs by group; of all jobs under None."""
        self.keeps_moving = keys.kind in {OrderKind.AGEING, OrderKind.SHUFFLED}

    def on_arrival(self, gang: Gang) -> None:
        """Look up what the job's group has run so far: the key is GPUs × mean run time."""
        if self.keys.kind == OrderKind.HISTORY and self.keys.group is not None:
            of_all = self.history.get(None, (0.0, 1))
            total_s, jobs = self.history.get(int(self.keys.group[gang.row]), of_all)
            self.offset[gang.row] = gang.gpus * (total_s / jobs)

    def on_completion(self, run: Run) -> None:
        """Remember how long the job ran."""
        if self.keys.group is not None:
            for group in (int(self.keys.group[run.row]), None):
                total_s, jobs = self.history.get(group, (0.0, 0))
                self.history[group] = total_s + (run.end_s - run.start_s), jobs + 1

    def sort(self, waiting: list[int], now_s: float, passes: int) -> list[int]:
        """Return the waiting rows in the order of this pass."""
        if self.keys.rekey is not None and waiting:
            rows = np.array(sorted(waiting), dtype=np.int64)
            for row, key in zip(rows, self.keys.rekey(rows, now_s), strict=True):
                self.offset[row] = float(key)
        return sorted(waiting, key=lambda row: (self._key(row, now_s, passes), row))

    def _key(self, row: int, now_s: float, passes: int) -> float:
        if self.keys.kind == OrderKind.SHUFFLED:
            return float(dice(self.seed, passes, row))
        if self.keys.rate is None or self.keys.since is None:
            return self.offset[row]
        low, high = self.keys.clip_s
        age_s = min(max(now_s - float(self.keys.since[row]), low), high)
        return self.offset[row] + float(self.keys.rate[row]) * age_s


class Yard:
    """The cluster, its queue and the jobs that run."""

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        shapes: Shapes,
        keys: OrderKeys,
        options: Options,
    ) -> None:
        self.env = simpy.Environment()
        expected = workload.duration_s if options.expected_s is None else options.expected_s
        self.expected_s: list[float] = expected.tolist()
        self.placement = options.placement
        self.seed = options.seed & 0xFFFFFFFF
        self.order = Order(keys, self.seed)
        self.gangs = _gangs(shapes, cluster)
        self.node_of_gpu: list[int] = cluster.gpu_node.tolist()
        self.free_gpus = set(range(cluster.gpus))
        self.free: list[int] = cluster.node_gpus.tolist()
        """Free GPUs of every node."""
        self.waiting: dict[int, simpy.Event] = {}
        """What tells each waiting job to go."""
        self.running: dict[int, Run] = {}
        self.runs: list[Run] = []
        """All that ever started, in order of start."""
        self.surprised = False
        """Whether a job has ended at another moment than expected."""

    @property
    def now_s(self) -> float:
        """The clock."""
        return float(self.env.now)

    def enter(self, row: int) -> simpy.Event:
        """Put a job into the queue; return the event that tells it to go."""
        self.order.on_arrival(self.gangs[row])
        self.waiting[row] = self.env.event()
        return self.waiting[row]

    def starts(self, row: int) -> bool:
        """Start the job if it fits now; say whether it did."""
        fits = self.gangs[row].fits(self.free)
        if fits:
            self.start(row, self.placed(row, self.free))
        return fits

    def placed(self, row: int, free: Sequence[int]) -> Plan:
        """Choose nodes by the scheduler's own placement."""
        return self.gangs[row].placed(free, self.placement, self.seed)

    def start(self, row: int, plan: Plan) -> None:
        """Take the lowest-numbered free GPUs of the planned nodes, and go."""
        gpus: list[int] = []
        for node, wanted in plan.items():
            gpus += sorted(gpu for gpu in self.free_gpus if self.node_of_gpu[gpu] == node)[:wanted]
        self.free_gpus.difference_update(gpus)
        add(self.free, plan, sign=-1)
        run = Run(row, self.now_s, self.now_s + self.expected_s[row], plan, gpus)
        self.runs.append(run)
        self.running[row] = run
        self.waiting.pop(row).succeed()

    def leave(self, row: int) -> None:
        """Give a finished job's GPUs back."""
        run = self.running.pop(row)
        run.end_s = self.now_s
        self.surprised |= run.end_s != run.expected_end_s
        self.free_gpus.update(run.gpus)
        add(self.free, run.plan)
        self.order.on_completion(run)


def add(free: list[int], plan: Plan, sign: int = 1) -> None:
    """Give a plan's GPUs back to the counts in `free`, or take them (sign −1)."""
    for node, gpus in plan.items():
        free[node] += sign * gpus


def _gangs(shapes: Shapes, cluster: Cluster) -> dict[int, Gang]:
    """Return what each job asks for; those that could never be placed are missing."""
    node_type: list[int] = cluster.node_type.tolist()
    gangs = {}
    for row, shape in enumerate(shapes.of_job.tolist()):
        if shape >= 0:
            types, single = int(shapes.types[shape]), bool(shapes.single[shape])
            nodes = tuple(node for node, kind in enumerate(node_type) if types >> kind & 1)
            gangs[row] = Gang(row, int(shapes.gpus[shape]), int(shapes.cap[shape]), nodes, single)
    return gangs
