"""An integer program, column by column and row by row, and HiGHS to solve it.

HiGHS runs on one thread with a fixed seed, so the same program has the same answer every time,
unless the time limit ends the search: then the answer is the best one found so far, which depends
on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

GAP = 1e-7
"""Objective values nearer than this are equal; the least difference between answers is larger."""


class Status(IntEnum):
    """How a search ended, from the best news to the worst."""

    INFEASIBLE = 0
    """There is no answer, for certain."""
    OPTIMAL = 1
    LIMITED = 2
    """Out of time, with an answer that need not be the best."""
    NONE = 3
    """Out of time, without an answer."""
    TOO_LARGE = 4
    """Not even tried."""


class Answer(NamedTuple):
    """What came of a search; `values` holds every column's integer, if there are any."""

    status: Status
    values: list[int]


@dataclass(slots=True)
class Program:
    """Minimise costs · columns over integers 0 … upper, subject to rows."""

    cost: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    row_begin: list[int] = field(default_factory=lambda: [0])
    entry_column: list[int] = field(default_factory=list)
    entry_value: list[float] = field(default_factory=list)

    def column(self, *, upper: float, lower: float = 0, cost: float = 0.0) -> int:
        """Add an integer variable and return its number."""
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.cost) - 1

    def row(
        self, entries: Mapping[int, float], *, equal: float | None = None, most: float = math.inf
    ) -> None:
        """Require that the sum of entries · columns equals `equal`, or is at most `most`."""
        self.row_lower.append(-math.inf if equal is None else equal)
        self.row_upper.append(most if equal is None else equal)
        self.entry_column.extend(entries.keys())
        self.entry_value.extend(entries.values())
        self.row_begin.append(len(self.entry_column))


def solve(program: Program, limit_s: float) -> Answer:
    """Search for at most so many seconds of real time."""
    import highspy

    if limit_s <= 0:
        return Answer(Status.NONE, [])
    new_solver: Callable[[], highspy.Highs] = highspy.Highs  # its own signature is untyped
    solver = new_solver()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("parallel", "off"),
        ("random_seed", 0),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", GAP),
        ("time_limit", limit_s),
    ):
        solver.setOptionValue(option, value)
    columns, rows = len(program.cost), len(program.row_lower)
    solver.passModel(
        columns,
        rows,
        len(program.entry_value),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        np.asarray(program.cost),
        np.asarray(program.lower, dtype=np.float64),
        np.asarray(program.upper, dtype=np.float64),
        np.asarray(program.row_lower),
        np.asarray(program.row_upper),
        np.asarray(program.row_begin, dtype=np.int32),
        np.asarray(program.entry_column, dtype=np.int32),
        np.asarray(program.entry_value, dtype=np.float64),
        np.full(columns, int(highspy.HighsVarType.kInteger), dtype=np.int32),
    )
    solver.run()
    ended = solver.getModelStatus()
    if ended == highspy.HighsModelStatus.kInfeasible:
        return Answer(Status.INFEASIBLE, [])
    feasible = int(highspy.SolutionStatus.kSolutionStatusFeasible)
    if solver.getInfo().primal_solution_status != feasible:
        return Answer(Status.NONE, [])
    values = np.rint(solver.getSolution().col_value).astype(np.int64).tolist()
    is_best = ended == highspy.HighsModelStatus.kOptimal
    return Answer(Status.OPTIMAL if is_best else Status.LIMITED, values)
