"""Ranks, against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from yardmaster.workloads.ranks import rank_correlation, ranks


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=40))
def test_rank_correlation_is_spearmans(pairs):
    """Ties and all, as SciPy computes it; NaN where one side is constant."""
    one, other = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert math.isnan(rank_correlation(one, other))
    else:
        assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_equal_values_share_the_mean_of_their_ranks(values):
    """As SciPy ranks them."""
    assert ranks(np.array(values, dtype=float)).tolist() == rankdata(values).tolist()
