"""How the schedulers of an experiment did, in a few numbers each.

Pairs are seeds: a scheduler's values are averaged over all regimes of a seed first, and intervals
are over seeds. The regimes of one seed share their dice, so they are no independent samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.suite.results import CLEAN, GAP
from yardmaster.metrics.statistics import Interval, bootstrap_mean
from yardmaster.model.workload import FloatArray

if TYPE_CHECKING:
    import polars as pl

SHOWN = (
    "mean_jct_s",
    "p95_jct_s",
    "mean_bounded_slowdown",
    "sla",
    "max_queue",
    "queue_exploded",
    "jain_jobs",
)
"""What is averaged over all runs of a scheduler."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One scheduler on some regimes."""

    scheduler: str
    information: str
    means: dict[str, float]
    """Means over all runs, by name."""
    gaps: dict[str, Interval]
    """Mean distance to the best fixed scheduler in hindsight, by objective."""


@dataclass(frozen=True, slots=True)
class Standings:
    """All schedulers on some regimes, best first."""

    title: str
    runs: int
    seeds: int
    rows: tuple[Standing, ...]


def standings(table: pl.DataFrame, objectives: Sequence[str]) -> list[Standings]:
    """Return the standings on each family of clean regimes, and on all that were perturbed."""
    import polars as pl

    clean = table.filter(pl.col("perturbation") == CLEAN)
    disturbed = table.filter(pl.col("perturbation") != CLEAN)
    found = [
        _standing(clean.filter(pl.col("family") == family), f"{family} regimes", objectives)
        for family in clean["family"].unique(maintain_order=True)
    ]
    if len(disturbed):
        found.append(_standing(disturbed, "regimes under perturbations", objectives))
    return found


def _standing(part: pl.DataFrame, title: str, objectives: Sequence[str]) -> Standings:
    import polars as pl

    names = part["scheduler"].unique(maintain_order=True).to_list()
    rows = [_row(part.filter(pl.col("scheduler") == name), str(name), objectives) for name in names]
    if objectives:
        rows.sort(key=lambda row: (np.isnan(row.means[objectives[0]]), row.means[objectives[0]]))
    scenes = part.select("family", "regime", "perturbation", "severity").n_unique()
    return Standings(f"{scenes:,} {title}", len(part), part["seed"].n_unique(), tuple(rows))


def _row(own: pl.DataFrame, name: str, objectives: Sequence[str]) -> Standing:
    seed = own["seed"].to_numpy()
    return Standing(
        scheduler=name,
        information=str(own["information"][0]),
        means={
            column: _mean(own[column].to_numpy()) for column in dict.fromkeys((*SHOWN, *objectives))
        },
        gaps={
            objective: bootstrap_mean(_by_seed(own[GAP + objective].to_numpy(), seed))
            for objective in objectives
        },
    )


def _mean(values: FloatArray) -> float:
    """Return the mean of the values that are there; NaN if none is."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")


def _by_seed(values: FloatArray, seed: FloatArray) -> FloatArray:
    """Return the mean of each seed; of what has no value nothing is known, so it is left out."""
    means = [_mean(values[seed == one]) for one in np.unique(seed)]
    return np.array([mean for mean in means if not np.isnan(mean)])
