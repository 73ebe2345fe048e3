"""The learners by name, and their policies without exploration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from yardmaster.agents.learners import LEARNERS, greedy, weights, weights_are_finite
from yardmaster.agents.networks import NetworkSettings, actor_critic, q_network
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.testing.toys import OneMachine, WhichRegime


@pytest.fixture
def batch() -> OneMachine:
    batch = OneMachine(7)
    batch.reset(3)
    batch.step(batch.masks.argmax(axis=1))  # so that some actions are illegal
    return batch


@pytest.mark.parametrize("name", list(LEARNERS))
def test_every_learner_can_be_built(name: str, batch: OneMachine):
    """Each name has a default preset and a learner that returns the scalars all share."""
    kind = LEARNERS[name]
    environments = WhichRegime(7) if name == "meta-dqn" else batch
    learner = kind.build(environments, kind.preset("default"), 0)
    scalars = learner.update()
    assert scalars["steps"] % batch.size == 0
    assert scalars["steps"] > 0
    assert weights_are_finite(learner.network)


@pytest.mark.parametrize("name", list(LEARNERS))
def test_presets_are_looked_up_by_name(name: str):
    """Unknown presets are met with the known ones."""
    with pytest.raises(UnknownNameError, match=f"Unknown preset of {name} 'x'. Known: .*default"):
        LEARNERS[name].preset("x")


def test_a_policy_plays_its_preferred_legal_action(batch: OneMachine):
    """Greedy play is the argmax of the logits among legal actions."""
    network = actor_critic(NetworkSettings(hidden=(8,)), batch.layout, 0)
    logits = network.logits(torch.from_numpy(batch.observations)).detach().numpy()
    expected = np.where(batch.masks, logits, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(greedy(network)(batch), expected)


def test_values_play_without_noise(batch: OneMachine):
    """Noisy weights play their means, and are as noisy afterwards as they were before."""
    network = q_network(
        NetworkSettings(hidden=(8,)), batch.layout, 0, dueling=True, noisy=True, atoms=5
    )
    network.train()
    network.reset_noise(torch.Generator().manual_seed(1))
    once = greedy(network)(batch)
    network.reset_noise(torch.Generator().manual_seed(2))
    np.testing.assert_array_equal(greedy(network)(batch), once)
    assert network.training
    network.eval()
    masks = torch.from_numpy(batch.masks)
    values = network.values(torch.from_numpy(batch.observations), masks)
    expected = values.masked_fill(~masks, -torch.inf).argmax(dim=1).numpy()
    np.testing.assert_array_equal(once, expected)


def test_weights_are_copies(batch: OneMachine):
    """Kept weights do not change when the network learns on."""
    network = actor_critic(NetworkSettings(hidden=(8,)), batch.layout, 0)
    kept = weights(network)
    with torch.no_grad():
        for part in network.parameters():
            part.fill_(7.0)
    assert not any(bool((part == 7.0).all()) for part in kept.values() if part.numel() > 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_broken_weights_are_noticed(value: float, batch: OneMachine):
    """One weight that is no number is enough."""
    network = actor_critic(NetworkSettings(hidden=(8,)), batch.layout, 0)
    assert weights_are_finite(network)
    with torch.no_grad():
        list(network.parameters())[-1].view(-1)[0] = value
    assert not weights_are_finite(network)


def test_devices_that_cannot_be_used(batch: OneMachine, monkeypatch: pytest.MonkeyPatch):
    """On a machine without CUDA, a learner that is to use it says so."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    kind = LEARNERS["ppo"]
    with pytest.raises(YardmasterError, match="no CUDA device"):
        kind.build(batch, kind.preset("default"), 0, device="cuda")
