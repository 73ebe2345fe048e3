"""Discrete soft actor-critic; what it shares with other learners is in test_off_policy.py."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from yardmaster.agents import masking
from yardmaster.agents.networks import NetworkSettings
from yardmaster.agents.sac import PRESETS, SAC, SACSettings, Temperature, lowest, soft_value
from yardmaster.testing.toys import OneMachine

SMALL = SACSettings(
    total_steps=1_000,
    steps_per_update=16,
    gradient_steps=2,
    batch_size=32,
    memory_size=500,
    warmup_steps=64,
    network=NetworkSettings(arch="mlp", hidden=(16,)),
)


def fresh(**changes) -> SAC:
    return SAC(OneMachine(4), replace(SMALL, **changes), seed=0)


def slope(shares: torch.Tensor, masks: torch.Tensor, ratio: float, start: float = 0.7) -> float:
    """Derivative of the temperature's loss by the logarithm of the temperature."""
    temperature = Temperature(start)
    temperature.loss(shares, masks, ratio).backward()
    return temperature.log_alpha.grad.item()


# --- temperature ---------------------------------------------------------------------------------


@pytest.mark.parametrize("legal", [2, 3, 5])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.98])
def test_a_uniform_policy_is_cooled_by_its_surplus(legal, ratio):
    """Over k legal actions its entropy is log k, so (1 − ratio) · log k too much."""
    masks = torch.arange(6).unsqueeze(0) < legal
    shares = masking.log_probs(torch.zeros(1, 6), masks)
    assert slope(shares, masks, ratio) == pytest.approx((1 - ratio) * math.log(legal), rel=1e-5)


def test_actions_count_by_their_probability():
    """A policy of 90 % and 10 % has its own entropy, not an average over actions."""
    masks = torch.tensor([[True, True, False]])
    shares = masking.log_probs(torch.tensor([[0.9, 0.1, 50.0]]).log(), masks)
    entropy = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))
    assert slope(shares, masks, 0.5) == pytest.approx(entropy - 0.5 * math.log(2), rel=1e-5)
    assert slope(shares, masks, 0.5) < 0.0  # less than wanted: it is heated


def test_states_without_a_choice_have_no_say():
    """Forced moves neither move the temperature nor dilute what others say."""
    forced = torch.tensor([[False, True, False]])
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    free = torch.ones(1, 3, dtype=torch.bool)
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    assert slope(masking.log_probs(logits, forced), forced, 0.5) == 0.0
    alone = slope(masking.log_probs(logits, free), free, 0.5)
    masks = torch.cat([forced, free, forced, nothing])
    together = slope(masking.log_probs(logits.expand(4, 3), masks), masks, 0.5)
    assert together == pytest.approx(alone, rel=1e-6)


def test_the_policy_settles_at_the_wanted_entropy():
    """With values fixed, actor and temperature meet at softmax(Q / α) with the target's entropy."""
    learner = fresh(
        alpha_start=0.2,
        entropy_ratio=0.4,
        learning_rate=1e-2,
        alpha_learning_rate=1e-2,
        warmup_steps=10**9,
    )
    for _ in range(3):
        learner.update()
    with torch.no_grad():
        for part in learner.critics.parameters():
            part.zero_()
        for critic in learner.critics:
            critic.head.stream[-1].bias[:4] = torch.tensor([0.6, 0.4, 0.2, 0.0])
    drawn = learner.memory.sample(64, np.random.default_rng(0))
    drawn = replace(drawn, masks=torch.tensor([[True] * 4 + [False]]).expand(64, 5))
    for _ in range(400):
        learner._learn_actor(drawn)
    alpha = learner.temperature.alpha.item()
    shares = masking.log_probs(learner.network.logits(drawn.observations), drawn.masks).exp()
    assert masking.entropy(shares.log(), drawn.masks).mean().item() == pytest.approx(
        0.4 * math.log(4), rel=0.03
    )
    wanted = torch.tensor([0.6, 0.4, 0.2, 0.0]).div(alpha).softmax(dim=0)
    assert shares.mean(dim=0)[:4].tolist() == pytest.approx(wanted.tolist(), abs=0.03)
    assert shares[:, 4].max().item() == 0.0


# --- values --------------------------------------------------------------------------------------


def test_soft_values_are_those_of_the_best_soft_policy():
    """Under π ∝ exp(Q / α) over legal actions a state is worth α · log Σ exp(Q / α)."""
    values = torch.tensor([[1.0, 2.0, 99.0], [0.5, -1.0, 3.0], [4.0, 4.0, 4.0]])
    masks = torch.tensor([[True, True, False], [True, True, True], [False, False, True]])
    alpha = torch.tensor(0.4)
    shares = masking.log_probs(values / alpha, masks)
    expected = [
        0.4 * math.log(sum(math.exp(value / 0.4) for value in legal))
        for legal in ([1.0, 2.0], [0.5, -1.0, 3.0], [4.0])
    ]
    assert soft_value(values, shares, alpha).tolist() == pytest.approx(expected, rel=1e-5)
    worse = masking.log_probs(values / alpha * 0.5, masks)
    assert (soft_value(values, worse, alpha) <= soft_value(values, shares, alpha) + 1e-6).all()


def test_a_state_without_legal_actions_is_worth_nothing():
    """After the end there is no value, and no NaN."""
    masks = torch.zeros(1, 3, dtype=torch.bool)
    shares = masking.log_probs(torch.tensor([[1.0, 2.0, 3.0]]), masks)
    assert soft_value(torch.full((1, 3), 7.0), shares, torch.tensor(0.5)).item() == 0.0


def test_the_lower_critic_counts():
    """Two critics begin differently, and every action gets the lower of their values."""
    learner = fresh()
    seen = torch.from_numpy(learner.batch.observations)
    first, second = (critic(seen) for critic in learner.critics)
    assert not torch.equal(first, second)
    assert torch.equal(lowest(learner.critics, seen), torch.minimum(first, second))
    assert torch.equal(lowest(learner.targets, seen), torch.minimum(first, second))


def test_the_actor_waits_for_its_turn():
    """With `actor_every` 2 the critics learn each time; actor and temperature every second."""
    learner = fresh(actor_every=2, gradient_steps=1, steps_per_update=4)
    while not learner.gradient_steps:
        learner.update()
    for _ in range(6):
        actor = learner.network.head.stream[-1].weight.detach().clone()
        critic = learner.critics[0].head.stream[-1].weight.detach().clone()
        target = learner.targets[0].head.stream[-1].weight.detach().clone()
        alpha = learner.temperature.alpha.item()
        learner.update()
        is_turn = learner.gradient_steps % 2 == 0
        assert not torch.equal(critic, learner.critics[0].head.stream[-1].weight)
        assert torch.equal(actor, learner.network.head.stream[-1].weight) != is_turn
        assert torch.equal(target, learner.targets[0].head.stream[-1].weight) != is_turn
        assert (alpha == learner.temperature.alpha.item()) != is_turn


def test_presets_hold_the_published_numbers():
    """`drl-scheduler` learns as that project states."""
    preset = PRESETS["drl-scheduler"]
    assert (preset.learning_rate, preset.batch_size, preset.memory_size) == (3e-4, 256, 100_000)
    assert (preset.tau, preset.actor_every, preset.entropy_ratio) == (0.005, 2, 0.98)
    assert (preset.gamma, preset.network.hidden) == (0.95, (256, 256))
    assert preset.gradient_steps == preset.steps_per_update
    assert PRESETS["default"] == SACSettings()
