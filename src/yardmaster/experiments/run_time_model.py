"""How long jobs run, as far as the past tells: distributions to draw run times from.

Jobs that have ended say how long they ran; jobs still running say that they run longer than so far.
Both count (the Kaplan–Meier estimate): leaving the running ones out would make every distribution
too short. Where jobs carry estimates, what is learnt is the ratio of run time to estimate, user by
user; elsewhere the run time itself, by user and GPUs. Groups with too little past take the next
wider one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Workload

LEAST_ENDED = 30
"""A group with fewer jobs that have ended is too small to learn from."""
RECENT_JOBS = 1000
"""Neighbours are taken from so many of a group's latest jobs."""
LONGEST_TAIL = 10.0
"""A job older than all others of its group runs at most so many times as long as it has."""


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """The share of jobs that run longer than each time at which one has ended.

    Attributes:
        ends: (n,) run times (or ratios) of jobs that have ended, ascending.
        share: (n,) share of all jobs that run longer than that; never rises.
    """

    ends: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, values: FloatArray, ended: BoolArray) -> Survival:
        """Learn from jobs that have ended at `values`, or have not ended by then."""
        order = np.lexsort((~ended, values))  # at a tie, who ended was at risk with the others
        at_risk = len(values) - np.arange(len(values))
        outlived = np.where(ended[order], 1.0 - 1.0 / at_risk, 1.0)
        share: FloatArray = np.asarray(np.cumprod(outlived), dtype=np.float64)
        kept = ended[order]
        return cls(values[order][kept], share[kept])

    def longer_than(self, value: FloatArray) -> FloatArray:
        """Return the share of jobs that run longer than each value."""
        place = np.searchsorted(self.ends, value, side="right")
        return np.concatenate(([1.0], self.share))[place]

    def draw(self, luck: FloatArray, beyond: FloatArray) -> FloatArray:
        """Return values above `beyond`, distributed as those of jobs that got so far.

        Args:
            luck: numbers in [0, 1) to draw with.
            beyond: how far each job has got; broadcast against `luck`.
        """
        left = self.longer_than(beyond)
        wanted = (1.0 - luck) * left  # in (0, left]
        # The first end that at most the wanted share outlives, after `beyond`.
        first = np.searchsorted(self.ends, beyond, side="right")
        place = np.maximum(np.searchsorted(-self.share, -wanted, side="left"), first)
        inside = place < len(self.ends)
        found = self.ends[np.minimum(place, len(self.ends) - 1)]
        # Past all that was seen, a job is as likely to double its age as any other.
        last_share = self.share[-1]
        rest = np.where(left > last_share, last_share, left)
        tail = np.where(rest > 0, wanted / np.where(rest > 0, rest, 1.0), 1.0 - luck)
        base = np.maximum(beyond, self.ends[-1])
        far = base * np.minimum(1.0 / np.clip(tail, 1e-12, 1.0), LONGEST_TAIL)
        return np.asarray(np.where(inside, found, far), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class RunTimeModel:
    """What the past says about run times.

    Attributes:
        group: (jobs,) which distribution each job of the table is drawn from.
        distributions: the distributions.
        past: rows of each group's jobs that have started, in order of submission.
        held_s: (jobs,) seconds each has run so far.
        ended: (jobs,) whether it has ended.
        scale_s: (jobs,) what a draw is multiplied by: the estimate, or 1.
    """

    group: IntArray
    distributions: tuple[Survival, ...]
    past: tuple[IntArray, ...]
    held_s: FloatArray
    ended: BoolArray
    scale_s: FloatArray

    @classmethod
    def of(cls, jobs: Workload, held_s: FloatArray, ended: BoolArray) -> RunTimeModel:
        """Learn from the past.

        Args:
            jobs: the jobs, past and waiting; their durations are not read.
            held_s: (jobs,) seconds each has run so far; 0 if it has not started.
            ended: (jobs,) whether it has ended.

        Raises:
            YardmasterError: if nothing has ended yet, so that nothing is known.
        """
        scale = jobs.estimate_s if jobs.has_estimates else np.ones(len(jobs))
        if not ended.any():
            if not jobs.has_estimates:
                raise YardmasterError(
                    f"{jobs.name}: nothing has ended yet and jobs carry no estimates, so nothing"
                    " is known of their run times."
                )
            sure = Survival(np.ones(1), np.zeros(1))  # every job runs as long as estimated
            nobody = np.zeros(0, dtype=np.int64)
            everybody = np.zeros(len(jobs), dtype=np.int64)
            return cls(everybody, (sure,), (nobody,), held_s, ended, scale)
        started = ended | (held_s > 0)
        group, distributions, past = _grouped(_tiers(jobs), held_s / scale, ended, started)
        return cls(group, distributions, past, held_s, ended, scale)

    def draw(self, rng: np.random.Generator, rows: IntArray, beyond_s: FloatArray) -> FloatArray:
        """Return one run time for each of `rows`, longer than it has run already.

        `rows` may be two-dimensional (simulations × jobs); `beyond_s` then too.
        """
        luck = rng.random(rows.shape)
        scale = self.scale_s[rows]
        drawn = np.zeros(rows.shape)
        beyond = beyond_s / scale
        groups = self.group[rows]
        for number in np.unique(groups):
            members = groups == number
            drawn[members] = self.distributions[number].draw(luck[members], beyond[members])
        # Scaling back may round down onto the time already run.
        return np.maximum(drawn * scale, np.nextafter(beyond_s, np.inf))

    def draw_rest(self, rng: np.random.Generator, rows: IntArray, simulations: int) -> FloatArray:
        """Return (simulations, rows) what jobs that have begun still have to run."""
        table = np.tile(rows, (simulations, 1))
        return self.draw(rng, table, self.held_s[table]) - self.held_s[rows]

    def draw_like_neighbours(
        self, rng: np.random.Generator, rows: IntArray, simulations: int
    ) -> FloatArray:
        """Return (simulations, rows) run times of jobs that have not started.

        People submit the same job many times, so jobs that stand together run alike. Each
        simulation takes a stretch of neighbours from the recent past of every group instead of
        strangers, or else luck would even out within every simulation.
        """
        drawn = np.zeros((simulations, len(rows)))
        groups = self.group[rows]
        for number in np.unique(groups):
            members = np.flatnonzero(groups == number)
            recent = self.past[number][-RECENT_JOBS:]
            if not len(recent):
                table = np.tile(rows[members], (simulations, 1))
                drawn[:, members] = self.draw(rng, table, self.held_s[table])
                continue
            begin = rng.integers(len(recent), size=(simulations, 1))
            donors = recent[(begin + np.arange(len(members))) % len(recent)]
            run_s = self.held_s[donors]
            still = ~self.ended[donors]
            run_s[still] = self.draw(rng, donors[still], run_s[still])
            drawn[:, members] = run_s / self.scale_s[donors] * self.scale_s[rows[members]]
        return drawn


def _tiers(jobs: Workload) -> list[IntArray]:
    """Return how jobs are grouped, the finest grouping first; −1 is in no group."""
    everybody = np.zeros(len(jobs), dtype=np.int64)
    user = jobs.user.codes.astype(np.int64)
    if jobs.has_estimates:
        return [user, everybody]
    _, size = np.unique(jobs.gpus, return_inverse=True)
    size = size.astype(np.int64)
    both = np.where(user >= 0, user * (int(size.max()) + 1) + size, -1)
    return [both, size, everybody]


def _grouped(
    tiers: Sequence[IntArray], values: FloatArray, ended: BoolArray, started: BoolArray
) -> tuple[IntArray, tuple[Survival, ...], tuple[IntArray, ...]]:
    """Give every job the finest group with enough past."""
    group = np.full(len(values), -1, dtype=np.int64)
    distributions: list[Survival] = []
    pasts: list[IntArray] = []
    for place, tier in enumerate(tiers):
        least = 1 if place == len(tiers) - 1 else LEAST_ENDED
        known = tier[ended & (tier >= 0)]
        names, counts = np.unique(known, return_counts=True)
        for name in names[counts >= least]:
            members = tier == name
            if (group[members] >= 0).all():
                continue
            past = np.flatnonzero(members & started)
            group[members & (group < 0)] = len(distributions)
            distributions.append(Survival.of(values[past], ended[past]))
            pasts.append(past)
    return group, tuple(distributions), tuple(pasts)
