"""Clocks that run with the rate: they integrate it, and can be read both ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from yardmaster.workloads.recipes.clocks import (
    PeriodicClock,
    RandomClock,
    SineClock,
    SteadyClock,
)


def some_pieces():
    rng = np.random.default_rng(4)
    return lambda: (rng.exponential(50.0, 8), rng.uniform(0.1, 3.0, 8))


def clocks():
    return [
        SteadyClock(),
        PeriodicClock(np.array([300.0, 300.0]), np.array([3.0, 0.3])),
        PeriodicClock(np.array([10.0, 5.0, 40.0]), np.array([1.0, 0.0, 0.5])),
        SineClock(period_s=3600.0, depth=0.5, shift_s=900.0),
        SineClock(period_s=100.0, depth=1.0, shift_s=-7.0),
        RandomClock(some_pieces()),
    ]


@pytest.mark.parametrize("clock", clocks(), ids=lambda clock: type(clock).__name__)
@given(at_s=st.lists(st.floats(0, 50_000), min_size=1, max_size=20))
def test_reading_a_clock_backwards(clock, at_s):
    """The clock shows at the found second what it was asked for, and never goes back."""
    shown = np.array([clock.shows(second) for second in sorted(at_s)])
    assert (np.diff(shown) >= 0).all()
    found = clock.seconds(shown)
    again = np.array([clock.shows(second) for second in found])
    assert again == pytest.approx(shown, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("depth", [0.0, 0.5, 1.0])
def test_a_sine_is_integrated(depth):
    """The closed form equals the numerical integral of the rate."""
    clock = SineClock(period_s=3600.0, depth=depth, shift_s=900.0)

    def rate(second):
        return 1 + depth * math.sin(2 * math.pi * (second + 900) / 3600)

    for end in (10.0, 1234.5, 3600.0, 9000.0):
        expected, _ = integrate.quad(rate, 0, end, limit=200)
        assert clock.shows(end) == pytest.approx(expected, rel=1e-9)


def test_pieces_are_integrated_with_mean_one():
    """In busy pieces the clock runs faster, over a period it keeps time."""
    clock = PeriodicClock(np.array([300.0, 300.0]), np.array([3.0, 0.3]))
    assert clock.shows(150) == pytest.approx(150 * 3 / 1.65)
    assert clock.shows(600) == pytest.approx(600)
    assert clock.shows(1200 + 450) == pytest.approx(1200 + (300 * 3 + 150 * 0.3) / 1.65)


def test_random_pieces_are_drawn_once():
    """What the clock showed it shows again, however far it was read in between."""
    clock = RandomClock(some_pieces())
    before = clock.shows(100)
    assert clock.seconds(np.array([1e5]))[0] > 1e4
    assert clock.shows(100) == before
