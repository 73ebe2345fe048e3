"""What processes of arrivals can be asked for, and how those that have a rate answer.

Every process can be asked for a number of jobs over a span of time, and at a mean rate; those that
have a rate also for all jobs up to a moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import ClassVar

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.workloads.arrivals import with_ends
from yardmaster.workloads.recipes.clocks import Clock
from yardmaster.workloads.recipes.parameters import Part

BLOCK = 1024
"""Random numbers drawn at once where nobody knows how many are needed."""


class Arrivals(Part, ABC):
    """A process that submit times are drawn from.

    Attributes:
        has_rate: whether it can be drawn up to a moment; a process without needs to know the span.
        has_times: whether it needs neither rate nor span.
        counts_jobs: whether it knows itself how many jobs there are.
    """

    __slots__ = ()
    has_rate: ClassVar[bool] = False
    has_times: ClassVar[bool] = False
    counts_jobs: ClassVar[bool] = False

    @abstractmethod
    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Draw the sorted submit times of `jobs` jobs within [0, `span_s`]."""

    def filling(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Draw submit times of which the first is 0 and the last is `span_s`: an exact load."""
        return with_ends(self.over_span(rng, max(0, jobs - 2), span_s), jobs, span_s)

    def at_rate(self, rng: np.random.Generator, jobs: int, per_s: float) -> FloatArray:
        """Draw the first `jobs` submit times at a mean rate per second."""
        return self.over_span(rng, jobs, jobs / per_s)

    def until(self, rng: np.random.Generator, until_s: float, per_s: float) -> FloatArray:
        """Draw all submit times before second `until_s` at a mean rate; asked if `has_rate`."""
        raise NotImplementedError

    def own_times(self, jobs: int | None, until_s: float | None) -> FloatArray:
        """Return the first `jobs` submit times of its own; asked if `has_times`."""
        raise NotImplementedError


class ClockedArrivals(Arrivals):
    """A Poisson process on a clock that runs with the rate (see `clocks`)."""

    __slots__ = ()
    has_rate: ClassVar[bool] = True

    @abstractmethod
    def clock(self, rng: np.random.Generator) -> Clock:
        """Return the clock, drawn anew where it is random."""

    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Place jobs independently: so are the points of a Poisson process, given their number.

        Where the clock stands still throughout the span, they come any time.
        """
        clock = self.clock(_child(rng))
        end = clock.shows(span_s)
        places = rng.random(jobs)
        seconds = clock.seconds(places * end) if end > 0 else places * span_s
        return np.sort(np.minimum(seconds, span_s))

    def at_rate(self, rng: np.random.Generator, jobs: int, per_s: float) -> FloatArray:
        """Add up memoryless gaps on the clock."""
        shown = np.cumsum(rng.standard_exponential(jobs)) / per_s
        return self.clock(_child(rng)).seconds(shown)

    def until(self, rng: np.random.Generator, until_s: float, per_s: float) -> FloatArray:
        """Add up memoryless gaps on the clock until it shows what it shows at the end."""
        clock = self.clock(_child(rng))
        end = clock.shows(until_s)
        gaps = rng.standard_exponential(BLOCK)
        while (shown := np.cumsum(gaps) / per_s)[-1] < end:
            gaps = np.concatenate((gaps, rng.standard_exponential(len(gaps))))
        seconds = clock.seconds(shown[shown < end])
        return seconds[seconds < until_s]


class VaryingArrivals(ClockedArrivals):
    """A rate that is a known function of time, which simple simulators look up only now and then.

    If `held`, every gap is drawn at the rate of the moment at which it begins, however the rate
    changes before it ends: quiet phases last longer than they should.
    """

    __slots__ = ()
    held: bool

    @abstractmethod
    def relative_rate(self, at_s: float) -> float:
        """Return the rate at a second, relative to its mean."""

    def over_span(self, rng: np.random.Generator, jobs: int, span_s: float) -> FloatArray:
        """Place jobs on the clock; if held, stretch what a rate gives to the span."""
        if not self.held:
            return ClockedArrivals.over_span(self, rng, jobs, span_s)
        times = self.at_rate(rng, jobs, max(1, jobs) / span_s)
        return np.minimum(times * (span_s / times[-1]), span_s) if jobs else times

    def at_rate(self, rng: np.random.Generator, jobs: int, per_s: float) -> FloatArray:
        """Add up gaps, on the clock or at the rate of the last submission."""
        if not self.held:
            return ClockedArrivals.at_rate(self, rng, jobs, per_s)
        return np.fromiter(islice(self._moments(rng, per_s), jobs), dtype=np.float64)

    def until(self, rng: np.random.Generator, until_s: float, per_s: float) -> FloatArray:
        """Add up gaps until the end, on the clock or at the rate of the last submission."""
        if not self.held:
            return ClockedArrivals.until(self, rng, until_s, per_s)
        moments = takewhile(lambda at_s: at_s < until_s, self._moments(rng, per_s))
        return np.fromiter(moments, dtype=np.float64)

    def _moments(self, rng: np.random.Generator, per_s: float) -> Iterator[float]:
        at_s = 0.0
        while True:
            for gap in rng.standard_exponential(BLOCK):
                at_s += float(gap) / (per_s * self.relative_rate(at_s))
                yield at_s


def _child(rng: np.random.Generator) -> np.random.Generator:
    """Return a stream of its own for a random clock."""
    return rng.spawn(1)[0]
