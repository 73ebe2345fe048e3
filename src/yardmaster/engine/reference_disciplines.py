"""The SimPy reference: what happens when the next job does not fit."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

from yardmaster.engine.reference_yard import Gang, Plan, Yard, add
from yardmaster.engine.state import Discipline, Placement

Rule = Callable[[Yard, list[int]], None]
"""A discipline: (yard, waiting jobs in order), starts what may start now."""


def strict(yard: Yard, in_order: list[int]) -> None:
    """Start jobs up to the first that does not fit."""
    for row in in_order:
        if not yard.starts(row):
            return


def skip(yard: Yard, in_order: list[int]) -> None:
    """Start every job that fits."""
    for row in in_order:
        yard.starts(row)


class Commit:
    """The first in order is chosen for good, and blocks the others until it starts."""

    def __init__(self) -> None:
        self.chosen: int | None = None

    def __call__(self, yard: Yard, in_order: list[int]) -> None:
        """Start the chosen job if it fits, then choose the next."""
        # False sorts before True: the chosen job comes first, the others keep their order.
        for row in sorted(in_order, key=lambda row: row != self.chosen):
            self.chosen = row
            if not yard.starts(row):
                return


def easy(yard: Yard, in_order: list[int]) -> None:
    """Start jobs up to the first that does not fit; then those that do not delay that one."""
    for place, row in enumerate(in_order):
        if not yard.starts(row):
            _backfill(yard, row, in_order[place + 1 :])
            return


def _backfill(yard: Yard, head: int, others: list[int]) -> None:
    """Start those that end before the head's reservation or use only GPUs it leaves over."""
    shadow_s, extra = _reservation(yard, yard.gangs[head])
    for row in others:
        spare = [min(pair) for pair in zip(yard.free, extra, strict=True)]
        if yard.expected_s[row] <= shadow_s - yard.now_s:
            yard.starts(row)
        elif yard.gangs[row].fits(spare):
            plan = yard.placed(row, spare)
            yard.start(row, plan)
            add(extra, plan, sign=-1)


def _reservation(yard: Yard, head: Gang) -> tuple[float, list[int]]:
    """Return the second at which the head can start, and what it leaves of every node then."""
    free = list(yard.free)
    ends = [(max(run.expected_end_s, yard.now_s), run.plan) for run in yard.running.values()]
    shadow_s = math.inf
    for shadow_s in sorted({end_s for end_s, _ in ends}):
        for plan in [plan for end_s, plan in ends if end_s == shadow_s]:
            add(free, plan)
        if head.fits(free):
            break
    add(free, head.placed(free, Placement.PACK, yard.seed), sign=-1)
    return shadow_s, free


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

    def __call__(self, yard: Yard, in_order: list[int]) -> None:
        """Promise what has no promise, then start those whose time has come."""
        if self._is_outdated(yard, in_order):
            self.promises.clear()
            # Beside an overdue job promises are guesses, made anew at every pass until it ends.
            yard.surprised = _has_overdue(yard)
        self._promise(yard, [row for row in in_order if row not in self.promises])
        for row in in_order:
            start_s, plan = self.promises[row]
            # A job of no length takes no room in the profile, but holds its GPUs for a round.
            is_free = all(yard.free[node] >= gpus for node, gpus in plan.items())
            if start_s <= yard.now_s and is_free:
                yard.start(row, plan)
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
        profile = Profile(yard.now_s, yard.free)
        for run in yard.running.values():
            is_overdue = run.expected_end_s <= yard.now_s
            profile.change(yard.now_s + 1.0 if is_overdue else run.expected_end_s, run.plan)
        for row, (start_s, plan) in self.promises.items():
            profile.change(start_s, plan, sign=-1)
            profile.change(start_s + yard.expected_s[row], plan)
        for row in rows:
            start_s, free = profile.earliest(yard.gangs[row], yard.expected_s[row])
            plan = yard.placed(row, free)
            self.promises[row] = start_s, plan
            profile.change(start_s, plan, sign=-1)
            profile.change(start_s + yard.expected_s[row], plan)


def _has_overdue(yard: Yard) -> bool:
    return any(run.expected_end_s <= yard.now_s for run in yard.running.values())


def rule(discipline: Discipline) -> Rule:
    """Return a fresh rule of this name, with nothing chosen and nothing promised."""
    rules: dict[Discipline, Rule] = {
        Discipline.STRICT: strict,
        Discipline.SKIP: skip,
        Discipline.COMMIT: Commit(),
        Discipline.EASY: easy,
        Discipline.CONSERVATIVE: Conservative(),
    }
    return rules[discipline]
