"""Where a given set of jobs goes: the integer program behind the `milp` placement.

Minimised over all ways to place every job of the set, with `left` the GPUs left on a node:

    fragmentation · (nodes with 0 < left < GPUs)
    + balance · (largest − smallest left / GPUs of the nodes)
    + scatter · (nodes of which gangs over nodes take GPUs)
    − room · (nodes that could hold one more job like those placed here, averaged over these jobs)

A node could hold one more if it has room for the whole job or, of a gang over nodes, for the
largest share the gang may take of one node. Nodes without GPUs (away) do not count.

The program counts nodes by where their walk ends (see `milp_flows`), and counts are equalities: no
node can be partly used without being paid for. Only balance needs binaries, two for each distinct
left / GPUs: whether any node ends at it or above, and at it or below. Ends force them up, and
their cost forces them down, so they mean what they say at every optimum.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from yardmaster.engine.decisions import Plan
from yardmaster.schedulers.milp_flows import (
    Flow,
    Group,
    State,
    classes_of,
    flow_of,
    groups_of,
    split_gangs,
    walks,
)
from yardmaster.schedulers.milp_program import Answer, Program, Status, solve
from yardmaster.schedulers.milp_room import Room

MOST_COLUMNS = 20_000
"""Larger programs are not even tried: writing them down would take longer than a pass may."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a plan is judged by; see the module's objective."""

    fragmentation: float = 1.0
    balance: float = 0.3
    scatter: float = 1.0
    """Without it gangs over nodes fill the rests of many nodes, which looks tidy until they end."""
    room: float = 0.5


@dataclass(slots=True)
class _Columns:
    """Where the program keeps its decisions."""

    arcs: list[range] = field(default_factory=list)
    """Per class, one column for each arc."""
    ends: list[dict[State, int]] = field(default_factory=list)
    within: list[dict[int, int]] = field(default_factory=list)
    """Per class, group of jobs within a node → how many of them go to this class."""


def place(
    room: Room, shapes: Sequence[int], weights: Weights | None, deadline_s: float
) -> tuple[Status, list[Plan]]:
    """Find nodes for jobs of these shapes, all of them at once.

    Args:
        room: what is left of the nodes.
        shapes: the shape of each job.
        weights: what makes a good plan; None if any will do.
        deadline_s: second of `time.perf_counter` at which the best plan so far is taken.

    Returns:
        How the search ended, and one plan per job if it found any.
    """
    groups = groups_of(room, shapes)
    classes, unused = classes_of(room, groups)
    flows: list[Flow] = []
    columns_left = MOST_COLUMNS
    for kind in classes:
        flows.append(flow_of(room, kind, groups))
        columns_left -= flows[-1].columns
        if columns_left < 0:
            return Status.TOO_LARGE, []
    program, columns = Program(), _Columns()
    counts = Counter(shapes)
    for flow in flows:
        prices = _prices(room, flow, counts, weights) if weights else {}
        _add_flow(program, columns, flow, prices, weights.scatter if weights else 0.0)
    _add_demand(program, columns, flows, groups)
    if weights and weights.balance:
        _add_balance(program, columns, flows, _fractions(room, unused), weights.balance)
    answer = solve(program, deadline_s - time.perf_counter())
    return answer.status, _plans(answer, columns, flows, groups) if answer.values else []


