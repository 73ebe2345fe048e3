"""What a state is worth, by a network of its own: it shares nothing with the policy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.kernel import TokenLayers
from yardmaster.agents.networks.layers import hidden_layers, linear, masked_mean
from yardmaster.agents.networks.parts import Parts
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.picking.layout import Layout


class FlatCritic(nn.Module):
    """Hidden layers over all numbers of the observation at once."""

    def __init__(self, settings: NetworkSettings, layout: Layout, dice: torch.Generator) -> None:
        super().__init__()
        self.layers = hidden_layers((layout.length, *settings.hidden), dice)
        self.last = linear(settings.hidden[-1], 1, dice, gain=1.0)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the value of each observation, (batch,)."""
        values: Tensor = self.last(self.layers(observations))
        return values.squeeze(-1)


class PooledCritic(nn.Module):
    """The same layers for every job; their mean and maximum and the context make the value.

    It is indifferent to the order of the jobs, as the token bodies are.
    """

    def __init__(self, settings: NetworkSettings, layout: Layout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = Parts(layout)
        width = settings.hidden[-1]
        self.layers = TokenLayers(
            self.parts.features, self.parts.context_size, settings.hidden, dice
        )
        self.pooled = hidden_layers((2 * width + self.parts.context_size, width), dice)
        self.last = linear(width, 1, dice, gain=1.0)

    def forward(self, observations: Tensor) -> Tensor:
        """Return the value of each observation, (batch,)."""
        occupied = self.parts.occupied(observations)
        context = self.parts.context(observations)
        jobs = self.layers(self.layers.of_token(self.parts.jobs(observations)), context)
        # What comes out of ReLU is not negative, so 0 for padding never hides a job.
        highest = (jobs * occupied.unsqueeze(-1)).amax(dim=1)
        pools = torch.cat([masked_mean(jobs, occupied), highest, context], dim=-1)
        values: Tensor = self.last(self.pooled(pools))
        return values.squeeze(-1)
