"""`yardmaster train --device cuda` from beginning to end, at toy size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from yardmaster.agents.checkpoint import read_checkpoint
from yardmaster.agents.tensors import ResidentBatch
from yardmaster.engine.gpu.availability import is_simulated
from yardmaster.experiments.training import TrainConfig, read_config, train
from yardmaster.experiments.training.folder import RunFolder
from yardmaster.schedulers.learned.policy_file import read_policy

pytest.importorskip("tomli_w", reason="the run's folder is written with it")


def config(**more: object) -> TrainConfig:
    task = {
        "jobs": 4, "cluster": "2x V100:4", "episodes": 2, "load": 1.2, "window": 4, "gpu_slots": 4,
    }  # fmt: skip
    train_table = {
        "steps": 128, "envs": 32, "eval_every": 64, "eval_episodes": 2, "threads": 1,
        "device": "cuda", "tensorboard": False, "checkpoint_every": 64, "against": ["sjf"],
    }  # fmt: skip
    learner = {"steps_per_update": 64, "network": {"hidden": [8]}}
    if "learner" not in more:
        learner |= {"epochs": 1, "minibatches": 2}
    return read_config(
        None,
        {
            "task": task,
            "learner": learner | dict(more.pop("learner", {})),
            "train": train_table | more,
        },
    )


def test_a_run_that_is_taken_up_again_ends_as_if_it_never_stopped(tmp_path: Path):
    """Weights and environments come out of the checkpoint as they were."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(config(), out=whole).status == "finished"
    stopped = train(config(), out=parts, stop_when=lambda seen: seen.steps >= 64)
    assert stopped.status == "stopped early"
    assert train(config(), out=parts, resume=True).status == "finished"
    one, other = (read_checkpoint(RunFolder(out).last).state for out in (whole, parts))
    if is_simulated():  # a GPU adds in any order
        for name, weights in one["network"].items():
            assert torch.equal(weights, other["network"][name]), name
    assert one["batch"].keys() == other["batch"].keys()
    assert "book" in one["batch"]  # as environments on a GPU are kept
    assert read_policy(RunFolder(parts).policy).about["learner"] == "ppo"


def test_environments_fill_tiles_and_imitation_is_on_the_cpu(tmp_path: Path):
    """Where `envs` is no multiple of 32 there are more, announced; a heuristic is learned first."""
    told: list[str] = []
    asked = config(envs=5, steps=64, warm_start="sjf", warm_start_steps=100)
    result = train(asked, out=tmp_path / "run", announce=told.append)
    assert result.status == "finished"
    assert any("there are 32 in place of envs = 5" in line for line in told)
    assert any("decides as sjf" in line for line in told)


def test_other_learners_keep_their_environments_on_the_cpu(tmp_path: Path):
    """The network alone is on the GPU then, and one sentence says why."""
    told: list[str] = []
    asked = config(learner={"name": "d3qn"}, envs=4, steps=64)
    assert train(asked, out=tmp_path / "run", announce=told.append).status == "finished"
    (line,) = (line for line in told if "environments stay on the CPU" in line)
    assert "d3qn remembers its steps there" in line


def test_scenes_are_drawn_on_the_gpu():
    """Environments of all scenes are opened there, with as much time and reward as on the CPU."""
    scenes = [
        {"workload": "mm", "cluster": ["1x V100:4", "2x V100:4"], "load": [0.9, 1.3]},
        {"workload": "lognormal", "cluster": "2x V100:4", "name": "made"},
    ]
    common = {"jobs": 4, "window": 4, "gpu_slots": 4, "window_order": "sjf"}
    asked = read_config(None, {"task": common, "scenes": scenes})
    told: list[str] = []
    laid_out = asked.kind.laid_out(asked.task, None)
    how = {"seed": 3, "threads": 1, "announce": told.append}
    there = asked.kind.open_batch(laid_out, size=20, device="cuda", learner="ppo", **how)
    assert isinstance(there, ResidentBatch)
    assert there.size == 32
    assert any("there are 32 in place of envs = 20" in line for line in told)
    assert set(there.groups.tolist()) == {0, 1, 2}
    np.testing.assert_allclose(there.batch.time_units_s, list(laid_out.task.unit_s.values()))
    here = asked.kind.open_batch(laid_out, size=20, device="cuda", learner="d3qn", **how)
    assert (here.size, here.group_count) == (20, there.group_count)
    assert any("d3qn remembers its steps there" in line for line in told)
