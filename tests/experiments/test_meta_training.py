"""Trainings of the choosers' study: which there are, and when one with a time limit ends."""

from __future__ import annotations

import gzip
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def script() -> Iterator[Any]:
    """The script."""
    sys.path.insert(0, str(FOLDER))
    import meta_training

    yield meta_training
    sys.path.remove(str(FOLDER))


def test_every_objective_has_its_trainings(script):
    """Five seeds of MetaDQN each, and of PPO for gangs; no two have the same name."""
    found = script.trainings()
    assert len({job["name"] for job in found}) == len(found)
    counts = Counter((job["study"], job["metric"], job["learner"]) for job in found)
    for objective in script.OBJECTIVES:
        assert counts["rlmetadqn", f"{objective}_gap", "meta-dqn"] == 5
        assert counts["gangs", f"{objective}_gap", "meta-dqn"] == 5
        assert counts["gangs", f"{objective}_gap", "ppo"] == 5


def test_episodes_that_are_drawn_anew_are_measured_anew(script, tmp_path: Path):
    """What those before them were measured by is not kept."""
    import meta_inputs

    from yardmaster.envs.choosing.task import CHOOSING_TASKS
    from yardmaster.workloads.regimes import regimes

    regime = regimes("rlmetadqn")[0].name
    task = CHOOSING_TASKS[script.TASKS["rlmetadqn"]].changed(regimes=(regime,))
    path = tmp_path / "few.pickle.gz"
    meta_inputs.write_inputs(path, task, {"val": 1})
    with gzip.open(tmp_path / "few-standards.pickle.gz", "wb") as file:
        pickle.dump({"of": "these"}, file)
    assert meta_inputs.read_inputs(path)["standards"] == {"of": "these"}
    meta_inputs.write_inputs(path, task, {"val": 1})
    assert "standards" not in meta_inputs.read_inputs(path)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_settings_fit_every_learner(script, device: str):
    """On both devices; what is set by hand goes before what the study says."""
    how = script.How(device=device, envs=4096, settings={"gamma": 0.5, "precision": "bfloat16"})
    for job in script.trainings():
        settings = script.settings_for(job, how)
        assert settings.gamma == 0.5
        assert settings.total_steps == job["steps"]
        if device == "cuda":
            assert settings.steps_per_update >= 4096


def test_a_training_ends_by_steps_or_by_time(script, monkeypatch: pytest.MonkeyPatch):
    """Whichever comes first; what it takes to begin counts as time, but as no progress."""
    now = [100.0]
    monkeypatch.setattr(script.time, "monotonic", lambda: now[0])
    clock = script.Clock(1_000, 50.0)
    now[0] = 110.0
    clock.ready()
    assert clock.done(250) == 0.25
    now[0] = 130.0
    assert clock.done(250) == 0.5
    now[0] = 150.0
    assert clock.done(250) >= 1.0
    assert script.Clock(1_000, 0.0).done(1_000) == 1.0
