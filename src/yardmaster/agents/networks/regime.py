"""A network for choosing schedulers, which makes out by itself what regime it is in."""

from __future__ import annotations

import torch
from torch import Tensor

from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.layers import hidden_layers
from yardmaster.agents.networks.parts import ChoiceParts
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.choosing.sight import ChoiceLayout


class RegimeBody(Body):
    """Turns the recent past into an embedding of the regime, and joins it to the numbers of now."""

    is_per_action = False
    parts: ChoiceParts

    def __init__(
        self, settings: NetworkSettings, layout: ChoiceLayout, dice: torch.Generator
    ) -> None:
        super().__init__()
        self.parts = ChoiceParts(layout)
        self.width = settings.hidden[-1]
        sizes = (self.parts.past_size, settings.hidden[0], settings.dim)
        self.of_past = hidden_layers(sizes, dice)
        self.layers = hidden_layers((self.parts.now_size + settings.dim, *settings.hidden), dice)

    def forward(self, observations: Tensor) -> Tensor:
        """Return one embedding per observation."""
        regime = self.of_past(self.parts.past(observations))
        now = self.parts.now(observations)
        embeddings: Tensor = self.layers(torch.cat([now, regime], dim=-1))
        return embeddings
