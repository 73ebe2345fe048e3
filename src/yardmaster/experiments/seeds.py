"""Intervals over training seeds and episodes at once.

A learner is trained several times from different seeds, and all its policies play the same
episodes. How good the learner is depends on both draws: another seed, or another episode, would
have given other numbers. The table (seeds × episodes) is read as in a two-way analysis of variance
with both factors random, and the interval is Student's with Satterthwaite's degrees of freedom: it
covers a new seed on a new episode's average, not merely these seeds or these episodes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from yardmaster.errors import YardmasterError
from yardmaster.metrics.statistics import Interval, bootstrap_mean, t_quantile
from yardmaster.model.workload import FloatArray


def mean_over_seeds(values: npt.ArrayLike) -> Interval:
    """Return the mean of a table (seeds, units) with its 95 % interval.

    With one seed, the interval is over units alone and says nothing of other seeds.

    Raises:
        YardmasterError: if it is not a table, or empty.
    """
    table: FloatArray = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise YardmasterError(f"A table of seeds and units is needed, got shape {table.shape}.")
    seeds, units = table.shape
    mean = float(table.mean())
    if np.isnan(table).any() or units < 2:
        return Interval(mean, math.nan, math.nan)
    if seeds < 2:
        return bootstrap_mean(table[0])
    of_seeds, of_units, of_rest = _mean_squares(table)
    # Estimates of a variance may come out below what one factor alone has; that is chance.
    total = max(of_seeds + of_units - of_rest, of_seeds, of_units)
    if total == 0:
        return Interval(mean, mean, mean)
    spread = (
        of_seeds**2 / (seeds - 1)
        + of_units**2 / (units - 1)
        + of_rest**2 / ((seeds - 1) * (units - 1))
    )
    degrees = max(math.floor(total**2 / spread), 1)
    reach = t_quantile(degrees) * math.sqrt(total / (seeds * units))
    return Interval(mean, mean - reach, mean + reach)


def _mean_squares(table: FloatArray) -> tuple[float, float, float]:
    """Return the mean squares between seeds, between units, and of what both leave unexplained."""
    seeds, units = table.shape
    by_seed, by_unit = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    mean = table.mean()
    of_seeds = units * float(np.sum((by_seed - mean) ** 2)) / (seeds - 1)
    of_units = seeds * float(np.sum((by_unit - mean) ** 2)) / (units - 1)
    rest = table - by_seed - by_unit + mean
    return of_seeds, of_units, float(np.sum(rest**2)) / ((seeds - 1) * (units - 1))
