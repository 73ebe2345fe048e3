"""The kernel network is one small network applied to every job."""

import torch
from torch import nn

from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.engine.picking.layout import Layout


def test_the_split_first_layer_is_a_layer_over_both_parts():
    """Every job's logit is that of a plain network over its features, the globals and the slots."""
    where = Layout(4, ("a", "b"), 3, ("g", "h"), 0, 8, (11, 12))
    made = actor_critic(NetworkSettings(hidden=(6, 5)), where, 2)
    layers = made.body.layers
    plain = nn.Sequential(
        nn.Linear(2 + 5, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1)
    )
    with torch.no_grad():
        plain[0].weight[:] = torch.cat([layers.of_token.weight, layers.of_context.weight], dim=1)
        plain[0].bias[:] = layers.of_context.bias
    plain[2].load_state_dict(layers.rest[0].state_dict())
    plain[4].load_state_dict(made.head.stream[0].state_dict())
    seen = torch.randn(7, 13, generator=torch.Generator().manual_seed(0))
    context = torch.cat([seen[:, 11:], seen[:, 8:11]], dim=1)
    for job in range(4):
        expected = plain(torch.cat([seen[:, 2 * job : 2 * job + 2], context], dim=1)).squeeze(-1)
        torch.testing.assert_close(made.logits(seen)[:, job], expected)


def test_the_noop_sees_the_context():
    """The no-op's preference depends on the globals, and not on any job."""
    where = Layout(2, ("a",), 0, ("g",), 0, 2, (2,))
    made = actor_critic(NetworkSettings(hidden=(8,)), where, 2)
    seen = torch.tensor([[0.5, 0.1, 1.0], [0.7, 0.9, 1.0], [0.5, 0.1, -1.0]])
    noop = made.logits(seen)[:, 2]
    assert noop[0] == noop[1]
    assert noop[0] != noop[2]
