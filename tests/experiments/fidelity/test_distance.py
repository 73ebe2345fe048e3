"""How far two columns of waits are apart, against closed forms and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

from yardmaster.experiments.fidelity.distance import (
    DAY_S,
    HOUR_S,
    by_period,
    measure_distance,
)

WAITS = of_numpy.arrays(np.float64, 12, elements=st.integers(0, 5000).map(float))
SUBMIT = np.arange(12) * DAY_S / 2
RUN = np.full(12, 3600.0)


@settings(deadline=None)  # others use the machine too
@given(WAITS)
def test_equal_waits_are_exactly_zero_apart(waits):
    """Whatever the waits are, they are not apart from themselves."""
    found = measure_distance(SUBMIT, RUN, waits, waits)
    assert found.apart == found.mean_apart_s == found.median_apart_s == found.mean_difference_s == 0
    assert found.within_minute == found.within_factor_two == 1
    assert found.cancelled == found.recorded_longer == 0
    assert found.recorded == found.simulated


@settings(deadline=None)  # others use the machine too
@given(WAITS, WAITS)
def test_measures_hold_together(recorded, simulated):
    """The mean difference is between both parts of the mean |difference|, and shares are shares."""
    found = measure_distance(SUBMIT, RUN, recorded, simulated)
    assert abs(found.mean_difference_s) <= found.mean_apart_s + 1e-9
    longer_s = np.maximum(recorded - simulated, 0).mean()
    assert found.recorded_longer * found.mean_apart_s == pytest.approx(longer_s, abs=1e-6)
    assert found.within_minute <= found.within_ten_minutes
    for share in (found.within_minute, found.within_factor_two, found.cancelled):
        assert 0 <= share <= 1
    assert (found.mean_apart_s == 0) == bool((recorded == simulated).all())


def test_closed_forms():
    """Four jobs by hand: means, medians, factors, and what cancels out within a day."""
    submit = np.array([0.0, 10.0, 20 * DAY_S, 20 * DAY_S + 10])
    recorded = np.array([0.0, 200.0, 1000.0, 600.0])
    simulated = np.array([30.0, 170.0, 400.0, 601.0])
    found = measure_distance(submit, np.array([5.0, 100.0, 100.0, 100.0]), recorded, simulated)
    assert found.mean_difference_s == pytest.approx((30 - 30 - 600 + 1) / 4)
    assert found.mean_apart_s == pytest.approx(661 / 4)
    assert found.apart == pytest.approx(661 / 1800)
    assert found.median_apart_s == 30
    assert found.within_minute == 0.75
    assert found.within_ten_minutes == 1
    assert found.within_factor_two == 0.75  # 0 and 30 s both count as a minute
    assert found.recorded_longer == pytest.approx(630 / 661)
    assert found.cancelled == pytest.approx(1 - (0 + 599) / 661)
    assert found.period_s == DAY_S
    assert found.period_ratio == pytest.approx(np.median([100 / 100, 1001 / 1600]))
    slowdown = [1.0, 3.0, 11.0, 7.0]  # max(1, (wait + run) / max(run, 10))
    assert found.recorded.bounded_slowdown == pytest.approx(np.mean(slowdown))


def test_saying_that_nobody_waits_is_one_apart():
    """100 % is the distance of no waits at all; without recorded waits there is no scale."""
    waits = np.array([10.0, 20.0, 90.0])
    at = np.arange(3.0)
    assert measure_distance(at, at, waits, np.zeros(3)).apart == 1
    assert measure_distance(at, at, np.zeros(3), waits).apart == math.inf


def test_short_traces_are_averaged_by_hour():
    """Days would be too few to correlate."""
    submit = np.array([0.0, 1800.0, 3600.0])
    waits = np.array([100.0, 300.0, 50.0])
    assert measure_distance(submit, submit, waits, waits).period_s == HOUR_S
    means = by_period(submit, waits, 2 * waits, HOUR_S)
    assert means.begin_s.tolist() == [0, 3600]
    assert means.recorded_s.tolist() == [200, 50]
    assert means.simulated_s.tolist() == [400, 100]
    assert means.jobs.tolist() == [2, 1]
