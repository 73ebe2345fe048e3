"""Runs as blocks of numbers."""

from __future__ import annotations

import numpy as np
import polars as pl

from yardmaster.report.suite.runs import Runs, runs_by_family

LABELS = ("shape", "intensity", "gpus")


def test_every_number_stands_in_its_place(plain_family: Runs, table: pl.DataFrame):
    """The block holds, for each scheduler, scenario and seed, what the table says."""
    for row, scenario, seed in ((0, 0, 0), (2, 5, 3), (3, 20, 4)):
        where = plain_family.scenarios[scenario]
        found = table.filter(
            (pl.col("regime") == where.regime)
            & (pl.col("perturbation") == where.perturbation)
            & (pl.col("severity") == where.severity)
            & (pl.col("scheduler") == plain_family.schedulers[row])
            & (pl.col("seed") == plain_family.seeds[seed])
        )
        assert len(found) == 1
        value = plain_family.numbers["mean_jct_s"][row, scenario, seed]
        assert value == found["mean_jct_s"][0]
        assert table["cell"][int(plain_family.places[row, scenario, seed])] == found["cell"][0]


def test_the_order_of_rows_does_not_matter(table: pl.DataFrame):
    """A shuffled table gives the same numbers for the same runs."""
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    one = runs_by_family(table, LABELS)[0]
    other = next(r for r in runs_by_family(shuffled, LABELS) if r.family == one.family)
    rows = [other.schedulers.index(name) for name in one.schedulers]
    columns = [other.scenarios.index(scenario) for scenario in one.scenarios]
    again = other.numbers["p95_jct_s"][np.ix_(rows, columns)]
    assert np.array_equal(again, one.numbers["p95_jct_s"])


def test_an_incomplete_scenario_is_left_out_for_all(table: pl.DataFrame):
    """One missing run takes its scenario out of every average, and is named."""
    lost = (
        (pl.col("regime") == "base-2")
        & (pl.col("perturbation") == "none")
        & (pl.col("scheduler") == "mid+skip")
        & (pl.col("seed") == 2)
    )
    runs = runs_by_family(table.filter(~lost), LABELS)[0]
    assert "base-2" not in {scenario.regime for scenario in runs.clean().scenarios}
    assert len(runs.clean().scenarios) == 3
    assert runs.left_out == ("base-2",)


def test_a_scheduler_that_completed_nothing_takes_nobody_with_it(table: pl.DataFrame):
    """A scheduler that failed everywhere is left out itself, and not all scenarios."""
    lost = (pl.col("scheduler") == "worst+easy") & (pl.col("seed") == 0)
    runs = runs_by_family(table.filter(~lost), LABELS)[0]
    assert "worst+easy" not in runs.schedulers
    assert len(runs.clean().scenarios) == 4
    assert runs.left_out == ("worst+easy",)


def test_labels_are_ordered_as_people_expect(clean: Runs, drift: Runs):
    """Intensities go from low to high and GPUs by number; a label that is missing has no values."""
    assert clean.values_of("intensity") == ["low", "high"]
    assert clean.values_of("gpus") == [2, 4]
    assert clean.values_of("nonsense") == []
    assert drift.values_of("shape") == []
    assert len(clean.having("gpus", 2).scenarios) == 2


def test_a_file_among_generated_workloads_stands_apart(table: pl.DataFrame):
    """A regime with a single seed neither counts as incomplete nor shortens the others."""
    one = (pl.col("regime") != "base-2") | (pl.col("seed") == 0)
    families = {runs.family: runs for runs in runs_by_family(table.filter(one), LABELS)}
    assert len(families["plain"].clean().scenarios) == 3
    assert len(families["plain"].seeds) == 5
    assert families["plain-one-seed"].seeds == (0,)
    assert families["plain-one-seed"].left_out == families["plain"].left_out == ()
