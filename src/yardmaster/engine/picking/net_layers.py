"""Layers of a network over several rows at once, computed without any library.

All arithmetic is in 32-bit floats and in a fixed order, so that the same weights prefer the same
job on every machine. The innermost loops run over the units of a layer: compilers turn these into
wide instructions without changing any sum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yardmaster.engine.compilation import kernel
from yardmaster.engine.picking.net_row import (
    BIAS_AT,
    DIM,
    FIRST_AT,
    FOUND,
    INPUTS,
    LANES,
    LAYER,
    LIKENESS_AT,
    NORM_AT,
    QUERY,
    SECOND_AT,
    TOKENS_AT,
    TURNED_AT,
    UNITS,
    WEIGHT_AT,
)
from yardmaster.engine.state import Ints, Reals

single: Any = np.float32
"""Rounds to 32 bits: what is not said to have 32 bits would be computed in 64."""
ZERO = single(0.0)
ONE = single(1.0)
TINY = single(1e-5)
"""Keeps the division in a normalisation from dividing by 0."""


@kernel
def add_products(
    weights: Reals,
    weight_at: int,
    scratch: Reals,
    source: int,
    inputs: int,
    rows: int,
    target: int,
    units: int,
) -> None:
    """Add to every target row the source row times a matrix, inputs × units.

    Eight inputs at a time, so that sums are fetched and put back an eighth as often.
    """
    for first in range(0, inputs, LANES):
        w0 = weight_at + first * units
        w1 = w0 + units
        w2 = w1 + units
        w3 = w2 + units
        w4 = w3 + units
        w5 = w4 + units
        w6 = w5 + units
        w7 = w6 + units
        for row in range(rows):
            x = source + row * inputs + first
            x0, x1, x2, x3 = scratch[x], scratch[x + 1], scratch[x + 2], scratch[x + 3]
            x4, x5, x6, x7 = scratch[x + 4], scratch[x + 5], scratch[x + 6], scratch[x + 7]
            to = target + row * units
            for unit in range(units):
                low = (x0 * weights[w0 + unit] + x1 * weights[w1 + unit]) + (
                    x2 * weights[w2 + unit] + x3 * weights[w3 + unit]
                )
                high = (x4 * weights[w4 + unit] + x5 * weights[w5 + unit]) + (
                    x6 * weights[w6 + unit] + x7 * weights[w7 + unit]
                )
                scratch[to + unit] = (scratch[to + unit] + low) + high


@kernel
def clear(scratch: Reals, at: int, size: int) -> None:
    """Set numbers to 0."""
    for index in range(at, at + size):
        scratch[index] = ZERO


@kernel
def copy(source: Reals, first: int, scratch: Reals, at: int, size: int) -> None:
    """Copy numbers."""
    for index in range(size):
        scratch[at + index] = source[first + index]


@kernel
def add(scratch: Reals, first: int, at: int, size: int) -> None:
    """Add numbers to others."""
    for index in range(size):
        scratch[at + index] += scratch[first + index]


@kernel
def gate(scratch: Reals, source: int, target: int, size: int) -> None:
    """Copy numbers, negative ones as 0."""
    for index in range(size):
        value = scratch[source + index]
        scratch[target + index] = max(ZERO, value)


@kernel
def apply(
    net: Ints, layer: int, weights: Reals, scratch: Reals, source: int, rows: int, target: int
) -> None:
    """Put into the target rows what a layer makes of the source rows, negative or not."""
    units = net[layer + UNITS]
    for row in range(rows):
        copy(weights, net[layer + BIAS_AT], scratch, target + row * units, units)
    add_products(
        weights, net[layer + WEIGHT_AT], scratch, source, net[layer + INPUTS], rows, target, units
    )


@kernel
def apply_hidden(
    net: Ints, layer: int, count: int, weights: Reals, scratch: Reals, rows: int
) -> None:
    """Send the first rows through layers with ReLU, and leave the result there."""
    first, second = net[FIRST_AT], net[SECOND_AT]
    for place in range(layer, layer + count * LAYER, LAYER):
        apply(net, place, weights, scratch, first, rows, second)
        gate(scratch, second, first, rows * net[place + UNITS])


@kernel
def dot(weights: Reals, weight_at: int, scratch: Reals, at: int, size: int) -> float:
    """Return the sum of products of two rows, as four sums that do not wait for each other."""
    sum0, sum1, sum2, sum3 = ZERO, ZERO, ZERO, ZERO
    for index in range(0, size, 4):
        sum0 += weights[weight_at + index] * scratch[at + index]
        sum1 += weights[weight_at + index + 1] * scratch[at + index + 1]
        sum2 += weights[weight_at + index + 2] * scratch[at + index + 2]
        sum3 += weights[weight_at + index + 3] * scratch[at + index + 3]
    total: float = (sum0 + sum1) + (sum2 + sum3)
    return total


@kernel
def normalise(weights: Reals, norm_at: int, scratch: Reals, at: int, dim: int, room: int) -> None:
    """Bring a token of `dim` numbers, rounded up to `room`, to mean 0 and variance 1; then scale.

    The scale and the shift of the numbers beyond `dim` are 0, and so are they afterwards.
    """
    total = ZERO
    for index in range(at, at + dim):
        total += scratch[index]
    mean = total / single(dim)
    total = ZERO
    for index in range(at, at + dim):
        difference = scratch[index] - mean
        total += difference * difference
    scale = ONE / single(math.sqrt(total / single(dim) + TINY))
    for index in range(room):
        value = (scratch[at + index] - mean) * scale
        scratch[at + index] = value * weights[norm_at + index] + weights[norm_at + room + index]


@kernel
def to_shares(scratch: Reals, at: int, size: int) -> None:
    """Turn numbers into shares of 1 by their exponentials."""
    highest = scratch[at]
    for index in range(at + 1, at + size):
        highest = max(highest, scratch[index])
    total = ZERO
    for index in range(at, at + size):
        share = single(math.exp(scratch[index] - highest))
        scratch[index] = share
        total += share
    for index in range(at, at + size):
        scratch[index] /= total


@kernel
def turn(scratch: Reals, at: int, rows: int, width: int, target: int, room: int) -> None:
    """Write a table of rows × width as width × room; columns beyond the rows are 0."""
    for column in range(width):
        for row in range(rows):
            scratch[target + column * room + row] = scratch[at + row * width + column]
        clear(scratch, target + column * room + rows, room - rows)


@kernel
def divide(scratch: Reals, at: int, size: int, by: int) -> None:
    """Divide numbers."""
    for index in range(at, at + size):
        scratch[index] /= single(by)


@kernel
def rounded(size: int) -> int:
    """Return the size rounded up to whole lanes."""
    return (size + LANES - 1) // LANES * LANES


@kernel
def show(net: Ints, scratch: Reals, seen: int, width: int) -> None:
    """Get the first `seen` tokens of the table ready to be looked at."""
    tokens, room = net[TOKENS_AT], rounded(seen)
    # Rows that only fill up a lane are multiplied by 0, which makes 0 only of numbers.
    clear(scratch, tokens + seen * width, (room - seen) * width)
    turn(scratch, tokens, seen, width, net[TURNED_AT], room)


@kernel
def attend(net: Ints, weights: Reals, scratch: Reals, rows: int, seen: int) -> None:
    """Add to each of the first rows what it finds among the tokens shown; then normalise it."""
    first, second, likeness = net[FIRST_AT], net[SECOND_AT], net[LIKENESS_AT]
    query, found = net[QUERY], net[FOUND]
    width, looked, room = net[found + UNITS], net[query + UNITS], rounded(seen)
    apply(net, query, weights, scratch, first, rows, second)
    clear(scratch, likeness, rows * room)
    add_products(scratch, net[TURNED_AT], scratch, second, looked, rows, likeness, room)
    for row in range(rows):
        to_shares(scratch, likeness + row * room, seen)  # beyond them, 0 stays 0
    clear(scratch, second, rows * looked)
    add_products(scratch, net[TOKENS_AT], scratch, likeness, room, rows, second, looked)
    for row in range(rows):
        to = first + row * width
        for index in range(width):
            scratch[to + index] += weights[net[found + BIAS_AT] + index]
    add_products(weights, net[found + WEIGHT_AT], scratch, second, looked, rows, first, width)
    for row in range(rows):
        normalise(weights, net[NORM_AT], scratch, first + row * width, net[DIM], width)
