"""Dueling double Q-learning; what it shares with other learners is in test_off_policy.py."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from yardmaster.agents.d3qn import D3QN, PRESETS, D3QNSettings
from yardmaster.agents.networks import NetworkSettings
from yardmaster.testing.toys import OneMachine

SMALL = D3QNSettings(
    total_steps=1_000,
    steps_per_update=16,
    gradient_steps=1,
    batch_size=16,
    memory_size=200,
    warmup_steps=32,
    n_step=1,
    network=NetworkSettings(arch="mlp", hidden=(8,)),
)


def fresh(**changes) -> D3QN:
    return D3QN(OneMachine(4), replace(SMALL, **changes), seed=0)


def weights(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([part.detach().flatten() for part in network.parameters()])


def test_a_hard_target_is_copied_now_and_then():
    """With tau 1 the target stands still, and every few gradient steps is the network."""
    learner = fresh(tau=1.0, target_every=3, warmup_steps=0)
    begun = weights(learner.target)
    while learner.gradient_steps < 6:
        before = learner.gradient_steps
        learner.update()
        if learner.gradient_steps == before:
            continue
        at_network = torch.equal(weights(learner.target), weights(learner.network))
        assert at_network == (learner.gradient_steps % 3 == 0)
        if learner.gradient_steps < 3:
            assert torch.equal(weights(learner.target), begun)


def test_a_soft_target_moves_by_its_share():
    """With tau 0.1 the target goes a tenth of the way to the network at each gradient step."""
    learner = fresh(tau=0.1, learning_rate=0.1)
    for _ in range(4):
        before = weights(learner.target)
        learner.update()
    moved = before + 0.1 * (weights(learner.network) - before)
    assert torch.allclose(weights(learner.target), moved, atol=1e-6)
    assert not torch.allclose(before, moved, atol=1e-3)


@pytest.mark.parametrize(
    ("decay", "steps", "expected"),
    [
        ("linear", 0, 0.9),
        ("linear", 50, 0.5),
        ("linear", 100, 0.1),
        ("linear", 10_000, 0.1),
        ("exponential", 0, 0.9),
        ("exponential", 100, 0.1 + 0.8 / math.e),
        ("exponential", 10_000, 0.1),
    ],
)
def test_epsilon_decays_as_named(decay, steps, expected):
    """Linearly to the end, or by a factor e in the given steps."""
    settings = D3QNSettings(
        epsilon_start=0.9, epsilon_end=0.1, epsilon_decay=decay, epsilon_steps=100
    )
    assert settings.epsilon(steps) == pytest.approx(expected)


def test_epsilon_is_the_share_of_random_actions():
    """With ε = 0.3 and two legal actions, 15 % of the choices are not the best."""
    learner = D3QN(OneMachine(20_000, jobs=2), replace(SMALL, epsilon_start=0.3), seed=0)
    learner.settings = replace(learner.settings, epsilon_end=0.3)
    explored = learner.choose()
    learner.settings = replace(learner.settings, epsilon_start=0.0, epsilon_end=0.0)
    best = learner.choose()
    assert np.mean(explored != best) == pytest.approx(0.15, abs=0.01)


def test_double_learning_values_what_the_network_picks():
    """The aim is the target's value of the action that the learned network prefers."""
    learner = fresh(gamma=0.5, reward_scale=1.0, loss="mse", warmup_steps=10**9)
    learner.update()
    learner.update()
    for network, biases in ((learner.network, [0, 9, 0, 0]), (learner.target, [5, 1, 7, 3])):
        with torch.no_grad():
            for part in network.parameters():
                part.zero_()  # the same values whatever is seen
            network.head.stream[-1].bias[:4] = torch.tensor(biases, dtype=torch.float32)
    drawn = learner.memory.sample(16, np.random.default_rng(0))
    learner.sample = lambda: (drawn, drawn.returns)
    aims = []
    for reward, masks, over in zip(
        drawn.returns.tolist(), drawn.next_masks.numpy()[:, :4], drawn.terminated, strict=True
    ):
        picked = 1 if masks[1] else int(np.argmax(masks))
        advantages = np.array([5.0, 1.0, 7.0, 3.0])
        future = 0.0 if over else advantages[picked] - advantages[masks].mean()
        aims.append(reward + 0.5 * future)
    chosen = np.array([0.0, 9.0, 0.0, 0.0])
    now = [
        chosen[action] - chosen[masks].mean()
        for action, masks in zip(drawn.actions.tolist(), drawn.masks.numpy()[:, :4], strict=True)
    ]
    scalars = learner.learn()
    assert scalars["td_error"] == pytest.approx(np.mean(np.abs(np.subtract(aims, now))), rel=1e-5)
    assert scalars["loss"] == pytest.approx(np.mean(np.subtract(aims, now) ** 2), rel=1e-5)
    assert scalars["q_mean"] == pytest.approx(np.mean(now), rel=1e-5)


def test_the_scale_is_that_of_the_returns_seen():
    """Left open, rewards are scaled so that returns of random play have root mean square 1."""
    learner = fresh(gamma=1.0, warmup_steps=2_000)
    while not learner.gradient_steps:
        learner.update()
    # Returns to go of random play over 4, 3, 2 and 1 jobs of 50.5 s on average; see OneMachine.
    means = [sum(range(1, left + 1)) * 0.505 for left in (1, 2, 3, 4)]
    assert 1.0 / learner.scale == pytest.approx(np.sqrt(np.mean(np.square(means))), rel=0.1)


def test_presets_hold_the_published_numbers():
    """`drl-scheduler` explores, remembers and learns as that project states."""
    preset = PRESETS["drl-scheduler"]
    assert preset.epsilon(0) == 1.0
    assert preset.epsilon(20_000) == pytest.approx(0.05 + 0.95 / math.e)
    assert (preset.learning_rate, preset.batch_size, preset.memory_size) == (1e-4, 128, 100_000)
    assert (preset.loss, preset.tau, preset.target_every, preset.gamma) == ("mse", 1.0, 500, 0.95)
    assert (preset.gradient_steps, preset.n_step) == (preset.steps_per_update, 1)
    assert preset.network.hidden == (256, 256)
    assert preset.network.head_hidden == 128
    assert PRESETS["default"] == D3QNSettings()
