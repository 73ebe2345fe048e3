"""The kernels of choosing schedulers on a GPU, compiled; see `choosing_kernels`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from yardmaster.engine import compilation
from yardmaster.engine.gpu import lanes
from yardmaster.engine.gpu.availability import is_simulated
from yardmaster.engine.gpu.picking import TEAM, copied
from yardmaster.engine.state import Discipline
from yardmaster.model.workload import IntArray

MODULES = (
    *compilation.CORE_MODULES,
    "yardmaster.engine.choosing.accounts",
    "yardmaster.engine.choosing.showing",
    "yardmaster.engine.choosing.stepping",
    "yardmaster.engine.gpu.hashing",
    "yardmaster.engine.gpu.kernels",
    "yardmaster.engine.gpu.choosing_kernels",
)
WARPS = 1024
"""Warps that keep a GPU at work. A step may be thousands of events, in each environment other ones,
so that few environments are better spread over many warps than packed into few."""
TALLY = (
    *("episodes", "returns", "steps", "switches", "jobs", "jct_s", "bounded_slowdown"),
    *("wait_s", "late"),
)
"""What is added up over the episodes that ended, for each regime."""


def _nothing(ints: Any, reals: Any) -> int:  # noqa: ARG001
    """Stand in for a pass that no scheduler of the menu makes."""
    return 0


def _nothing_of(ints: Any, reals: Any, what: int) -> int:  # noqa: ARG001
    """Stand in for one that is told something."""
    return 0


_PASSES: dict[str, tuple[int, Any]] = {
    "conservative_pass": (Discipline.CONSERVATIVE, _nothing),
    "_schedule_really": (Discipline.ELASTIC, _nothing_of),
    "_start_committed": (Discipline.COMMIT, _nothing),
    "_start_all_that_fit": (Discipline.SKIP, _nothing),
    "_backfill": (Discipline.EASY, _nothing_of),
}
"""Passes of the core, the discipline that needs each (menus have none that stops or moves running
jobs), and what is compiled in its place where none does: most of the time that compiling takes."""


class ChoosingKernels(NamedTuple):
    """What Python launches; see `picking.Kernels`."""

    step: Any
    begin_kept: Any
    act_at_random: Any
    team: int


def threads_for(environments: int) -> int:
    """Return how many environments a block steps: of those that run in step, as few as can be."""
    return max(1, min(lanes.LANES, environments // WARPS))


def compiled(
    rules: IntArray, constants: Mapping[int, int], disciplines: frozenset[int], *, is_real: bool
) -> ChoosingKernels:
    """Compile the kernels of a task; machine code is made when each is first launched.

    Args:
        rules: what the task is.
        constants: integers of the core that never change; see `menus`.
        disciplines: those of the menu's schedulers; code for others is left out.
        is_real: whether clusters have more than equal GPUs that never fail.

    Raises:
        YardmasterError: if there is no GPU to run them on.
    """
    known = tuple(sorted(constants.items()))
    row = tuple(np.asarray(rules).tolist())
    return _compiled(row, known, disciplines, is_real=is_real)


@cache
def _compiled(
    rules: tuple[int, ...],
    known: tuple[tuple[int, int], ...],
    disciplines: frozenset[int],
    *,
    is_real: bool,
) -> ChoosingKernels:
    unused = {name: one for name, (own, one) in _PASSES.items() if own not in disciplines}
    found = copied(MODULES, rules, dict(known), is_real=is_real, in_place=unused)
    return ChoosingKernels(
        step=found["choosing_kernels.step_all"],
        begin_kept=found["choosing_kernels.begin_kept"],
        act_at_random=found["kernels.act_at_random"],
        team=2 if is_simulated() else TEAM,
    )
