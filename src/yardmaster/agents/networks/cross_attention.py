"""Jobs look at the GPU slots: what becomes free when decides which job suits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.attention import Attention
from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.layers import linear, masked_mean, token_layers
from yardmaster.agents.networks.parts import Parts
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.picking.layout import Layout


class CrossAttentionBody(Body):
    """Tokens of jobs attend to tokens of GPU slots; the globals are added afterwards.

    The no-op's token is the mean of the mean job, the mean GPU slot and the globals.
    """

    is_per_action = True
    parts: Parts

    def __init__(self, settings: NetworkSettings, layout: Layout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = Parts(layout)
        self.width = dim = settings.dim
        self.has_globals = bool(layout.global_features)
        self.of_job = token_layers(self.parts.features, dim, dice)
        self.of_gpu = token_layers(1, dim, dice)
        if self.has_globals:
            self.of_globals = token_layers(len(layout.global_features), dim, dice)
            self.add_globals = linear(dim, dim, dice, gain=1.0)
        self.attention = Attention(dim, dice)
        self.norm = nn.LayerNorm(dim)

    def forward(self, observations: Tensor) -> Tensor:
        """Return one embedding per action."""
        jobs = self.of_job(self.parts.jobs(observations))
        gpus = self.of_gpu(self.parts.gpus(observations).unsqueeze(-1))
        pools = [masked_mean(jobs, self.parts.occupied(observations)), gpus.mean(dim=1)]
        if self.has_globals:
            state = self.of_globals(self.parts.globals(observations))
            pools.append(state)
        noop = torch.stack(pools).mean(dim=0).unsqueeze(1)
        tokens = self.attention(torch.cat([jobs, noop], dim=1), gpus)
        if self.has_globals:
            tokens = tokens + self.add_globals(state).unsqueeze(1)
        embeddings: Tensor = self.norm(tokens)
        return embeddings
