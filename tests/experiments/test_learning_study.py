"""The study of the learners: its settings are valid, its pages honest, its runs need little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yardmaster.experiments.training import read_config
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
NOT_NEEDED = (
    "polars", "pydantic", "gymnasium", "cyclopts", "optuna", "tensorboardX", "matplotlib", "simpy",
    "highspy", "tomli_w", "scipy", "sklearn",
)  # fmt: skip


@pytest.fixture
def scripts() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.mark.usefixtures("scripts")
def test_every_training_of_every_study_can_be_configured():
    """All settings are known, and every learner and every cell has a budget."""
    from learning_studies import STUDIES

    for study in STUDIES.values():
        assert study.metric in HIGHER_IS_BETTER
        for cell in study.cells:
            workload = "jobs.npz" if study.trace else None
            config = read_config(None, study.tables(cell, 3, workload, None))
            assert config.train.seed == 3
            assert config.train.steps == config.settings.total_steps == cell.steps
            assert config.train.metric == study.metric
    assert len(STUDIES["lookahead"].cells) == 12


def written(folder: Path, study: str, gain: float) -> None:
    """Write made-up results: PPO has so much more than the only heuristic."""
    dice = np.random.default_rng(0)
    base = dice.normal(0.5, 0.2, 20)

    def scores(values: np.ndarray) -> dict[str, Any]:
        return {
            split: dict.fromkeys(HIGHER_IS_BETTER, values.tolist()) for split in ("val", "report")
        }

    place = folder / "results" / study
    (place / "ppo").mkdir(parents=True)
    player = {"how": "played", "information": "blind", "scores": scores(base)}
    units = {split: list(range(20)) for split in ("val", "report")}
    (place / "baselines.json").write_text(
        json.dumps({"episodes": 20, "units": units, "players": {"fifo+skip": player}})
    )
    for seed in range(5):
        values = base + gain + 0.02 * dice.normal(size=20)
        run = {
            "seed": seed, "information": "clairvoyant", "scores": scores(values), "budget": 1000,
            "curve": [[0, 0.1], [1000, float(values.mean())]], "seconds": 60.0,
            "best_steps": 0, "warnings": [],
        }  # fmt: skip
        (place / "ppo" / f"seed-{seed}.json").write_text(json.dumps(run))


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("gain", "said"), [(0.1, "beats fifo+skip"), (-0.1, "loses to fifo+skip"), (0.0, "not differ")]
)
def test_losses_are_shown_as_losses(gain: float, said: str, tmp_path: Path):
    """The page says who wins by the interval over seeds and episodes, whoever it is."""
    from learning_pages import write_pages
    from learning_results import read_results
    from learning_studies import STUDIES

    written(tmp_path, "gpu-optimizer-original", gain)
    results = read_results(STUDIES["gpu-optimizer-original"], tmp_path)
    assert results is not None
    pages = write_pages({"gpu-optimizer-original": results}, tmp_path / "docs")
    assert [page.name for page in pages] == ["README.md", "ppo.md"]
    text = (tmp_path / "docs/ppo.md").read_text()
    assert said in text
    assert "published 0.646" in text
    assert "--study gpu-optimizer-original --only ppo --seeds 5 --steps 1000" in text
    picture = tmp_path / "docs/figures/ppo-gpu-optimizer-original.svg"
    assert picture.read_text().startswith("<svg")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the study in a process that has only what another machine has."""
    blocked = "".join(f"sys.modules[{name!r}] = None; " for name in NOT_NEEDED)
    code = f"import sys; {blocked}sys.path.insert(0, {str(FOLDER)!r}); import learning; "
    return subprocess.run(
        [sys.executable, "-c", f"{code}learning.main()", *arguments],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_training_needs_numpy_numba_and_torch_alone(tmp_path: Path):
    """A tiny study runs without the other libraries, stops in time, and is not done twice."""
    few = ("--study", "gpu-optimizer", "--only", "ppo", "--seeds", "1", "--steps", "64")
    options = ("run", *few, "--episodes", "2", "--workers", "1", "--out", str(tmp_path))
    late = run(*options, "--minutes", "0", cwd=tmp_path)
    assert late.returncode == 1
    assert "no time left" in late.stdout
    done = run(*options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "results/gpu-optimizer/ppo/seed-0.json").read_text())
    assert len(result["scores"]["report"]["returns"]) == 2
    assert not (tmp_path / "runs/gpu-optimizer/ppo/seed-0/checkpoints/last.pt").exists()
    again = run(*options, cwd=tmp_path)
    assert "2 of 2 done before; 0 to do." in again.stdout
