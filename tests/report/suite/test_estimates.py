"""Estimates whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from yardmaster.experiments.suite.results import GAP
from yardmaster.report.suite.estimates import (
    best_fixed,
    gaps,
    in_hindsight,
    mean_gaps,
    means,
    relative_difference,
    seed_means,
    seed_spread,
)
from yardmaster.report.suite.runs import Runs, Scenario


def test_a_constant_factor_is_found_without_doubt(clean: Runs):
    """A scheduler always 10 % above another differs by 10 %, and the interval is a point."""
    units = seed_means(clean, "mean_jct_s")
    change = relative_difference(units[clean.row("mid+skip")], units[clean.row("best+skip")])
    assert change == pytest.approx((0.1, 0.1, 0.1))


def test_seeds_are_the_units(clean: Runs):
    """The mean is that of all runs, and each seed's number is the mean over its regimes."""
    values = clean.numbers["mean_jct_s"]
    for row, each in enumerate(means(clean, "mean_jct_s")):
        assert each.mean == pytest.approx(values[row].mean())
        assert each.low < each.mean < each.high
    assert seed_means(clean, "mean_jct_s").shape == (4, len(clean.seeds))


def test_the_best_fixed_scheduler_is_fixed(clean: Runs):
    """The learned scheduler has the least mean, but the best fixed one is another."""
    assert best_fixed(clean, "mean_jct_s") == "best+skip"
    assert best_fixed(clean, "p95_jct_s") == "worst+easy"


def test_gaps_are_those_of_the_table(clean: Runs, table: pl.DataFrame):
    """Gaps agree with the columns that the experiment itself computed."""
    for objective in ("mean_jct_s", "p95_jct_s"):
        column = table[GAP + objective].to_numpy()
        assert np.allclose(gaps(clean, objective), column[clean.places])
    found = dict(zip(clean.schedulers, mean_gaps(clean, "mean_jct_s"), strict=True))
    assert found["best+skip"].mean == 0.0
    assert found["worst+easy"].mean == pytest.approx(0.5)
    assert found["meta:runs/x/policy.npz"].high == pytest.approx(-0.05)


def test_hindsight_takes_all_numbers_from_the_same_run(clean: Runs):
    """The scheduler that is chosen by one objective brings its own other numbers along."""
    chosen = in_hindsight(clean, "p95_jct_s")
    worst = clean.row("worst+easy")
    assert np.array_equal(chosen["p95_jct_s"][0], clean.numbers["p95_jct_s"][worst])
    assert np.array_equal(chosen["mean_jct_s"][0], clean.numbers["mean_jct_s"][worst])


def test_a_number_that_nobody_has_does_not_count():
    """Scenarios without deadlines leave the mean of the others alone; one NaN alone is no mean."""
    there, alone = np.full((2, 2, 3), 0.5), np.full((2, 2, 3), 0.5)
    there[:, 1] = np.nan
    alone[0, 1, 2] = np.nan
    runs = Runs(
        "f", ("a", "b"), (Scenario("x", "none", 0.0), Scenario("y", "none", 0.0)), (0, 1, 2),
        {"a": "", "b": ""}, ({}, {}), {"sla": there}, np.zeros((2, 2, 3), dtype=np.int64),
    )  # fmt: skip
    assert np.array_equal(seed_means(runs, "sla"), np.full((2, 3), 0.5))
    means_of = seed_means(replace(runs, numbers={"sla": alone}), "sla")
    assert np.isnan(means_of[0, 2])
    assert not np.isnan(means_of[1]).any()


def test_spread_over_seeds_is_relative(clean: Runs):
    """The spread does not depend on a scheduler's factor, nor on the unit."""
    spread = seed_spread(clean, "mean_jct_s")
    assert np.allclose(spread, spread[0])
    assert 0.0 < spread[0] < 0.1
