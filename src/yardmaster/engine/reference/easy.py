"""The SimPy reference: `easy`, and the reservation of a job that does not fit yet."""

from __future__ import annotations

import math
from itertools import groupby

from yardmaster.engine.reference.floor import Room
from yardmaster.engine.reference.placements import packed
from yardmaster.engine.reference.progress import Run
from yardmaster.engine.reference.rules import Gang
from yardmaster.engine.reference.yard import Place, Yard


def easy(yard: Yard) -> None:
    """Start jobs up to the first that does not fit; then those that do not delay that one."""
    for row in yard.choices():
        if not yard.starts(row):
            _backfill(yard, row)
            return


def _backfill(yard: Yard, head: int) -> None:
    """Start the first in order that does not delay the head, again and again.

    A start may change where others would run, and how fast, so all are looked at anew.
    """
    shadow_s, extra = reservation(yard, yard.gang(head))
    while any(
        _starts_beside(yard, row, shadow_s, extra) for row in yard.in_order(yard.waiting - {head})
    ):
        pass


def _starts_beside(yard: Yard, row: int, shadow_s: float, extra: Room) -> bool:
    """Start a job that ends before the reservation or uses only what it leaves over."""
    place = yard.place(row)
    if place is None:
        return False
    gang = yard.gang(row)
    rate = yard.planning_rate(gang, place.plan)
    if yard.queue_value_s(row) <= (shadow_s - yard.now_s) * rate:
        yard.start(row, place)
        return True
    spare = yard.room.beside(extra)
    if not spare.fits(gang):  # a fractional job too needs a whole GPU here
        return False
    plan = yard.planned(gang, spare)
    yard.start(row, Place(plan))
    extra.take(gang, plan)
    return True


def reservation(yard: Yard, head: Gang) -> tuple[float, Room]:
    """Return the second at which the head can start, and what it leaves over then.

    A head that would not fit even if everybody left (a node is away) has no reservation: it
    waits for ever, as far as one knows, and leaves everything over.
    """

    def end_s(run: Run) -> float:
        return max(run.expected_end_s, yard.now_s)

    room = yard.room.copy()
    for shadow_s, runs in groupby(sorted(yard.running.values(), key=end_s), key=end_s):
        for run in runs:
            room.release(run.holding)
        if room.fits(head):
            room.take(head, packed(head, room.usable(head)))
            return shadow_s, room
    return math.inf, yard.room.copy()
