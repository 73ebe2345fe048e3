"""Intervals over training seeds and episodes: closed forms, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import YardmasterError
from yardmaster.experiments.seeds import mean_over_seeds
from yardmaster.metrics.statistics import bootstrap_mean


def test_seeds_that_agree_leave_the_interval_over_episodes():
    """If all seeds score the same, the interval is Student's over the episodes."""
    row = np.random.default_rng(1).normal(3.0, 2.0, 30)
    found = mean_over_seeds(np.tile(row, (5, 1)))
    low, high = stats.t.interval(0.95, 29, row.mean(), stats.sem(row))
    assert found == pytest.approx((row.mean(), low, high), rel=1e-4)


def test_episodes_that_agree_leave_the_interval_over_seeds():
    """If an episode is like any other, the interval is Student's over the seeds."""
    column = np.array([1.0, 2.0, 4.0, 4.5, 6.0])
    found = mean_over_seeds(np.tile(column[:, None], (1, 40)))
    low, high = stats.t.interval(0.95, 4, column.mean(), stats.sem(column))
    assert found == pytest.approx((column.mean(), low, high), rel=1e-4)


@pytest.mark.parametrize(
    ("of_seeds", "of_episodes", "of_rest"), [(1.0, 1.0, 1.0), (0.1, 1.0, 0.3), (0.0, 1.0, 0.5)]
)
def test_it_holds_the_truth_nineteen_times_in_twenty(
    of_seeds: float, of_episodes: float, of_rest: float
):
    """Whatever seeds, episodes and chance contribute, 95 % means about 95 %."""
    dice = np.random.default_rng(7)
    held = 0
    for _ in range(600):
        table = of_seeds * dice.normal(size=(5, 1)) + of_episodes * dice.normal(size=60)
        found = mean_over_seeds(table + of_rest * dice.normal(size=(5, 60)))
        held += found.low <= 0.0 <= found.high
    assert 0.92 <= held / 600 <= 0.98


def test_leaving_seeds_out_would_be_too_sure():
    """Where seeds differ, the interval is much wider than one over episodes alone."""
    dice = np.random.default_rng(3)
    table = dice.normal(size=(5, 1)) + 0.1 * dice.normal(size=(5, 60))
    found, naive = mean_over_seeds(table), bootstrap_mean(table.mean(axis=0))
    assert found.high - found.low > 5 * (naive.high - naive.low)


def test_one_seed_has_the_interval_of_its_episodes():
    """With one training, nothing can be said of others; the interval is that of a player."""
    row = np.random.default_rng(5).normal(size=20)
    assert mean_over_seeds([row]) == bootstrap_mean(row)


def test_what_never_varies_has_no_width():
    """Equal numbers are known exactly."""
    assert mean_over_seeds(np.full((3, 4), 2.5)) == (2.5, 2.5, 2.5)


def test_missing_numbers_leave_no_interval():
    """A NaN anywhere, or a single episode, cannot carry an interval."""
    table = np.ones((3, 4))
    table[1, 2] = math.nan
    assert math.isnan(mean_over_seeds(table).low)
    assert math.isnan(mean_over_seeds([[1.0], [2.0]]).high)


@pytest.mark.parametrize(
    "values", [[1.0, 2.0], [[[1.0]]], np.zeros((0, 3))], ids=["row", "cube", "empty"]
)
def test_only_tables_are_accepted(values: object):
    """Anything but seeds × units is a mistake of the caller."""
    with pytest.raises(YardmasterError, match="table of seeds and units"):
        mean_over_seeds(values)
