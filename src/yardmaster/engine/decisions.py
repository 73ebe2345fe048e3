"""Deciding in Python: what a pass shows to a function that chooses jobs and nodes itself.

Optimisers that look at many waiting jobs at once cannot be an order plus a placement. They get a
`Situation` at every pass and return which jobs start where; both engines carry that out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.engine import state as at
from yardmaster.engine.core.tenants import BORROWING, HELD_BACK, WITHIN_GUARANTEE
from yardmaster.engine.layout import Simulation
from yardmaster.engine.requests import Shapes
from yardmaster.engine.state import OrderKind
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray, IntArray

Plan = dict[int, int]
"""GPUs to take, by node."""


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """One scheduling pass, as seen from outside."""

    now_s: float
    rows: IntArray
    """Waiting jobs that may start, in the order of the pass."""
    shapes: Shapes
    node_gpus: IntArray
    """(nodes,) GPUs of each node, free or not; 0 while the node is away."""
    free: IntArray
    """(nodes,) GPUs free now."""
    usable: Callable[[int], IntArray]
    """shape → (nodes,) GPUs a job of this shape could use on each node now."""


Decide = Callable[[Situation], Sequence[tuple[int, Plan]]]
"""The jobs to start now, in this order, each with its nodes; every plan must fit."""


def situation_of(simulation: Simulation, shapes: Shapes) -> Situation:
    """Show the pass that is due in a simulation whose queue is a list."""
    ints, nodes = simulation.ints, int(simulation.ints[at.NODES])
    waiting = simulation.int_table(at.QUEUE, int(ints[at.QUEUED]))
    level = _classes(simulation, shapes)[shapes.of_job[waiting]]
    waiting, level = waiting[level < HELD_BACK], level[level < HELD_BACK]
    rows = waiting[np.lexsort((waiting, _keys(simulation, waiting), level))]
    node_gpus = simulation.int_table(at.NODE_GPUS, nodes)
    is_away = simulation.int_table(at.NODE_DOWN, nodes) == 1
    return Situation(
        now_s=float(simulation.reals[at.NOW]),
        rows=rows,
        shapes=shapes,
        node_gpus=np.where(is_away, 0, node_gpus),
        free=simulation.int_table(at.NODE_FREE, nodes).copy(),
        usable=lambda shape: _usable(simulation, shape),
    )


def _classes(simulation: Simulation, shapes: Shapes) -> IntArray:
    """Return the class of each shape, by what its tenant holds and may hold."""
    tenants, count = int(simulation.ints[at.TENANTS]), len(shapes.gpus)
    if tenants == 0:
        return np.full(count, WITHIN_GUARANTEE)
    tenant = simulation.int_table(at.SHAPE_TENANT, count)
    wanted = simulation.int_table(at.TENANT_USED, tenants)[tenant] + shapes.gpus
    level = np.where(
        wanted <= simulation.int_table(at.LIMIT, tenants)[tenant], BORROWING, HELD_BACK
    )
    within = wanted <= simulation.int_table(at.GUARANTEED, tenants)[tenant]
    return np.asarray(np.where(within, WITHIN_GUARANTEE, level))


def _keys(simulation: Simulation, rows: IntArray) -> FloatArray:
    jobs = int(simulation.ints[at.JOBS])
    offset = simulation.real_table(at.OFFSET, jobs)[rows]
    if simulation.ints[at.ORDER] != OrderKind.AGEING:
        return offset
    age = simulation.reals[at.NOW] - simulation.real_table(at.SINCE, jobs)[rows]
    low, high = simulation.reals[at.CLIP_LOW], simulation.reals[at.CLIP_HIGH]
    rate = simulation.real_table(at.RATE, jobs)[rows]
    return np.asarray(offset + rate * np.clip(age, low, high))


def _usable(simulation: Simulation, shape: int) -> IntArray:
    """Return the GPUs a job of this shape could use on each node now."""
    ints, nodes = simulation.ints, int(simulation.ints[at.NODES])
    shapes = int(ints[at.SHAPES])
    types = int(simulation.int_table(at.SHAPE_TYPES, shapes)[shape])
    allowed = (types >> simulation.int_table(at.NODE_TYPE, nodes)) & 1
    room = simulation.int_table(at.NODE_FREE, nodes) * allowed
    for need, there in ((at.SHAPE_CPU, at.NODE_CPU), (at.SHAPE_MIB, at.NODE_MIB)):
        needed = int(simulation.int_table(need, shapes)[shape])
        if needed > 0:
            room = np.minimum(room, simulation.int_table(there, nodes) // needed)
    return np.asarray(room, dtype=np.int64)


def check_plan(situation: Situation, waiting: set[int], row: int, plan: Plan) -> None:
    """Refuse a plan that cannot be carried out, for one of the jobs still waiting.

    Raises:
        YardmasterError: naming the job and what is wrong.
    """
    if row not in waiting:
        raise YardmasterError(f"The decision starts job {row}, which is not waiting.")
    shape = int(situation.shapes.of_job[row])
    wanted = int(situation.shapes.gpus[shape])
    if sum(plan.values()) != wanted or min(plan.values(), default=0) < 1:
        raise YardmasterError(f"The decision gives job {row} {plan}, but it needs {wanted} GPUs.")
    if situation.shapes.single[shape] and len(plan) > 1:
        raise YardmasterError(f"The decision spreads job {row} over {plan}; it fits into one node.")
    room = situation.usable(shape)
    cap = int(situation.shapes.cap[shape])
    for node, gpus in plan.items():
        if gpus > min(int(room[node]), cap):
            raise YardmasterError(
                f"The decision gives job {row} {gpus} GPUs of node {node}, which has {room[node]}"
                f" for it (at most {cap} on one node)."
            )
