"""Reading the folder of an experiment."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.report.suite.experiment import Experiment, read_experiment
from yardmaster.report.suite.measures import OBJECTIVES


def test_everything_is_found(experiment: Experiment):
    """Families, objectives and completion times come from the folder alone."""
    assert [runs.family for runs in experiment.families] == ["plain", "drift"]
    assert experiment.objectives == OBJECTIVES
    assert experiment.jct_quantiles_s is not None
    assert experiment.jct_quantiles_s.shape == (experiment.rows, 201)
    assert experiment.ablation is None


def test_without_the_store_there_are_no_curves(folder: Path, tmp_path: Path):
    """A table alone is enough for all but the curves of completion times."""
    (tmp_path / "results.parquet").write_bytes((folder / "results.parquet").read_bytes())
    assert read_experiment(tmp_path).jct_quantiles_s is None


def test_failures_are_told(folder: Path, tmp_path: Path):
    """Runs that could not be made are listed with their reasons; a damaged list is said to be."""
    (tmp_path / "results.parquet").write_bytes((folder / "results.parquet").read_bytes())
    lost = tmp_path / "failures.json"
    lost.write_text(json.dumps([{"run": "sjf on x, seed 1", "reason": "no memory"}]))
    assert read_experiment(tmp_path).failures == ("sjf on x, seed 1: no memory",)
    lost.write_text("{}x")
    with pytest.raises(YardmasterError, match="damaged"):
        read_experiment(tmp_path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pl.DataFrame({"family": ["a"], "regime": ["b"]}), "no column perturbation, severity"),
        (None, r"no .*results\.parquet"),
    ],
)
def test_what_cannot_be_reported_on_is_refused(
    tmp_path: Path, table: pl.DataFrame | None, message: str
):
    """A folder without results, or with other results, is named with what it lacks."""
    if table is not None:
        table.write_parquet(tmp_path / "results.parquet")
    with pytest.raises(YardmasterError, match=message):
        read_experiment(tmp_path)


def test_a_misspelt_folder_is_answered_with_the_nearest(folder: Path):
    """Users who mistype a folder read which one they may have meant."""
    with pytest.raises(YardmasterError, match=f"Did you mean '{folder.name}'"):
        read_experiment(folder.with_name(f"{folder.name}s"))
