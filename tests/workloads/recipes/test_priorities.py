"""How urgent jobs are, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.recipes.priorities import (
    ChosenPriorities,
    FixedPriority,
    PrioritiesFollowingDurations,
    PriorityClasses,
    UniformPriorities,
)

JOBS = 50_000
DURATION_S = np.random.default_rng(0).uniform(1, 10_000, JOBS)


def rng(seed=1):
    return np.random.default_rng(seed)


def test_priorities_by_chance_have_their_shares():
    """Classes, choices and ranges are as likely as stated (chi-square)."""
    for process, expected in (
        (PriorityClasses(), {0: 0.7, 1: 0.25, 2: 0.05}),
        (ChosenPriorities(values=(0.5, 1, 2.5, 5)), dict.fromkeys((0.5, 1, 2.5, 5), 0.25)),
        (ChosenPriorities(values=(-1, 4), weights=(3, 1)), {-1: 0.75, 4: 0.25}),
        (UniformPriorities(low=0, high=3), dict.fromkeys(range(4), 0.25)),
        (FixedPriority(value=2.5), {2.5: 1.0}),
    ):
        values, counts = np.unique(process.draw(rng(), DURATION_S), return_counts=True)
        assert values.tolist() == list(expected)
        if len(values) > 1:
            shares = np.array(list(expected.values()))
            assert stats.chisquare(counts, shares * JOBS).pvalue > 1e-3


@pytest.mark.parametrize("correlation", ["negative", "positive"])
def test_priorities_follow_durations_as_defined(correlation):
    """round(0.6·(1 + floor(x^0.8·9)) + 0.4·U{1…10}) with x = 1 − d or d, from the definition."""
    process = PrioritiesFollowingDurations(correlation=correlation, longest_s=10_000)
    priority = process.draw(rng(), DURATION_S)
    relative = DURATION_S / 10_000
    towards = relative if correlation == "positive" else 1 - relative
    by_duration = 1 + np.floor(towards**0.8 * 9)
    explained = [np.rint(0.6 * by_duration + 0.4 * throw) == priority for throw in range(1, 11)]
    assert np.any(explained, axis=0).all()
    for part in (2, 5, 9):
        rows = by_duration == part
        expected = np.mean([np.rint(0.6 * part + 0.4 * throw) for throw in range(1, 11)])
        assert priority[rows].mean() == pytest.approx(expected, abs=4 * 1.2 / np.sqrt(rows.sum()))
    sign = 1 if correlation == "positive" else -1
    assert sign * stats.spearmanr(DURATION_S, priority).statistic > 0.7


def test_priorities_without_correlation_are_uniform():
    """U{1…10}, whatever the duration."""
    process = PrioritiesFollowingDurations(correlation="none", longest_s=10_000)
    priority = process.draw(rng(), DURATION_S)
    assert stats.chisquare(np.bincount(priority.astype(int))[1:]).pvalue > 1e-3
    assert abs(stats.spearmanr(DURATION_S, priority).statistic) < 4 / np.sqrt(JOBS)


@pytest.mark.parametrize(
    ("process", "values", "message"),
    [
        (PriorityClasses, {"shares": (0.5, 0.4)}, "shares must sum to 1, got 0.9"),
        (ChosenPriorities, {"values": (1, 2), "weights": (1, 2, 3)}, "2 values but 3 weights"),
        (UniformPriorities, {"low": 4, "high": 3}, "low is 4, above high, 3"),
    ],
)
def test_parameters_that_make_no_sense_are_named(process, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        process(**values)
