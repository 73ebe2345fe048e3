"""A learned policy's preferences for one observation.

Only legal actions are scored, in chunks; what the other jobs and the state contribute is computed
once. The arithmetic is in `net_layers`, the rows are described in `net_row`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yardmaster.engine.compilation import bare, entry_point, kernel, spliced_kernel
from yardmaster.engine.picking.net_bodies import counts, embed, look
from yardmaster.engine.picking.net_layers import (
    add,
    add_filled_products,
    add_products,
    apply,
    apply_hidden,
    clear,
    copy,
    divide,
    dot,
    gate,
    single,
    to_shares,
)
from yardmaster.engine.picking.net_row import (
    ARCHITECTURE,
    BIAS_AT,
    BY_MAJORITY,
    CHOSEN_AT,
    CHUNK,
    FIRST_AT,
    HEAD,
    HEAD_COUNT,
    HIDDEN,
    HIDDEN_COUNT,
    INPUTS,
    IS_POOLED,
    LAST,
    LAYER,
    LENGTH,
    NOOP_BIAS_AT,
    NUMBERS_AT,
    OUTPUTS,
    POOL_AT,
    SECOND_AT,
    SINGLE,
    STATE,
    STATE_COUNT,
    SUPPORT_AT,
    UNITS,
    WEIGHT_AT,
    WIDTH,
    WINDOW,
    Architecture,
)
from yardmaster.engine.state import Ints, Reals

LOWEST = single(-np.inf)


@entry_point
def score_one(
    net: Ints, weights: Reals, observation: Reals, legal: Ints, scores: Reals, scratch: Reals
) -> None:
    """Score the actions of one observation: see `score`."""
    score(bare(net), bare(weights), bare(observation), bare(legal), bare(scores), bare(scratch))


@entry_point
def score_many(
    net: Any, weights: Any, observations: Any, legal: Any, scores: Any, scratch: Any
) -> None:
    """Score the actions of many observations, one after another: see `score`."""
    for row in range(len(scores)):
        score(
            bare(net),
            bare(weights),
            bare(observations[row]),
            bare(legal[row]),
            bare(scores[row]),
            bare(scratch),
        )


@kernel
def score(
    net: Ints, weights: Reals, observation: Reals, legal: Ints, scores: Reals, scratch: Reals
) -> None:
    """Write the network's preference for every legal action, and −inf for all others."""
    for action in range(net[WINDOW] + 1):
        scores[action] = LOWEST
    if net[ARCHITECTURE] == Architecture.MLP:
        _score_at_once(net, weights, observation, legal, scores, scratch)
    else:
        _score_in_chunks(net, weights, observation, legal, scores, scratch)
    if net[OUTPUTS] > 1:
        _expect(net, weights, legal, scores, scratch)
    if net[BY_MAJORITY] == 1 and legal[net[WINDOW]] != 0:
        _demand_majority(net, legal, scores)


@spliced_kernel
def _demand_majority(net: Ints, legal: Ints, scores: Reals) -> None:
    """Lower the no-op's score by what all jobs together weigh more than the best of them."""
    window, best = net[WINDOW], LOWEST
    for action in range(window):
        if legal[action] != 0 and scores[action] > best:
            best = scores[action]
    if best == LOWEST:
        return
    total = 0.0
    for action in range(window):
        if legal[action] != 0:
            total += math.exp(scores[action] - best)
    scores[window] -= math.log(total)


@spliced_kernel
def _score_at_once(
    net: Ints, weights: Reals, observation: Reals, legal: Ints, scores: Reals, scratch: Reals
) -> None:
    """Score all actions from one embedding of the whole observation."""
    first, second, last, width = net[FIRST_AT], net[SECOND_AT], net[LAST], net[WIDTH]
    clear(scratch, first, net[net[HIDDEN] + INPUTS])
    copy(observation, 0, scratch, first, net[LENGTH])
    if net[HIDDEN_COUNT] > 0:
        layer = net[HIDDEN]
        inputs, units = net[layer + INPUTS], net[layer + UNITS]
        bias, matrix = net[layer + BIAS_AT], net[layer + WEIGHT_AT]
        add_filled_products(weights, bias, matrix, scratch, first, inputs, second, units)
        gate(scratch, second, first, units)
        apply_hidden(net, layer + LAYER, net[HIDDEN_COUNT] - 1, weights, scratch, net[SINGLE])
    if net[IS_POOLED] == 1:
        copy(scratch, first, scratch, net[POOL_AT], width)
    apply_hidden(net, net[HEAD], net[HEAD_COUNT], weights, scratch, net[SINGLE])
    if net[OUTPUTS] == 1:
        apply(net, last, weights, scratch, first, net[SINGLE], second)
        for action in range(net[WINDOW] + 1):
            if legal[action] != 0:
                scores[action] = scratch[second + action]
        return
    # With many atoms most of the work is the last layer: only the legal actions' part is done.
    inputs, units = net[last + INPUTS], net[last + UNITS]
    for action in range(net[WINDOW] + 1):
        if legal[action] != 0:
            to = net[NUMBERS_AT] + action * units
            bias = net[last + BIAS_AT] + action * units
            part = net[last + WEIGHT_AT] + action * inputs * units
            add_products(
                weights,
                bias,
                0,
                weights,
                part,
                scratch,
                first,
                inputs,
                net[SINGLE],
                scratch,
                to,
                units,
            )


