"""The study of lookahead: what it trains, and a small one to its end."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.experiments.trainings.lookahead import (
    ARCHITECTURES,
    MODES,
    RESULTS,
    LookaheadOptions,
    lookahead_plan,
    run_lookahead,
)

SMALL = {
    "task": {"episodes": 4, "jobs": 24},
    "learner": {"steps_per_update": 128, "epochs": 1, "minibatches": 1, "network": {"hidden": [4]}},
    "train": {"envs": 8, "eval_episodes": 2},
}


def small(**changes) -> LookaheadOptions:
    usual = {"seeds": 1, "steps": 256, "episodes": 3, "modes": ("cdf",)}
    return LookaheadOptions(**(usual | {"architectures": ("mlp",), "tables": SMALL} | changes))


def test_every_mode_in_every_architecture(tmp_path: Path):
    """Twelve combinations from each seed, alike but for what they are named after."""
    found = lookahead_plan(tmp_path, LookaheadOptions(seeds=2)).trainings
    assert len(found) == 2 * len(MODES) * len(ARCHITECTURES)
    seen = {
        (one.config.task.sight.lookahead, one.config.settings.network.arch)
        for one in found
        if one.variant == f"{one.config.task.sight.lookahead}-{one.config.settings.network.arch}"
    }
    assert seen == {(mode, arch) for mode in MODES for arch in ARCHITECTURES}
    assert {one.config.learner for one in found} == {"ppo"}


def test_bad_options_are_refused(tmp_path: Path):
    """Names and numbers that make no sense are told; so is a folder of something else."""
    with pytest.raises(UnknownNameError, match="Did you mean 'sorted'"):
        small(modes=("sort",))
    with pytest.raises(UnknownNameError, match="task of picking jobs 'regimes'"):
        small(task="regimes")
    with pytest.raises(YardmasterError, match="episodes must be at least 1"):
        small(episodes=0)
    (tmp_path / "mine.txt").touch()
    with pytest.raises(YardmasterError, match="not the folder of this study"):
        run_lookahead(tmp_path, small())


def test_a_study_from_start_to_table(tmp_path: Path):
    """Every training plays the same episodes once; more of them are played without training."""
    folder = tmp_path / "study"
    news: list[str] = []
    estimated = run_lookahead(folder, small(), only_estimate=True, announce=news.append)
    assert not estimated.has_results
    assert estimated.trainings.estimate_s > 0
    assert "1 training, 256 steps each: about" in news[-1]
    result = run_lookahead(folder, small(), workers=2)
    assert result.has_results
    assert (result.trainings.known, result.trainings.failures) == (0, ())
    table = pl.read_parquet(folder / RESULTS)
    names = table.select("task", "architecture", "lookahead", "training_seed", "steps").unique()
    assert names.rows() == [("gpu-optimizer", "mlp", "cdf", 0, 256)]
    assert table["episode"].to_list() == [0, 1, 2]
    trained = {path: path.read_bytes() for path in folder.glob("trainings/*/progress.jsonl")}
    assert run_lookahead(folder, small(episodes=4), workers=2).has_results
    more = pl.read_parquet(folder / RESULTS)
    assert more.filter(pl.col("episode") < 3).equals(table)
    assert {path: path.read_bytes() for path in trained} == trained
