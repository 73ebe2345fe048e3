"""A toy in place of the environments: shortest first on one machine, quick and well understood."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from yardmaster.agents.checkpoint import read_checkpoint
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.training import TrainConfig, read_config
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.experiments.training.folder import RunFolder, read_lines
from yardmaster.testing.toys import OneMachine

JOBS = 4
TIMINGS = ("seconds",)


def shortest(batch: OneMachine) -> np.ndarray:
    return np.where(batch.masks[:, :-1], batch.lengths, np.inf).argmin(axis=1)


def first(batch: OneMachine) -> np.ndarray:
    return batch.masks.argmax(axis=1)


def toy_expert(name: str, _task: object):
    players = {"sjf": shortest, "fifo": first}
    if name not in players:
        raise YardmasterError(f"{name} cannot play.")
    return players[name]


def toy_play(_task, choose, *, split, episodes, **_options):
    assert split == "val"
    batch = OneMachine(episodes, JOBS)
    batch.reset(1_000)
    for _ in range(JOBS):
        batch.step(choose(batch))
    scores = dict.fromkeys(HIGHER_IS_BETTER, batch.episode_returns.copy())
    return SimpleNamespace(**(scores | {"jct_s": -batch.episode_returns}))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let training runs play with the toy."""

    def open_toy(_task, *, size, **_options):
        batch = OneMachine(size, JOBS)
        batch.task = Task()  # for what the policy file says about what it sees
        return batch

    monkeypatch.setattr("yardmaster.envs.batch.open_batch", open_toy)
    monkeypatch.setattr("yardmaster.envs.experts.expert", toy_expert)
    monkeypatch.setattr("yardmaster.envs.playing.play", toy_play)
    monkeypatch.setattr("yardmaster.envs.episodes.Episodes", lambda _task, _split: None)


@pytest.fixture
def small():
    """Return a function that makes small configurations: `small(learner={…}, train={…})`."""

    def made(
        learner: dict | None = None, train: dict | None = None, task: dict | None = None
    ) -> TrainConfig:
        quick = {"steps_per_update": 256, "network": {"hidden": [8]}}
        if (learner or {}).get("name", "ppo") == "ppo":
            quick |= {"epochs": 1, "minibatches": 2}
        tables = {
            "task": task or {},
            "learner": quick | (learner or {}),
            "train": {
                "steps": 2_048, "envs": 16, "eval_every": 512, "eval_episodes": 8, "threads": 1,
                "tensorboard": False, "checkpoint_every": 512,
            } | (train or {}),
        }  # fmt: skip
        return read_config(None, tables)

    return made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return where a run goes."""
    return tmp_path / "run"


def without_timings(path: Path) -> list[dict]:
    return [
        {key: value for key, value in record.items() if key not in TIMINGS}
        for record in read_lines(path)
    ]


def assert_same_state(left: object, right: object):
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            if key not in TIMINGS:
                assert_same_state(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same_state(one, other)
    elif isinstance(left, torch.Tensor):
        assert torch.equal(left, right)
    elif isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right)
    else:
        assert left == right


def assert_same_run(left: Path, right: Path):
    """All that two runs wrote is the same, but for timings."""
    one, other = RunFolder(left), RunFolder(right)
    assert one.config.read_text() == other.config.read_text()
    for name in ("progress", "evaluations"):
        assert without_timings(getattr(one, name)) == without_timings(getattr(other, name))
    for name in ("last", "best"):
        saved = [read_checkpoint(getattr(folder, name)) for folder in (one, other)]
        assert_same_state(saved[0].state, saved[1].state)
        assert_same_state(dict(saved[0].standing), dict(saved[1].standing))


@pytest.fixture
def same_run():
    """Return the check that two runs wrote the same, but for timings."""
    return assert_same_run
