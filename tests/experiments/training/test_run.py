"""Training runs on a toy: what they write, when they stop, and how they go on."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from yardmaster.agents.checkpoint import read_checkpoint, write_checkpoint
from yardmaster.agents.d3qn import D3QN
from yardmaster.agents.ppo import PPO
from yardmaster.envs.task import Task
from yardmaster.errors import YardmasterError
from yardmaster.experiments.training import train
from yardmaster.experiments.training.folder import RunFolder, read_lines
from yardmaster.experiments.training.watch import TrainingFailedError
from yardmaster.schedulers.learned.policy_file import read_policy

pytestmark = pytest.mark.usefixtures("toy")


def test_a_run_writes_its_folder(small, out: Path):
    """Every file is there, and they agree with each other and with the result."""
    result = train(small(train={"against": ["fifo", "sjf"]}), out=out)
    folder = RunFolder(out)
    updates = read_lines(folder.progress)
    assert [one["steps"] for one in updates] == [256 * (n + 1) for n in range(8)]
    assert [one["updates"] for one in updates] == list(range(1, 9))
    evaluations = read_lines(folder.evaluations)
    assert [one["steps"] for one in evaluations] == [0, 512, 1024, 1536, 2048]
    scores = [one["means"]["returns"] for one in evaluations]
    assert [one["is_best"] for one in evaluations] == [
        score > max(scores[:place], default=-np.inf) for place, score in enumerate(scores)
    ]
    about = json.loads(folder.about.read_text())
    assert (about["status"], about["steps"], about["best"]) == ("finished", 2048, max(scores))
    assert result.status == "finished"
    assert result.best is not None
    assert result.best.score == max(scores)
    assert list(result.heuristics) == ["fifo", "sjf"]
    assert read_checkpoint(folder.best).standing["steps"] == result.best.steps
    with folder.curve.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_returns"]) for row in rows] == scores
    returns = [one["episode_return"] for one in updates[:2]]
    assert float(rows[1]["episode_return"]) == pytest.approx(np.mean(returns))


def test_the_best_policy_is_exported(small, out: Path):
    """The portable file holds the weights of the best checkpoint, and says where it is from."""
    result = train(small(), out=out)
    policy = read_policy(RunFolder(out).policy)
    best = read_checkpoint(RunFolder(out).best).state["network"]
    np.testing.assert_array_equal(policy.weights["noop_bias"], best["head.noop_bias"].numpy())
    assert result.best is not None
    assert policy.about["steps"] == result.best.steps
    assert policy.about["returns"] == result.best.score
    assert Task.from_table(policy.about["task"]) == small().task


def test_differences_are_paired(small, out: Path):
    """What the policy lacks to shortest first is the mean over the very same episodes."""
    result = train(small(train={"against": ["sjf"]}), out=out)
    assert result.last is not None
    mean, low, high = result.last.differences["sjf"]
    sjf = result.heuristics["sjf"]["returns"]
    assert mean == pytest.approx(result.last.means["returns"] - sjf)
    assert low <= mean <= min(high, 1e-12)  # nothing is better than shortest first here


def test_the_best_is_the_lowest_of_what_should_be_low(small, out: Path):
    """With a metric that should be low, the lowest evaluation is kept."""
    result = train(small(train={"metric": "jct_s"}), out=out)
    scores = [one["means"]["jct_s"] for one in read_lines(RunFolder(out).evaluations)]
    assert result.best is not None
    assert result.best.score == min(scores)


@pytest.mark.parametrize("learner", ["ppo", "d3qn", "rainbow", "sac"])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    learner: str, small, same_run, tmp_path: Path
):
    """Ctrl-C and resume, twice, give the files and the state of a run in one go."""
    quick = {"name": learner}
    if learner != "ppo":
        quick |= {"gradient_steps": 2, "batch_size": 32, "warmup_steps": 300, "memory_size": 1000}
    config = small(learner=quick)
    train(config, out=tmp_path / "whole")

    def press(progress):
        if progress.steps in {512, 1280}:
            os.kill(os.getpid(), signal.SIGINT)

    halved = tmp_path / "halved"
    first = train(config, out=halved, on_progress=press)
    assert (first.status, first.steps) == ("interrupted", 512)
    second = train(config, out=halved, resume=True, on_progress=press)
    assert (second.status, second.steps) == ("interrupted", 1280)
    assert train(config, out=halved, resume=True).status == "finished"
    same_run(tmp_path / "whole", halved)


def test_what_came_after_the_checkpoint_is_done_again(small, same_run, tmp_path: Path):
    """A run that died long after its last checkpoint is cut back to it, and ends the same."""
    config = small(train={"checkpoint_every": 1024})
    train(config, out=tmp_path / "whole")

    class DiedError(Exception):
        """As sudden as a power cut: no clean-up of ours runs on the files."""

    def die(progress):
        if progress.steps == 1792:
            raise DiedError

    with pytest.raises(DiedError):
        train(config, out=tmp_path / "died", on_progress=die)
    folder = RunFolder(tmp_path / "died")
    assert read_checkpoint(folder.last).standing["steps"] == 1024
    assert len(read_lines(folder.progress)) == 7
    train(config, out=tmp_path / "died", resume=True)
    same_run(tmp_path / "whole", tmp_path / "died")


def test_a_run_that_died_before_its_first_checkpoint_begins_anew(small, same_run, tmp_path: Path):
    """Without any checkpoint, resuming is beginning."""
    config = small()
    train(config, out=tmp_path / "whole")
    train(config, out=tmp_path / "again")
    RunFolder(tmp_path / "again").last.unlink()
    train(config, out=tmp_path / "again", resume=True)
    same_run(tmp_path / "whole", tmp_path / "again")


def test_a_finished_run_can_be_made_longer(small, out: Path):
    """More steps are taken from where it ended; the same number is nothing to do."""
    train(small(), out=out)
    before = RunFolder(out).progress.read_text()
    assert train(small(), out=out, resume=True).status == "finished"
    assert RunFolder(out).progress.read_text() == before
    longer = train(small(train={"steps": 3_072}), out=out, resume=True)
    assert (longer.status, longer.steps) == ("finished", 3_072)
    assert RunFolder(out).progress.read_text().startswith(before)
    assert "steps = 3072" in RunFolder(out).config.read_text()


def test_only_the_same_run_is_resumed(small, out: Path):
    """A checkpoint of another configuration is refused, naming the tables that differ."""
    train(small(), out=out)
    with pytest.raises(YardmasterError, match=r"another configuration \(\[learner\], \[train\]"):
        train(small(learner={"clip": 0.3}, train={"seed": 5}), out=out, resume=True)


def test_a_run_of_an_earlier_version_is_resumed(small, out: Path):
    """A setting that there was not yet counts as its default; one that was other is refused."""
    train(small(), out=out)
    saved = read_checkpoint(RunFolder(out).last)
    learner = {key: value for key, value in saved.config["learner"].items() if key != "lr_end"}
    assert learner != saved.config["learner"]
    write_checkpoint(
        RunFolder(out).last, replace(saved, config=dict(saved.config) | {"learner": learner})
    )
    assert train(small(train={"steps": 2_304}), out=out, resume=True).steps == 2_304
    write_checkpoint(
        RunFolder(out).last,
        replace(saved, config=dict(saved.config) | {"learner": learner | {"clip": 0.3}}),
    )
    with pytest.raises(YardmasterError, match=r"another configuration \(\[learner\] differ\)"):
        train(small(), out=out, resume=True)


def test_environments_of_another_version_are_not_resumed(
    small, out: Path, monkeypatch: pytest.MonkeyPatch
):
    """The compiled core must not be given the memory of another version of itself."""
    train(small(train={"steps": 256}), out=out)
    monkeypatch.setattr(
        "yardmaster.engine.picking.compilation.cache_folder", lambda: Path("other/plain")
    )
    with pytest.raises(YardmasterError, match=r"last\.pt was written by another version"):
        train(small(train={"steps": 256}), out=out, resume=True)


def test_patience_ends_a_run(small, out: Path):
    """After so many evaluations in a row without a new best, training stops early."""
    config = small(train={"patience": 2, "steps": 100_000, "eval_every": 256})
    result = train(config, out=out)
    flags = [one["is_best"] for one in read_lines(RunFolder(out).evaluations)]
    assert result.status == "stopped early"
    assert flags[-2:] == [False, False]
    assert (True, False, False) not in list(zip(flags, flags[1:], flags[2:-1], strict=False))


def test_an_evaluation_can_end_a_run(small, out: Path):
    """Who asks after an evaluation can stop the run."""
    result = train(small(), out=out, stop_when=lambda found: found.steps >= 1024)
    assert (result.status, result.steps) == ("stopped early", 1024)


def test_nan_stops_the_run_and_keeps_the_last_good_checkpoint(
    small, out: Path, monkeypatch: pytest.MonkeyPatch
):
    """A loss that is no number stops training; the checkpoint from before can be loaded."""
    honest = PPO.update

    def broken(self):
        scalars = honest(self)
        return scalars | ({"loss": float("nan")} if self.updates == 5 else {})

    monkeypatch.setattr(PPO, "update", broken)
    with pytest.raises(TrainingFailedError, match=r"at 1,280 steps: loss is nan"):
        train(small(), out=out)
    folder = RunFolder(out)
    assert read_checkpoint(folder.last).standing["steps"] == 1024
    assert json.loads(folder.about.read_text())["status"] == "failed"


def test_broken_weights_stop_the_run(small, out: Path, monkeypatch: pytest.MonkeyPatch):
    """Weights that are no numbers stop training even if the scalars look well."""
    honest = D3QN.update

    def broken(self):
        scalars = honest(self)
        with torch.no_grad():
            next(self.network.parameters()).view(-1)[0] = float("inf")
        return scalars

    monkeypatch.setattr(D3QN, "update", broken)
    with pytest.raises(TrainingFailedError, match="weights are not finite"):
        train(small(learner={"name": "d3qn"}), out=out)


def test_warnings_are_told_once_and_recorded(small, out: Path, monkeypatch: pytest.MonkeyPatch):
    """A policy that only waits is told of once, in words, in the result and in run.json."""
    honest = PPO.update
    monkeypatch.setattr(PPO, "update", lambda self: honest(self) | {"noop_share": 0.97})
    said: list[str] = []
    result = train(small(train={"steps": 5_120}), out=out, announce=said.append)
    assert len([text for text in said if "No-op collapse: 97%" in text]) == 1
    assert len(result.warnings) == 1
    (recorded,) = json.loads(RunFolder(out).about.read_text())["warnings"]
    assert recorded["steps"] == 2_560
    assert recorded["text"] == result.warnings[0]


def test_a_warm_start_imitates(small, out: Path):
    """Before anything is learned, the policy is already nearly as good as its model."""
    config = small(
        learner={"network": {"hidden": [32]}},
        train={"warm_start": "sjf", "warm_start_steps": 20_000, "steps": 256},
    )
    result = train(config, out=out)
    start = read_lines(RunFolder(out).evaluations)[0]["means"]["returns"]
    sjf, fifo = (result.heuristics[name]["returns"] for name in ("sjf", "fifo"))
    assert start > sjf - 0.1 * (sjf - fifo)
    assert json.loads(RunFolder(out).about.read_text())["warm_start"]["agreement"] > 0.9


def test_values_of_actions_cannot_imitate(small, out: Path):
    """Learners without a policy refuse a warm start, before anything is written."""
    with pytest.raises(YardmasterError, match="d3qn learns values"):
        train(small(learner={"name": "d3qn"}, train={"warm_start": "sjf"}), out=out)
    assert not out.exists()


def test_unknown_opponents_are_refused_before_anything_is_written(small, out: Path):
    """A heuristic that cannot play is told of at once."""
    with pytest.raises(YardmasterError, match="nonsense cannot play"):
        train(small(train={"against": ["nonsense"]}), out=out)
    assert not out.exists()


def test_opponents_that_cannot_play_are_left_out_by_default(small, out: Path):
    """Where nobody names heuristics, those well-known ones play that can."""
    assert list(train(small(train={"steps": 256}), out=out).heuristics) == ["fifo", "sjf"]


def test_progress_is_told(small, out: Path):
    """After every update: steps, pace, time left, the best so far and what it is up against."""
    told = []
    train(small(), out=out, on_progress=told.append)
    assert [one.steps for one in told] == [256 * (n + 1) for n in range(8)]
    assert math.isnan(told[0].eta_s)  # the first update compiles: it says nothing about the pace
    assert all(one.steps_per_s > 0 for one in told[1:])
    assert {one.latest for one in told[3:5]} <= {
        one["means"]["returns"] for one in read_lines(RunFolder(out).evaluations)
    }
    assert told[-1].eta_s == 0
    assert told[3].eta_s == pytest.approx(1024 / told[3].steps_per_s)
    best = [one.best for one in told]
    assert best == sorted(best)
    assert set(told[0].heuristics) == {"fifo", "sjf"}


def test_training_in_a_thread(small, out: Path):
    """Where signals cannot be caught, training works all the same."""
    results = []
    thread = threading.Thread(target=lambda: results.append(train(small(), out=out)))
    thread.start()
    thread.join()
    assert results[0].status == "finished"


def test_handlers_of_signals_are_put_back(small, out: Path):
    """After a run, Ctrl-C does what it did before."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    train(small(train={"steps": 256}), out=out)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_event_files_are_written_if_wanted(small, out: Path):
    """TensorBoard's files are there with scalars of training and validation."""
    pytest.importorskip("tensorboardX")
    train(small(train={"tensorboard": True}), out=out)
    (events,) = (out / "tensorboard").iterdir()
    content = events.read_bytes()
    assert b"train/entropy" in content
    assert b"val/returns" in content


def test_event_files_need_their_library(small, out: Path, monkeypatch: pytest.MonkeyPatch):
    """Without tensorboardX they are left out, unless somebody insists."""
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    train(small(train={"tensorboard": "none", "steps": 256}), out=out)
    assert not (out / "tensorboard").exists()
    with pytest.raises(YardmasterError, match="pip install tensorboardX"):
        train(small(train={"tensorboard": True}), out=out.with_name("other"))
    assert not out.with_name("other").exists()
