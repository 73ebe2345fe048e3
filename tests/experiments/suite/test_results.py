"""The table has a row for every run, in the order of the cells."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.batch import Kit, run_batch
from yardmaster.experiments.suite.cells import cells_of
from yardmaster.experiments.suite.fingerprints import code_fingerprint
from yardmaster.experiments.suite.folder import SuiteFolder
from yardmaster.experiments.suite.measuring import MEASURES
from yardmaster.experiments.suite.results import (
    is_fixed,
    oracle_gap,
    read_jct_quantiles_s,
    read_results,
    results_table,
    write_results,
)
from yardmaster.experiments.suite.store import opened


@pytest.fixture
def made(small, tmp_path):
    """Return the cells of a small experiment, its table, and the folder both are in."""
    cells = cells_of(small)
    with opened(SuiteFolder(tmp_path).store) as store:
        store.add(MEASURES, run_batch(Kit(code_fingerprint()), cells[::-1]).runs)
        table = results_table(cells, store, small.objectives)
    write_results(table, SuiteFolder(tmp_path).results)
    return cells, table, tmp_path


def test_every_cell_is_a_row(made):
    """Names, labels and numbers; what a setting has no label for is null."""
    cells, table, _ = made
    assert table["cell"].to_list() == [cell.key for cell in cells]
    assert table["scheduler"].to_list() == [cell.scheduler for cell in cells]
    assert set(MEASURES) <= set(table.columns)
    clean = table.filter(pl.col("perturbation") == "none")
    assert (clean["severity"] == 0.0).all()
    gangs = table.filter(pl.col("regime") == "gangs")
    assert gangs["shape"].null_count() == len(gangs) == 4
    assert table["gpus"].dtype == pl.Int64
    assert table["information"].unique().sort().to_list() == ["blind", "clairvoyant"]


def test_reading_gives_what_was_written(made):
    """The file and the store have everything that reports need."""
    cells, table, folder = made
    assert read_results(folder).equals(table)
    quantiles = read_jct_quantiles_s(folder, table["cell"].to_list())
    assert quantiles.shape == (len(cells), 201)
    np.testing.assert_allclose(quantiles[:, 100], table["p50_jct_s"], rtol=1e-6)
    with pytest.raises(YardmasterError, match="run the experiment first"):
        read_results(folder / "elsewhere")


def test_equal_tables_are_equal_bytes(made):
    """Writing again changes nothing."""
    _, table, folder = made
    before = (folder / "results.parquet").read_bytes()
    write_results(table, folder / "results.parquet")
    assert (folder / "results.parquet").read_bytes() == before


def test_the_oracle_is_the_best_of_the_same_jobs(made):
    """Of each group of rows that share jobs, the best has gap 0 and the others their distance."""
    _, table, _ = made
    group = ["family", "regime", "perturbation", "severity", "seed"]
    best = table.group_by(group).agg(pl.col("mean_jct_s").min().alias("best"))
    expected = table.join(best, on=group, how="left", maintain_order="left")
    gap = expected["mean_jct_s"] / expected["best"] - 1
    np.testing.assert_allclose(table["oracle_gap_mean_jct_s"], gap, atol=1e-12)


def test_who_learns_or_chooses_is_no_oracle():
    """Better than every fixed scheduler is a gap below 0."""
    names = ["sjf+skip", "fifo", "meta:best", "bandit:exp3", "policy:a.npz", "me.py:own+skip"]
    fixed = np.array([is_fixed(name) for name in names])
    assert fixed.tolist() == [True, True, False, False, False, True]
    values = np.array([10.0, 20.0, 8.0, 12.0, math.nan, math.nan])
    gap = oracle_gap(values, np.zeros(6, dtype=np.int64), fixed)
    np.testing.assert_allclose(gap, [0, 1, -0.2, 0.2, math.nan, math.nan])
    nobody = oracle_gap(values[2:4], np.zeros(2, dtype=np.int64), fixed[2:4])
    assert np.isnan(nobody).all()
    assert len(oracle_gap(values[:0], np.zeros(0, dtype=np.int64), fixed[:0])) == 0


def test_a_label_hides_no_number(small, tmp_path):
    """A label with the name of another column gets its own name; mixed labels become text."""
    document = small.model_dump(mode="json") | {
        "regimes": [],
        "workloads": [
            {"name": "a", "workload": "lognormal", "cluster": "pool:8", "jobs": 20,
             "labels": {"jobs": "few", "level": 1, "family": "mine"}},
            {"name": "b", "workload": "lognormal", "cluster": "pool:8", "jobs": 30,
             "labels": {"level": "high"}},
        ],
    }  # fmt: skip
    import json

    cells = cells_of(type(small).model_validate_json(json.dumps(document)))
    with opened(tmp_path / "runs.sqlite") as store:
        store.add(MEASURES, run_batch(Kit(code_fingerprint()), cells).runs)
        table = results_table(cells, store, ())
    assert set(table["label_jobs"]) == {"few", None}
    assert set(table["label_family"]) == {"mine", None}
    assert set(table["family"]) == {"own"}
    assert set(table["jobs"]) == {20.0, 30.0}
    assert set(table["level"]) == {"1", "high"}
