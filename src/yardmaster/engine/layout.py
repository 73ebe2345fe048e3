"""The two arrays of a simulation: tables put behind their headers, and enlarged on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from yardmaster.engine import state as at
from yardmaster.engine.state import Discipline
from yardmaster.model.workload import FloatArray, IntArray


class Filled(NamedTuple):
    """A table that begins with one value everywhere; the value's type is the table's."""

    value: float
    length: int


Tables = dict[int, npt.NDArray[np.generic] | Filled]
"""Tables by their place in the header of `ints`."""


@dataclass(slots=True, eq=False)
class Simulation:
    """The state of one simulation: its integers and its reals (see `engine.state`)."""

    ints: IntArray
    reals: FloatArray

    def int_table(self, name: int, length: int) -> IntArray:
        """Return a view of one table of integers."""
        begin = int(self.ints[name])
        return self.ints[begin : begin + length]

    def real_table(self, name: int, length: int) -> FloatArray:
        """Return a view of one table of reals."""
        begin = int(self.ints[name])
        return self.reals[begin : begin + length]

    def make_room(self) -> None:
        """Enlarge the tables that are full, or about to be."""
        if self.ints[at.IS_REAL]:
            self._make_room_for_segments()
        if self.ints[at.DISCIPLINE] == Discipline.CONSERVATIVE:
            self._make_room_for_promises()

    def _make_room_for_segments(self) -> None:
        """Double the tables of segments and of what they held."""
        segments, records = int(self.ints[at.SEGMENT_ROOM]), int(self.ints[at.RECORD_ROOM])
        self._move(at.SEGMENT_JOB, segments)
        self._move(at.SEGMENT_CAUSE, segments)
        self._move(at.SEGMENT_RECORD, segments + 1)
        self._move(at.RECORD, records)
        for name in (at.SEGMENT_START, at.SEGMENT_END, at.SEGMENT_WASTED):
            self._move_reals(name, segments)
        self.real_table(at.SEGMENT_END, 2 * segments)[segments:] = np.nan
        self.ints[at.SEGMENT_ROOM] = 2 * segments
        self.ints[at.RECORD_ROOM] = 2 * records

    def _make_room_for_promises(self) -> None:
        """Double the tables of the conservative profile and of its promises."""
        nodes = int(self.ints[at.NODES])
        steps, entries = int(self.ints[at.PROFILE_ROOM]), int(self.ints[at.PROMISE_ROOM])
        self._move(at.PROFILE_FREE, steps * nodes)
        self._move(at.PROMISE_NODE, entries)
        self._move(at.PROMISE_GPUS, entries)
        self._move_reals(at.PROFILE_TIME, steps)
        self.ints[at.PROFILE_ROOM] = 2 * steps
        self.ints[at.PROMISE_ROOM] = 2 * entries

    def _move(self, name: int, length: int) -> None:
        """Move a table of integers to the end of the array, doubling it."""
        old = self.int_table(name, length)
        end = len(self.ints)
        self.ints = np.concatenate([self.ints, old, np.zeros(length, dtype=np.int64)])
        self.ints[name] = end

    def _move_reals(self, name: int, length: int) -> None:
        """Move a table of reals to the end of the array, doubling it."""
        old = self.real_table(name, length)
        end = len(self.reals)
        self.reals = np.concatenate([self.reals, old, np.zeros(length)])
        self.ints[name] = end
