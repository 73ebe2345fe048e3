"""An experiment's figures as numbers: an experiment whose answers are known has known answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.experiments.trainings.lookahead import RESULTS
from yardmaster.report.lookahead import read_lookahead
from yardmaster.report.suite.experiment import Experiment
from yardmaster.report.suite.numbers import Choice, experiment_numbers, lookahead_numbers

META = "meta:runs/x/policy.npz"


def by_scheduler(found, values) -> dict[str, float]:
    names = [found["all_schedulers"][row]["name"] for row in found["schedulers"]]
    return dict(zip(names, (value["mean"] for value in values), strict=True))


def test_gaps_are_those_the_experiment_was_made_with(experiment: Experiment):
    """`mid` is 10 % above the best fixed scheduler, `worst` 50 %, the learned one 5 % below."""
    found = experiment_numbers(experiment, Choice())
    gaps = by_scheduler(found, found["gaps"]["mean_jct_s"])
    expected = {"best+skip": 0.0, "mid+skip": 0.1, "worst+easy": 0.5, META: -0.05}
    assert gaps == pytest.approx(expected, abs=1e-6)
    for row in found["map"]["gaps"]:
        assert row == pytest.approx([expected[name] for name in gaps], abs=1e-6)
    assert found["regimes"] == len(found["map"]["regimes"]) == 4
    json.dumps(found, allow_nan=False)


def test_the_star_holds_the_effects_the_experiment_was_made_with(experiment: Experiment):
    """Means over severities: 1 %, 37.5 % and −10 %."""
    star = experiment_numbers(experiment, Choice())["robustness"]
    expected = {"arrival-noise": 0.01, "capacity-dip": 0.375, "phase-shift": -0.1}
    for changes in star["changes"]:
        found = dict(zip(star["perturbations"], (each["mean"] for each in changes), strict=True))
        assert found == pytest.approx(expected, abs=0.01)


def test_leaving_out_a_scheduler_does_not_change_the_best_in_hindsight(experiment: Experiment):
    """Gaps of those shown stay what they are."""
    choice = Choice(schedulers=("mid+skip",), labels={"gpus": ("4",)}, family="plain")
    found = experiment_numbers(experiment, choice)
    assert found["regimes"] == 2
    assert by_scheduler(found, found["gaps"]["mean_jct_s"]) == {
        "mid+skip": pytest.approx(0.1, abs=1e-6)
    }


def test_other_families_and_metrics_can_be_asked_for(experiment: Experiment):
    """A number that is no objective has no gaps; regimes without a label have no filter for it."""
    found = experiment_numbers(experiment, Choice(family="drift", metric="utilisation"))
    assert found["map"]["gaps"] is None
    assert [label["name"] for label in found["labels"]] == []
    assert found["robustness"] is None


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (Choice(family="plian"), "Did you mean 'plain'"),
        (Choice(metric="mean_jct"), "Did you mean 'mean_jct_s'"),
        (Choice(schedulers=("mid",)), "Unknown scheduler 'mid'"),
        (Choice(labels={"shap": ("base",)}), "Did you mean 'shape'"),
        (Choice(labels={"gpus": ("99",)}), "No regime"),
    ],
)
def test_unknown_names_are_told(experiment: Experiment, choice: Choice, told: str):
    """Each in a sentence."""
    with pytest.raises(YardmasterError, match=told):
        experiment_numbers(experiment, choice)


def test_the_study_of_lookahead_has_levels_and_differences(tmp_path: Path):
    """A quarter more with lookahead is shown as a quarter more."""
    rows = [
        {"task": "t", "metric": "returns", "architecture": "mlp", "lookahead": mode, "steps": 10,
         "training_seed": seed, "episode": episode}
        | dict.fromkeys(HIGHER_IS_BETTER, more + 0.01 * seed + 0.02 * episode)
        for mode, more in (("off", 0.5), ("sorted", 0.75))
        for seed in range(3)
        for episode in range(4)
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / RESULTS)
    found = lookahead_numbers(read_lookahead(tmp_path))["lookahead"]
    assert [row["name"] for row in found["rows"]] == ["mlp, off", "mlp, sorted"]
    assert [row["mean"] for row in found["rows"]] == pytest.approx([0.54, 0.79])
    (change,) = found["differences"]
    assert [change["mean"], change["low"], change["high"]] == pytest.approx([0.25] * 3)
    assert np.isfinite(found["size"])
