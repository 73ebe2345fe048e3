"""One network over the whole observation: fast, and blind to the jobs being alike."""

from __future__ import annotations

import torch
from torch import Tensor

from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.layers import hidden_layers
from yardmaster.agents.networks.parts import AnyLayout, parts_of
from yardmaster.agents.networks.settings import NetworkSettings


class MLPBody(Body):
    """Hidden layers over all numbers of the observation at once."""

    is_per_action = False

    def __init__(self, settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = parts_of(layout)
        self.width = settings.hidden[-1]
        self.layers = hidden_layers((layout.length, *settings.hidden), dice)

    def forward(self, observations: Tensor) -> Tensor:
        """Return one embedding per observation."""
        embeddings: Tensor = self.layers(observations)
        return embeddings
