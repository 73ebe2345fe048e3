"""Variants of a scheduler against the whole."""

from __future__ import annotations

import polars as pl
import pytest

from yardmaster.report.suite.ablation import Ablation, ablation, ablation_bars


def trainings(variants: dict[str, float]) -> pl.DataFrame:
    """A table in which each variant's numbers are the full one's times a factor, per training."""
    rows = [
        {"variant": name, "training_seed": training, "seed": seed,
         "mean_jct_s": factor * (100 + 7 * training + seed), "jain_jobs": 0.5 / factor}
        for name, factor in variants.items()
        for training in range(5)
        for seed in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows)


@pytest.fixture
def found() -> Ablation:
    variants = {"full": 1.0, "without embedding": 1.2, "without energy": 0.9}
    found = ablation(trainings(variants))
    assert found is not None
    return found


def test_trainings_are_the_units(found: Ablation):
    """Each training is one unit, paired with the same training of the whole."""
    assert found.units == 5
    assert found.unit_name == "training"
    assert found.variants == ("without embedding", "without energy")
    assert found.change("without embedding", "mean_jct_s") == pytest.approx((0.2, 0.2, 0.2))


def test_only_shared_units_are_paired():
    """A training that one variant lacks is left out for all."""
    table = trainings({"full": 1.0, "small": 2.0})
    lost = (pl.col("variant") == "small") & (pl.col("training_seed") == 3)
    found = ablation(table.filter(~lost))
    assert found is not None
    assert found.units == 4
    assert found.change("small", "mean_jct_s").mean == pytest.approx(1.0)


def test_of_shares_the_difference_counts():
    """Explosions may be 0 with all parts: what changes is told in percentage points."""
    table = trainings({"full": 1.0, "small": 2.0}).with_columns(
        queue_exploded=pl.when(pl.col("variant") == "full").then(0.0).otherwise(0.25)
    )
    found = ablation(table)
    assert found is not None
    assert found.change("small", "queue_exploded") == pytest.approx((0.25, 0.25, 0.25))
    assert found.measures == ["mean_jct_s", "jain_jobs", "queue_exploded"]


def test_other_experiments_are_no_ablation(table: pl.DataFrame):
    """Without variants, or without the whole to compare with, there is nothing to report."""
    assert ablation(table) is None
    assert ablation(trainings({"a": 1.0, "b": 2.0})) is None


def test_a_variant_that_is_worse_is_orange_whichever_way_is_better(found: Ablation):
    """More time and less fairness both count as worse."""
    svg = ablation_bars(found, ("mean_jct_s", "jain_jobs")).figure().svg.lower()
    assert svg.count("fill: #d55e00") == 2
    assert svg.count("fill: #0072b2") == 2
