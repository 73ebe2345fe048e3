"""Which episodes are kept to train on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.agents.filtering import keep, range_of
from yardmaster.errors import InvalidConfigError

SCORES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


@given(SCORES, st.floats(-1e6, 1e6), st.floats(0.0, 1e6))
def test_exactly_the_scores_in_the_range_are_kept(scores, low, width):
    """Bounds included, in the order given, and nothing without a score."""
    with_unknown = [*scores, math.nan]
    kept = keep(np.array(with_unknown), low, low + width)
    expected = [place for place, score in enumerate(scores) if low <= score <= low + width]
    assert kept.tolist() == expected
    assert kept.dtype == np.int64


@given(SCORES)
def test_the_whole_range_keeps_everything(scores):
    """Between the quantiles 0 and 1 nothing is left out but what has no score."""
    array = np.array([math.nan, *scores])
    assert keep(array, *range_of(array, 0.0, 1.0)).tolist() == list(range(1, len(scores) + 1))


def test_quantiles_cut_off_the_easy_and_the_hopeless():
    """Of the scores 0 … 100, the quantiles 0.25 and 0.9 keep 25 … 90."""
    scores = np.random.default_rng(0).permutation(101).astype(np.float64)
    low, high = range_of(scores, 0.25, 0.9)
    assert (low, high) == pytest.approx((25.0, 90.0))
    assert sorted(scores[keep(scores, low - 1e-9, high + 1e-9)]) == list(range(25, 91))


@pytest.mark.parametrize(("low", "high"), [(0.9, 0.1), (-0.1, 0.5), (0.5, 1.1)])
def test_impossible_quantiles_are_refused(low, high):
    """Quantiles out of order or out of range are named in the error."""
    with pytest.raises(InvalidConfigError, match=str(high)):
        range_of(np.arange(3.0), low, high)


def test_empty_ranges_and_missing_scores_are_refused():
    """A range that holds nothing, or scores that say nothing, are mistakes."""
    with pytest.raises(InvalidConfigError, match="must not exceed"):
        keep(np.arange(3.0), 2.0, 1.0)
    with pytest.raises(InvalidConfigError, match="no episode has a score"):
        range_of(np.array([math.nan]), 0.0, 1.0)
