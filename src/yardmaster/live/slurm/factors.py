"""Which SiteFactor each waiting job should have, so that Slurm's order follows a decision.

Slurm sorts by priority: what a job has anyway (age, fair share, QOS, nice: its *base*) plus the
SiteFactor. Factors lie in 0 … `points`, so nobody passes a job whose base is more than `points`
higher: that is the starvation bound. Within it, order is a matter of labels, and labels that are in
order already are not touched: of all waiting jobs the longest run that stands right is kept, and
only the others are given numbers between their neighbours', or just above them.

Slurm weighs a job anew when it is changed, and all jobs every PriorityCalcPeriod. In between, the
priority of an untouched job is older than that of a touched one by up to that long. An order must
therefore be right by the priorities that stand (`held`) and by those that a new weighing would
give.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from yardmaster.model.columns import BoolArray, IntArray

LARGEST_POINTS = 2**30
"""Slurm keeps a SiteFactor in 32 bits, around an offset."""
ROUNDING = 4
"""Points by which Slurm's sum may differ from ours: each part is rounded."""
LATE_S = 5.0
"""Seconds that may pass between reading the queue and the last change of a tick."""
SLACK = 16
"""Margins between jobs that are put first, where later ones find room. The whole bound would give
more room, but takes as much from jobs that are not ordered: those keep no factor at all."""
MOST_ROUNDS = 14
"""Twice as many labels are let go in each: enough for 8,000 jobs."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How Slurm counts age.

    Attributes:
        age_weight: PriorityWeightAge.
        max_age_s: PriorityMaxAge in seconds.
        max_advance_s: how much older, in seconds of waiting, a job must be to be safe from us.
    """

    age_weight: int
    max_age_s: float
    max_advance_s: float

    @property
    def points(self) -> int:
        """The highest factor we give: what `max_advance_s` of waiting are worth."""
        points = int(self.age_weight * self.max_advance_s / self.max_age_s)
        return min(points, LARGEST_POINTS)

    @property
    def points_per_s(self) -> float:
        """What a second of waiting is worth."""
        return self.age_weight / self.max_age_s

    @property
    def margin(self) -> int:
        """Points between neighbours, so that neither rounding nor a slow tick turns them round."""
        return ROUNDING + int(np.ceil(self.points_per_s * LATE_S))

    @property
    def places(self) -> int:
        """How many jobs can be told apart; those further down keep Slurm's own order."""
        return self.points // (2 * self.margin)


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """The jobs that may be ordered, in the order of a decision.

    Attributes:
        job: (jobs,) Slurm's number of each; of equal priorities the lower goes first.
        base: (jobs,) what a weighing now would give each without a factor.
        site: (jobs,) the factor each has.
        held: (jobs,) the priority that stands.
    """

    job: IntArray
    base: IntArray
    site: IntArray
    held: IntArray

    @property
    def weighed(self) -> IntArray:
        """(jobs,) the priority a weighing now would give."""
        return np.asarray(np.maximum(self.base + self.site, 1), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What to make of the factors.

    Attributes:
        order: rows of the queue as Slurm will see them, as near to the decision as the bound lets.
        site: (jobs,) the factor each should have.
        changed: (jobs,) whether it has another now.
    """

    order: IntArray
    site: IntArray
    changed: BoolArray


def plan_factors(queue: Queue, scale: Scale) -> Labels:
    """Return the factors that put a queue in order, changing as few as possible."""
    jobs = len(queue.job)
    head = min(jobs, scale.places)
    room = scale.points - scale.margin * (head + 1)
    bases = np.maximum(queue.base, 1)  # Slurm knows no lower priority
    order = attainable(bases, room)
    first, rest = order[:head], order[head:]
    rest = rest[np.lexsort((queue.job[rest], -bases[rest]))]
    floor = int(bases[rest].max(initial=0))
    site = queue.site.copy()
    site[rest] = 0
    kept = _right_already(queue, first, rest, scale)
    for turn in range(MOST_ROUNDS):
        bad = _fill(queue, first, kept, scale, floor, site)
        if not len(bad):
            break
        kept = _without_neighbours(kept, bad, reach=2**turn)
    else:
        site[first] = queue.site[first]
        _fill(queue, first, np.zeros(head, dtype=np.bool_), scale, floor, site)
    return Labels(np.concatenate([first, rest]), site, site != queue.site)


def attainable(base: IntArray, room: int) -> IntArray:
    """Return the order nearest to 0, 1, 2, … in which nobody passes a base more than `room` higher.

    Again and again, of the jobs within `room` of the highest base left, the first one goes next.
    """
    jobs = len(base)
    if not jobs or int(base.max()) - int(base.min()) <= room:
        return np.arange(jobs)
    by_base = np.argsort(-base, kind="stable").tolist()
    values = base.tolist()
    gone, waiting, order = [False] * jobs, list[int](), list[int]()
    top = entered = 0
    while len(order) < jobs:
        while gone[by_base[top]]:
            top += 1
        highest = values[by_base[top]]
        while entered < jobs and values[by_base[entered]] >= highest - max(room, 0):
            heapq.heappush(waiting, by_base[entered])
            entered += 1
        row = heapq.heappop(waiting)
        gone[row] = True
        order.append(row)
    return np.array(order, dtype=np.int64)


def longest_falling(keys: IntArray) -> BoolArray:
    """Return which keys belong to one longest strictly falling run."""
    tails, tail_rows = list[int](), list[int]()
    before = [-1] * len(keys)
    for row, key in enumerate((-keys).tolist()):
        place = bisect_left(tails, key)
        before[row] = tail_rows[place - 1] if place else -1
        if place == len(tails):
            tails.append(key)
            tail_rows.append(row)
        else:
            tails[place], tail_rows[place] = key, row
    chosen = np.zeros(len(keys), dtype=np.bool_)
    row = tail_rows[-1] if tail_rows else -1
    while row >= 0:
        chosen[row] = True
        row = before[row]
    return chosen


def _right_already(queue: Queue, first: IntArray, rest: IntArray, scale: Scale) -> BoolArray:
    """Return (first,) whose labels may stay: in order by what stands and by a new weighing."""
    held, weighed = queue.held[first], queue.weighed[first]
    fits = (queue.site[first] >= 0) & (queue.site[first] <= scale.points)
    fits &= held > queue.held[rest].max(initial=0)
    fits &= weighed > np.maximum(queue.base[rest], 1).max(initial=0)
    kept = np.zeros(len(first), dtype=np.bool_)
    rows = np.flatnonzero(fits)
    turn = np.argsort(np.argsort(queue.job[first]))
    for values in (weighed, held):
        keys = values[rows] * (len(first) + 1) - turn[rows]
        rows = rows[longest_falling(keys)]
    kept[rows] = True
    return kept


def _fill(  # noqa: PLR0917 - a step of plan_factors
    queue: Queue, first: IntArray, kept: BoolArray, scale: Scale, floor: int, site: IntArray
) -> IntArray:
    """Give factors to all that are not kept, between their neighbours; return who found no room.

    Those before all that is kept have no neighbour above: they go no higher than they need, plus
    some room.
    """
    held, weighed = queue.held[first].tolist(), queue.weighed[first].tolist()
    base, stays = queue.base[first].tolist(), kept.tolist()
    jobs, margin, points, slack = len(first), scale.margin, scale.points, SLACK * scale.margin
    low = [0] * jobs
    below = max(floor, 1)
    for place in range(jobs - 1, -1, -1):
        if stays[place]:
            below = max(held[place], weighed[place])
        else:
            below = max(base[place], below + margin)
        low[place] = below
    above = None
    leading = stays.index(True) if True in stays else jobs
    bad = []
    for place in range(jobs):
        if stays[place]:
            above = min(held[place], weighed[place])
            continue
        most = base[place] + points
        above = most if above is None else min(most, above - margin)
        if place < leading:  # nobody to stay behind: no further up than later ones need for room
            above = min(above, low[place] + 2 * slack * (leading - place))
        if low[place] > above:
            bad.append(place)
            continue
        site[first[place]] = (low[place] + above) // 2 - base[place]
    return np.array(bad, dtype=np.int64)


def _without_neighbours(kept: BoolArray, bad: IntArray, reach: int) -> BoolArray:
    """Let go of so many kept labels on either side of those that found no room."""
    fewer, rows = kept.copy(), np.flatnonzero(kept)
    after = np.searchsorted(rows, bad)
    dropped = np.zeros(len(rows) + 1, dtype=np.int64)  # +1 where a stretch begins, −1 behind it
    np.add.at(dropped, np.maximum(after - reach, 0), 1)
    np.add.at(dropped, np.minimum(after + reach, len(rows)), -1)
    fewer[rows[np.cumsum(dropped[:-1]) > 0]] = False
    return fewer
