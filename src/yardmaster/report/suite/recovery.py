"""How long queues take to recover where the nature of the jobs changes."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from yardmaster.metrics.statistics import Interval, bootstrap_mean
from yardmaster.report.suite.runs import Runs


class Recovery(NamedTuple):
    """One scheduler's recoveries."""

    scheduler: str
    mean_s: Interval
    """Over the runs that recovered from every change."""
    by_regime_s: tuple[float, ...]
    """The same for every regime; NaN where none did."""
    recovered: float
    """Share of the runs that recovered from every change."""


def recoveries(runs: Runs) -> list[Recovery]:
    """Return one entry per scheduler; empty where nothing changes."""
    if "recovery_s" not in runs.numbers or not runs.scenarios:
        return []
    values = runs.numbers["recovery_s"]
    known = np.isfinite(values)
    changes = known
    if "unrecovered" in runs.numbers:
        changes = known | (runs.numbers["unrecovered"] > 0)
    changing = changes.any(axis=(0, 2))
    if not known.any():
        return []
    values, known = values[:, changing], known[:, changing]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Mean of empty slice")
        by_seed = np.nanmean(values, axis=1)
        by_regime = np.nanmean(values, axis=2)
    return [
        Recovery(
            scheduler,
            bootstrap_mean(by_seed[row][np.isfinite(by_seed[row])]),
            tuple(by_regime[row].tolist()),
            float(known[row].mean()),
        )
        for row, scheduler in enumerate(runs.schedulers)
    ]
