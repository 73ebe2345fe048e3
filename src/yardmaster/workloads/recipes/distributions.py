"""Laws of positive numbers: seconds where they are durations, GPUs where they are sizes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.workloads.calibration import between_quantiles
from yardmaster.workloads.recipes.parameters import Part, number, numbers, share


class Draw(NamedTuple):
    """Values, and where each stands among its like; only the order of the ranks counts."""

    values: FloatArray
    rank: FloatArray


class Distribution(Part, ABC):
    """A law that values are drawn from, each independent of the others."""

    __slots__ = ()

    @abstractmethod
    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw one value for each job."""

    def values_and_weights(self) -> tuple[FloatArray, FloatArray] | None:
        """Return all possible values and how often each comes, relative to the others; or None."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(Distribution):
    """Always the same value."""

    process: ClassVar[str] = "fixed"
    value: float = number("the value", above=0)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Repeat the value."""
        del rng
        values = np.full(jobs, self.value)
        return Draw(values, values)

    def values_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return the only value."""
        return np.array([self.value]), np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Distribution):
    """Any value between two limits, all equally likely."""

    process: ClassVar[str] = "uniform"
    low: float = number("smallest value", least=0)
    high: float = number("largest value", above=0)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        yield from _out_of_order(self.low, self.high)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw uniformly from [low, high)."""
        values = rng.uniform(self.low, self.high, jobs)
        return Draw(values, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUniform(Distribution):
    """Any value between two limits; the logarithms are equally likely."""

    process: ClassVar[str] = "log-uniform"
    low: float = number("smallest value", above=0)
    high: float = number("largest value", above=0)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        yield from _out_of_order(self.low, self.high)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw the logarithm uniformly."""
        values = log_uniform(rng, self.low, self.high, jobs)
        return Draw(values, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Distribution):
    """One of a list of values."""

    process: ClassVar[str] = "choice"
    values: tuple[float, ...] = numbers("the values", above=0)
    weights: tuple[float, ...] | None = numbers(
        "how often each comes, relative to the others; all alike if not given",
        default=None,
        least=0,
    )

    def contradictions(self) -> Iterator[str]:
        """There must be a weight for every value."""
        yield from bad_weights(self.values, self.weights)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw with the given weights."""
        values, weights = self.values_and_weights()
        drawn = rng.choice(values, size=jobs, p=weights / weights.sum())
        return Draw(drawn, drawn)

    def values_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return the values and their weights."""
        return np.array(self.values), as_weights(self.values, self.weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal(Distribution):
    """The logarithm is normal; values beyond the limits are set to the limits."""

    process: ClassVar[str] = "lognormal"
    median: float = number("median", above=0, most=1e9)
    sigma: float = number("standard deviation of the natural logarithm", above=0, most=20)
    low: float = number("lower limit", least=0, default=0.0)
    high: float = number("upper limit", above=0, default=math.inf)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        yield from _out_of_order(self.low, self.high)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw normal logarithms."""
        rank = rng.standard_normal(jobs)
        return Draw(np.clip(self.median * np.exp(self.sigma * rank), self.low, self.high), rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Distribution):
    """Memoryless: however much there is already, as much again is expected."""

    process: ClassVar[str] = "exponential"
    mean: float = number("mean", above=0)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw exponential values."""
        rank = rng.standard_exponential(jobs)
        return Draw(self.mean * rank, rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal(Distribution):
    """A bell curve; values beyond the limits are set to the limits."""

    process: ClassVar[str] = "normal"
    mean: float = number("mean before clipping")
    std: float = number("standard deviation before clipping", least=0)
    low: float = number("lower limit", above=0, default=1.0)
    high: float = number("upper limit", above=0, default=math.inf)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        yield from _out_of_order(self.low, self.high)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw normal values and clip them."""
        rank = rng.standard_normal(jobs)
        return Draw(np.clip(self.mean + self.std * rank, self.low, self.high), rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedPareto(Distribution):
    """A power law between two limits: P(more than x) falls like x to the power of −alpha."""

    process: ClassVar[str] = "pareto"
    alpha: float = number("exponent of the tail; the smaller, the heavier", above=0, most=100)
    low: float = number("smallest value", above=0)
    high: float = number("largest value", above=0)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        yield from _out_of_order(self.low, self.high)

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Invert F(x) = (1 − (low/x)^alpha) / (1 − (low/high)^alpha)."""
        position = rng.random(jobs)
        left_out = 1.0 - (self.low / self.high) ** self.alpha
        values = self.low * (1.0 - position * left_out) ** (-1.0 / self.alpha)
        return Draw(np.minimum(values, self.high), position)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyTailed(Distribution):
    """Many short ones, uniform, and a few that are log-uniform up to the longest of all."""

    process: ClassVar[str] = "heavy-tailed"
    longest: float = number("largest value; the other limits are fractions of it", above=0)
    short_share: float = share("share of the short ones", default=0.85)
    short_low: float = number("smallest short value / longest", above=0, most=1, default=0.01)
    short_high: float = number("largest short value / longest", above=0, most=1, default=0.08)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        if self.short_low > self.short_high:
            yield f"short_low is {self.short_low:g}, above short_high, {self.short_high:g}."

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw both kinds for every job, then which of them it is."""
        which_rng, short_rng, long_rng = rng.spawn(3)
        short = short_rng.uniform(self.short_low, self.short_high, jobs)
        long = log_uniform(long_rng, self.short_high, 1.0, jobs)
        values = self.longest * np.where(which_rng.random(jobs) < self.short_share, short, long)
        return Draw(values, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Distribution):
    """A law known at some probabilities; between them the logarithm is linear."""

    process: ClassVar[str] = "quantiles"
    probabilities: tuple[float, ...] = numbers("ascending, strictly between 0 and 1", above=0)
    values: tuple[float, ...] = numbers("the quantile at each probability, ascending", above=0)

    def contradictions(self) -> Iterator[str]:
        """Both lists must be ascending and of one length."""
        if len(self.probabilities) != len(self.values) or len(self.values) < 2:
            yield (
                f"{len(self.probabilities)} probabilities and {len(self.values)} values:"
                " there must be as many of both, and at least 2."
            )
        elif np.any(np.diff(self.probabilities) <= 0) or self.probabilities[-1] >= 1:
            yield "probabilities must be ascending and below 1."
        elif np.any(np.diff(self.values) < 0):
            yield "values must be ascending."

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw a position and look it up."""
        position = rng.random(jobs)
        at, values = np.array(self.probabilities), np.array(self.values)
        return Draw(between_quantiles(at, values, position), position)


DISTRIBUTIONS: tuple[type[Distribution], ...] = (
    Fixed, Uniform, LogUniform, Choice, LogNormal, Exponential, Normal, BoundedPareto, HeavyTailed,
    Quantiles,
)  # fmt: skip
"""Every law that can be asked for by name."""


def log_uniform(rng: np.random.Generator, low: float, high: float, jobs: int) -> FloatArray:
    """Draw values whose logarithm is uniform between those of `low` and `high`."""
    return np.exp(rng.uniform(math.log(low), math.log(high), jobs))


def as_weights(values: tuple[object, ...], weights: tuple[float, ...] | None) -> FloatArray:
    """Return the weights, equal ones if there are none."""
    return np.ones(len(values)) if weights is None else np.array(weights)


def bad_weights(values: tuple[object, ...], weights: tuple[float, ...] | None) -> Iterator[str]:
    """Complain about weights that do not fit the values."""
    if weights is not None and len(weights) != len(values):
        yield f"there are {len(values)} values but {len(weights)} weights."
    elif weights is not None and sum(weights) <= 0:
        yield "weights must not all be 0."


def _out_of_order(low: float, high: float) -> Iterator[str]:
    if low > high:
        yield f"low is {low:g}, above high, {high:g}."
