"""Training on many scenes: from the file to the policy, resumed too, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from yardmaster.agents.checkpoint import read_checkpoint
from yardmaster.cli.train import summary
from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.experiments.evaluation import evaluate, sets_for, task_of
from yardmaster.experiments.players import read_policy
from yardmaster.experiments.training import TrainConfig, read_config, train
from yardmaster.experiments.training.folder import RunFolder, read_json, read_lines
from yardmaster.experiments.training.tables import to_toml
from yardmaster.schedulers.learned.catalogue import _trained_on
from yardmaster.schedulers.learned.policy_file import read_policy as read_file

FILE = """
[task]
preset = "estimates"
jobs = 12
window = 6
gpu_slots = 4
window_order = "sjf"
[[scenes]]
workload = "lognormal"
cluster = ["2x V100:4", "4x V100:4"]
load = [0.8, 1.3]
[[scenes]]
name = "mm"
workload = "mm"
cluster = "2x V100:4"
share = 2
[learner]
steps_per_update = 128
epochs = 1
minibatches = 2
network.hidden = [8]
[train]
steps = 512
envs = 8
eval_every = 256
eval_episodes = 2
threads = 1
checkpoint_every = 128
against = ["fifo", "sjf~estimate"]
tensorboard = false
"""
NAMES = ["lognormal on 2x V100:4", "lognormal on 4x V100:4", "mm"]


def config(folder: Path, text: str = FILE, **train_settings) -> TrainConfig:
    path = folder / "mine.toml"
    path.write_text(text)
    return read_config(path, {"train": train_settings})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes")
    result = train(config(folder), out=folder / "whole")
    assert result.status == "finished"
    assert list(result.scenes) == NAMES
    told = summary(result, "returns")
    assert "by scene, against the heuristic that is best there (returns):" in told
    assert all(f"\n  {name}: " in told for name in NAMES)
    return folder / "whole"


def test_the_resolved_configuration_reads_back(tmp_path: Path):
    """Scenes survive being written as tables and read again."""
    asked = config(tmp_path)
    written = to_toml(asked.tables())
    assert written.count("[[scenes]]") == 2
    assert config(tmp_path, written) == asked
    assert config(tmp_path, FILE.replace("eval_episodes = 2\n", "")).train.eval_episodes == 8


def test_a_resumed_run_ends_as_one_that_never_stopped(whole: Path, same_run, tmp_path: Path):
    """Weights, environments of every scene and evaluations are the same, bit by bit."""
    parts = tmp_path / "parts"
    stopped = train(config(tmp_path), out=parts, stop_when=lambda seen: seen.steps >= 256)
    assert stopped.status == "stopped early"
    assert train(read_config(parts / "config.toml"), out=parts, resume=True).status == "finished"
    same_run(whole, parts)


def test_every_scene_is_told_of(whole: Path):
    """The journal has the policy's score by scene, run.json the heuristics'; parts make a whole."""
    folder = RunFolder(whole)
    record = read_lines(folder.evaluations)[-1]
    assert list(record["scenes"]) == NAMES
    scores = [record["scenes"][name]["score"] for name in NAMES]
    assert np.mean(scores) == pytest.approx(record["means"]["returns"])
    about = read_json(folder.about)
    assert list(about["scenes"]["mm"]) == ["fifo", "sjf~estimate"]
    of_fifo = np.mean([about["scenes"][name]["fifo"] for name in NAMES])
    assert of_fifo == pytest.approx(about["heuristics"]["fifo"]["returns"])
    gap = record["scenes"]["mm"]["differences"]["fifo"][0]
    assert gap == pytest.approx(scores[2] - about["scenes"]["mm"]["fifo"])


def test_the_policy_says_what_it_was_trained_on(whole: Path):
    """Its file and its checkpoint name the scenes; lists show them in words."""
    about = read_file(RunFolder(whole).policy).about
    assert _trained_on(about) == f"3 scenes: {', '.join(NAMES)}"
    from_file, from_folder = read_policy(whole / "policy.npz"), read_policy(whole)
    assert from_file.task == from_folder.task == config(whole).task
    assert read_checkpoint(RunFolder(whole).best).config["scenes"][1]["name"] == "mm"


def test_it_is_judged_scene_by_scene(whole: Path):
    """By default on validation and report of every scene; elsewhere as any policy."""
    policy = read_policy(whole / "policy.npz")
    mix = task_of([policy], {})
    contest = evaluate([policy], mix, against=["fifo", "sjf+easy~estimate"], episodes=2)
    assert contest.splits == tuple(
        f"{split} {name}" for split in ("val", "report") for name in NAMES
    )
    record = read_lines(RunFolder(whole).evaluations)
    best = [one for one in record if one["is_best"]][-1]
    played = contest.policies[0].scores["val mm"]["returns"]
    assert played.mean() == pytest.approx(best["scenes"]["mm"]["score"], rel=1e-5)
    other = task_of([policy], {"workload": "mm", "cluster": "4x V100:4"})
    assert sets_for([policy], other) == ("val", "report")
    assert (other.jobs, other.load, other.sight.information) == (12, 1.0, "estimate")
    unknown = f"{policy.name} was trained on other jobs or machines"
    seen = task_of([policy], {"workload": "mm", "cluster": "2x V100:4"})
    for task, is_other in ((mix, False), (seen, False), (seen.changed(load=1.3), True)):
        judged = evaluate([policy], task, against=["fifo"], splits=["val"], episodes=1)
        assert (unknown in judged.notes) == is_other


def test_other_learners_and_imitation_work(tmp_path: Path):
    """A heuristic is imitated in the scenes, and learners with memories train on them."""
    told: list[str] = []
    text = FILE.replace("[learner]\n", '[learner]\nname = "sac"\n')
    text = text.replace("epochs = 1\nminibatches = 2\n", "")
    asked = config(tmp_path, text, warm_start="sjf~estimate", warm_start_steps=64, steps=128)
    result = train(asked, out=tmp_path / "sac", announce=told.append)
    assert any("decides as sjf~estimate" in line for line in told)
    assert result.status == "finished"


BAD = {
    "missing key": ('workload = "mm"\n', "", r"scene 2 \(mm\)\.workload: is missing"),
    "unknown key": ("share = 2", "shares = 2", r"scene 2 \(mm\)\.shares: unknown key.*share"),
    "jobs": ("share = 2", "jobs = 2", r"scene 2 \(mm\)\.jobs: .* say it under \[task\]"),
    "load": ("[0.8, 1.3]", "[1.3, 0.8]", "scene 1: load must be above 0.*the lower first"),
    "no number": ("[0.8, 1.3]", '"much"', r"scene 1\.load: must be a number or an array"),
    "no names": (
        '["2x V100:4", "4x V100:4"]',
        "[8]",
        r"scene 1\.cluster: .* or an array, each text",
    ),
    "cluster": ('["2x V100:4", "4x V100:4"]', '"2x V999:4"', r"scene 1\.cluster: .*V999"),
    "file": ('workload = "mm"', 'workload = "no/mm.csv"', r"scene 2 \(mm\)\.workload: .*mm\.csv"),
    "preset": ('workload = "mm"', 'workload = "nm"', r"scene 2 \(mm\)\.workload: .*mm"),
    "twice": ("jobs = 12", "load = 1.0", r"task\.load: every scene has its own"),
    "task": ("jobs = 12", "keep = [0, 1]", r"task\.keep: unknown key"),
    "reward": ("jobs = 12", 'reward = "balanced"', "scenes have no fairness"),
    "choosing": ('"estimates"', '"regimes"', "in regimes schedulers are chosen"),
    "features": ('"estimates"', '"rltune"', "scenes with the task rltune"),
    "no tables": ("[task]", "scenes = 3\n[task]", r"must be tables, each under \[\[scenes\]\]"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_mistakes_name_the_file_and_the_entry(name: str, tmp_path: Path):
    """What is wrong, where, and what would be right."""
    before, after, why = BAD[name]
    text = FILE.replace(before, after)
    if name == "no tables":
        text = text.replace("[[scenes]]", "[[train.scenes]]")
    assert text != FILE
    with pytest.raises(InvalidConfigError, match=rf"(?s)mine\.toml.*{why}"):
        config(tmp_path, text)


@pytest.mark.parametrize(("large_from", "part"), [(80, "report"), (60, "val")])
def test_parts_that_are_too_short_are_told_first(large_from: int, part: str, tmp_path: Path):
    """Before heuristics play: one cannot validate on nothing; without a report one can train."""
    rows = [f"{10 * n},60,{64 if n >= large_from else 1}" for n in range(100)]
    (tmp_path / "log.csv").write_text("\n".join(["submit_s,duration_s,gpus", *rows]) + "\n")
    text = FILE.replace('workload = "mm"', f'workload = "{tmp_path / "log.csv"}"')
    asked = config(tmp_path, text, steps=128)
    told: list[str] = []
    short = f"Scene 'mm': the {part} part of .* has 0 jobs that fit on 2x V100:4"
    if part == "val":
        with pytest.raises(YardmasterError, match=short):
            train(asked, out=tmp_path / "run", announce=told.append)
        assert not told
        assert not (tmp_path / "run").exists()
        return
    train(asked, out=tmp_path / "run", announce=told.append)
    assert re.match(f"Warning: {short}", told[0])
    assert "--splits val" in told[0]


def test_judging_says_when_it_compiles(whole: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine that has no machine code yet is told so, for core and environment, once each."""
    from yardmaster.engine import compilation
    from yardmaster.engine.picking import compilation as of_environments

    for module in (compilation, of_environments):
        monkeypatch.setattr(module, "_compiled", {})
    monkeypatch.setattr(compilation, "is_on_disk", lambda _function: False)
    policy = read_policy(whole / "policy.npz")
    told: list[str] = []
    mix = task_of([policy], {})
    evaluate([policy], mix, against=["fifo"], splits=["val"], episodes=1, announce=told.append)
    assert told == [
        compilation.announcement(what) for what in ("the simulation core", "the environment")
    ]