@spliced_kernel
def _score_in_chunks(
    net: Ints, weights: Reals, observation: Reals, legal: Ints, scores: Reals, scratch: Reals
) -> None:
    """Score actions from an embedding of each."""
    seen = look(net, weights, observation, legal, scratch)
    is_pooled = net[IS_POOLED] == 1
    if is_pooled:
        clear(scratch, net[POOL_AT], net[WIDTH])
    chosen, window, counted = net[CHOSEN_AT], net[WINDOW], 0
    action = 0
    while action <= window:
        rows = 0
        while action <= window and rows < CHUNK:
            if legal[action] != 0 or (is_pooled and counts(net, observation, action)):
                scratch[chosen + rows] = action
                rows += 1
            action += 1
        if rows > 0:
            embed(net, weights, observation, scratch, rows, seen)
            if is_pooled:
                counted += _pool(net, observation, scratch, rows)
            _finish(net, weights, scores, scratch, rows)
    if is_pooled:
        divide(scratch, net[POOL_AT], net[WIDTH], counted)


@spliced_kernel
def _pool(net: Ints, observation: Reals, scratch: Reals, rows: int) -> int:
    """Add the embeddings of actions that stand for something to the pool; return their number."""
    width, counted = net[WIDTH], 0
    for row in range(rows):
        if counts(net, observation, int(scratch[net[CHOSEN_AT] + row])):
            add(scratch, net[FIRST_AT] + row * width, net[POOL_AT], width)
            counted += 1
    return counted


@spliced_kernel
def _finish(net: Ints, weights: Reals, scores: Reals, scratch: Reals, rows: int) -> None:
    """Turn the embeddings in the first rows into what comes out for the chosen actions."""
    first, second, last, window = net[FIRST_AT], net[SECOND_AT], net[LAST], net[WINDOW]
    apply_hidden(net, net[HEAD], net[HEAD_COUNT], weights, scratch, rows)
    inputs, units = net[last + INPUTS], net[last + UNITS]
    if net[OUTPUTS] == 1:
        for row in range(rows):
            action = int(scratch[net[CHOSEN_AT] + row])
            value = dot(weights, net[last + WEIGHT_AT], scratch, first + row * inputs, inputs)
            scores[action] = value + weights[net[last + BIAS_AT]]
            if action == window:
                scores[action] += weights[net[NOOP_BIAS_AT]]
        return
    apply(net, last, weights, scratch, first, rows, second)
    for row in range(rows):
        action = int(scratch[net[CHOSEN_AT] + row])
        to = net[NUMBERS_AT] + action * units
        copy(scratch, second + row * units, scratch, to, units)
        if action == window:
            for index in range(net[OUTPUTS]):
                scratch[to + index] += weights[net[NOOP_BIAS_AT] + index]


@spliced_kernel
def _expect(net: Ints, weights: Reals, legal: Ints, scores: Reals, scratch: Reals) -> None:
    """Score every legal action by the expectation of its distribution."""
    outputs, numbers, second = net[OUTPUTS], net[NUMBERS_AT], net[SECOND_AT]
    units = net[net[LAST] + UNITS]
    clear(scratch, second, units)
    if net[IS_POOLED] == 1:
        _compare(net, weights, legal, scratch)
    for action in range(net[WINDOW] + 1):
        if legal[action] != 0:
            at = numbers + action * units
            add(scratch, second, at, outputs)
            to_shares(scratch, at, outputs)
            scores[action] = dot(weights, net[SUPPORT_AT], scratch, at, units)


@spliced_kernel
def _compare(net: Ints, weights: Reals, legal: Ints, scratch: Reals) -> None:
    """Put into the second row the state's numbers less the mean of the legal actions'."""
    first, second, units = net[FIRST_AT], net[SECOND_AT], net[net[LAST] + UNITS]
    hidden = net[STATE_COUNT] - 1
    copy(scratch, net[POOL_AT], scratch, first, net[WIDTH])
    apply_hidden(net, net[STATE], hidden, weights, scratch, net[SINGLE])
    apply(net, net[STATE] + hidden * LAYER, weights, scratch, first, net[SINGLE], second)
    number = 0
    clear(scratch, first, units)
    for action in range(net[WINDOW] + 1):
        if legal[action] != 0:
            add(scratch, net[NUMBERS_AT] + action * units, first, units)
            number += 1
    for index in range(units):
        scratch[second + index] -= scratch[first + index] / single(max(number, 1))