def _prices(room: Room, flow: Flow, counts: Counter[int], weights: Weights) -> dict[State, float]:
    """Return what one node costs at each end of its walk."""
    node, gpus = flow.kind.nodes[0], flow.kind.gpus
    free = int(room.situation.free[node])
    needs: list[tuple[int, int, int]] = []
    for shape, count in counts.items():
        size, cap, _ = room.gang(shape)
        needs.append((min(size, cap), int(room.usable(shape)[node]), count))
    prices: dict[State, float] = {}
    for state in flow.ends:
        left = state[1]
        holding = sum(count for need, usable, count in needs if left * usable // free >= need)
        is_partial = 0 < left < gpus
        hold = weights.room * holding / counts.total()
        prices[state] = weights.fragmentation * is_partial - hold
    return prices


def _add_flow(
    program: Program, columns: _Columns, flow: Flow, prices: dict[State, float], scatter: float
) -> None:
    """Count how many nodes of the class use each arc and each end; what comes in goes out."""
    nodes = len(flow.kind.nodes)
    first = len(program.cost)
    balance: dict[State, dict[int, float]] = {flow.begin: {}}
    by_charge: dict[int, dict[int, float]] = {charge: {} for charge in flow.charges.values()}
    for arc in flow.arcs:
        column = program.column(upper=nodes, cost=scatter if flow.ends_turns(arc) else 0.0)
        balance.setdefault(arc.tail, {})[column] = -1.0
        balance.setdefault(arc.head, {})[column] = 1.0
        if arc.gang < 0:
            by_charge[arc.gpus][column] = 1.0
    columns.arcs.append(range(first, len(program.cost)))
    ends = {state: program.column(upper=nodes, cost=prices.get(state, 0.0)) for state in flow.ends}
    for state, column in ends.items():
        balance.setdefault(state, {})[column] = -1.0
    columns.ends.append(ends)
    for state, entries in balance.items():
        program.row(entries, equal=-nodes if state == flow.begin else 0)
    most = nodes * flow.kind.left
    within = {number: program.column(upper=most) for number in flow.charges}
    for number, charge in flow.charges.items():
        by_charge[charge][within[number]] = -1.0
    for entries in by_charge.values():
        program.row(entries, equal=0)
    columns.within.append(within)


def _add_demand(
    program: Program, columns: _Columns, flows: Sequence[Flow], groups: Sequence[Group]
) -> None:
    """Require that every job of the set is placed."""
    for number, group in enumerate(groups):
        entries: dict[int, float] = {}
        for flow, arcs, within in zip(flows, columns.arcs, columns.within, strict=True):
            if number in within:
                entries[within[number]] = 1.0
            for arc, column in zip(flow.arcs, arcs, strict=True):
                if arc.gang == number and arc.gpus:
                    entries[column] = float(arc.gpus)
        program.row(entries, equal=len(group.members) if group.is_single else sum(group.gpus))


def _fractions(room: Room, nodes: Sequence[int]) -> set[float]:
    """Return left / GPUs of nodes on which nothing will change."""
    gpus = room.situation.node_gpus
    return {int(room.left[node]) / int(gpus[node]) for node in nodes if gpus[node]}


def _add_balance(
    program: Program,
    columns: _Columns,
    flows: Sequence[Flow],
    fixed: set[float],
    weight: float,
) -> None:
    """Pay for the distance between the emptiest and the fullest node."""
    at: dict[float, dict[int, float]] = {fraction: {} for fraction in fixed}
    for flow, ends in zip(flows, columns.ends, strict=True):
        for (_, left), column in ends.items():
            at.setdefault(left / flow.kind.gpus, {})[column] = 1.0
    nodes = sum(len(flow.kind.nodes) for flow in flows)
    ascending = sorted(at)
    for fractions in (ascending, ascending[::-1]):  # once from below, once from above
        before: int | None = None
        for nearer, fraction in pairwise(fractions):
            reached = program.column(
                upper=1, lower=fraction in fixed, cost=weight * abs(fraction - nearer)
            )
            program.row({**at[fraction], reached: -float(nodes)}, most=0)
            if before is not None:
                program.row({reached: 1.0, before: -1.0}, most=0)
            before = reached


def _plans(
    answer: Answer, columns: _Columns, flows: Sequence[Flow], groups: Sequence[Group]
) -> list[Plan]:
    """Turn counts into plans, one per job."""
    plans: dict[int, Plan] = {}
    to_gangs: list[dict[int, int]] = [{} for _ in groups]
    members = [iter(group.members) for group in groups]
    for flow, arcs, within in zip(flows, columns.arcs, columns.within, strict=True):
        given = walks(flow, [answer.values[column] for column in arcs])
        slots = {
            charge: iter(
                [node for node, walk in given.items() for c in walk.charges if c == charge]
            )
            for charge in set(flow.charges.values())
        }
        for node, walk in given.items():
            for number, gpus in walk.to_gangs.items():
                to_gangs[number][node] = gpus
        for number, column in within.items():
            for _ in range(answer.values[column]):
                node = next(slots[flow.charges[number]])
                plans[next(members[number])] = {node: groups[number].gpus[0]}
    for group, nodes in zip(groups, to_gangs, strict=True):
        if not group.is_single:
            plans |= split_gangs(group, nodes)
    return [plans[position] for position in range(len(plans))]
