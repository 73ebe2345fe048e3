"""Clocks that run fast while many jobs are submitted and slowly while few are.

A process whose rate changes is a plain Poisson process on such a clock. If w(t) is the rate
relative to its mean, the clock shows W(t), the integral of w from 0 to t; jobs that are submitted
at moments u of a Poisson process of constant rate on the clock are submitted at W⁻¹(u) in seconds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray

MOST_PIECES = 20_000_000
"""Pieces of a random rate beyond which nobody wants to wait."""


class Clock(ABC):
    """The integral of a relative rate whose long-run mean is 1, and its inverse."""

    @abstractmethod
    def shows(self, at_s: float) -> float:
        """Return W(t): what the clock shows at second `at_s`."""

    @abstractmethod
    def seconds(self, shown: FloatArray) -> FloatArray:
        """Return W⁻¹: when the clock shows each of `shown`."""


class SteadyClock(Clock):
    """A constant rate: the clock shows seconds."""

    def shows(self, at_s: float) -> float:
        """Return the second itself."""
        return at_s

    def seconds(self, shown: FloatArray) -> FloatArray:
        """Return what is shown."""
        return shown


class PeriodicClock(Clock):
    """A rate that is constant by pieces and repeats."""

    def __init__(self, lengths_s: FloatArray, rates: FloatArray) -> None:
        """Set up one period: how long each piece lasts, and its rate relative to the others."""
        self._ends_s = np.concatenate(([0.0], np.cumsum(lengths_s)))
        shown = np.cumsum(lengths_s * rates)
        # The mean rate is 1: after a whole period the clock shows as many seconds as have passed.
        self._shown = np.concatenate(([0.0], shown)) * (self._ends_s[-1] / shown[-1])
        self.period_s = float(self._ends_s[-1])

    def shows(self, at_s: float) -> float:
        """Return whole periods and what the last, unfinished one adds."""
        periods, rest_s = divmod(at_s, self.period_s)
        return periods * self.period_s + float(np.interp(rest_s, self._ends_s, self._shown))

    def seconds(self, shown: FloatArray) -> FloatArray:
        """Return whole periods and when the last, unfinished one shows the rest."""
        periods, rest = np.divmod(shown, self.period_s)
        return np.asarray(
            periods * self.period_s + np.interp(rest, self._shown, self._ends_s), dtype=np.float64
        )


class SineClock(Clock):
    """A rate of 1 + depth · sin(2π (t + shift) / period), relative to its mean."""

    def __init__(self, *, period_s: float, depth: float, shift_s: float) -> None:
        self._turn_s = period_s / (2 * math.pi)
        self._depth = depth
        self._shift_s = shift_s

    def shows(self, at_s: float) -> float:
        """Return t + depth · period/2π · (cos(2π shift/period) − cos(2π (t + shift)/period))."""
        return float(self._shows(np.array([at_s]))[0])

    def _shows(self, at_s: FloatArray) -> FloatArray:
        swing = math.cos(self._shift_s / self._turn_s) - np.cos(
            (at_s + self._shift_s) / self._turn_s
        )
        return np.asarray(at_s + self._depth * self._turn_s * swing, dtype=np.float64)

    def seconds(self, shown: FloatArray) -> FloatArray:
        """Bisect: the clock is never further from the seconds than its swing."""
        reach_s = 2 * self._depth * self._turn_s
        low_s, high_s = shown - reach_s, shown + reach_s
        for _ in range(64):
            middle_s = (low_s + high_s) / 2
            is_before = self._shows(middle_s) < shown
            low_s = np.where(is_before, middle_s, low_s)
            high_s = np.where(is_before, high_s, middle_s)
        return np.maximum(0.0, (low_s + high_s) / 2)


class RandomClock(Clock):
    """A rate that is constant by pieces of random length or height, drawn as far as needed."""

    def __init__(self, more: Callable[[], tuple[FloatArray, FloatArray]]) -> None:
        """Set up with a function that draws the next pieces: lengths in seconds, and rates."""
        self._more = more
        self._ends_s = np.zeros(1)
        self._shown = np.zeros(1)

    def shows(self, at_s: float) -> float:
        """Draw pieces up to the second, and look it up."""
        while self._ends_s[-1] <= at_s:
            self._extend()
        return float(np.interp(at_s, self._ends_s, self._shown))

    def seconds(self, shown: FloatArray) -> FloatArray:
        """Draw pieces until the clock shows the last, and look all up."""
        while len(shown) and self._shown[-1] <= shown.max():
            self._extend()
        return np.asarray(np.interp(shown, self._shown, self._ends_s), dtype=np.float64)

    def _extend(self) -> None:
        if len(self._ends_s) > MOST_PIECES:
            raise InvalidWorkloadError(
                f"arrivals: the rate changes more than {MOST_PIECES:,} times before the last job;"
                " let it change more rarely, or more jobs come."
            )
        # Doubling keeps the cost of a long clock in proportion to its length.
        pieces = [self._more()]
        blocks = len(self._ends_s) // len(pieces[0][1])
        pieces += [self._more() for _ in range(blocks)]
        lengths_s, rates = (np.concatenate(column) for column in zip(*pieces, strict=True))
        ends_s = self._ends_s[-1] + np.cumsum(lengths_s)
        shown = self._shown[-1] + np.cumsum(lengths_s * rates)
        self._ends_s = np.concatenate((self._ends_s, ends_s))
        self._shown = np.concatenate((self._shown, shown))
