"""Jobs look at each other before each is judged: a job can be best because of the others."""

from __future__ import annotations

import torch
from torch import Tensor

from yardmaster.agents.networks.attention import Attention
from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.kernel import TokenLayers
from yardmaster.agents.networks.layers import learned_token, token_layers
from yardmaster.agents.networks.parts import Parts
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.picking.layout import Layout


class SelfAttentionBody(Body):
    """Tokens of jobs and of the no-op attend to each other; then as the kernel network."""

    is_per_action = True
    parts: Parts

    def __init__(self, settings: NetworkSettings, layout: Layout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = Parts(layout)
        self.width = settings.hidden[-1]
        self.of_job = token_layers(self.parts.features, settings.dim, dice)
        self.noop = learned_token(settings.dim, dice)
        self.attention = Attention(settings.dim, dice)
        self.layers = TokenLayers(settings.dim, self.parts.context_size, settings.hidden, dice)

    def forward(self, observations: Tensor) -> Tensor:
        """Return one embedding per action."""
        jobs = self.of_job(self.parts.jobs(observations))
        noop = self.noop.expand(len(observations), 1, -1)
        tokens = torch.cat([jobs, noop], dim=1)
        tokens = self.attention(tokens, tokens, self.parts.counted(observations))
        embeddings: Tensor = self.layers(
            self.layers.of_token(tokens), self.parts.context(observations)
        )
        return embeddings
