"""What people put on their jobs, in five numbers: the usual parts of a recipe that are theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.arguments import finite_number, share, whole_number
from yardmaster.workloads.recipes.deadlines import Deadlines, Slack
from yardmaster.workloads.recipes.estimates import Estimates, RoundLimits
from yardmaster.workloads.recipes.priorities import Priorities, PriorityClasses
from yardmaster.workloads.recipes.tenants import Teams, Tenants


class PeoplesParts(TypedDict):
    """The parts of a recipe that people decide."""

    tenants: Tenants
    priorities: Priorities
    estimates: Estimates
    deadlines: Deadlines


@dataclass(frozen=True, slots=True)
class Habits:
    """How generated jobs are labelled. Each number can be changed; the defaults are stated here.

    Attributes:
        tenants: teams; the k-th largest submits a share proportional to 1/k of the jobs. Jobs of
            similar size tend to come from the same team.
        users_per_tenant: people in each team, with shares 1/k again. Jobs of similar length tend
            to come from the same person.
        priority_shares: shares of the jobs with priority 0 (normal), 1 (important), 2 (urgent), ….
        estimate_sigma: spread of the estimate, see `recipes.estimates.RoundLimits`.
        deadline_share: share of the jobs with a deadline, at submit + estimate × U(1.5, 5).
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

    def parts(self) -> PeoplesParts:
        """Return the parts of a recipe that draw these habits."""
        return {
            "tenants": Teams(tenants=self.tenants, users_per_tenant=self.users_per_tenant),
            "priorities": PriorityClasses(shares=tuple(self.priority_shares)),
            "estimates": RoundLimits(sigma=self.estimate_sigma),
            "deadlines": Slack(low=1.5, high=5.0, share=self.deadline_share, follows="estimate"),
        }
