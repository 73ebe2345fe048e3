"""How urgent jobs are; larger is more urgent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.workloads.recipes.distributions import as_weights, bad_weights
from yardmaster.workloads.recipes.parameters import (
    Part,
    catalogue,
    choice,
    number,
    numbers,
    share,
    whole,
)


class Priorities(Part, ABC):
    """A process that priorities are drawn from."""

    __slots__ = ()

    @abstractmethod
    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw the priority of jobs that run so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPriority(Priorities):
    """The same priority for all."""

    process: ClassVar[str] = "fixed"
    value: float = number("the priority", default=0.0)

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Repeat the value."""
        del rng
        return np.full(len(duration_s), self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClasses(Priorities):
    """Classes 0 (normal), 1 (important), 2 (urgent), …, each with its share of the jobs."""

    process: ClassVar[str] = "classes"
    shares: tuple[float, ...] = numbers(
        "shares of the classes, summing to 1", least=0, default=(0.70, 0.25, 0.05)
    )

    def contradictions(self) -> Iterator[str]:
        """The shares must sum to 1."""
        if not np.isclose(sum(self.shares), 1.0):
            yield f"shares must sum to 1, got {sum(self.shares):g}."

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw the class of each job."""
        ends = np.cumsum(self.shares)[:-1]
        at = rng.random(len(duration_s))
        return np.searchsorted(ends, at, side="right").astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPriorities(Priorities):
    """One of a list of priorities."""

    process: ClassVar[str] = "choice"
    values: tuple[float, ...] = numbers("the priorities")
    weights: tuple[float, ...] | None = numbers(
        "how often each comes, relative to the others; all alike if not given",
        default=None,
        least=0,
    )

    def contradictions(self) -> Iterator[str]:
        """There must be a weight for every value."""
        yield from bad_weights(self.values, self.weights)

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw with the given weights."""
        weights = as_weights(self.values, self.weights)
        drawn = rng.choice(self.values, size=len(duration_s), p=weights / weights.sum())
        return np.asarray(drawn, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformPriorities(Priorities):
    """Every whole number between two limits, all equally likely."""

    process: ClassVar[str] = "uniform"
    low: int = whole("lowest priority", least=-1_000_000, default=0)
    high: int = whole("highest priority", least=-1_000_000, most=1_000_000)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        if self.low > self.high:
            yield f"low is {self.low}, above high, {self.high}."

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw whole numbers."""
        return rng.integers(self.low, self.high + 1, len(duration_s)).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritiesFollowingDurations(Priorities):
    """Short (or long) jobs are urgent: round(weight · p + (1 − weight) · U{1…highest}).

    Here p = 1 + floor(x^exponent · (highest − 1)), where d = duration / longest_s and x is 1 − d
    for a negative correlation and d for a positive one; without correlation U{1…highest} alone.
    """

    process: ClassVar[str] = "follows-duration"
    correlation: str = choice(
        "of priority with run time", ("negative", "positive", "none"), default="negative"
    )
    longest_s: float = number("run time that counts as the longest", unit="s", above=0)
    highest: int = whole("highest priority; the lowest is 1", least=1, most=1_000_000, default=10)
    weight: float = share("weight of the run time beside chance", default=0.6)
    exponent: float = number("how fast priorities grow", above=0, default=0.8)

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Mix what the run time says with chance."""
        by_chance = rng.integers(1, self.highest + 1, len(duration_s)).astype(np.float64)
        if self.correlation == "none":
            return by_chance
        relative = np.minimum(duration_s / self.longest_s, 1.0)
        towards = relative if self.correlation == "positive" else 1.0 - relative
        by_duration = 1 + np.floor(towards**self.exponent * (self.highest - 1))
        mixed = self.weight * by_duration + (1.0 - self.weight) * by_chance
        return np.clip(np.rint(mixed), 1, self.highest)


PRIORITIES = catalogue(
    "process of priorities",
    FixedPriority,
    PriorityClasses,
    ChosenPriorities,
    UniformPriorities,
    PrioritiesFollowingDurations,
)
