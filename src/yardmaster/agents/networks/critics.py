"""What a state is worth, by a network of its own: it shares nothing with the policy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.filled import Filled
from yardmaster.agents.networks.layers import hidden_layers, linear
from yardmaster.agents.networks.mlp import FlatLinear, flat_layers
from yardmaster.agents.networks.parts import AnyLayout, Parts
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.picking.layout import Layout


class FlatCritic(nn.Module):
    """Hidden layers over all numbers of the observation at once."""

    def __init__(self, settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator) -> None:
        super().__init__()
        self.layers = flat_layers(settings, layout, dice)
        self.last = linear(settings.hidden[-1], 1, dice, gain=1.0)

    def summary(self, observations: Tensor) -> Tensor | Filled:
        """Return what the layers are shown of observations: all of it, perhaps without zeros."""
        first = self.layers[0]
        return first.parted(observations) if isinstance(first, FlatLinear) else observations

    def judge(self, summaries: Tensor | Filled) -> Tensor:
        """Return the value of each state summed up, (batch,)."""
        values: Tensor = self.last(self.layers(summaries))
        return values.squeeze(-1)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the value of each observation, (batch,)."""
        return self.judge(observations)


class PooledCritic(nn.Module):
    """Hidden layers over a summary of the jobs and the context.

    The summary is the mean, the maximum and the sum (by the window) of every number of the job
    tokens. It is indifferent to the order of the jobs, as the token bodies are, and costs next to
    nothing: a layer per job would take most of the time of learning.
    """

    def __init__(self, settings: NetworkSettings, layout: Layout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = Parts(layout)
        inputs = 3 * self.parts.features + self.parts.context_size
        self.layers = hidden_layers((inputs, *settings.hidden), dice)
        self.last = linear(settings.hidden[-1], 1, dice, gain=1.0)

    def summary(self, observations: Tensor) -> Tensor:
        """Return what the layers are shown of observations; nothing of it is learned."""
        jobs = self.parts.jobs(observations)  # padding is all zeros
        number = self.parts.occupied(observations).sum(dim=1, keepdim=True).clamp_min(1)
        total = jobs.sum(dim=1)
        summary = [total / number, highest(jobs), total / self.parts.layout.window]
        return torch.cat([*summary, self.parts.context(observations)], dim=-1)

    def judge(self, summaries: Tensor) -> Tensor:
        """Return the value of each state summed up, (batch,)."""
        values: Tensor = self.last(self.layers(summaries))
        return values.squeeze(-1)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the value of each observation, (batch,)."""
        return self.judge(self.summary(observations))


def highest(tokens: Tensor) -> Tensor:
    """Return the maximum over tokens, (B, d) from (B, N, d); thirty times as quick as `amax`."""
    if tokens.device.type != "cpu":
        return tokens.amax(dim=1)
    while (number := tokens.shape[1]) > 1:
        half = number // 2
        pairs = torch.maximum(tokens[:, :half], tokens[:, half : 2 * half])
        tokens = torch.cat([pairs, tokens[:, 2 * half :]], dim=1) if number % 2 else pairs
    return tokens.squeeze(1)
