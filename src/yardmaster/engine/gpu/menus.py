"""Making simulations with menus alike, as `alignment` does with those that have none.

A menu and the keys of its orders stand behind the core's tables. They are taken off, the rest is
aligned, and they are put back behind it, where the longest of all simulations needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from yardmaster.engine import state
from yardmaster.engine.choosing import places as at
from yardmaster.engine.gpu.alignment import aligned, common, stacked
from yardmaster.engine.layout import Simulation
from yardmaster.model.workload import FloatArray, IntArray

_TABLES = (at.MENU_OFFSET, at.MENU_RATE, at.MENU_SINCE, at.MENU_CLIP_LOW)
"""Fields of a menu that say where something begins in `reals`; the last: two bounds."""
_WRITTEN = {
    state.ORDER: at.MENU_ORDER,
    state.DISCIPLINE: at.MENU_DISCIPLINE,
    state.PLACEMENT: at.MENU_PLACEMENT,
    state.OFFSET: at.MENU_OFFSET,
    state.RATE: at.MENU_RATE,
    state.SINCE: at.MENU_SINCE,
}
"""Settings of the core that choosing writes, and where on the menu they come from."""


class Alike(NamedTuple):
    """Rows of simulations whose tables and menus begin at the same places."""

    ints: IntArray
    reals: npt.NDArray[np.float64]
    facts: FloatArray
    constants: dict[int, int]
    """Settings that are the same in all rows and under all schedulers, by their places."""
    disciplines: frozenset[int]
    """Those of the schedulers."""


def aligned_menus(
    simulations: Sequence[Simulation], facts: Sequence[FloatArray], members: int
) -> Alike:
    """Return the rows of all simulations, (simulations, …); their menus have so many members."""
    begins = [int(row[at.MENU_AT]) for row in facts]
    size = members * at.MENU_FIELDS
    menus = np.stack(
        [
            one.ints[begin : begin + size].reshape(members, at.MENU_FIELDS)
            for one, begin in zip(simulations, begins, strict=True)
        ]
    )
    pointers = menus[:, :, _TABLES].reshape(len(menus), -1)
    bare = [
        Simulation(one.ints[:begin], one.reals[: _core_end(one, row)])
        for one, begin, row in zip(simulations, begins, pointers, strict=True)
    ]
    ints, reals = aligned(bare)
    jobs = [int(one.ints[state.JOBS]) for one in simulations]
    # Orders without a rate share a table of zeros.
    distinct, which = np.unique(pointers, axis=1, return_inverse=True)
    which = which.ravel()
    tables: list[npt.NDArray[np.float64]] = [reals]
    width = reals.shape[1]
    places = np.zeros_like(distinct)
    for column, olds in enumerate(distinct.T):
        if (olds == [one.ints[state.HISTORY_KEY] for one in simulations]).all():
            places[:, column] = ints[:, state.HISTORY_KEY]
            continue
        places[:, column] = width
        is_bounds = int(np.flatnonzero(which == column)[0]) % len(_TABLES) == len(_TABLES) - 1
        table = np.zeros((len(simulations), 2 if is_bounds else max(jobs)))
        for row, one, old, count in zip(table, simulations, olds.tolist(), jobs, strict=True):
            length = 2 if is_bounds else count
            row[:length] = one.reals[old : old + length]
        tables.append(table)
        width += table.shape[1]
    menus[:, :, _TABLES] = places[:, which].reshape(len(menus), members, len(_TABLES))
    new_facts = stacked(facts)
    new_facts[:, at.MENU_AT] = ints.shape[1]
    known = {place: value for place, value in common(ints).items() if place not in _WRITTEN}
    for place, name in _WRITTEN.items():
        if (menus[:, :, name] == menus[0, 0, name]).all():
            known[place] = int(menus[0, 0, name])
    return Alike(
        np.concatenate([ints, menus.reshape(len(menus), -1)], axis=1),
        np.concatenate(tables, axis=1),
        new_facts,
        known,
        frozenset(menus[:, :, at.MENU_DISCIPLINE].ravel().tolist()),
    )


def _core_end(simulation: Simulation, pointers: IntArray) -> int:
    """Return where in `reals` the core's own tables end and the keys of the orders begin."""
    own = pointers[pointers != simulation.ints[state.HISTORY_KEY]]
    return int(own.min())
