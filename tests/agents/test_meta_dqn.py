"""MetaDQN: balanced over regimes, exploring by spells, with or without a target network."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from yardmaster.agents import masking
from yardmaster.agents.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from yardmaster.agents.export import chooser_of
from yardmaster.agents.learners import LEARNERS, greedy
from yardmaster.agents.memories import BalancedMemory, Memory
from yardmaster.agents.meta_dqn import PRESETS, MetaDQN, MetaDQNSettings
from yardmaster.agents.networks import NetworkSettings
from yardmaster.envs.choosing.batch import ChoosingBatch, open_choosing
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.errors import InvalidConfigError
from yardmaster.schedulers.meta.chooser_file import write_chooser
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.toys import WhichRegime

QUICK = MetaDQNSettings(
    total_steps=4_000,
    steps_per_update=500,
    gradient_steps=100,
    batch_size=64,
    memory_size=3_000,
    warmup_steps=500,
    learning_rate=3e-3,
    gamma=0.5,
    n_step=1,
    tau=0.05,
    hold=3.0,
    network=NetworkSettings(arch="regime", hidden=(24,), dim=6, noop_bias=0.0),
)


def share_right(learner: MetaDQN) -> np.ndarray:
    """Return the share of right choices in each regime, greedily, on unseen draws."""
    batch = WhichRegime(2_000)
    batch.reset(123_456)
    with torch.no_grad():
        masks = torch.from_numpy(batch.masks)
        values = learner.network.values(torch.from_numpy(batch.observations), masks)
    right = masking.greedy(values, masks).numpy() == batch.groups
    return np.array([right[batch.groups == regime].mean() for regime in range(batch.group_count)])


@pytest.mark.parametrize(
    "changes",
    [{}, {"target_network": False}, {"balanced": False}, {"network": "mlp"}],
    ids=["whole", "no-target", "unbalanced", "no-embedding"],
)
def test_it_learns_which_scheduler_is_right_where(changes):
    """Each variant finds the right choice of every regime, the rare ones included."""
    if "network" in changes:
        changes = {"network": replace(QUICK.network, arch="mlp")}
    learner = MetaDQN(WhichRegime(20), replace(QUICK, **changes), seed=0)
    assert share_right(learner).min() < 0.9
    steps = 0.0
    while steps < QUICK.total_steps:
        steps += learner.update()["steps"]
    assert share_right(learner).min() > 0.95


def test_a_memory_that_cannot_be_shared_evenly_is_learned_from():
    """Also where a batch is all that it was to hold."""
    settings = replace(QUICK, memory_size=67, batch_size=67, warmup_steps=100, gradient_steps=2)
    learner = MetaDQN(WhichRegime(20), settings, seed=0)
    assert learner.memory.size < settings.batch_size
    while learner.steps < 4 * QUICK.steps_per_update:
        scalars = learner.update()
    assert learner.memory.filled == learner.memory.size
    assert "loss" in scalars


def test_without_a_target_the_network_judges_itself():
    """Then the target is the network, now and after loading; else a slower copy."""
    alone = MetaDQN(WhichRegime(20), replace(QUICK, target_network=False), seed=0)
    assert alone.target is alone.network
    for _ in range(3):
        alone.update()
    other = MetaDQN(WhichRegime(20), replace(QUICK, target_network=False), seed=1)
    other.load(alone.state())
    assert other.target is other.network
    assert alone.update() == other.update()
    usual = MetaDQN(WhichRegime(20), QUICK, seed=0)
    assert usual.target is not usual.network


def test_the_memory_is_balanced_if_there_are_regimes_to_balance():
    """One regime, or the switch, makes it a plain memory."""
    assert type(MetaDQN(WhichRegime(4), QUICK, seed=0).memory) is BalancedMemory
    assert type(MetaDQN(WhichRegime(4), replace(QUICK, balanced=False), 0).memory) is Memory
    assert type(MetaDQN(WhichRegime(4, regimes=1), QUICK, seed=0).memory) is Memory


@pytest.mark.parametrize("changes", [{}, {"target_network": False}], ids=["target", "no-target"])
def test_a_loaded_learner_goes_on_identically(changes, tmp_path: Path):
    """Saved in the middle of held exploration, the next updates are the same to the bit."""
    settings = replace(QUICK, hold=50.0, epsilon_end=1.0, gradient_steps=5, **changes)
    learner = MetaDQN(WhichRegime(20), settings, seed=5)
    for _ in range(3):
        learner.update()
    assert (learner._held > 0).any()
    write_checkpoint(tmp_path / "last.pt", Checkpoint("meta-dqn", {}, learner.state(), {}))
    scalars = [learner.update(), learner.update()]
    other = MetaDQN(WhichRegime(20), settings, seed=99)
    other.update()
    other.load(read_checkpoint(tmp_path / "last.pt").state)
    assert [other.update(), other.update()] == scalars
    for ours, theirs in zip(learner.network.parameters(), other.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert np.array_equal(learner._held, other._held)


def test_exploration_comes_in_spells():
    """Schedulers tried at random stay for `hold` decisions on average, the best in between."""
    settings = replace(QUICK, hold=5.0, epsilon_start=0.5, epsilon_end=0.5)
    learner = MetaDQN(WhichRegime(4_000), settings, seed=0)
    held = []
    for _ in range(60):
        learner.choose()
        held.append(learner._held > 0)
    # A tenth of those that hold nothing begin, and four fifths of spells go on after one decision.
    begins = np.mean([now & ~before for before, now in pairwise(held)])
    assert begins == pytest.approx(0.1 * (1 - np.mean(held)) * 0.8, rel=0.1)
    learner.settings = replace(settings, epsilon_start=0.0, epsilon_end=0.0)
    learner._held[:] = 0
    assert np.array_equal(learner.choose(), learner.choose())


@pytest.mark.parametrize("learner", ["meta-dqn", "ppo"])
def test_what_was_learned_runs_as_a_scheduler(learner: str, tmp_path: Path):
    """Learners train on the regimes themselves, and their file decides as their network does."""
    task = CHOOSING_TASKS["regimes"].changed(
        regimes=["base-low-2", "bursty-low-4"], episodes=4, past=2
    )
    batch = open_choosing(task, size=4, compiled=False)
    small = {"steps_per_update": 40, "network": NetworkSettings(arch="regime", hidden=(8,), dim=4)}
    if learner == "meta-dqn":
        small |= {"warmup_steps": 40, "batch_size": 16, "memory_size": 200, "gradient_steps": 4}
    kind = LEARNERS[learner]
    trained = kind.build(batch, replace(kind.preset("default"), **small), 0)
    assert [trained.update()["steps"] for _ in range(3)] == [40.0] * 3
    sight = batch.task.sight
    write_chooser(tmp_path / "policy.npz", chooser_of(trained.network, sight, {}))
    episodes = ChoosingEpisodes(task, "val")
    played = ChoosingBatch(episodes, 1, compiled=False, autoreset=False, draw=lambda rows: rows)
    played.begin(np.zeros(1, dtype=np.int64))
    choose = greedy(trained.network)
    while not played._ends.any():
        played.step(choose(played))
    schedule = simulate(*episodes.situation(0), f"meta:{tmp_path}", compile_core="never")
    assert sum(schedule.choices.values()) == played.episode_steps[0]
    jct_s = schedule.end_s - schedule.workload.submit_s
    assert jct_s.mean() == pytest.approx(played.scores["jct_s"][0])


def test_settings_are_checked():
    """Spells shorter than one decision make no sense; the preset is sound."""
    with pytest.raises(InvalidConfigError, match="hold"):
        MetaDQNSettings(hold=0.5)
    assert PRESETS["default"].network.arch == "regime"
