"""How long users say their jobs will run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.workloads.recipes.parameters import Part, catalogue, number

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3600.0, 86_400.0, 604_800.0
ROUND_LIMITS_S: FloatArray = np.array(
    [MINUTE_S * minutes for minutes in (1, 2, 5, 10, 15, 20, 30, 45)]
    + [HOUR_S * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18)]
    + [DAY_S * days for days in (1, 2, 3, 4, 5, 6, 7)]
)
"""Time limits people write; longer jobs ask for whole weeks."""


class Estimates(Part, ABC):
    """A model of how users err."""

    __slots__ = ()

    @abstractmethod
    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw what is said of jobs that run so long; NaN where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLimits(Estimates):
    """duration × exp(|N(0, sigma²)|), rounded up to the next limit people write.

    The limits are 1, 2, 5, 10 min … 7 days and whole weeks. Never too little; about twice the
    duration in the median before rounding when sigma is 1.
    """

    process: ClassVar[str] = "round-limits"
    sigma: float = number("spread of the factor", least=0, most=5, default=1.0)

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw the limit each user asks for."""
        factor = np.exp(self.sigma * np.abs(rng.standard_normal(len(duration_s))))
        return rounded_up_limit(duration_s * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactEstimates(Estimates):
    """The true run time: an oracle, as simple simulators assume it."""

    process: ClassVar[str] = "exact"

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Return the run times."""
        del rng
        return duration_s.copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyEstimates(Estimates):
    """duration × bias × exp(N(0, sigma²)): wrong to both sides, as a model's predictions are."""

    process: ClassVar[str] = "noisy"
    sigma: float = number("standard deviation of the log of the factor", least=0, most=5)
    bias: float = number("median of the factor", above=0, most=1e6, default=1.0)

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Draw a factor for every job."""
        factor = self.bias * np.exp(self.sigma * rng.standard_normal(len(duration_s)))
        return duration_s * factor


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledEstimates(Estimates):
    """duration × factor, the same for all."""

    process: ClassVar[str] = "factor"
    factor: float = number("estimate / duration", above=0, most=1e6)

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Scale the run times."""
        del rng
        return duration_s * self.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEstimates(Estimates):
    """Nobody says anything."""

    process: ClassVar[str] = "none"

    def draw(self, rng: np.random.Generator, duration_s: FloatArray) -> FloatArray:
        """Return nothing known."""
        del rng
        return np.full(len(duration_s), np.nan)


ESTIMATES = catalogue(
    "process of estimates",
    RoundLimits,
    ExactEstimates,
    NoisyEstimates,
    ScaledEstimates,
    NoEstimates,
)


def rounded_up_limit(seconds: FloatArray) -> FloatArray:
    """Round times up to the next limit of `ROUND_LIMITS_S`, or to whole weeks beyond it."""
    step = np.searchsorted(ROUND_LIMITS_S, seconds, side="left")
    listed = ROUND_LIMITS_S[np.minimum(step, len(ROUND_LIMITS_S) - 1)]
    return np.where(step < len(ROUND_LIMITS_S), listed, np.ceil(seconds / WEEK_S) * WEEK_S)
