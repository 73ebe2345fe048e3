"""Making simulations of different clusters alike, so that what they share can be compiled in.

A simulation's tables begin where its header says, one behind another, each as long as its cluster
and jobs need. Put where the longest of all simulations would need them, they begin at the same
places everywhere: reading a table is then one access to memory instead of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine import state as at
from yardmaster.engine.layout import Simulation
from yardmaster.model.workload import IntArray

_INT_TABLES = range(at.JOB_SHAPE, at.SUBMIT)
_REAL_TABLES = range(at.SUBMIT, at.HEADER)
_SETTINGS = range(at.ORDER, at.HEADER)
"""Places of the header that the core never writes."""


def aligned(simulations: Sequence[Simulation]) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the rows of all simulations, (simulations, …), with tables at the same places."""
    ints = [simulation.ints for simulation in simulations]
    reals = [simulation.reals for simulation in simulations]
    headers = [row[: at.HEADER].copy() for row in ints]
    new_ints = _moved(ints, headers, at.HEADER, _INT_TABLES)
    new_reals = _moved(reals, headers, at.REALS_HEADER, _REAL_TABLES)
    for header in headers:
        if header[at.HISTORY_KEY] > 0:  # another name of the same table
            header[at.HISTORY_KEY] = header[at.OFFSET]
    new_ints[:, : at.HEADER] = headers
    return new_ints, new_reals


def common(ints: IntArray) -> dict[int, int]:
    """Return the settings that are the same in all rows, by their places in the header."""
    return {
        place: int(ints[0, place])
        for place in _SETTINGS
        if (ints[:, place] == ints[0, place]).all()
    }


def _moved(
    rows: Sequence[npt.NDArray[Any]],
    headers: Sequence[IntArray],
    first: int,
    names: range,
) -> npt.NDArray[Any]:
    """Return the rows with their tables moved, and say so in the headers.

    Tables that stand at the same place in a row are one table under several names.
    """
    present = [name for name in names if any(header[name] >= first for header in headers)]
    # A table reaches to the beginning of the next; side by side, fields of one table move together.
    lengths = {
        name: max(
            _length(row, header, name, first, names)
            for row, header in zip(rows, headers, strict=True)
        )
        for name in present
    }
    begins: dict[int, int] = {}
    end = first
    for name in present:
        begins[name] = end
        end += lengths[name]
    table = np.zeros((len(rows), end), dtype=rows[0].dtype)
    for number, (row, header) in enumerate(zip(rows, headers, strict=True)):
        table[number, :first] = row[:first]
        old = header.copy()
        taken: dict[int, int] = {}
        for name in present:
            begin = int(old[name])
            if begin < first:
                continue
            header[name] = taken.setdefault(begin, begins[name])
            length = _length(row, old, name, first, names)
            table[number, header[name] : header[name] + length] = row[begin : begin + length]
    return table


def _length(row: npt.NDArray[Any], header: IntArray, name: int, first: int, names: range) -> int:
    """Return how long a table is: up to the next one, or to the end."""
    begin = int(header[name])
    if begin < first:
        return 0
    later = [int(header[other]) for other in names if int(header[other]) > begin]
    return min(later, default=len(row)) - begin


def stacked(rows: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return rows of different lengths below each other, zeros behind the short ones."""
    table = np.zeros((len(rows), max(map(len, rows))), dtype=rows[0].dtype)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table
