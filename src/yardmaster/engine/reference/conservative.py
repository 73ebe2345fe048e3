"""The SimPy reference: `conservative`, where every waiting job has a promise.

It knows GPUs of nodes and nothing else: no shared GPUs, cores, memory, quotas, power or outages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from yardmaster.engine.reference.rules import Gang, Plan
from yardmaster.engine.reference.yard import Place, Yard


def add(free: list[int], plan: Plan, sign: int = 1) -> None:
    """Give a plan's GPUs back to the counts in `free`, or take them (sign −1)."""
    for node, gpus in plan.items():
        free[node] += sign * gpus


class Profile:
    """Free GPUs of every node at every moment from now on, as steps."""

    def __init__(self, now_s: float, free: Sequence[int]) -> None:
        self.times = [now_s]
        self.free = [list(free)]

    def change(self, from_s: float, plan: Plan, sign: int = 1) -> None:
        """Give back GPUs, or take them (sign −1), from a moment on."""
        from_s = max(from_s, self.times[0])
        step = bisect_left(self.times, from_s)
        if step == len(self.times) or self.times[step] != from_s:
            self.times.insert(step, from_s)
            self.free.insert(step, list(self.free[step - 1]))
        for free in self.free[step:]:
            add(free, plan, sign)

    def earliest(self, gang: Gang, length_s: float) -> tuple[float, list[int]]:
        """Return the first step from which the gang fits so long, and what is free throughout."""
        for step, begin_s in enumerate(self.times):
            after = max(step + 1, bisect_left(self.times, begin_s + length_s))
            free = [min(counts) for counts in zip(*self.free[step:after], strict=True)]
            if gang.fits(free):
                return begin_s, free
        raise AssertionError("every gang in the queue fits when everybody has left")


class Conservative:
    """Every waiting job is promised a start and nodes; newcomers may not delay the promises."""

    def __init__(self) -> None:
        self.promises: dict[int, tuple[float, Plan]] = {}

    def __call__(self, yard: Yard) -> None:
        """Promise what has no promise, then start those whose time has come."""
        in_order = yard.in_order(yard.waiting)
        if self._is_outdated(yard, in_order):
            self.promises.clear()
            # Beside an overdue job promises are guesses, made anew at every pass until it ends.
            yard.surprised = _has_overdue(yard)
        self._promise(yard, [row for row in in_order if row not in self.promises])
        for row in in_order:
            start_s, plan = self.promises[row]
            # A job of no length takes no room in the profile, but holds its GPUs for a round.
            is_free = all(yard.room.gpus[node] >= gpus for node, gpus in plan.items())
            if start_s <= yard.now_s and is_free:
                yard.start(row, Place(plan))
                del self.promises[row]

    def _is_outdated(self, yard: Yard, in_order: list[int]) -> bool:
        """Whether promises rest on ends that did not come true, or on another order."""
        has_promise = [row in self.promises for row in in_order]
        return (
            yard.order.keeps_moving
            or yard.surprised
            or _has_overdue(yard)
            or has_promise != sorted(has_promise, reverse=True)
        )

    def _promise(self, yard: Yard, rows: list[int]) -> None:
        """Give each job the earliest start that keeps the promises made before."""
        profile = Profile(yard.now_s, yard.room.gpus)
        for run in yard.running.values():
            is_overdue = run.expected_end_s <= yard.now_s
            end_s = yard.now_s + 1.0 if is_overdue else run.expected_end_s
            profile.change(end_s, run.holding.plan)
        for row, (start_s, plan) in self.promises.items():
            profile.change(start_s, plan, sign=-1)
            profile.change(start_s + yard.queue_value_s(row), plan)
        for row in rows:
            start_s, free = profile.earliest(yard.gang(row), yard.queue_value_s(row))
            plan = yard.placer.plan(yard.gang(row), free)
            self.promises[row] = start_s, plan
            profile.change(start_s, plan, sign=-1)
            profile.change(start_s + yard.queue_value_s(row), plan)


def _has_overdue(yard: Yard) -> bool:
    return any(run.expected_end_s <= yard.now_s for run in yard.running.values())
