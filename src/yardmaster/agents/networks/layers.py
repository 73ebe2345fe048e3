"""Linear layers that begin where the caller's dice say, and nowhere else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

HIDDEN_GAIN = math.sqrt(2.0)
"""Keeps the size of the numbers through a layer followed by ReLU."""
POLICY_GAIN = 0.01
"""Of a policy's last layer: the first policy prefers nothing by much."""


class Linear(nn.Linear):
    """A linear layer that PyTorch's own dice do not touch: whoever makes one sets its weights."""

    def reset_parameters(self) -> None:
        """Leave the weights unset."""


def linear(
    inputs: int,
    outputs: int,
    dice: torch.Generator,
    gain: float = HIDDEN_GAIN,
    *,
    has_bias: bool = True,
) -> Linear:
    """Return a layer with orthogonal weights and a bias of 0; without inputs, a bias alone."""
    layer = Linear(inputs, outputs, bias=has_bias)
    nn.init.orthogonal_(layer.weight, gain, generator=dice)
    if has_bias:
        nn.init.zeros_(layer.bias)
    return layer


def hidden_layers(sizes: Sequence[int], dice: torch.Generator) -> nn.Sequential:
    """Return layers from the first size to the last, each followed by ReLU."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [linear(inputs, outputs, dice), nn.ReLU()]
    return nn.Sequential(*layers)


def token_layers(inputs: int, dim: int, dice: torch.Generator) -> nn.Sequential:
    """Return the layers that make a token of what is known: linear, ReLU, linear."""
    return nn.Sequential(linear(inputs, dim, dice), nn.ReLU(), linear(dim, dim, dice, gain=1.0))


def learned_token(size: int, dice: torch.Generator) -> nn.Parameter:
    """Return a token that stands for no job, of about the size of one."""
    return nn.Parameter(torch.randn(size, generator=dice))


def masked_mean(tokens: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of the counted tokens, (B, d) from (B, N, d); zeros if there are none."""
    weights = counted.to(tokens.dtype)
    number = weights.sum(dim=-1, keepdim=True).clamp_min(1.0)
    return torch.einsum("bn,bnd->bd", weights / number, tokens)
