"""When jobs are submitted. Times are seconds; second 0 is midnight of some Monday."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray
from yardmaster.workloads.arrivals import (
    HOUR_S,
    WEEK_HOURS,
    Season,
    seasonal_moments,
    stretched,
)
from yardmaster.workloads.calibration import calibration, calibration_names
from yardmaster.workloads.recipes.arrival_process import (
    BLOCK,
    Arrivals,
    ClockedArrivals,
    VaryingArrivals,
)
from yardmaster.workloads.recipes.clocks import (
    Clock,
    PeriodicClock,
    RandomClock,
    SineClock,
    SteadyClock,
)
from yardmaster.workloads.recipes.parameters import (
    catalogue,
    choice,
    number,
    numbers,
    text,
    whole,
    yes_or_no,
)
from yardmaster.workloads.recipes.parameters import share as share_of_the_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Poisson(ClockedArrivals):
    """Memoryless: a constant rate."""

    process: ClassVar[str] = "poisson"

    def clock(self, rng: np.random.Generator) -> Clock:
        """Return a clock that shows seconds."""
        del rng
        return SteadyClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternating(VaryingArrivals):
    """The rate alternates between busy and quiet phases of equal length, busy first."""

    process: ClassVar[str] = "alternating"
    busy: float = number("rate of the busy phases, relative to the quiet", above=0, default=3.0)
    quiet: float = number("rate of the quiet phases, relative to the busy", above=0, default=0.3)
    every_s: float = number("length of a phase", unit="s", above=0, default=300.0)
    held: bool = yes_or_no("draw each gap at the rate of its beginning", default=False)

    def clock(self, rng: np.random.Generator) -> Clock:
        """Return a clock with a period of two phases."""
        del rng
        return PeriodicClock(np.full(2, self.every_s), np.array([self.busy, self.quiet]))

    def relative_rate(self, at_s: float) -> float:
        """Look up the phase."""
        rate = self.quiet if int(at_s // self.every_s) % 2 else self.busy
        return 2.0 * rate / (self.busy + self.quiet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sine(VaryingArrivals):
    """The rate swings like a sine: 1 + depth · sin(2π (t + shift_s) / period_s), times its mean."""

    process: ClassVar[str] = "sine"
    period_s: float = number("from peak to peak", unit="s", above=0, default=86_400.0)
    depth: float = number("swing relative to the mean", least=0, most=1, default=0.5)
    shift_s: float = number("by which the swing comes earlier", unit="s", default=0.0)
    held: bool = yes_or_no("draw each gap at the rate of its beginning", default=False)

    def contradictions(self) -> Iterator[str]:
        """A rate that is held must never be 0: it would be held forever."""
        if self.held and self.depth >= 1:
            yield "depth must be below 1 where the rate is held."

    def clock(self, rng: np.random.Generator) -> Clock:
        """Return a clock that swings."""
        del rng
        return SineClock(period_s=self.period_s, depth=self.depth, shift_s=self.shift_s)

    def relative_rate(self, at_s: float) -> float:
        """Return the swing at a second."""
        turns = (at_s + self.shift_s) / self.period_s
        return 1.0 + self.depth * float(np.sin(2 * np.pi * turns))


class SeasonalArrivals(ClockedArrivals):
    """Rates by hour of the week, and a gamma distributed factor on each hour where it is bursty."""

    __slots__ = ()

    @abstractmethod
    def season(self) -> Season:
        """Return weights and burstiness."""

    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Draw how many jobs each hour gets, then their moments within the hour."""
        return np.sort(seasonal_moments(rng, jobs, span_s, self.season()))

    def clock(self, rng: np.random.Generator) -> Clock:
        """Return a clock with a period of a week, or one whose every hour is drawn."""
        season = self.season()
        lengths_s, week = np.full(WEEK_HOURS, HOUR_S), season.week()
        variance = season.burst_variance()
        if variance == 0:
            return PeriodicClock(lengths_s, week)
        return RandomClock(
            lambda: (lengths_s, week * rng.gamma(1.0 / variance, variance, WEEK_HOURS))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily(SeasonalArrivals):
    """The rate depends on the hour of the day."""

    process: ClassVar[str] = "daily"
    hours: tuple[float, ...] = numbers("relative rates from midnight on", least=0, length=24)

    def contradictions(self) -> Iterator[str]:
        """Jobs must come at some hour."""
        if sum(self.hours) <= 0:
            yield "hours must not all be 0."

    def season(self) -> Season:
        """Return the hours, the same on all weekdays."""
        hours = np.array(self.hours)
        week = Season(hours, np.ones(7), rate_cv2=0.0).week()
        return Season(hours, np.ones(7), rate_cv2=float(week.var()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly(SeasonalArrivals):
    """The rate depends on the hour of the day and on the weekday; hours may be bursty."""

    process: ClassVar[str] = "weekly"
    hours: tuple[float, ...] = numbers("relative rates from midnight on", least=0, length=24)
    weekdays: tuple[float, ...] = numbers("relative rates from Monday on", least=0, length=7)
    bursts: float = number(
        "variance of a random factor with mean 1 on the rate of each hour",
        least=0,
        most=20,
        default=0.0,
    )

    def contradictions(self) -> Iterator[str]:
        """Jobs must come at some hour of some day."""
        if sum(self.hours) <= 0 or sum(self.weekdays) <= 0:
            yield "hours must not all be 0, nor weekdays."

    def season(self) -> Season:
        """Return the weights, and the variation of season and bursts together."""
        hours, weekdays = np.array(self.hours), np.array(self.weekdays)
        week = Season(hours, weekdays, rate_cv2=0.0).week()
        both = (1.0 + float(week.var())) * (1.0 + self.bursts) - 1.0
        return Season(hours, weekdays, rate_cv2=both)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedArrivals(SeasonalArrivals):
    """Days, weeks and bursts of a published trace."""

    process: ClassVar[str] = "calibrated"
    trace: str = choice("the trace, by the preset that imitates it", calibration_names())

    def season(self) -> Season:
        """Return the season of the trace."""
        return calibration(self.trace).season


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovModulated(ClockedArrivals):
    """A Poisson process whose rate jumps between states (MMPP).

    The time in a state is exponential; the next state is any other one, equally likely. The first
    is drawn as if the process had always been going on.
    """

    process: ClassVar[str] = "markov"
    rates: tuple[float, ...] = numbers("rate in each state, relative to the others", least=0)
    sojourns_s: tuple[float, ...] = numbers("mean time in each state", unit="s", above=0)

    def contradictions(self) -> Iterator[str]:
        """Every state must have a rate and a time; some rate must not be 0."""
        if len(self.rates) != len(self.sojourns_s) or len(self.rates) < 2:
            yield (
                f"{len(self.rates)} rates and {len(self.sojourns_s)} sojourns_s:"
                " there must be as many of both, and at least 2."
            )
        elif sum(self.rates) <= 0:
            yield "rates must not all be 0."

    def clock(self, rng: np.random.Generator) -> Clock:
        """Return a clock that draws one state after the other."""
        sojourns_s, rates = np.array(self.sojourns_s), np.array(self.rates)
        in_state = sojourns_s / sojourns_s.sum()
        rates = rates / np.sum(rates * in_state)
        state = int(rng.choice(len(rates), p=in_state))

        def more() -> tuple[FloatArray, FloatArray]:
            nonlocal state
            # A step of 1 … states − 1 leads to every other state alike.
            steps = rng.integers(1, len(rates), BLOCK)
            visited = (state + np.concatenate(([0], np.cumsum(steps)))) % len(rates)
            state = int(visited[-1])
            visited = visited[:-1]
            return sojourns_s[visited] * rng.standard_exponential(BLOCK), rates[visited]

        return RandomClock(more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts(Arrivals):
    """Most jobs come in bursts around a few random moments, the others any time.

    A job of a burst comes at centre + N(0, (width · span)²), clipped to the span.
    """

    process: ClassVar[str] = "bursts"
    centres: int = whole("bursts, at uniform moments", least=1, most=1_000_000, default=6)
    share: float = share_of_the_jobs("probability that a job belongs to one", default=0.8)
    width: float = number("standard deviation of a burst / span", above=0, most=1, default=0.03)

    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Draw the centres, then for every job which it belongs to and where it lies."""
        centre_rng, which_rng, near_rng, far_rng = rng.spawn(4)
        centres = centre_rng.random(self.centres)
        of_burst = which_rng.random(jobs) < self.share
        centre = centres[which_rng.integers(0, self.centres, jobs)]
        near = centre + self.width * near_rng.standard_normal(jobs)
        return np.sort(span_s * np.clip(np.where(of_burst, near, far_rng.random(jobs)), 0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce(Arrivals):
    """All jobs are there at second 0."""

    process: ClassVar[str] = "at-once"
    has_times: ClassVar[bool] = True

    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Nothing to draw, nothing to span."""
        del rng, span_s
        return np.zeros(jobs)

    def filling(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Do the same: there is no load to be met."""
        return self.over_span(rng, jobs, span_s)

    def own_times(self, jobs: int | None, until_s: float | None) -> FloatArray:
        """Return zeros, for as many jobs as are asked for."""
        del until_s
        return np.zeros(jobs or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(Arrivals):
    """The submit times of a workload in a file, the earliest first.

    Without rate, load or span the times are those of the file. With one of them they are stretched
    or compressed to fit.
    """

    process: ClassVar[str] = "replayed"
    has_times: ClassVar[bool] = True
    counts_jobs: ClassVar[bool] = True
    file: str = text("job table or trace that can be read as a workload")

    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Stretch the times of the file; the first stays where it is."""
        del rng
        times = self.own_times(jobs, None)
        if jobs < 2:
            return times
        if times[-1] == times[0]:
            raise InvalidWorkloadError(
                f"{self.file}: cannot be stretched, because all jobs are submitted at one instant."
            )
        return stretched(times, span_s)

    def filling(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Stretch the times of the file."""
        return self.over_span(rng, jobs, span_s)

    def own_times(self, jobs: int | None, until_s: float | None) -> FloatArray:
        """Read the file; it must have as many jobs as are asked for."""
        from yardmaster.workloads.sources import load_workload

        if self.file.lower().endswith(".toml"):
            raise InvalidWorkloadError(f"{self.file}: a recipe has no submit times to replay.")
        times = load_workload(Path(self.file)).submit_s
        if until_s is not None:
            times = times[times < until_s]
        if jobs is not None and jobs > len(times):
            raise InvalidWorkloadError(
                f"{self.file}: {jobs:,} jobs were asked for, but there are {len(times):,} submit"
                " times to replay."
            )
        return times[:jobs]


ARRIVALS = catalogue(
    "process of arrivals",
    Poisson, Alternating, Sine, Daily, Weekly, MarkovModulated, Bursts, Replayed, AtOnce,
    CalibratedArrivals,
)  # fmt: skip
