"""Estimates from runs, with intervals over seeds.

Regimes are given and seeds are drawn: each seed is one unit, whose number is the mean over the
regimes, and intervals say how far another set of seeds might lead. All schedulers share the seeds,
so differences are paired.
"""

from __future__ import annotations

import numpy as np

from yardmaster.experiments.suite.results import is_fixed
from yardmaster.metrics.statistics import Interval, bootstrap_mean, paired_difference
from yardmaster.model.workload import FloatArray
from yardmaster.report.suite.runs import Runs


def seed_means(runs: Runs, name: str) -> FloatArray:
    """Return (schedulers, seeds) the mean over scenarios.

    Scenarios in which nobody has the number do not count: without deadlines, none is missed.
    """
    values = runs.numbers[name]
    known = ~np.isnan(values).all(axis=(0, 2))
    if not known.any():
        return np.full((values.shape[0], values.shape[2]), np.nan)
    means: FloatArray = values[:, known].mean(axis=1)
    return means


def means(runs: Runs, name: str) -> list[Interval]:
    """Return the mean of every scheduler."""
    return [bootstrap_mean(units) for units in seed_means(runs, name)]


def relative_difference(a: FloatArray, b: FloatArray) -> Interval:
    """Return mean(a) / mean(b) − 1 over the same units."""
    return paired_difference(a, b).relative


def best_fixed(runs: Runs, objective: str) -> str:
    """Return the fixed scheduler with the least mean; of all, where none is fixed."""
    averages = seed_means(runs, objective).mean(axis=1)
    rows = _fixed_rows(runs)
    return runs.schedulers[min(rows, key=lambda row: np.nan_to_num(averages[row], nan=np.inf))]


def gaps(runs: Runs, objective: str) -> FloatArray:
    """Return (schedulers, scenarios, seeds) how far each run stays behind the best fixed one.

    Value / least value of a fixed scheduler on the same jobs − 1; negative is better than all.
    """
    values = runs.numbers[objective]
    best = np.fmin.reduce(values[_fixed_rows(runs)])
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = np.where(values == best, 0.0, values / best - 1.0)
    return found


def mean_gaps(runs: Runs, objective: str) -> list[Interval]:
    """Return the mean gap of every scheduler."""
    return [bootstrap_mean(units) for units in gaps(runs, objective).mean(axis=1)]


def in_hindsight(runs: Runs, objective: str) -> dict[str, FloatArray]:
    """Return name → (1, scenarios, seeds): in every run the numbers of its best fixed scheduler."""
    rows = _fixed_rows(runs)
    values = np.nan_to_num(runs.numbers[objective][rows], nan=np.inf)
    chosen = np.array(rows)[values.argmin(axis=0)][None]
    return {
        name: np.take_along_axis(numbers, chosen, axis=0) for name, numbers in runs.numbers.items()
    }


def seed_spread(runs: Runs, name: str) -> FloatArray:
    """Return (schedulers,) the standard deviation over seeds / mean, averaged over scenarios."""
    values = runs.numbers[name]
    if len(runs.seeds) < 2:
        return np.full(len(runs.schedulers), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread: FloatArray = (values.std(axis=2, ddof=1) / values.mean(axis=2)).mean(axis=1)
    return spread


def _fixed_rows(runs: Runs) -> list[int]:
    fixed = [row for row, name in enumerate(runs.schedulers) if is_fixed(name)]
    return fixed or list(range(len(runs.schedulers)))
