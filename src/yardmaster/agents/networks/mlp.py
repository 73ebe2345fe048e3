"""One network over the whole observation: fast, and blind to the jobs being alike."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from yardmaster.agents.networks.body import Body
from yardmaster.agents.networks.filled import Filled, FilledLinear, parted
from yardmaster.agents.networks.layers import Linear, hidden_layers
from yardmaster.agents.networks.parts import AnyLayout, parts_of
from yardmaster.agents.networks.settings import NetworkSettings
from yardmaster.engine.picking.layout import Layout

FRONT = 2
"""Tokens at the front of the window that are looked at in every row: most queues are no longer."""
MANY = 256
"""From so many rows on, putting those with a longer queue apart takes less than it saves."""


class FlatLinear(Linear):
    """A layer over all numbers of an observation, which may be trimmed: see `Parts.trimmed`."""

    def __init__(self, layout: Layout, layer: Linear) -> None:
        super().__init__(layer.in_features, layer.out_features)
        self.weight, self.bias = layer.weight, layer.bias
        self.front = layout.jobs_at + min(FRONT, layout.window) * len(layout.job_features)
        self.after = layout.length - layout.jobs_at - layout.window * len(layout.job_features)

    def parted(self, observations: Tensor) -> Tensor | Filled:
        """Return observations in whichever form the layer is quicker with."""
        is_plain = observations.device.type == "cpu" and observations.dtype == torch.float32
        if not is_plain or len(observations) < MANY:
            return observations
        found = parted(observations, self.front, self.after)
        return observations if found is None else found

    def forward(self, observations: Tensor | Filled) -> Tensor:
        """Apply the layer; the weights of what the observations lack do not count."""
        weight = self.weight
        if isinstance(observations, Filled):
            parts = observations.shown, observations.rows, observations.tail
            apply: Any = FilledLinear.apply
            sums: Tensor = apply(*parts, weight, self.bias, self.after)
            return sums
        shown = observations.shape[1]
        if shown < self.in_features:
            split = shown - self.after
            weight = torch.cat([weight[:, :split], weight[:, self.in_features - self.after :]], 1)
        return nn.functional.linear(observations, weight, self.bias)


def flat_layers(
    settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator
) -> nn.Sequential:
    """Return hidden layers over all numbers of an observation."""
    layers = hidden_layers((layout.length, *settings.hidden), dice)
    first = layers[0]
    if isinstance(first, Linear) and isinstance(layout, Layout):
        layers[0] = FlatLinear(layout, first)
    return layers


class MLPBody(Body):
    """Hidden layers over all numbers of the observation at once."""

    is_per_action = False

    def __init__(self, settings: NetworkSettings, layout: AnyLayout, dice: torch.Generator) -> None:
        super().__init__()
        self.parts = parts_of(layout)
        self.width = settings.hidden[-1]
        self.layers = flat_layers(settings, layout, dice)

    def forward(self, observations: Tensor) -> Tensor:
        """Return one embedding per observation."""
        embeddings: Tensor = self.layers(observations)
        return embeddings
