"""The SimPy reference: the clock, and who goes first at one instant."""

from __future__ import annotations

from enum import IntEnum
from heapq import heapify, heappush

import simpy
from simpy.events import EventPriority


class Turn(IntEnum):
    """Who goes first at one instant."""

    PASS_AT_ONCE = 1
    EARLY_ARRIVAL = 2
    COMPLETION = 3
    REPAIR = 4
    FAILURE = 5
    ARRIVAL = 6
    REVIEW = 7
    PASS = 8


class Clock(simpy.Environment):
    """A SimPy environment whose events can be set at an exact second, and called off.

    SimPy adds a delay to the time it is; an end that was computed before the segment's last
    change of speed would be rounded once more.
    """

    @property
    def now_s(self) -> float:
        """The second it is."""
        return float(self.now)

    def put(self, event: simpy.Event, at_s: float, priority: EventPriority) -> None:
        """Let an event happen at this very second."""
        heappush(self._queue, (at_s, priority, next(self._eid), event))

    def call_off(self, event: simpy.Event) -> None:
        """Let an event not happen after all: it must not even move the clock."""
        self._queue = [entry for entry in self._queue if entry[3] is not event]
        heapify(self._queue)


class Moment(simpy.Event):
    """A second at which something happens; at one instant by turn, equal turns by number."""

    def __init__(self, clock: Clock, at_s: float, turn: Turn, number: int = 0) -> None:
        super().__init__(clock)
        self._ok = True
        self._value = None
        # SimPy's own events have priority 0 or 1 and precede all of these.
        clock.put(self, at_s, EventPriority((turn << 32) + number))
