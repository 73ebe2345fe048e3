"""Trainings of a few seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.experiments.training.config import Layer
from yardmaster.experiments.trainings.plan import Plan, trainings_of

CHOOSERS = """
[task]
regimes = ["base-high-2", "bursty-high-4"]
episodes = 6
[learner]
steps_per_update = 256
gradient_steps = 2
batch_size = 32
warmup_steps = 300
memory_size = 1000
network.hidden = [8]
network.dim = 4
[train]
envs = 16
eval_episodes = 2
checkpoint_every = 512
"""
POLICIES = {
    "task": {"cluster": "pool:8", "jobs": 24, "window": 4, "episodes": 4},
    "learner": {"steps_per_update": 128, "epochs": 1, "minibatches": 1, "network": {"hidden": [4]}},
    "train": {
        "steps": 512, "envs": 8, "eval_every": 256, "eval_episodes": 2, "threads": 1,
        "tensorboard": False, "against": [],
    },
}  # fmt: skip


@pytest.fixture
def choosers(tmp_path: Path) -> Path:
    """Return a file with what makes trainings of choosers short."""
    path = tmp_path / "choosers.toml"
    path.write_text(CHOOSERS)
    return path


@pytest.fixture
def plan(tmp_path: Path):
    """Return a function that makes plans of short trainings: `plan({"a": {…}}, seeds=2)`."""

    def made(variants: dict, *, seeds: int = 1, folder: str = "study", **changes) -> Plan:
        layers = [Layer(POLICIES, "common"), Layer(changes, "changes")]
        return Plan(tmp_path / folder, tuple(trainings_of(variants, range(seeds), layers)))

    return made
