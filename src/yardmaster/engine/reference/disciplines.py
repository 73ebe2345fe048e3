"""The SimPy reference: what happens when the next job does not fit.

The plain disciplines are here. `easy` and `conservative` reserve and promise, `preemptive`,
`timeslice`, `elastic` and `defrag` stop running jobs; they have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from yardmaster.engine.decisions import Decide, Situation
from yardmaster.engine.reference.conservative import Conservative
from yardmaster.engine.reference.defrag import defrag
from yardmaster.engine.reference.easy import easy
from yardmaster.engine.reference.elastic import elastic
from yardmaster.engine.reference.preemption import preemptive
from yardmaster.engine.reference.rules import Plan
from yardmaster.engine.reference.yard import Place, Yard
from yardmaster.engine.requests import Shapes
from yardmaster.engine.state import Discipline
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import IntArray

Rule = Callable[[Yard], None]
"""A discipline: starts what may start now."""


def strict(yard: Yard) -> None:
    """Start jobs up to the first that does not fit."""
    for row in yard.choices():
        if not yard.starts(row):
            return


def skip(yard: Yard) -> None:
    """Start every job that fits."""
    for row in yard.choices():
        yard.starts(row)


class Commit:
    """The first in order is chosen for good, and blocks the others until it starts."""

    def __init__(self) -> None:
        self.chosen: int | None = None

    def __call__(self, yard: Yard) -> None:
        """Start the chosen job if it fits, then choose the next."""
        while True:
            if self.chosen is None or yard.class_of(self.chosen) is None:  # held back
                self.chosen = yard.first(yard.waiting)
            if self.chosen is None or not yard.starts(self.chosen):
                return
            self.chosen = None


class Decided:
    """A Python function says which jobs start, and on which nodes."""

    def __init__(self, decide: Decide, shapes: Shapes) -> None:
        self.decide = decide
        self.shapes = shapes

    def __call__(self, yard: Yard) -> None:
        """Show the function what waits and what is free, and do as it says.

        Raises:
            YardmasterError: if a plan does not fit.
        """
        rows = yard.in_order(yard.waiting)
        if not rows:
            return
        for row, plan in self.decide(self._situation(yard, rows)):
            _check(yard, row, plan)
            yard.start(row, Place(dict(plan)))

    def _situation(self, yard: Yard, rows: list[int]) -> Situation:
        def usable(shape: int) -> IntArray:
            return np.array(yard.room.usable(yard.rules.gangs[shape]), dtype=np.int64)

        built = [
            0 if node in yard.floor.away else gpus for node, gpus in enumerate(yard.rules.node_gpus)
        ]
        return Situation(
            now_s=yard.now_s,
            rows=np.array(rows, dtype=np.int64),
            shapes=self.shapes,
            node_gpus=np.array(built, dtype=np.int64),
            free=np.array(yard.room.gpus, dtype=np.int64),
            usable=usable,
        )


def _check(yard: Yard, row: int, plan: Plan) -> None:
    """Refuse a plan that cannot be carried out."""
    if row not in yard.waiting:
        raise YardmasterError(f"The decision starts job {row}, which does not wait.")
    gang = yard.gang(row)
    usable = yard.room.usable(gang)
    fits = (
        sum(plan.values()) == gang.gpus
        and all(1 <= gpus <= min(usable[node], gang.cap) for node, gpus in plan.items())
        and (len(plan) == 1 or not gang.stays_on_one_node)
        and yard.room.has_power_for(gang)
    )
    if not fits:
        raise YardmasterError(
            f"The decision starts job {row} on GPUs {dict(plan)} by node, which does not fit."
        )


def rule(discipline: Discipline) -> Rule:
    """Return a fresh rule of this name, with nothing chosen and nothing promised."""
    rules: dict[Discipline, Rule] = {
        Discipline.STRICT: strict,
        Discipline.SKIP: skip,
        Discipline.COMMIT: Commit(),
        Discipline.EASY: easy,
        Discipline.CONSERVATIVE: Conservative(),
        Discipline.PREEMPTIVE: preemptive,
        Discipline.TIMESLICE: preemptive,
        Discipline.ELASTIC: elastic,
        Discipline.DEFRAG: defrag,
    }
    return rules[discipline]
