"""Who submits the jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from yardmaster.model.workload import FloatArray, IntArray, Labels
from yardmaster.workloads.labelling import labels_from_numbers
from yardmaster.workloads.recipes.distributions import as_weights, bad_weights
from yardmaster.workloads.recipes.parameters import Part, catalogue, numbers, texts, whole


class Tenants(Part, ABC):
    """A process that says who submits which job."""

    __slots__ = ()

    @abstractmethod
    def draw(
        self, rng: np.random.Generator, gpus: IntArray, length: FloatArray
    ) -> tuple[Labels, Labels]:
        """Return the tenant and the user of each job, from its size and its relative length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teams(Tenants):
    """Teams of people; the k-th largest submits a share of the jobs proportional to 1/k.

    Jobs of similar size tend to come from the same team, jobs of similar length from the same
    person of the team.
    """

    process: ClassVar[str] = "teams"
    tenants: int = whole("number of teams", least=1, most=100_000, default=8)
    users_per_tenant: int = whole("people in each team", least=1, most=1_000, default=8)

    def draw(
        self, rng: np.random.Generator, gpus: IntArray, length: FloatArray
    ) -> tuple[Labels, Labels]:
        """Draw team-0, team-1, … by size, then user-0, user-1, … by length."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedUsers(Tenants):
    """People who belong to no team, each job from one of them by chance."""

    process: ClassVar[str] = "users"
    names: tuple[str, ...] = texts("the people")
    weights: tuple[float, ...] | None = numbers(
        "how often each submits, relative to the others; all alike if not given",
        default=None,
        least=0,
    )

    def contradictions(self) -> Iterator[str]:
        """There must be a weight for every name."""
        yield from bad_weights(self.names, self.weights)

    def draw(
        self, rng: np.random.Generator, gpus: IntArray, length: FloatArray
    ) -> tuple[Labels, Labels]:
        """Draw a name for every job."""
        del length
        weights = as_weights(self.names, self.weights)
        user = rng.choice(len(self.names), size=len(gpus), p=weights / weights.sum())
        named = labels_from_numbers(user, lambda number: self.names[number])
        return Labels.missing(len(gpus)), named


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTenants(Tenants):
    """Nobody knows who submits."""

    process: ClassVar[str] = "none"

    def draw(
        self, rng: np.random.Generator, gpus: IntArray, length: FloatArray
    ) -> tuple[Labels, Labels]:
        """Return no names."""
        del rng, length
        return Labels.missing(len(gpus)), Labels.missing(len(gpus))


TENANTS = catalogue("process of tenants", Teams, NamedUsers, NoTenants)


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
