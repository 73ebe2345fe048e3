"""Recovery after a change: schedules written by hand, and a second definition to agree with."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.metrics.recovery import mean_recovery_s, transition_recovery_s
from yardmaster.metrics.timeline import queue_length
from yardmaster.model.cluster import Cluster


@pytest.fixture(scope="module")
def wave(make):
    """One GPU; four jobs at 100 s, run one by one for 10 s each, then two at 200 s."""
    submit_s = [0, 100, 100, 100, 100, 200, 200]
    start_s = [0, 100, 110, 120, 130, 200, 210]
    runs = [(job, start, start + 10, [0]) for job, start in enumerate(start_s)]
    return make(Cluster.pool(1), runs, submit_s=submit_s, duration_s=[10] * 7)


def test_half_of_the_maximum_after_the_change(wave):
    """Three wait at 100 s; at 120 s one is left, which is less than half of three."""
    assert transition_recovery_s(wave, 100.0) == 20.0
    assert transition_recovery_s(wave, 50.0) == 70.0
    # Seen from 115 s on, two waited and the first moment with one is 120 s.
    assert transition_recovery_s(wave, 115.0) == 5.0
    assert transition_recovery_s(wave, 200.0) == 10.0


def test_only_the_time_looked_at_counts(wave):
    """Up to 115 s the queue has fallen from three to two only; an empty stretch says nothing."""
    assert math.isnan(transition_recovery_s(wave, 100.0, until_s=115.0))
    assert transition_recovery_s(wave, 100.0, until_s=121.0) == 20.0
    assert math.isnan(transition_recovery_s(wave, 100.0, until_s=100.0))
    assert math.isnan(transition_recovery_s(wave, 1e6))
    assert transition_recovery_s(wave, 150.0, until_s=200.0) == 0.0


def test_a_queue_that_never_drains_does_not_recover(make):
    """Jobs that still wait when the simulation is cut leave no number."""
    stuck = make(
        Cluster.pool(1),
        [(0, 0, 50, [0])],
        cut_s=50.0,
        unfinished=[0],
        submit_s=[0, 10, 20],
        duration_s=[99, 1, 1],
    )
    assert math.isnan(transition_recovery_s(stuck, 5.0))
    assert math.isnan(mean_recovery_s(stuck, [5.0]))


def test_the_mean_is_over_all_changes(wave):
    """Each change is looked at up to the end; without changes there is nothing to say."""
    assert mean_recovery_s(wave, [100.0, 200.0]) == 15.0
    assert math.isnan(mean_recovery_s(wave, []))


@given(data=st.data())
def test_agrees_with_looking_at_every_half_second(eventful_schedules, data):
    """Events are on whole seconds, so looking twice a second misses nothing."""
    schedule = data.draw(eventful_schedules)
    change_s = data.draw(st.integers(0, 50)) + 0.0
    queue = queue_length(schedule)
    end_s = schedule.horizon_s[1]
    moments = np.arange(change_s, end_s, 0.5)
    waiting = np.array([queue.at(moment) for moment in moments])
    expected = math.nan
    if len(moments) and waiting.max() == 0:
        expected = 0.0
    elif len(moments):
        peak = int(np.argmax(waiting))
        fallen = [m for m in range(peak, len(moments)) if 2 * waiting[m] <= waiting.max()]
        expected = moments[fallen[0]] - change_s if fallen else math.nan
    assert transition_recovery_s(schedule, change_s) == pytest.approx(expected, nan_ok=True)
