"""Configurations: files, options, presets, and what is said about mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from yardmaster.agents.learners import LEARNERS
from yardmaster.agents.meta_dqn import MetaDQNSettings
from yardmaster.envs.task import TASKS
from yardmaster.errors import InvalidConfigError, UnknownNameError
from yardmaster.experiments.training import TrainSettings, read_config
from yardmaster.experiments.training.config import Layer, completed, config_from
from yardmaster.experiments.training.tables import to_toml

FILE = """
[task]
preset = "gpu-optimizer"
jobs = 40
[learner]
name = "ppo"
preset = "baseline_stable"
clip = 0.3
[learner.network]
arch = "kernel"
[train]
envs = 8
against = ["sjf"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


def test_a_file_changes_presets(file: Path):
    """Keys of the file stand over its presets; what it does not say, the presets say."""
    config = read_config(file)
    base = LEARNERS["ppo"].preset("baseline_stable")
    assert config.task == TASKS["gpu-optimizer"].changed(jobs=40)
    assert (config.settings.clip, config.settings.network.arch) == (0.3, "kernel")
    assert config.settings.learning_rate == base.learning_rate
    assert config.settings.network.hidden == base.network.hidden
    assert (config.train.envs, config.train.against) == (8, ("sjf",))


def test_options_win_over_the_file(file: Path):
    """An option replaces what the file says, and only that."""
    options = {"learner": {"clip": 0.1}, "task": {"window": 7}, "train": {"envs": 3}}
    config = read_config(file, options)
    assert (config.settings.clip, config.train.envs) == (0.1, 3)
    assert (config.task.sight.window, config.task.jobs) == (7, 40)
    assert config.settings.network.arch == "kernel"


def test_the_budget_is_said_once(file: Path):
    """The learner's schedules follow `train.steps`; the preset's budget is its default."""
    assert read_config(file).train.steps == 200_000
    config = read_config(file, {"train": {"steps": 777}})
    assert (config.train.steps, config.settings.total_steps) == (777, 777)
    with pytest.raises(InvalidConfigError, match=r"learner\.total_steps: is said by train\.steps"):
        read_config(None, {"learner": {"total_steps": 5}})


@pytest.mark.parametrize("task", list(TASKS))
@pytest.mark.parametrize("learner", list(LEARNERS))
def test_a_resolved_configuration_reads_back(learner: str, task: str, tmp_path: Path):
    """Every preset of every learner on every task survives being written and read."""
    path = tmp_path / "config.toml"
    for preset in LEARNERS[learner].presets():
        options = {"learner": {"name": learner, "preset": preset}, "task": {"preset": task}}
        config = read_config(None, options)
        path.write_text(to_toml(config.tables()))
        assert read_config(path) == config


def test_what_a_preset_sets_can_be_left_open_again(tmp_path: Path):
    """None over a preset's value survives the file, though TOML has no word for it."""
    options = {"learner": {"preset": "baseline_stable", "value_clip": "none"}}
    options["task"] = {"load": "none", "reward": {"waiting": -1, "late": -0.5}}
    config = read_config(None, options)
    assert config.settings.value_clip is None
    assert config.task.load is None
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config.tables()))
    assert read_config(path) == config


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"tasks": {}}, r"tasks: unknown table\. Did you mean 'task'\?"),
        ({"train": 3}, r"train: must be a table"),
        ({"task": {"jobz": 3}}, r"task\.jobz: unknown key\. Did you mean 'jobs'\?"),
        ({"task": {"window": -1}}, r"task: window must be positive"),
        ({"task": {"reward": "waitt"}}, r"task: Unknown reward 'waitt'\. Did you mean 'wait'\?"),
        ({"learner": {"clipp": 1}}, r"learner\.clipp: unknown key\. Did you mean 'clip'\?"),
        ({"learner": {"clip": -1}}, r"learner\.clip = -1\.0: must be above 0"),
        ({"learner": {"network": {"arc": 1}}}, r"learner\.network\.arc: unknown key"),
        ({"learner": {"name": 3}}, r"learner\.name: must be text"),
        ({"train": {"stepps": 3}}, r"train\.stepps: unknown key\. Did you mean 'steps'\?"),
        ({"train": {"metric": "jct"}}, r"metric: unknown metric 'jct'\. Did you mean 'jct_s'\?"),
        ({"train": {"device": "gpu"}}, r"train\.device: must be 'cpu' or 'cuda'"),
        ({"train": {"checkpoint_every": "5m"}}, r"checkpoint_every: must be a number of steps"),
        ({"train": {"checkpoint_every": 0}}, r"checkpoint_every: must be a number of steps"),
        ({"train": {"envs": 0}}, r"train\.envs: must be at least 1, got 0"),
    ],
    ids=[
        "table", "no-table", "task-key", "task-value", "reward", "learner-key", "learner-value",
        "network-key", "learner-name", "train-key", "metric", "device", "interval", "no-interval",
        "envs",
    ],
)  # fmt: skip
def test_mistakes_name_their_place(options: dict, complaint: str, tmp_path: Path):
    """A mistake is told with its key and place, whether it stands in a file or an option."""
    with pytest.raises(InvalidConfigError, match=complaint) as caught:
        read_config(None, options)
    assert str(caught.value).startswith("yardmaster train: 1 mistake\n")
    path = tmp_path / "bad.toml"
    path.write_text(to_toml(options))
    with pytest.raises(InvalidConfigError, match=complaint) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: 1 mistake\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"learner": {"name": "pppo"}}, "Unknown learner 'pppo'. Did you mean 'ppo'"),
        ({"learner": {"preset": "stable"}}, "Unknown preset of ppo 'stable'"),
        ({"task": {"preset": "gpuoptimizer"}}, "Unknown task 'gpuoptimizer'. Did you mean"),
    ],
    ids=["learner", "preset", "task"],
)
def test_unknown_names_are_suggested(options: dict, complaint: str):
    """A misspelt learner, preset or task is met with the nearest names."""
    with pytest.raises(UnknownNameError) as caught:
        read_config(None, options)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("given", "steps", "seconds"), [(500, 500, None), ("500", 500, None), ("2.5s", None, 2.5)]
)
def test_checkpoint_intervals(given: int | str, steps: int | None, seconds: float | None):
    """A number counts steps; with an s it counts seconds."""
    settings = TrainSettings(checkpoint_every=given)
    assert (settings.checkpoint_steps, settings.checkpoint_s) == (steps, seconds)


def test_what_an_earlier_version_did_not_know_was_as_it_is_by_default():
    """Not as the preset has it by now; what it did say stays."""
    table = {"task": {"preset": "hard-and-drifting"}, "learner": {"name": "meta-dqn"}}
    new = config_from([Layer(table | {"learner": table["learner"] | {"preset": "gangs"}}, "new")])
    old = new.tables()
    assert old["learner"].pop("lr_end") != MetaDQNSettings().lr_end
    before = config_from([Layer(completed(old, MetaDQNSettings), "old")])
    assert before.settings == replace(new.settings, lr_end=MetaDQNSettings().lr_end)
