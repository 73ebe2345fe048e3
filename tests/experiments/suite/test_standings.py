"""Standings are means over runs, and intervals over seeds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from yardmaster.experiments.suite.standings import SHOWN, standings
from yardmaster.metrics.statistics import bootstrap_mean


def table() -> pl.DataFrame:
    dice = np.random.default_rng(0)
    rows = [
        {
            "family": family, "regime": f"{family}{regime}", "perturbation": kind, "severity": 0.0,
            "scheduler": name, "information": "blind", "seed": seed,
            "oracle_gap_mean_jct_s": dice.random(),
            **{column: dice.random() + (name == "slow") for column in SHOWN},
        }
        for family in ("one", "two")
        for regime in range(3)
        for kind in ("none", "noise")
        for seed in range(6)
        for name in ("slow", "quick")
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_families_and_disturbed_regimes_stand_apart():
    """One table for each family undisturbed, and one for all that was disturbed."""
    found = standings(table(), ["mean_jct_s"])
    assert [each.title for each in found] == [
        "3 one regimes", "3 two regimes", "6 regimes under perturbations",
    ]  # fmt: skip
    assert [each.runs for each in found] == [36, 36, 72]
    assert all(each.seeds == 6 for each in found)


def test_the_best_comes_first():
    """Schedulers are ranked by the first objective's mean."""
    for each in standings(table(), ["mean_jct_s"]):
        assert [row.scheduler for row in each.rows] == ["quick", "slow"]


def test_seeds_are_the_units():
    """The interval is that of the means of each seed over all regimes."""
    data = table()
    own = data.filter(family="one", perturbation="none", scheduler="slow")
    by_seed = own.group_by("seed").agg(pl.col("oracle_gap_mean_jct_s").mean()).sort("seed")
    row = standings(data, ["mean_jct_s"])[0].rows[1]
    assert row.gaps["mean_jct_s"] == pytest.approx(
        bootstrap_mean(by_seed["oracle_gap_mean_jct_s"].to_numpy())
    )
    assert row.means["sla"] == pytest.approx(own["sla"].mean())
