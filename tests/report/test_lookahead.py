"""The study of lookahead as a table and a figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.seeds import mean_over_seeds
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.experiments.trainings.lookahead import RESULTS
from yardmaster.report.lookahead import (
    Lookahead,
    lookahead_sketch,
    lookahead_table,
    read_lookahead,
    write_lookahead_report,
)

EPISODES = 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with results of three trainings each, `sorted` a quarter above `off`."""
    dice = np.random.default_rng(0)
    rows = []
    for arch in ("mlp", "kernel"):
        for seed in range(3):
            noise = dice.normal(0.0, 0.01, EPISODES)
            for mode, more in (("off", 0.0), ("sorted", 0.25)):
                for episode in range(EPISODES):
                    numbers = dict.fromkeys(HIGHER_IS_BETTER, 0.5 + more + noise[episode])
                    rows.append(
                        {"task": "gpu-optimizer", "metric": "returns", "architecture": arch,
                         "lookahead": mode, "training_seed": seed, "steps": 1000,
                         "episode": episode, **numbers}
                    )  # fmt: skip
    pl.DataFrame(rows).sample(fraction=1.0, shuffle=True, seed=1).sort(
        "architecture"
    ).write_parquet(tmp_path / RESULTS)
    return tmp_path


def test_intervals_are_over_trainings_and_episodes(folder: Path):
    """Means come from the whole block; differences are paired, so common noise is not in them."""
    found = read_lookahead(folder)
    block = found.scores["mlp", "sorted"]["returns"]
    assert block.shape == (3, EPISODES)
    assert found.mean("mlp", "sorted") == mean_over_seeds(block)
    assert found.difference("mlp", "sorted") == pytest.approx((0.25, 0.25, 0.25))
    assert found.difference("mlp", "off") is None


def test_the_table_has_a_row_for_every_combination(folder: Path):
    """Each with its mean, and with what lookahead adds."""
    made = lookahead_table(read_lookahead(folder))
    assert len(made.rows) == 4
    assert "3 trainings each, 1,000 steps, 5 REPORT episodes" in made.title
    record = next(one for one in made.records if one["lookahead"] == "sorted")
    assert record["difference_to_off"] == pytest.approx(0.25)
    assert record["trainings"] == 3


def test_every_network_has_marks_of_its_own(folder: Path):
    """The figure tells networks apart by colour and mark, and says what it shows."""
    found: Lookahead = read_lookahead(folder)
    figure = lookahead_sketch(found).figure()
    assert "#0072b2" in figure.svg.lower()
    assert "#d55e00" in figure.svg.lower()
    assert "mlp with sorted 0.7" in figure.alt


def test_the_report_is_written_from_the_table_alone(folder: Path):
    """The same results give the same files."""
    place = write_lookahead_report(folder)
    first = {path.name: path.read_bytes() for path in place.iterdir()}
    assert set(first) == {f"lookahead.{end}" for end in ("md", "tex", "csv", "svg", "png", "pdf")}
    write_lookahead_report(folder)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == first


def test_without_results_there_is_nothing_to_report(tmp_path: Path):
    """The message says what to run."""
    with pytest.raises(YardmasterError, match="experiment lookahead"):
        read_lookahead(tmp_path)
