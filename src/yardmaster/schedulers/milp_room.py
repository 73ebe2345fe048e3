"""What is left of the nodes while a pass hands them out, and the pack rule on it.

A job that needs many cores or much memory can use fewer GPUs of a node than are free. Taking t of
them uses up t/usable of the node's host resources, so we charge it ⌈t · free / usable⌉ GPUs. As
long as a node's charges stay within its free GPUs, its cores and memory suffice as well: with
usable ≤ cores free / cores per GPU, the shares t/usable of all jobs add up to at most 1. Where
only GPUs are scarce, the charge is t itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from yardmaster.engine.decisions import Plan, Situation
from yardmaster.model.workload import IntArray

LATE = 1_000_000
"""Pack rank of a node that cannot complete the gang; above every number of GPUs in a node."""


@dataclass(slots=True, eq=False)
class Room:
    """The nodes of one pass, less what has been promised in it so far."""

    situation: Situation
    left: IntArray = field(init=False)
    """(nodes,) free GPUs less all charges."""
    _usable: dict[int, IntArray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.left = self.situation.free.astype(np.int64)

    def usable(self, shape: int) -> IntArray:
        """(nodes,) GPUs a job of this shape could use at the beginning of the pass."""
        if shape not in self._usable:
            asked = np.asarray(self.situation.usable(shape), dtype=np.int64)
            self._usable[shape] = np.minimum(asked, self.situation.free)
        return self._usable[shape]

    def room_for(self, shape: int) -> IntArray:
        """(nodes,) GPUs a job of this shape could use now."""
        return self.left * self.usable(shape) // np.maximum(self.situation.free, 1)

    def charge(self, shape: int, node: int, gpus: int) -> int:
        """GPUs that taking `gpus` of this node costs it."""
        usable = int(self.usable(shape)[node])
        return -(-gpus * int(self.situation.free[node]) // usable)

    def take(self, shape: int, plan: Plan) -> None:
        """Promise a plan's GPUs."""
        for node, gpus in plan.items():
            self.left[node] -= self.charge(shape, node, gpus)

    def gang(self, shape: int) -> tuple[int, int, bool]:
        """GPUs of a job of this shape, its most on one node, and whether it must stay on one."""
        shapes = self.situation.shapes
        return int(shapes.gpus[shape]), int(shapes.cap[shape]), bool(shapes.single[shape])

    def fits(self, shape: int) -> bool:
        """Whether a job of this shape could start now."""
        gpus, cap, is_single = self.gang(shape)
        room = self.room_for(shape)
        if is_single:
            return bool((room >= gpus).any())
        return int(np.minimum(room, cap).sum()) >= gpus

    def fitting(self, rows: IntArray) -> IntArray:
        """Return those of the waiting rows that could start now, each by itself."""
        shape_of = self.situation.shapes.of_job[rows]
        fits = np.zeros(len(self.situation.shapes.gpus), dtype=bool)
        for shape in np.unique(shape_of).tolist():
            fits[shape] = self.fits(shape)
        return rows[fits[shape_of]]

    def packed(self, shape: int) -> Plan | None:
        """Choose nodes for one job as the placement `pack` does; None if it does not fit."""
        gpus, cap, is_single = self.gang(shape)
        room = self.room_for(shape)
        share = np.minimum(room, gpus if is_single else cap)
        if is_single:
            share[room < gpus] = 0
        if int(share.sum()) < gpus:
            return None
        plan: Plan = {}
        missing = gpus
        while missing:
            rank = np.where(share >= missing, room, LATE - room)
            node = int(np.argmin(np.where(share > 0, rank, 2 * LATE)))
            plan[node] = min(int(share[node]), missing)
            missing -= plan[node]
            share[node] = 0
        return plan

    def pack_all(self, shapes: list[int]) -> list[Plan] | None:
        """Pack jobs one after the other; None, with nothing taken, if one does not fit."""
        before = self.left.copy()
        plans: list[Plan] = []
        for shape in shapes:
            plan = self.packed(shape)
            if plan is None:
                self.left = before
                return None
            self.take(shape, plan)
            plans.append(plan)
        return plans
