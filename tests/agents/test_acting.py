"""Acting by the compiled forward pass: the same preferences as torch's, and only where it pays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from yardmaster.agents import acting
from yardmaster.agents.acting import compiled_actor
from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.agents.ppo import PPO, PPOSettings
from yardmaster.envs.batch import open_batch
from yardmaster.envs.task import Task

CPU = torch.device("cpu")
TASK = Task(workload="lognormal", cluster="2x V100:4", jobs=32, episodes=8, load=1.2)


@pytest.mark.parametrize("arch", ["kernel", "mlp"])
def test_preferences_of_legal_actions_are_the_networks(arch):
    """After every change of the network, once it is refreshed; illegal actions are out."""
    batch = open_batch(TASK, size=16)
    network = actor_critic(NetworkSettings(arch, (12, 10)), batch.layout, 0)
    actor = compiled_actor(network, batch, CPU)
    assert actor is not None
    for change in (0.0, 0.3):
        with torch.no_grad():
            for part in network.parameters():
                part.add_(torch.randn(part.shape, generator=torch.manual_seed(1)), alpha=change)
            actor.refresh()
            wanted = network.logits(torch.from_numpy(batch.observations))
        found = actor.logits()
        masks = torch.from_numpy(batch.masks)
        torch.testing.assert_close(found[masks], wanted[masks], rtol=1e-4, atol=1e-4)
        assert (found[~masks] == -np.inf).all()
        batch.step(batch.masks.argmax(axis=1))


@pytest.mark.parametrize("arch", ["kernel", "mlp"])
def test_ppo_learns_the_same_either_way(monkeypatch, arch):
    """One update with the compiled forward pass and one without end in nearly the same weights."""
    network = NetworkSettings(arch)
    settings = PPOSettings(steps_per_update=256, epochs=2, minibatches=2, network=network)
    weights = []
    for most in (acting.MOST_ENVIRONMENTS, 0):
        monkeypatch.setattr(acting, "MOST_ENVIRONMENTS", most)
        learner = PPO(open_batch(TASK, size=16), settings, 0)
        assert (learner._actor is None) == (most == 0)
        learner.update()
        weights.append(
            torch.cat([part.detach().flatten() for part in learner.network.parameters()])
        )
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("arch", "compiled"), [("self-attention", True), ("kernel", False)])
def test_other_networks_and_plain_environments_use_torch(arch, compiled):
    """Attention is quicker in torch; plain Python has no compiled pass."""
    batch = open_batch(TASK, size=4, compiled=compiled)
    network = actor_critic(NetworkSettings(arch), batch.layout, 0)
    assert compiled_actor(network, batch, CPU) is None
