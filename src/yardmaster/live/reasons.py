"""Why a job starts now, or does not: one sentence for the person who asks.

Reasons are put into words only for the jobs that somebody asks about: 5,000 waiting jobs cost next
to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.live.state import NO_HOLDINGS, State
from yardmaster.model.columns import FloatArray, IntArray


def in_seconds(second: float, now_s: float) -> str:
    """Say until when something lasts, by how long from now."""
    left_s = max(second - now_s, 0.0)
    if left_s < 90:
        return f"for about {left_s:.0f} s"
    if left_s < 5400:
        return f"for about {left_s / 60:.0f} min"
    return f"for about {left_s / 3600:.1f} h"


def by_the_clock(second: float, _now_s: float) -> str:
    """Say until when something lasts, by the local clock; `second` counts from 1970."""
    return f"until about {datetime.fromtimestamp(second).astimezone():%H:%M}"


@dataclass(frozen=True, slots=True, eq=False)
class Reasons:
    """What is needed to say why, for every waiting job of a state.

    Attributes:
        state: the moment.
        place: (jobs,) place in the order, 0 first; −1 for jobs that are not in it.
        starts: (jobs,) whether the job starts now.
        free: (nodes,) GPUs that are left free by those that start now.
        when: how it is said until when something lasts.
        begun: (n, 3) row of a job that starts now, node, GPUs it takes there.
    """

    state: State
    place: IntArray
    starts: IntArray
    free: IntArray
    when: Callable[[float, float], str] = in_seconds
    begun: IntArray = field(default_factory=NO_HOLDINGS.copy)
    _shapes: list[Shapes] = field(default_factory=list)

    def text(self, row: int) -> str:
        """Return why the job in this row of the state starts now or does not."""
        state = self.state
        if not np.isnan(state.since_s[row]):
            return "it runs"
        if self.starts[row]:
            return "starts now"
        if state.is_held[row]:
            return "held"
        ahead = int(self.place[row])
        behind = f"behind {ahead} job{'s' * (ahead != 1)}" if ahead > 0 else "first in the order"
        shape = self._known_shapes()
        number = int(shape.of_job[row])
        if number < 0:
            return f"asks for {self._asks(row)}, which can never be given here"
        room = self._room(number, self.free)
        if self._fits(number, room):
            return (
                f"{behind}; it would fit now, but GPUs are kept for jobs ahead of it"
                if ahead
                else "fits now, but the scheduler waits"
            )
        soon_s = self._earliest(number)
        most = int(room.max(initial=0)) if shape.single[number] else int(room.sum())
        until = (
            f" {self.when(soon_s, state.time_s)}" if math.isfinite(soon_s) else "; nodes are away"
        )
        return f"needs {self._asks(row)}, {most} free{until}; {behind}"

    def earliest_s(self, row: int) -> float:
        """Return when a job's GPUs are believed to be free, if nobody else took them; or never."""
        number = int(self._known_shapes().of_job[row])
        if number < 0:
            return math.inf
        fits_now = self._fits(number, self._room(number, self.free))
        return self.state.time_s if fits_now else self._earliest(number)

    def _known_shapes(self) -> Shapes:
        if not self._shapes:
            self._shapes.append(shapes_of(self.state.jobs, self.state.cluster))
        return self._shapes[0]

    def _asks(self, row: int) -> str:
        jobs, shapes = self.state.jobs, self._known_shapes()
        gpus, number = int(jobs.gpus[row]), int(shapes.of_job[row])
        kind = jobs.gpu_types.codes[row]
        of_type = f" {jobs.gpu_types.names[kind].replace('|', ' or ')}" if kind >= 0 else ""
        together = " on one node" if gpus > 1 and number >= 0 and shapes.single[number] else ""
        return f"{gpus}{of_type} GPU{'s' * (gpus != 1)}{together}"

    def _room(self, number: int, free: IntArray) -> IntArray:
        """Return (nodes,) the GPUs a request could use of so many free ones."""
        shapes = self._known_shapes()
        allowed = (int(shapes.types[number]) >> self.state.cluster.node_type) & 1
        return np.asarray(np.minimum(free * allowed, shapes.cap[number]))

    def _fits(self, number: int, room: IntArray) -> bool:
        shapes = self._known_shapes()
        most = room.max(initial=0) if shapes.single[number] else room.sum()
        return bool(most >= shapes.gpus[number])

    def _earliest(self, number: int) -> float:
        """Return when enough GPUs are believed to be free, if nobody else took them."""
        state = self.state
        ends: FloatArray = np.full(len(state.jobs), np.inf)
        ends[state.running] = state.time_s + state.left_s()
        ends[self.begun[:, 0]] = state.time_s + state.jobs.duration_s[self.begun[:, 0]]
        free = self.free.copy()
        row, node, gpus = np.concatenate([state.holdings, self.begun]).T
        for holding in np.argsort(ends[row], kind="stable").tolist():
            free[node[holding]] += gpus[holding]
            if self._fits(number, self._room(number, free)):
                return float(ends[row[holding]])
        return math.inf
