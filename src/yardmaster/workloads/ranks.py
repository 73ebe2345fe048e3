"""Ranks of values, and how well two columns agree on them."""

from __future__ import annotations

import math

import numpy as np

from yardmaster.model.workload import FloatArray


def ranks(values: FloatArray) -> FloatArray:
    """Return the rank of every value, equal values sharing the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2.0)[place], dtype=np.float64)


def rank_correlation(one: FloatArray, other: FloatArray) -> float:
    """Return Spearman's rank correlation; NaN if all values of one are equal."""
    first, second = ranks(one), ranks(other)
    first -= first.mean()
    second -= second.mean()
    spread = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / spread if spread > 0 else math.nan
