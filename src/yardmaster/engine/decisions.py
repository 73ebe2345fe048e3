"""Deciding in Python: what a pass shows to a function that chooses jobs and nodes itself.

Optimisers that look at many waiting jobs at once cannot be an order plus a placement. They get a
`Situation` at every pass and return which jobs start where; both engines carry that out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from yardmaster.engine.requests import Shapes
from yardmaster.model.workload import IntArray

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
