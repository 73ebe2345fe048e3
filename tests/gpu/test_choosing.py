"""Choosing schedulers on a GPU: the same episodes, and learning from them, as on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from yardmaster.agents.memories import BalancedMemory, Memory, NSteps
from yardmaster.agents.meta_dqn import MetaDQN, MetaDQNSettings
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.agents.resident_memories import ResidentMemory, ResidentNSteps
from yardmaster.agents.tensors import ResidentBatch, torch_device
from yardmaster.engine.gpu.availability import is_simulated
from yardmaster.envs.choosing.batch import ChoosingBatch
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.gpu_batch import ChoosingGpuBatch
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

STEPS = 4 if is_simulated() else 100
NETWORK = NetworkSettings(arch="regime", hidden=(8,), dim=4, noop_bias=0.0)


def few_jobs(number: int) -> tuple[Workload, Cluster]:
    """Return the jobs and the machines of an episode; drawing them needs no further library."""
    jobs = (6, 9)[number % 2]
    dice = np.random.default_rng([number, jobs])
    run_s = np.round(dice.exponential(600.0, jobs)) + 1.0
    submit_s = np.sort(dice.uniform(0.0, 1_500.0, jobs)).round()
    workload = Workload.of(
        submit_s=submit_s - submit_s[0],
        duration_s=run_s,
        gpus=dice.choice([1, 1, 2, 4], jobs),
        estimate_s=run_s * 1.5,
        deadline_s=np.where(dice.random(jobs) < 0.5, submit_s + 2.0 * run_s, np.nan),
        priority=dice.integers(0, 3, jobs).astype(np.float64),
    )
    return workload, Cluster.of(("1x V100:4", "2x V100:4")[number % 2])


class FewJobs(ChoosingEpisodes):
    """Episodes of few jobs in two regimes."""

    def situation(self, number: int) -> tuple[Workload, Cluster]:
        """Return the jobs and the machines of an episode."""
        return few_jobs(number)


REGIMES: Any = ("few", "more")
GANGS = ("srpt+skip~estimate", "edf+easy~estimate", "dynamic-heuristic+strict~estimate")
TASKS: dict[str, dict[str, Any]] = {
    "plain": {"menu": ("srpt+skip", "edf+skip", "dynamic-heuristic+skip"), "reward": "jct"},
    "gangs": {"menu": GANGS, "information": "estimate", "reward": "mixed", "every_s": 200.0},
    "cut off": {"menu": ("srpt+commit", "fifo+commit"), "max_steps": 3, "reward": "p95"},
}


def episodes(name: str) -> ChoosingEpisodes:
    task = ChoosingTask(episodes=4).changed(time_unit_s=600.0, **TASKS[name])
    return FewJobs(task, "train", regimes=REGIMES)


def pair(name: str, size: int, seed: int) -> tuple[ChoosingGpuBatch, ChoosingBatch]:
    """Return the same environments on a GPU and on the CPU, in their first episodes."""
    there = ChoosingGpuBatch(episodes(name), size)
    here = ChoosingBatch(episodes(name), size, compiled=not is_simulated())
    there.reset(seed)
    here.reset(seed)
    return there, here


@pytest.mark.parametrize("name", list(TASKS))
def test_a_gpu_plays_as_the_cpu_does(name: str, scope, by_environment):
    """Episodes, regimes, sights, rewards, ends, time and tallies are those of the CPU."""
    there, here = pair(name, scope.size, 3)
    dice = np.random.default_rng(0)
    close = {"rtol": 10 * scope.tolerance, "atol": 10 * scope.tolerance}
    counted = np.zeros(4)
    for _ in range(STEPS):
        np.testing.assert_array_equal(there.episode_numbers.copy_to_host(), here.episode_numbers)
        np.testing.assert_array_equal(there.groups.copy_to_host(), here.groups)
        np.testing.assert_array_equal(by_environment(there.legal), here.legal)
        np.testing.assert_allclose(by_environment(there.observations), here.observations, **close)
        actions = dice.integers(here.layout.actions, size=scope.size)
        there.step(there.to_gpu(actions))
        here.step(actions)
        ends = here._ends != 0
        np.testing.assert_array_equal(there.ends.copy_to_host(), here._ends)
        rewards, elapsed_s = there.rewards.copy_to_host(), there.elapsed_s.copy_to_host()
        np.testing.assert_allclose(rewards, np.float32(here.rewards), **close)
        np.testing.assert_allclose(elapsed_s, np.float32(here.elapsed_s), **close)
        if there.can_cut:
            last = by_environment(there.final_observations)[ends]
            np.testing.assert_allclose(last, here.final_observations[ends], **close)
        returns, steps = here.episode_returns[ends].sum(), here.episode_steps[ends].sum()
        counted += [ends.sum(), returns, steps, here.scores["switches"][ends].sum()]
    tally = there.tallied()
    names = ("episodes", "returns", "steps", "switches")
    found = [tally[key].sum() for key in names]
    np.testing.assert_allclose(found, counted, rtol=1e-5, atol=1e-6)
    assert counted[0] > scope.size // 4
    assert there.group_count == here.group_count == len(REGIMES)


def test_a_snapshot_is_all_there_is(scope, assert_same_state):
    """From a snapshot the same actions have the same results, in another batch too."""
    there, _ = pair("plain", scope.size, 9)
    other, _ = pair("plain", scope.size, 10)
    there.step_at_random(1, 0)
    other.restore(there.snapshot())
    for batch in (there, other):
        batch.step_at_random(2, 0)
    assert_same_state(there, other)


class Told:
    """Environments of which both kinds of memory are told the same."""

    can_cut = True

    def __init__(self, layout: Any, dice: np.random.Generator, size: int) -> None:
        self.size = size
        self.observations = dice.random((size, layout.length), dtype=np.float32)
        self.final_observations = dice.random((size, layout.length), dtype=np.float32)
        self.masks = np.ones((size, layout.actions), dtype=np.bool_)
        self.final_masks = self.masks
        self.groups = dice.integers(0, 3, size)
        self.rewards = dice.random(size).round(2)
        ends = dice.random(size)
        self.terminated, self.truncated = ends < 0.2, ends > 0.85

    def there(self, device: str) -> Any:
        """Return the same in tensors."""
        other = Told.__new__(Told)
        for name, value in vars(self).items():
            whole = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            setattr(other, name, whole.to(device) if isinstance(whole, torch.Tensor) else whole)
        return other


@pytest.mark.parametrize(("groups", "size"), [(3, 36), (3, 6), (1, 20)])
def test_memories_hold_the_same_rows(groups: int, size: int):
    """Transitions over several steps stand where they do on the CPU, whatever kinds there are."""
    device = torch_device("cuda")
    layout = episodes("plain").task.sight.layout()
    dice = np.random.default_rng(5)
    open_here, open_there = NSteps(3, 8, layout), ResidentNSteps(3, 8, layout, device)
    here = BalancedMemory(size, layout, groups) if groups > 1 else Memory(size, layout)
    there = ResidentMemory(size, layout, groups, device)
    for _ in range(9):
        before, after = Told(layout, dice, 8), Told(layout, dice, 8)
        actions = dice.integers(0, 2, 8)
        open_here.begin(before, actions)
        open_there.begin(before.there(device), torch.from_numpy(actions).to(device))
        discounts = np.full(8, 0.5)
        here.add(open_here.finish(after, discounts))
        shown = torch.from_numpy(discounts).to(device)
        there.add(open_there.finish(after.there(device), shown))
    assert there.filled == here.filled
    state, kept = there.state()["columns"], here._columns
    for name, column in state.items():
        whole = column[:-1].cpu().numpy()
        np.testing.assert_allclose(whole, getattr(kept, name), rtol=1e-6, err_msg=name)
    drawn = there.sample(400, torch.Generator(device).manual_seed(0))
    rows = set(drawn.rows.tolist())
    assert max(rows) < there.size
    assert len(rows) > there.filled * 0.9
    shares = np.bincount(drawn.rows.cpu().numpy() // there._room, minlength=groups) / 400
    np.testing.assert_allclose(shares, 1 / groups, atol=0.1)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_meta_dqn_learns_on_a_gpu_and_is_taken_up_again(precision: str, scope):
    """Memory, dice and environments are in the saved state: updates have the same results."""
    settings = MetaDQNSettings(
        total_steps=500,
        steps_per_update=scope.size,
        gradient_steps=2,
        hold=2.0,
        warmup_steps=scope.size,
        batch_size=16,
        memory_size=400,
        n_step=2,
        precision=precision,
        network=NETWORK,
    )
    batch = ResidentBatch(ChoosingGpuBatch(episodes("cut off"), scope.size))
    learner = MetaDQN(batch, settings, 0, device=torch_device("cuda"))
    learner.update()
    saved = learner.state()
    scalars = learner.update()
    learner.load(saved)
    close = 1e-2 if scope.tolerance else 0.0
    assert learner.update() == pytest.approx(scalars, rel=close, abs=close)
    assert all(np.isfinite(value) for value in scalars.values())
    assert scalars["steps"] == scope.size
    assert scalars["memory"] > 0
    assert set(scalars) >= {"loss", "q_mean", "td_error", "epsilon"}


def test_who_tries_a_scheduler_out_stays_with_it(scope):
    """Exploring begins as often as the settings say, and lasts `hold` decisions on average."""
    settings = MetaDQNSettings(
        epsilon_start=1.0,
        epsilon_end=1.0,
        hold=4.0,
        network=NETWORK,
        batch_size=4,
        memory_size=100,
    )
    batch = ResidentBatch(ChoosingGpuBatch(episodes("plain"), scope.size))
    learner = MetaDQN(batch, settings, 0, device=torch_device("cuda"))
    best, masks = torch.full((scope.size,), -1, device=learner.device), batch.masks
    tried = torch.stack([learner._held_on_gpu(best, masks, 0.25) for _ in range(400)]).cpu() >= 0
    begins = (tried[1:] & ~tried[:-1]).sum().item()
    # After a trial, 3 decisions pass on average until the next; one may follow at once.
    assert tried[50:].float().mean().item() == pytest.approx(4.0 / 7.0, abs=0.04)
    assert begins > scope.size
    learner.settings = replace(settings, hold=1.0)
    learner._held.zero_()
    once = torch.stack([learner._held_on_gpu(best, masks, 0.25) for _ in range(400)]) >= 0
    assert once.float().mean().item() == pytest.approx(0.25, abs=0.04)


def test_an_update_of_ppo_is_that_of_the_cpu(scope):
    """The same network, seed and episodes give the same losses and the same weights."""
    there, here = pair("plain", scope.size, 0)
    settings = PPOSettings(
        steps_per_update=scope.size * 3, epochs=1, minibatches=2, network=NETWORK
    )
    learners = [
        PPO(batch, settings, 3, device=torch_device("cuda"))
        for batch in (ResidentBatch(there), here)
    ]
    for learner in learners:
        learner.batch.reset(11)
    one, other = (learner.update() for learner in learners)
    assert one == pytest.approx(other, rel=1e-3, abs=1e-4)
    assert one["episodes"] > 0


def test_a_chooser_is_trained_there_and_taken_up_again(tmp_path: Path, monkeypatch):
    """`train --task regimes --device cuda` writes a chooser; a resumed run ends as a whole one."""
    pytest.importorskip("tomli_w", reason="the run's folder is written with it")
    from yardmaster.agents.checkpoint import read_checkpoint
    from yardmaster.experiments.training import read_config, train
    from yardmaster.experiments.training.folder import RunFolder
    from yardmaster.schedulers.meta.chooser_file import read_chooser

    monkeypatch.setattr(ChoosingEpisodes, "situation", lambda _, number: few_jobs(number))
    learner = {"steps_per_update": 32, "warmup_steps": 32, "batch_size": 8, "memory_size": 500}
    table = {"steps": 64, "envs": 32, "eval_every": 32, "eval_episodes": 2, "device": "cuda"}
    config = read_config(
        None,
        {
            "task": {"preset": "regimes", "episodes": 2, "max_steps": 2, "time_unit_s": 600.0},
            "learner": learner | {"gradient_steps": 1, "network": {"hidden": [8], "dim": 4}},
            "train": table | {"tensorboard": False, "against": ["srpt+skip"]},
        },
    )
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(config, out=whole).status == "finished"
    stopped = train(config, out=parts, stop_when=lambda seen: seen.steps >= 32)
    assert stopped.status == "stopped early"
    assert train(config, out=parts, resume=True).status == "finished"
    one, other = (read_checkpoint(RunFolder(out).last).state for out in (whole, parts))
    assert one["batch"].keys() == other["batch"].keys()
    assert "book" in one["batch"]  # as environments on a GPU are kept
    if is_simulated():  # a GPU adds in any order
        for name, weights in one["network"].items():
            assert torch.equal(weights, other["network"][name]), name
    assert read_chooser(RunFolder(parts).policy).about["learner"] == "meta-dqn"
