"""Gradients between computing and following them: the same numbers as torch's own."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from yardmaster.agents import gradients


def some_weights(seed: int) -> list[nn.Parameter]:
    """Return weights with gradients, and one without."""
    dice = torch.Generator().manual_seed(seed)
    weights = [nn.Parameter(torch.zeros(shape)) for shape in ((7, 5), (7,), (1, 7), (3,))]
    for weight in weights[:-1]:
        weight.grad = torch.randn(weight.shape, generator=dice)
    return weights


@pytest.mark.parametrize("longest", [0.1, 1.0, 100.0])
def test_long_gradients_are_shortened_as_torch_does(longest):
    """Bit by bit the numbers of `clip_grad_norm_`; short gradients stay, missing ones are left."""
    own, torchs = some_weights(3), some_weights(3)
    gradients.shorten(own, longest)
    nn.utils.clip_grad_norm_(torchs, longest)
    for weight, other in zip(own[:-1], torchs[:-1], strict=True):
        assert torch.equal(weight.grad, other.grad)
    assert own[-1].grad is None


def test_nothing_to_shorten_is_no_mistake():
    """Weights without gradients, as of a policy that does not learn, stay without."""
    weights = some_weights(0)
    gradients.forget(weights)
    gradients.shorten(weights, 0.5)
    assert all(weight.grad is None for weight in weights)


def test_an_optimiser_takes_up_saved_numbers_where_it_has_them():
    """Its next steps are those of the saved one; one that has taken no step yet refuses."""
    weights = [torch.nn.Parameter(torch.tensor([1.0, 2.0])) for _ in range(2)]
    optimisers = [torch.optim.Adam([weight], lr=0.1) for weight in weights]

    def step(place: int, slope: float) -> None:
        weights[place].grad = torch.full((2,), slope)
        optimisers[place].step()

    step(0, 1.0)
    assert not gradients.take_up(optimisers[1], optimisers[0].state_dict())
    step(1, -5.0)
    memory = optimisers[1].state[weights[1]]["exp_avg"]
    assert gradients.take_up(optimisers[1], copy.deepcopy(optimisers[0].state_dict()))
    assert optimisers[1].state[weights[1]]["exp_avg"] is memory
    weights[1].data.copy_(weights[0].data)
    for place in range(2):
        step(place, 2.0)
    assert torch.equal(weights[0], weights[1])
