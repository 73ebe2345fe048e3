"""How many GPUs jobs ask for: whole GPUs, or a part of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray, IntArray
from yardmaster.workloads.calibration import calibration, calibration_names
from yardmaster.workloads.recipes.distributions import (
    BoundedPareto,
    Choice,
    Distribution,
    Draw,
    Exponential,
    Fixed,
    HeavyTailed,
    LogNormal,
    LogUniform,
    Normal,
    Quantiles,
)
from yardmaster.workloads.recipes.parameters import (
    Part,
    catalogue,
    choice,
    number,
    share,
    whole,
)

MOST_GPUS = 1_000_000
"""No job is larger, even where no cluster sets a limit: heavy tails have no end."""
MOST_ATTEMPTS = 200
"""How often sizes that are too large are drawn again before the process is declared hopeless."""


class DrawnSizes(NamedTuple):
    """What jobs ask for: GPUs of each gang, thousandths of each GPU, and remarks."""

    gpus: IntArray
    milli_gpu: IntArray
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformSizes(Distribution):
    """Every whole number between two limits, all equally likely."""

    process: ClassVar[str] = "uniform"
    low: int = whole("fewest GPUs", unit="GPUs", least=1)
    high: int = whole("most GPUs", unit="GPUs", least=1, most=1_000_000)

    def contradictions(self) -> Iterator[str]:
        """The limits must be in order."""
        if self.low > self.high:
            yield f"low is {self.low}, above high, {self.high}."

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw whole numbers."""
        drawn = rng.integers(self.low, self.high + 1, jobs).astype(np.float64)
        return Draw(drawn, drawn)

    def values_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return all sizes, equally often."""
        sizes = np.arange(self.low, self.high + 1, dtype=np.float64)
        return sizes, np.ones(len(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowersOfTwo(Distribution):
    """1, 2, 4, … GPUs; each doubling is rarer by one factor, set so that the mean is met."""

    process: ClassVar[str] = "powers-of-two"
    mean: float = number("mean size", unit="GPUs", above=1)
    largest: int = whole("largest size; a power of two", unit="GPUs", least=2, most=2**20)

    def contradictions(self) -> Iterator[str]:
        """The mean must lie between the sizes, and the largest must be one of them."""
        if self.largest & (self.largest - 1):
            yield f"largest must be a power of two, got {self.largest}."
        elif self.mean >= self.largest:
            yield f"mean is {self.mean:g}, not below largest, {self.largest}."

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw with the shares that meet the mean."""
        sizes, weights = self.values_and_weights()
        drawn = rng.choice(sizes, size=jobs, p=weights / weights.sum())
        return Draw(drawn, drawn)

    def values_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Find the exponent at which Σ 2^k · 2^(−a·k) / Σ 2^(−a·k) is the mean, by bisection."""
        doublings = np.arange(self.largest.bit_length(), dtype=np.float64)
        sizes = np.exp2(doublings)
        low, high = -64.0, 64.0
        for _ in range(200):
            exponent = (low + high) / 2
            logarithm = -exponent * doublings
            weights = np.exp2(logarithm - logarithm.max())
            too_large = np.sum(sizes * weights) / np.sum(weights) > self.mean
            low, high = (exponent, high) if too_large else (low, exponent)
        return sizes, weights


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSizes(Distribution):
    """As many GPUs as jobs of a published trace ask for."""

    process: ClassVar[str] = "calibrated"
    trace: str = choice("the trace, by the preset that imitates it", calibration_names())

    def draw(self, rng: np.random.Generator, jobs: int) -> Draw:
        """Draw with the shares of the trace."""
        sizes, shares = self.values_and_weights()
        drawn = rng.choice(sizes, size=jobs, p=shares / shares.sum())
        return Draw(drawn, drawn)

    def values_and_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return the sizes of the trace and their shares."""
        stats = calibration(self.trace)
        return stats.sizes, stats.shares

    def remarks(self) -> tuple[str, ...]:
        """Name the trace and what is not known of it."""
        stats = calibration(self.trace)
        return (f"calibrated to {stats.source}", *((stats.caveat,) if stats.caveat else ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizesFollowingDurations(Part):
    """Long jobs are large: round(weight · g + (1 − weight) · U{1…largest}).

    Here g = 1 + floor(d^exponent · (largest − 1)) with d = duration / longest_s.
    """

    process: ClassVar[str] = "follows-duration"
    largest: int = whole("most GPUs", unit="GPUs", least=1, most=1_000_000, default=8)
    longest_s: float = number("run time that counts as the longest", unit="s", above=0)
    weight: float = share("weight of the run time beside chance", default=0.7)
    exponent: float = number("how fast sizes grow with run time", above=0, default=0.6)

    def draw(
        self, rng: np.random.Generator, duration_s: FloatArray, largest: int | None
    ) -> FloatArray:
        """Draw sizes; where fewer GPUs can be had than the largest, they are the largest."""
        most = min(self.largest, largest or self.largest)
        relative = np.minimum(duration_s / self.longest_s, 1.0)
        by_duration = 1 + np.floor(relative**self.exponent * (most - 1))
        by_chance = rng.integers(1, most + 1, len(duration_s))
        mixed = self.weight * by_duration + (1.0 - self.weight) * by_chance
        return np.clip(np.rint(mixed), 1, most)


Sizes = Distribution | SizesFollowingDurations
"""A process that sizes are drawn from."""

SIZES = catalogue(
    "process of sizes",
    Fixed, UniformSizes, LogUniform, Choice, LogNormal, Exponential, Normal, BoundedPareto,
    HeavyTailed, Quantiles, PowersOfTwo, CalibratedSizes, SizesFollowingDurations,
)  # fmt: skip


def follow_durations(sizes: Sizes) -> bool:
    """Whether the run times must be known before the sizes can be drawn."""
    return isinstance(sizes, SizesFollowingDurations)


def odd_sizes(sizes: Sizes) -> Iterator[str]:
    """Complain about listed sizes that are neither whole nor a part of one GPU."""
    known = sizes.values_and_weights() if isinstance(sizes, Distribution) else None
    for size in known[0] if known else ():
        if (size > 1 and size != round(size)) or size < 0.001:
            yield f"sizes must be whole GPUs, or a part of one from 0.001, got {size:g}."


def draw_sizes(
    sizes: Sizes,
    rng: np.random.Generator,
    duration_s: FloatArray,
    largest: int | None,
) -> DrawnSizes:
    """Draw what each job asks for; sizes above `largest` GPUs are drawn again.

    Args:
        sizes: the process.
        rng: source of randomness.
        duration_s: run time of each job, which only matters where `follow_durations`.
        largest: most GPUs that can be had; None for `MOST_GPUS`.

    Raises:
        InvalidWorkloadError: if no size fits.
    """
    notes: tuple[str, ...] = ()
    jobs = len(duration_s)
    if isinstance(sizes, SizesFollowingDurations):
        drawn, notes = sizes.draw(rng, duration_s, largest), _shrunk(sizes, largest)
    elif (known := sizes.values_and_weights()) is not None:
        drawn, notes = _listed(rng, jobs, largest or MOST_GPUS, *known)
    else:
        drawn, notes = _rounded(sizes, rng, jobs, largest or MOST_GPUS)
    gpus = np.maximum(1, np.rint(drawn)).astype(np.int64)
    milli = np.where(drawn < 1, np.clip(np.rint(1000 * drawn), 1, 1000), 1000).astype(np.int64)
    return DrawnSizes(gpus, milli, (*sizes.remarks(), *notes))


def _listed(
    rng: np.random.Generator,
    jobs: int,
    largest: int,
    sizes: FloatArray,
    weights: FloatArray,
) -> tuple[FloatArray, tuple[str, ...]]:
    """Draw from a list; drawing again while too large is drawing from the sizes that fit."""
    fits = (sizes <= largest) & (weights > 0)
    if not fits.any():
        raise InvalidWorkloadError(
            f"max_gpus is {largest}, but the smallest job has {sizes[weights > 0].min():g} GPUs."
        )
    drawn = rng.choice(sizes[fits], size=jobs, p=weights[fits] / weights[fits].sum())
    too_large = float(weights[sizes > largest].sum() / weights.sum())
    return drawn, _drawn_again(largest, too_large)


def _rounded(
    sizes: Distribution, rng: np.random.Generator, jobs: int, largest: int
) -> tuple[FloatArray, tuple[str, ...]]:
    """Draw from a law of real numbers and round to whole GPUs, at least 1."""
    drawn = np.maximum(1.0, np.rint(sizes.draw(rng, jobs).values))
    too_large = float(np.mean(drawn > largest))
    for _ in range(MOST_ATTEMPTS):
        again = np.flatnonzero(drawn > largest)
        if not len(again):
            return drawn, _drawn_again(largest, too_large)
        drawn[again] = np.maximum(1.0, np.rint(sizes.draw(rng, len(again)).values))
    raise InvalidWorkloadError(f"max_gpus is {largest}, but hardly any job is that small.")


def _shrunk(sizes: SizesFollowingDurations, largest: int | None) -> tuple[str, ...]:
    if largest is None or largest >= sizes.largest:
        return ()
    return (f"sizes follow run times up to {largest} GPUs in place of {sizes.largest}",)


def _drawn_again(largest: int, share_: float) -> tuple[str, ...]:
    if share_ == 0:
        return ()
    return (f"sizes above {largest} GPUs ({share_:.2%} of such jobs) were drawn again",)
