"""What people put on their jobs: who they are, how long they ask for, how urgent it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray, IntArray, Labels
from yardmaster.workloads.arguments import finite_number, share, whole_number
from yardmaster.workloads.labelling import labels_from_numbers

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3600.0, 86_400.0, 604_800.0
ROUND_LIMITS_S: FloatArray = np.array(
    [MINUTE_S * minutes for minutes in (1, 2, 5, 10, 15, 20, 30, 45)]
    + [HOUR_S * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18)]
    + [DAY_S * days for days in (1, 2, 3, 4, 5, 6, 7)]
)
"""Time limits people write; longer jobs ask for whole weeks."""


@dataclass(frozen=True, slots=True)
class Habits:
    """How generated jobs are labelled. Each number can be changed; the defaults are stated here.

    Attributes:
        tenants: teams; the k-th largest submits a share proportional to 1/k of the jobs. Jobs of
            similar size tend to come from the same team.
        users_per_tenant: people in each team, with shares 1/k again. Jobs of similar length tend
            to come from the same person.
        priority_shares: shares of the jobs with priority 0 (normal), 1 (important), 2 (urgent), ….
        estimate_sigma: spread of the estimate. A user asks for duration × exp(|N(0, sigma²)|),
            rounded up to the next limit people write (1, 2, 5, 10 min … 7 days, whole weeks): never
            too little, about twice the duration in the median before rounding when sigma is 1.
        deadline_share: share of the jobs with a deadline, at submit + duration × U(1.5, 5).
    """

    tenants: int = 8
    users_per_tenant: int = 8
    priority_shares: tuple[float, ...] = (0.70, 0.25, 0.05)
    estimate_sigma: float = 1.0
    deadline_share: float = 0.2

    def __post_init__(self) -> None:
        whole_number("tenants", self.tenants, smallest=1, largest=100_000)
        whole_number("users_per_tenant", self.users_per_tenant, smallest=1, largest=1_000)
        share("deadline_share", self.deadline_share)
        if self.estimate_sigma != 0:
            finite_number("estimate_sigma", self.estimate_sigma, above=0, largest=5)
        shares = [share("priority_shares", value) for value in self.priority_shares]
        if not np.isclose(sum(shares), 1.0):
            raise InvalidWorkloadError(f"priority_shares must sum to 1, got {sum(shares):g}.")

    def owners(
        self, rng: np.random.Generator, gpus: IntArray, length: FloatArray
    ) -> tuple[Labels, Labels]:
        """Return the tenant and the user of each job, from its size and its relative length."""
        size_rng, length_rng, share_rng = rng.spawn(3)
        tenant_ends = np.cumsum(_zipf_shares(share_rng, 1, self.tenants)[0])
        user_ends = np.cumsum(_zipf_shares(share_rng, self.tenants, self.users_per_tenant), axis=1)
        at = _blurred_rank(size_rng, np.log2(gpus))
        tenant = np.minimum(np.searchsorted(tenant_ends, at, side="right"), self.tenants - 1)
        at = _blurred_rank(length_rng, length)
        user = np.zeros(len(gpus), dtype=np.int64)
        for ends in user_ends.T[:-1]:
            user += at >= ends[tenant]
        return (
            labels_from_numbers(tenant, lambda number: f"team-{number}"),
            labels_from_numbers(
                tenant * self.users_per_tenant + user, lambda number: f"user-{number}"
            ),
        )

    def priorities(self, rng: np.random.Generator, jobs: int) -> FloatArray:
        """Return each job's priority class."""
        ends = np.cumsum(self.priority_shares)[:-1]
        return np.searchsorted(ends, rng.random(jobs), side="right").astype(np.float64)

    def estimates(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Return the run time each user asks for, never below the true one."""
        factor = np.exp(self.estimate_sigma * np.abs(rng.standard_normal(len(duration_s))))
        return rounded_up_limit(duration_s * factor)

    def deadlines(
        self, rng: np.random.Generator, submit_s: FloatArray, estimate_s: FloatArray
    ) -> FloatArray:
        """Return the second by which each job should end, NaN for most.

        People set deadlines by what they expect, so a deadline gives away no more than an estimate.
        """
        chosen = rng.random(len(submit_s)) < self.deadline_share
        slack = rng.uniform(1.5, 5.0, len(submit_s))
        return np.where(chosen, np.ceil(submit_s + estimate_s * slack), np.nan)


def rounded_up_limit(seconds: FloatArray) -> FloatArray:
    """Round times up to the next limit of `ROUND_LIMITS_S`, or to whole weeks beyond it."""
    step = np.searchsorted(ROUND_LIMITS_S, seconds, side="left")
    listed = ROUND_LIMITS_S[np.minimum(step, len(ROUND_LIMITS_S) - 1)]
    return np.where(step < len(ROUND_LIMITS_S), listed, np.ceil(seconds / WEEK_S) * WEEK_S)


def _zipf_shares(rng: np.random.Generator, groups: int, members: int) -> FloatArray:
    """Return (groups, members) shares proportional to 1/rank, in a random order per group."""
    shares = 1.0 / np.arange(1, members + 1)
    return rng.permuted(np.tile(shares / shares.sum(), (groups, 1)), axis=1)


def _rank(values: FloatArray) -> FloatArray:
    """Return each value's position in the sorted order, strictly between 0 and 1."""
    position = np.empty(len(values), dtype=np.float64)
    position[np.argsort(values, kind="stable")] = (np.arange(len(values)) + 0.5) / len(values)
    return position


def _blurred_rank(rng: np.random.Generator, values: FloatArray) -> FloatArray:
    """Return the rank of the values after noise: like values stay near, none is certain."""
    position = _rank(values + 1e-9 * rng.random(len(values)))
    return _rank(np.log(position / (1.0 - position)) + rng.logistic(size=len(values)))
