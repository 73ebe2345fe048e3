"""Classes of equal nodes, the jobs that may go there, and the ways their GPUs can be given away.

Nodes that look the same to every job (GPUs, free GPUs, GPUs left, GPUs usable by each shape) form
a class. Each node of a class walks down from its GPUs left, one arc per share that it gives away,
and ends at some level: its GPUs left afterwards. How many nodes use each arc and each end is what
the integer program decides; `walks` turns such counts back into single nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from yardmaster.engine.decisions import Plan
from yardmaster.schedulers.milp_room import Room


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs that nodes cannot tell apart: only how many of them, or of their GPUs, matters."""

    members: list[int]
    """Positions among the jobs to place, ascending."""
    shape: int
    """Shape of the first member; all agree in what nodes can give them."""
    gpus: list[int]
    """GPUs of each member; equal unless the members are gangs that may take any share."""
    cap: int
    is_single: bool


def groups_of(room: Room, shapes: Sequence[int]) -> list[Group]:
    """Put jobs together that can change places in any plan.

    Gangs over nodes can do so if none is limited in what it takes of a node; limited ones must
    also be of equal size. Where cores or memory are scarce every gang stands alone, because
    charges are rounded up for each.
    """
    found: dict[tuple[object, ...], Group] = {}
    for position, shape in enumerate(shapes):
        gpus, cap, is_single = room.gang(shape)
        usable = room.usable(shape)
        key: tuple[object, ...] = (is_single, usable.tobytes())
        if is_single:
            key += (gpus,)
        elif np.any((usable != room.situation.free) & (usable > 0)):
            key += (gpus, cap, position)
        elif cap < int(room.left[usable > 0].max()):
            key += (gpus, cap)
        group = found.setdefault(key, Group([], shape, [], cap, is_single))
        group.members.append(position)
        group.gpus.append(gpus)
    return list(found.values())


class NodeClass(NamedTuple):
    """Nodes that look the same to every job."""

    nodes: list[int]
    gpus: int
    left: int


def classes_of(room: Room, groups: Sequence[Group]) -> tuple[list[NodeClass], list[int]]:
    """Return the classes in order of their first node, and the nodes that nobody here can use."""
    needs = [group.gpus[0] if group.is_single else 1 for group in groups]
    has_room = np.zeros(len(room.left), dtype=bool)
    for group, need in zip(groups, needs, strict=True):
        has_room |= room.room_for(group.shape) >= need
    looks = [room.situation.node_gpus, room.situation.free, room.left]
    looks += [room.usable(group.shape) for group in groups]
    table = np.stack(looks, axis=1)
    found: dict[bytes, list[int]] = {}
    for node in np.flatnonzero(has_room).tolist():
        found.setdefault(table[node].tobytes(), []).append(node)
    classes = [
        NodeClass(nodes, int(table[nodes[0], 0]), int(table[nodes[0], 2]))
        for nodes in found.values()
    ]
    return classes, np.flatnonzero(~has_room).tolist()


State = tuple[int, int]
"""(gangs over nodes that have had their turn, GPUs left): where a node is on its walk."""


class Arc(NamedTuple):
    """One share given away, or none to the gang whose turn it is."""

    tail: State
    head: State
    gang: int
    """Number of the group if it is one of gangs over nodes, else −1."""
    gpus: int
    """The share; for jobs within a node, what the node is charged."""


@dataclass(slots=True)
class Flow:
    """All walks of a class's nodes."""

    kind: NodeClass
    arcs: list[Arc] = field(default_factory=list)
    ends: list[State] = field(default_factory=list)
    charges: dict[int, int] = field(default_factory=dict)
    """Group of jobs within a node → what one of them is charged; only groups that fit."""

    @property
    def columns(self) -> int:
        """How many counts describe the flow."""
        return len(self.arcs) + len(self.ends) + len(self.charges)

    @property
    def begin(self) -> State:
        """Where every node begins."""
        return 0, self.kind.left

    def ends_turns(self, arc: Arc) -> bool:
        """Whether nodes on this arc have just given something to gangs; each has one such arc."""
        last_turn = self.ends[0][0]
        return arc.gang >= 0 and arc.head[0] == last_turn and arc.head[1] < self.kind.left


