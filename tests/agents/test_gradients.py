"""Gradients between computing and following them: the same numbers as torch's own."""

from __future__ import annotations

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
