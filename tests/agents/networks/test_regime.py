"""The network for choosing: the past becomes an embedding, beside the numbers of now."""

from __future__ import annotations

import pytest
import torch

from yardmaster.agents.networks import NetworkSettings, actor_critic, q_network
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import InvalidConfigError

LAYOUT = ChoiceSight(past=2).layout()
SETTINGS = NetworkSettings(arch="regime", hidden=(10, 9), dim=4)


def test_the_past_passes_through_the_embedding():
    """What follows sees of the past only the embedding's few numbers, and of now everything."""
    body = q_network(SETTINGS, LAYOUT, 0, dueling=True).body
    assert body.layers[0].in_features == len(LAYOUT.now_features) + SETTINGS.dim
    assert body.of_past[0].in_features == len(LAYOUT.past_features)
    seen = torch.rand(3, LAYOUT.length, generator=torch.Generator().manual_seed(0))
    changed = seen.clone()
    changed[:, -1] += 1.0
    assert not torch.equal(body(seen), body(changed))
    with torch.no_grad():
        body.of_past[-2].weight.zero_()  # an embedding that tells nothing
    assert torch.equal(body(seen), body(changed))
    changed[:, 0] += 1.0
    assert not torch.equal(body(seen), body(changed))


def test_the_seed_decides_the_weights():
    """The same seed makes the same network, with a critic of its own for PPO."""
    seen = torch.rand(3, LAYOUT.length, generator=torch.Generator().manual_seed(0))
    one, same, other = (actor_critic(SETTINGS, LAYOUT, seed) for seed in (1, 1, 2))
    assert torch.equal(one.logits(seen), same.logits(seen))
    assert not torch.equal(one.logits(seen), other.logits(seen))


@pytest.mark.parametrize(
    ("arch", "layout", "message"),
    [
        ("regime", ChoiceSight(past=0).layout(), "needs the recent past"),
        ("kernel", LAYOUT, "schedulers are chosen by mlp or regime"),
        ("regime", Layout(2, ("a",), 0, (), 0, 2, ()), "not for picking jobs"),
    ],
    ids=["no-past", "kernel", "jobs"],
)
def test_networks_that_cannot_see_are_refused(arch, layout, message):
    """An architecture is refused where the observation is none that it could look at."""
    with pytest.raises(InvalidConfigError, match=message):
        q_network(NetworkSettings(arch=arch), layout, 0, dueling=True)