def flow_of(room: Room, kind: NodeClass, groups: Sequence[Group]) -> Flow:
    """Lay out the walks: gangs over nodes take turns first, then single shares, largest first."""
    flow = Flow(kind)
    turn, levels = 0, {kind.left}
    for number, group in enumerate(groups):
        if not group.is_single and (shares := _shares(room, kind, group)):
            levels = _add_turn(flow, number, turn, levels, shares)
            turn += 1
        elif group.is_single and room.room_for(group.shape)[kind.nodes[0]] >= group.gpus[0]:
            flow.charges[number] = room.charge(group.shape, kind.nodes[0], group.gpus[0])
    for size in sorted(set(flow.charges.values()), reverse=True):
        for level in range(kind.left, size - 1, -1):
            if level in levels:
                flow.arcs.append(Arc((turn, level), (turn, level - size), -1, size))
                levels.add(level - size)
    flow.ends = [(turn, level) for level in sorted(levels)]
    return flow


def _shares(room: Room, kind: NodeClass, group: Group) -> list[int]:
    """Return what a node of this class is charged if the group takes 1, 2, … of its GPUs."""
    node = kind.nodes[0]
    most = min(int(room.room_for(group.shape)[node]), len(group.members) * group.cap)
    return [room.charge(group.shape, node, gpus) for gpus in range(1, most + 1)]


def _add_turn(
    flow: Flow, number: int, turn: int, levels: set[int], shares: Sequence[int]
) -> set[int]:
    """Let every node give one share, or none, to a group of gangs; return the levels after it."""
    after: set[int] = set()
    for level in sorted(levels, reverse=True):
        for gpus, charge in enumerate([0, *shares]):
            if charge <= level:
                flow.arcs.append(Arc((turn, level), (turn + 1, level - charge), number, gpus))
                after.add(level - charge)
    return after


class Walk(NamedTuple):
    """What one node gives away."""

    to_gangs: dict[int, int]
    """GPUs by group."""
    charges: list[int]
    """Charges of the jobs within this node, largest first."""


def walks(flow: Flow, used: Sequence[int]) -> dict[int, Walk]:
    """Split how often each arc is used into one walk per node; the lowest numbers give first."""
    remaining = dict(zip(flow.arcs, used, strict=True))
    out: dict[State, list[Arc]] = {}
    for arc in flow.arcs:
        if remaining[arc]:
            out.setdefault(arc.tail, []).append(arc)
    found: list[Walk] = []
    for _ in flow.kind.nodes:
        walk, state = Walk({}, []), flow.begin
        while step := next((arc for arc in out.get(state, ()) if remaining[arc]), None):
            remaining[step] -= 1
            state = step.head
            if step.gang >= 0 and step.gpus:
                walk.to_gangs[step.gang] = step.gpus
            elif step.gang < 0:
                walk.charges.append(step.gpus)
        found.append(walk)
    found.sort(key=lambda walk: not walk.to_gangs and not walk.charges)
    return dict(zip(flow.kind.nodes, found, strict=True))


def split_gangs(group: Group, given: dict[int, int]) -> dict[int, Plan]:
    """Divide the GPUs that nodes give to a group of gangs among its members.

    With r members still to come none may leave more than r · cap on a node; a member first takes
    what it must because of that, then the largest rests, so that gangs stay on few nodes.
    """
    plans: dict[int, Plan] = {}
    rest = dict(given)
    for done, (position, gpus) in enumerate(zip(group.members, group.gpus, strict=True), 1):
        later = (len(group.members) - done) * group.cap
        plan = {node: count - later for node, count in rest.items() if count > later}
        missing = gpus - sum(plan.values())
        for node in sorted(rest, key=lambda node: (-rest[node], node)):
            more = min(rest[node], group.cap, missing + plan.get(node, 0))
            missing -= more - plan.get(node, 0)
            if more:
                plan[node] = more
        plans[position] = dict(sorted(plan.items()))
        rest = {node: count - plan.get(node, 0) for node, count in rest.items()}
    return plans
