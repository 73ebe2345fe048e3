"""A linear layer whose weights are shaken, so that exploring is learned instead of scheduled."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

BEGINNING = 0.5
"""Size of the noise to begin with, before division by the root of the inputs."""


class NoisyLinear(nn.Module):
    """A linear layer with factorised Gaussian noise of learned size (Fortunato et al., 2018).

    In training mode the weights are mean + size × noise; in evaluation mode they are the mean. The
    noise stays as it is until `reset_noise`, and is saved with the weights.
    """

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, mean: nn.Linear) -> None:
        super().__init__()
        self.mean = mean
        size = BEGINNING / math.sqrt(max(mean.in_features, 1))
        self.weight_size = nn.Parameter(torch.full_like(mean.weight, size))
        self.bias_size = nn.Parameter(torch.full_like(mean.bias, size))
        self.register_buffer("noise_in", torch.zeros(mean.in_features))
        self.register_buffer("noise_out", torch.zeros(mean.out_features))

    def reset_noise(self, generator: torch.Generator) -> None:
        """Draw new noise, the same for every row of a batch."""
        for noise in (self.noise_in, self.noise_out):
            drawn = torch.randn(noise.shape, generator=generator, device=generator.device)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply the layer."""
        if not self.training:
            plain: Tensor = self.mean(inputs)
            return plain
        weight = self.mean.weight + self.weight_size * torch.outer(self.noise_out, self.noise_in)
        bias = self.mean.bias + self.bias_size * self.noise_out
        return nn.functional.linear(inputs, weight, bias)
