"""The kernels of picking jobs on a GPU, compiled; see `kernels`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from yardmaster.engine import compilation
from yardmaster.engine.gpu import lanes
from yardmaster.engine.gpu.availability import is_simulated, require_gpu
from yardmaster.model.workload import IntArray

MODULES = (
    *compilation.CORE_MODULES,
    "yardmaster.engine.picking.line",
    "yardmaster.engine.picking.lookahead",
    "yardmaster.engine.picking.features",
    "yardmaster.engine.picking.other_features",
    "yardmaster.engine.picking.terms",
    "yardmaster.engine.picking.stepping",
    "yardmaster.engine.drawing.jobs",
    "yardmaster.engine.gpu.hashing",
    "yardmaster.engine.gpu.kernels",
)
THREADS = 64
"""Threads of a block that steps."""
REGISTERS = 64
"""Registers of a thread. Threads wait for memory most of the time: more of them at once are worth
more than what is kept in registers."""
TEAM = 64
"""Threads that begin one environment together."""
TALLY = ("episodes", "returns", "steps", "noops", "jobs", "jct_s", "bounded_slowdown")
"""What is added up over the episodes that ended, for each group of them."""


class Kernels(NamedTuple):
    """What Python launches."""

    step: Any
    """One thread for every environment: carry out its action, go on to the next decision, look."""
    begin_kept: Any
    """One block for every tile: where an episode has ended, begin one of the bank's."""
    begin_drawn: Any
    """The same with an episode that is drawn on the spot."""
    act_at_random: Any
    """One thread for every environment: any legal action."""
    threads: int
    """Threads of a block that steps."""
    team: int
    """Threads of a block that begins."""


def compiled(rules: IntArray, constants: Mapping[int, int], *, is_real: bool) -> Kernels:
    """Compile the kernels of a task; machine code is made when each is first launched.

    Tasks with the same rules and constants share it.

    Args:
        rules: what the task is.
        constants: integers of the core that are the same in all episodes; see `alignment`.
        is_real: whether clusters have more than equal GPUs that never fail.

    Raises:
        YardmasterError: if there is no GPU to run them on.
    """
    known = tuple(sorted(constants.items()))
    return _compiled(tuple(np.asarray(rules).tolist()), known, is_real=is_real)


@cache
def _compiled(
    rules: tuple[int, ...], known: tuple[tuple[int, int], ...], *, is_real: bool
) -> Kernels:
    found = copied(MODULES, rules, dict(known), is_real=is_real, registers=REGISTERS)
    is_played = is_simulated()
    return Kernels(
        step=found["kernels.step_all"],
        begin_kept=found["kernels.begin_kept"],
        begin_drawn=found["kernels.begin_drawn"],
        act_at_random=found["kernels.act_at_random"],
        threads=lanes.LANES if is_played else THREADS,
        team=2 if is_played else TEAM,
    )


def copied(
    modules: Sequence[str],
    rules: tuple[int, ...],
    constants: Mapping[int, int],
    *,
    is_real: bool,
    in_place: Mapping[str, Any] | None = None,
    registers: int | None = None,
) -> dict[str, Any]:
    """Return copies of the modules' functions for the GPU, by `module.function`.

    `in_place` has functions to be compiled in place of others that are never called; `registers`
    limits how many of them a thread has.

    Raises:
        YardmasterError: if there is no GPU to run them on.
    """
    cuda = require_gpu()
    is_played = is_simulated()
    reach = lanes.simulated() if is_played else lanes.compiled(constants)
    # Who plays a GPU has no registers.
    limits = {} if is_played or registers is None else {"max_registers": registers}
    replaced = reach._asdict() | {"cuda": cuda, "RULES": rules}
    if not is_played:
        replaced |= {"float64": cuda.types.float64, "low64": cuda.jit(device=True)(_itself)}
        replaced |= {name: cuda.jit(device=True)(one) for name, one in (in_place or {}).items()}

    def made(function: Any, special: dict[str, bool | str]) -> Any:
        if "cache" in special:  # an entry point
            return cuda.jit(function, **limits)
        return function if is_played else cuda.jit(device=True)(function)

    return compilation.copies(made, modules, is_real=is_real or is_played, replaced=replaced)


def _itself(value: int) -> int:
    """Return the number: compiled ones have 64 bits."""
    return value
