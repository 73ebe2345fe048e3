"""The forward pass of a chooser's network, without any library.

All arithmetic is in 32-bit floats and in a fixed order, so that the same weights prefer the same
scheduler on every machine. The network is a chain of dense layers; an encoder may stand before it,
whose layers turn the recent past into an embedding that takes the past's place in the observation.

`net` holds: layers of the encoder, layers behind it, numbers of now, numbers of the recent past,
then for each layer its inputs, its units and where its weights (inputs × units, then biases) begin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from yardmaster.engine.compilation import bare, entry_point, kernel
from yardmaster.engine.state import Ints, Reals

ENCODER = 0
LAYERS = 1
NOW_LENGTH = 2
PAST_LENGTH = 3
NET_HEADER = 4
LAYER_FIELDS = 3
"""Inputs, units, and where the weights begin."""

single: Any = np.float32
ZERO = single(0.0)


@kernel
def _dense(
    weights: Reals, at: int, inputs: int, units: int, scratch: Reals, source: int, target: int
) -> None:
    """Put into the target what a layer makes of the source, negative or not."""
    biases = at + inputs * units
    for unit in range(units):
        scratch[target + unit] = weights[biases + unit]
    for index in range(inputs):
        value = scratch[source + index]
        if value != ZERO:
            row = at + index * units
            for unit in range(units):
                scratch[target + unit] += value * weights[row + unit]


@kernel
def _gate(scratch: Reals, at: int, size: int) -> None:
    """Set negative numbers to 0."""
    for index in range(at, at + size):
        scratch[index] = max(ZERO, scratch[index])


@kernel
def score(net: Ints, weights: Reals, view: Reals, scores: Reals, scratch: Reals) -> None:
    """Write the network's preference for every scheduler of the menu."""
    now, past = net[NOW_LENGTH], net[PAST_LENGTH]
    source = 0
    place = NET_HEADER
    for index in range(past):
        scratch[index] = view[now + index]
    size = past
    free = past
    for _layer in range(net[ENCODER]):
        units = net[place + 1]
        _dense(weights, net[place + 2], net[place], units, scratch, source, free)
        _gate(scratch, free, units)
        source, size, free = free, units, free + units
        place += LAYER_FIELDS
    # What follows the encoder sees the numbers of now, then the embedding.
    for index in range(now):
        scratch[free + index] = view[index]
    for index in range(size):
        scratch[free + now + index] = scratch[source + index]
    source, free = free, free + now + size
    for layer in range(net[LAYERS]):
        units = net[place + 1]
        _dense(weights, net[place + 2], net[place], units, scratch, source, free)
        if layer < net[LAYERS] - 1:
            _gate(scratch, free, units)
        source, free = free, free + units
        place += LAYER_FIELDS
        size = units
    for action in range(size):
        scores[action] = scratch[source + action]


@entry_point
def score_one(net: Any, weights: Any, view: Any, scores: Any, scratch: Any) -> None:
    """Write the network's preference for every scheduler of the menu; for callers in Python."""
    score(bare(net), bare(weights), bare(view), bare(scores), bare(scratch))
