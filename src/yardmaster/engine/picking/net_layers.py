"""Layers of a network over several rows at once, computed without any library.

All arithmetic is in 32-bit floats and in a fixed order, so that the same weights prefer the same
job on every machine. The innermost loops run over `LANES` units of a layer: compilers turn these
into wide instructions without changing any sum.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yardmaster.engine.compilation import hot_kernel, kernel, workbench
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
ROWS = 4
"""Rows that go through a layer together."""
WIDE = ROWS * LANES
"""Sums that fit into a processor's registers: of some units of these rows, or of more of one."""


@kernel
def add_products(
    begin: Reals,
    begin_at: int,
    step: int,
    weights: Reals,
    weight_at: int,
    given: Reals,
    source: int,
    inputs: int,
    rows: int,
    scratch: Reals,
    target: int,
    units: int,
) -> None:
    """Put into every target row a given row times a matrix, inputs × units, added to a row.

    That row stands at `begin_at` for the first, `step` further for the next; with a step of 0 it is
    the same for all. Rows go by fours, so that weights are fetched a quarter as often, and the
    others by themselves. Every sum is built input by input in either case: equal rows have equal
    results.
    """
    fours = rows - rows % ROWS
    for row in range(0, fours, ROWS):
        b, x, to = begin_at + row * step, source + row * inputs, target + row * units
        for u in range(0, units, LANES):
            _fill_rows(
                begin,
                b + u,
                step,
                weights,
                weight_at + u,
                given,
                x,
                inputs,
                scratch,
                to + u,
                units,
            )
    wide = units - units % WIDE
    for row in range(fours, rows):
        b, x, to = begin_at + row * step, source + row * inputs, target + row * units
        for u in range(0, wide, WIDE):
            _fill_wide(
                begin, b + u, weights, weight_at + u, given, x, inputs, scratch, to + u, units
            )
        for u in range(wide, units, LANES):
            _fill_one(
                begin, b + u, weights, weight_at + u, given, x, inputs, scratch, to + u, units
            )


@hot_kernel
def _fill_rows(
    begin: Reals,
    b: int,
    step: int,
    weights: Reals,
    w: int,
    given: Reals,
    x: int,
    inputs: int,
    scratch: Reals,
    to: int,
    units: int,
) -> None:
    """Build the sums of some units of four rows."""
    sums = workbench()
    for row in range(ROWS):
        for lane in range(LANES):
            sums[row * LANES + lane] = begin[b + row * step + lane]
    x1, x2, x3 = x + inputs, x + 2 * inputs, x + 3 * inputs
    for index in range(inputs):
        x_0, x_1 = given[x + index], given[x1 + index]
        x_2, x_3 = given[x2 + index], given[x3 + index]
        for lane in range(LANES):
            weight = weights[w + index * units + lane]
            sums[lane] += x_0 * weight
            sums[LANES + lane] += x_1 * weight
            sums[2 * LANES + lane] += x_2 * weight
            sums[3 * LANES + lane] += x_3 * weight
    for row in range(ROWS):
        for lane in range(LANES):
            scratch[to + row * units + lane] = sums[row * LANES + lane]


@hot_kernel
def _fill_wide(
    begin: Reals,
    b: int,
    weights: Reals,
    w: int,
    given: Reals,
    x: int,
    inputs: int,
    scratch: Reals,
    to: int,
    units: int,
) -> None:
    """Build the sums of many units of one row: as many as some units of four rows."""
    sums = workbench()
    for lane in range(WIDE):
        sums[lane] = begin[b + lane]
    for index in range(inputs):
        value = given[x + index]
        for lane in range(WIDE):
            sums[lane] += value * weights[w + index * units + lane]
    for lane in range(WIDE):
        scratch[to + lane] = sums[lane]


@hot_kernel
def _fill_one(
    begin: Reals,
    b: int,
    weights: Reals,
    w: int,
    given: Reals,
    x: int,
    inputs: int,
    scratch: Reals,
    to: int,
    units: int,
) -> None:
    """Build the sums of some units of one row."""
    sums = workbench()
    for lane in range(LANES):
        sums[lane] = begin[b + lane]
    for index in range(inputs):
        value = given[x + index]
        for lane in range(LANES):
            sums[lane] += value * weights[w + index * units + lane]
    for lane in range(LANES):
        scratch[to + lane] = sums[lane]


@kernel
def add_filled_products(
    weights: Reals,
    begin_at: int,
    weight_at: int,
    scratch: Reals,
    source: int,
    inputs: int,
    target: int,
    units: int,
) -> None:
    """Do what `add_products` does for one row, and pass over inputs of 0.

    They add nothing, and are most of an observation whose queue is shorter than the window.
    """
    wide = units - units % WIDE
    for u in range(0, wide, WIDE):
        sums = workbench()
        for lane in range(WIDE):
            sums[lane] = weights[begin_at + u + lane]
        for index in range(inputs):
            value, w = scratch[source + index], weight_at + u + index * units
            if value != ZERO:
                for lane in range(WIDE):
                    sums[lane] += value * weights[w + lane]
        for lane in range(WIDE):
            scratch[target + u + lane] = sums[lane]
    for u in range(wide, units, LANES):
        sums = workbench()
        for lane in range(LANES):
            sums[lane] = weights[begin_at + u + lane]
        for index in range(inputs):
            value, w = scratch[source + index], weight_at + u + index * units
            if value != ZERO:
                for lane in range(LANES):
                    sums[lane] += value * weights[w + lane]
        for lane in range(LANES):
            scratch[target + u + lane] = sums[lane]


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


@hot_kernel
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
    bias, matrix, inputs = net[layer + BIAS_AT], net[layer + WEIGHT_AT], net[layer + INPUTS]
    units = net[layer + UNITS]
    add_products(
        weights, bias, 0, weights, matrix, scratch, source, inputs, rows, scratch, target, units
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


@hot_kernel
def dot(weights: Reals, weight_at: int, scratch: Reals, at: int, size: int) -> float:
    """Return the sum of products of two rows, as many sums that do not wait for each other."""
    sums = workbench()
    for lane in range(LANES):
        sums[lane] = ZERO
    for index in range(0, size, LANES):
        for lane in range(LANES):
            sums[lane] += weights[weight_at + index + lane] * scratch[at + index + lane]
    for lane in range(LANES // 2):
        sums[lane] += sums[LANES // 2 + lane]
    for lane in range(LANES // 4):
        sums[lane] += sums[LANES // 4 + lane]
    total: float = (sums[0] + sums[2]) + (sums[1] + sums[3])
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
    keys = net[TURNED_AT]
    add_products(
        scratch,
        likeness,
        room,
        scratch,
        keys,
        scratch,
        second,
        looked,
        rows,
        scratch,
        likeness,
        room,
    )
    for row in range(rows):
        to_shares(scratch, likeness + row * room, seen)  # beyond them, 0 stays 0
    clear(scratch, second, rows * looked)
    tokens = net[TOKENS_AT]
    add_products(
        scratch,
        second,
        looked,
        scratch,
        tokens,
        scratch,
        likeness,
        room,
        rows,
        scratch,
        second,
        looked,
    )
    for row in range(rows):
        to = first + row * width
        for index in range(width):
            scratch[to + index] += weights[net[found + BIAS_AT] + index]
    values = net[found + WEIGHT_AT]
    add_products(
        scratch, first, width, weights, values, scratch, second, looked, rows, scratch, first, width
    )
    for row in range(rows):
        normalise(weights, net[NORM_AT], scratch, first + row * width, net[DIM], width)
