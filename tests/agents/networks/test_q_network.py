"""Heads for values of actions: dueling, noisy, distributional."""

import itertools

import pytest
import torch

from yardmaster.agents.networks import FOR_PICKING, NetworkSettings, q_network
from yardmaster.agents.networks.heads import duel
from yardmaster.agents.networks.layers import linear
from yardmaster.agents.networks.noisy import NoisyLinear
from yardmaster.engine.picking.layout import Layout

WHERE = Layout(4, ("a", "b"), 3, ("g",), 0, 8, (11,))


def seen(rows: int = 6) -> torch.Tensor:
    return torch.randn(rows, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("arch", "dueling", "noisy", "atoms", "head_hidden"),
    list(itertools.product(FOR_PICKING, [False, True], [False, True], [1, 5], [0, 6])),
)
def test_every_combination_of_heads_works(arch, dueling, noisy, atoms, head_hidden):
    """Values have the promised shape, every weight gets a gradient, expectations are in range."""
    settings = NetworkSettings(arch=arch, dim=8, head_hidden=head_hidden)
    made = q_network(settings, WHERE, 0, dueling=dueling, noisy=noisy, atoms=atoms)
    made.reset_noise(torch.Generator().manual_seed(1))
    numbers = made(seen())
    assert numbers.shape == ((6, 5) if atoms == 1 else (6, 5, 5))
    (numbers * torch.randn(numbers.shape)).sum().backward()
    assert all(weights.grad is not None for weights in made.parameters())
    values = made.values(seen())
    assert values.shape == (6, 5)
    assert atoms == 1 or values.abs().max() <= 10.0


def test_dueling_averages_over_legal_actions():
    """The mean of the values over the actions averaged over is the state's value."""
    state, advantages = torch.tensor([[2.0], [-1.0]]), torch.randn(2, 4, 1)
    among = torch.tensor([[True, False, True, True], [False, True, False, False]])
    values = duel(state, advantages, among).squeeze(-1)
    means = torch.stack([row[mask].mean() for row, mask in zip(values, among, strict=True)])
    torch.testing.assert_close(means, state.squeeze(-1))
    everywhere = duel(state, advantages, None).squeeze(-1)
    torch.testing.assert_close(everywhere.mean(dim=1), state.squeeze(-1))


def test_dueling_passes_masks_on():
    """With masks, the values of legal actions average to something the masks do not change."""
    made = q_network(NetworkSettings(), WHERE, 0, dueling=True)
    some = torch.tensor([[True, True, False, False, True]]).expand(6, 5)
    every = made(seen(), torch.ones(6, 5, dtype=torch.bool))
    torch.testing.assert_close(every, made(seen()))
    few = made(seen(), some)
    torch.testing.assert_close(few[:, [0, 1, 4]].mean(dim=1), every.mean(dim=1))
    torch.testing.assert_close(few[:, 0] - few[:, 1], every[:, 0] - every[:, 1])


def test_expected_values_weigh_the_atoms():
    """The value is the mean of the support under the softmax of the logits."""
    made = q_network(NetworkSettings(), WHERE, 0, atoms=3, value_range=(0.0, 4.0))
    shares = made(seen()).softmax(dim=-1)
    expected = 2.0 * shares[..., 1] + 4.0 * shares[..., 2]
    torch.testing.assert_close(made.values(seen()), expected)


def test_noise_is_factorised_and_of_learned_size():
    """Weights move by size × f(in) f(out) with f(x) = sign(x)√|x|, and only in training mode."""
    layer = NoisyLinear(linear(3, 2, torch.Generator().manual_seed(0)))
    inputs = torch.eye(3)
    still = layer(inputs)
    layer.reset_noise(torch.Generator().manual_seed(7))
    dice = torch.Generator().manual_seed(7)
    into, out = torch.randn(3, generator=dice), torch.randn(2, generator=dice)
    into, out = into.sign() * into.abs().sqrt(), out.sign() * out.abs().sqrt()
    size = 0.5 / 3**0.5
    shaken = layer(inputs)
    torch.testing.assert_close(shaken - still, size * (torch.outer(into, out) + out))
    assert torch.equal(layer(inputs), shaken)
    assert torch.equal(layer.eval()(inputs), still)


def test_noise_is_saved_with_the_weights():
    """A network restored from a state behaves as the one that was saved, noise included."""
    first, second = (q_network(NetworkSettings(), WHERE, seed, noisy=True) for seed in (0, 1))
    first.reset_noise(torch.Generator().manual_seed(3))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(seen()), second(seen()))
    second.reset_noise(torch.Generator().manual_seed(4))
    assert not torch.equal(first(seen()), second(seen()))
