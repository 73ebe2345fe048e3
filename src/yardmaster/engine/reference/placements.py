"""The SimPy reference: which nodes a gang of whole GPUs gets.

A plan is made on *usable* GPUs: those of every node that this gang could use, at this moment or
beside a reservation. Scores look at the machines as they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yardmaster.engine.reference.dice import dice
from yardmaster.engine.reference.floor import Floor
from yardmaster.engine.reference.fragmentation import increase_by_whole
from yardmaster.engine.reference.rules import Gang, Plan
from yardmaster.engine.state import Placement

Choice = Callable[[list[int], int, Plan], int]
"""(nodes that could be next, GPUs missing, plan so far) → the node that is next."""

TIERED = frozenset({Placement.TIER, Placement.DEFRAG, Placement.LOADBALANCE})
"""Placements that first look for plans over as few nodes as possible."""

BY_TYPE = frozenset({Placement.FASTEST, Placement.POWER})
"""Placements that keep a gang on one GPU type where one type holds it."""


def node_by_node(gang: Gang, usable: Sequence[int], choose: Choice) -> Plan:
    """Choose nodes one at a time, each at most once, until the gang is complete."""
    plan: Plan = {}
    while missing := gang.gpus - sum(plan.values()):
        least = missing if gang.stays_on_one_node else 1
        nodes = [node for node in gang.nodes if node not in plan and usable[node] >= least]
        node = choose(nodes, missing, plan)
        plan[node] = min(usable[node], gang.cap, missing)
    return plan


def pack_rank(gang: Gang, usable: int, missing: int) -> int:
    """The tightest node that completes the gang; if none does, the emptiest."""
    return usable if min(usable, gang.cap) >= missing else 1_000_000 - usable


def packed(gang: Gang, usable: Sequence[int]) -> Plan:
    """Place a gang on the tightest nodes."""
    # `min` takes the first of equals, which is the lowest-numbered node.
    return node_by_node(
        gang,
        usable,
        lambda nodes, missing, _: min(nodes, key=lambda n: pack_rank(gang, usable[n], missing)),
    )


class Placer:
    """One scheduler's way to choose nodes."""

    def __init__(self, floor: Floor, placement: Placement, seed: int) -> None:
        self.floor = floor
        self.rules = floor.rules
        self.placement = placement
        self.seed = seed

    def plan(self, gang: Gang, usable: Sequence[int]) -> Plan:
        """Choose nodes for a gang that fits."""
        if self.placement in TIERED:
            return self._tiered(gang, usable)
        if self.placement == Placement.RANDOM:
            return node_by_node(gang, usable, self._lot(gang))
        if self.placement in BY_TYPE and not gang.stays_on_one_node:
            usable = self._on_one_type(gang, usable)
        return node_by_node(
            gang,
            usable,
            lambda nodes, missing, _: min(
                nodes, key=lambda node: self._rank(gang, node, usable[node], missing)
            ),
        )

    def _on_one_type(self, gang: Gang, usable: Sequence[int]) -> Sequence[int]:
        """Return what is usable of the best GPU type that holds the whole gang; else everything."""
        rules = self.rules
        ranked: list[tuple[float, int, list[int]]] = []
        for kind in sorted({rules.node_type[node] for node in gang.nodes}):
            own = [gpus if rules.node_type[node] == kind else 0 for node, gpus in enumerate(usable)]
            if sum(min(gpus, gang.cap) for gpus in own) >= gang.gpus:
                ranked.append((self._type_score(gang, kind), kind, own))
        return min(ranked)[2] if ranked else usable

    def _type_score(self, gang: Gang, kind: int) -> float:
        """What speaks against a GPU type: slowness, or watts by the work they do."""
        conditions = self.rules.conditions
        speed = float(conditions.speed[gang.shape, kind])
        if self.placement == Placement.FASTEST:
            return -speed
        return float(conditions.type_watts[kind]) / speed

    def _lot(self, gang: Gang) -> Choice:
        """Choose as the dice fall."""
        return lambda nodes, _, plan: nodes[dice(self.seed, gang.row, len(plan)) % len(nodes)]

    def _rank(self, gang: Gang, node: int, usable: int, missing: int) -> tuple[float, int]:
        """The node of lowest rank is taken; equal ranks by number."""
        if self.placement == Placement.FIRST:
            return 0.0, 0
        if self.placement == Placement.SPREAD:
            return 0.0, -usable
        gpus = min(usable, gang.cap, missing)
        return self.score(gang, node, gpus), pack_rank(gang, usable, missing)

    def score(self, gang: Gang, node: int, gpus: int) -> float:
        """What speaks against taking so many GPUs of a node, before tightness is looked at."""
        if self.placement == Placement.FASTEST:
            return -self.rules.speed(gang, node)
        if self.placement == Placement.POWER:
            return self._watts_per_work(gang, node, gpus)
        if self.placement == Placement.FGD:
            return increase_by_whole(self.floor, gang, node, gpus)
        return 0.0

    def _watts_per_work(self, gang: Gang, node: int, gpus: int) -> float:
        """Watts that running there adds, by the work it does."""
        conditions = self.rules.conditions
        gpu_watts = float(conditions.type_watts[self.rules.node_type[node]])
        wake = float(conditions.node_wake_w[node]) if self.floor.is_idle(node) else 0.0
        return (gpus * gpu_watts + wake) / (gpus * self.rules.speed(gang, node))

    def _tiered(self, gang: Gang, usable: Sequence[int]) -> Plan:
        """On as few nodes as an empty cluster would need; or one more, if that breaks none."""
        fewest = self.rules.fewest_nodes(gang)
        plan = self._within(gang, usable, fewest)
        if plan is None:
            plan = self._within(gang, usable, fewest + 1)
            if plan is not None and sum(self._broken(*part) for part in plan.items()) > 0:
                plan = None
        return packed(gang, usable) if plan is None else plan

    def _within(self, gang: Gang, usable: Sequence[int], budget: int) -> Plan | None:
        """Place a gang on at most so many nodes, each the best of those that leave it possible."""
        plan: Plan = {}
        while missing := gang.gpus - sum(plan.values()):
            most = {n: min(usable[n], gang.cap) for n in gang.nodes if n not in plan}
            nodes = [
                node
                for node in most
                if _leaves_it_possible(gang, node, most, missing, budget - len(plan))
            ]
            if not nodes:
                return None
            best = min(nodes, key=lambda node: self._tier_score(node, min(most[node], missing)))
            plan[best] = min(most[best], missing)
        return plan

    def _tier_score(self, node: int, gpus: int) -> tuple[float, ...]:
        if self.placement == Placement.TIER:
            return ()
        breaks = (float(self._broken(node, gpus)), float(self._stranded(node, gpus)))
        balance = self._imbalance(node, gpus)
        return (*breaks, balance) if self.placement == Placement.DEFRAG else (balance, *breaks)

    def _broken(self, node: int, gpus: int) -> int:
        """Change of the number of nodes that are neither empty nor full."""
        free, built = self.floor.room.gpus[node], self.rules.node_gpus[node]
        return (0 < free - gpus < built) - (0 < free < built)

    def _stranded(self, node: int, gpus: int) -> int:
        """Change of the number of free GPUs on such nodes."""
        free, built = self.floor.room.gpus[node], self.rules.node_gpus[node]
        after = free - gpus if 0 < free - gpus < built else 0
        return after - (free if 0 < free < built else 0)

    def _imbalance(self, node: int, gpus: int) -> float:
        """Change of the variance of the nodes' load, times the number of nodes."""
        loads = [
            1 - free / built
            for free, built in zip(self.floor.room.gpus, self.rules.node_gpus, strict=True)
        ]
        total = 0.0
        for load in loads:  # one after the other: `sum` rounds differently in newer Pythons
            total += load
        mean, step = total / self.rules.nodes, gpus / self.rules.node_gpus[node]
        return step * ((2.0 * loads[node] + step) - 2.0 * mean) - (step * step) / self.rules.nodes


def _leaves_it_possible(
    gang: Gang, node: int, most: dict[int, int], missing: int, nodes_left: int
) -> bool:
    """Whether the gang can be completed within the budget after taking this node."""
    if most[node] < (gang.gpus if gang.stays_on_one_node else 1):
        return False
    others = sorted((most[other] for other in most if other != node), reverse=True)
    return min(most[node], missing) + sum(others[: nodes_left - 1]) >= missing
