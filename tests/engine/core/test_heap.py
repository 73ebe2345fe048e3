"""The heap against a sorted list."""

import numpy as np
import pytest

from yardmaster.engine.core import heap as code
from yardmaster.engine.state import FRONTIER, HEADER

ROOM = 64


class Heap:
    """A heap within two arrays, as in a simulation."""

    def __init__(self, keys):
        self.ints = [0] * (HEADER + 3 * ROOM + 2)
        self.reals = [*keys, *[0.0] * (ROOM - len(keys))]
        self.ints[FRONTIER] = HEADER + 2 * ROOM
        self.size = 0

    def places(self):
        """Return where the tables of members, positions and keys begin."""
        return HEADER, HEADER + ROOM, 0

    def push(self, job):
        """Add a job."""
        code.push(self.ints, self.reals, *self.places(), self.size, job)
        self.size += 1

    def remove(self, job):
        """Take a job out."""
        code.remove(self.ints, self.reals, *self.places(), self.size, job)
        self.size -= 1

    def first(self):
        """Return the key of the first member."""
        return self.reals[self.ints[HEADER]]

    def walk(self):
        """Return the keys in the order of a walk."""
        keys = []
        waiting = code.begin_walk(self.ints, self.size)
        while waiting > 0:
            place = self.ints[self.ints[FRONTIER]]
            keys.append(self.reals[self.ints[HEADER + place]])
            waiting = code.walk_on(self.ints, self.reals, waiting, HEADER, 0, self.size)
        return keys


@pytest.mark.parametrize("distinct", [1, 3, 1000])
def test_any_member_can_leave(distinct):
    """After every arrival and departure the least key is first, walks are sorted, places right."""
    dice = np.random.default_rng(distinct)
    keys = dice.integers(0, distinct, ROOM).astype(float).tolist()
    heap = Heap(keys)
    members = set()
    for _ in range(500):
        outside = sorted(set(range(ROOM)) - members)
        if outside and (not members or dice.random() < 0.55):
            job = int(dice.choice(outside))
            heap.push(job)
            members.add(job)
        else:
            job = int(dice.choice(sorted(members)))
            heap.remove(job)
            members.remove(job)
        held = heap.ints[HEADER : HEADER + heap.size]
        assert set(held) == members
        assert [heap.ints[HEADER + ROOM + job] for job in held] == list(range(heap.size))
        if members:
            assert heap.first() == min(keys[job] for job in members)
        assert heap.walk() == sorted(keys[job] for job in members)
