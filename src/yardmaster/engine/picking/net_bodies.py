"""What the bodies of networks make of an observation: an embedding per action.

Jobs that are not legal choices count only as far as the others look at them.
"""

from __future__ import annotations

from yardmaster.engine.compilation import kernel, spliced_kernel
from yardmaster.engine.picking.net_layers import (
    ZERO,
    add,
    add_products,
    apply,
    apply_hidden,
    attend,
    clear,
    copy,
    divide,
    gate,
    normalise,
    rounded,
    show,
)
from yardmaster.engine.picking.net_row import (
    ADD_GLOBALS,
    ARCHITECTURE,
    BIAS_AT,
    CHOSEN_AT,
    CHUNK,
    CONTEXT_AT,
    DIM,
    FEATURES,
    FIRST_AT,
    GLOBALS,
    GLOBALS_LIST,
    GPU,
    GPUS_AT,
    HIDDEN,
    HIDDEN_COUNT,
    INPUTS,
    IS_POOLED,
    JOB,
    JOBS_AT,
    LAST_NORM_AT,
    LAYER,
    MEAN_AT,
    NOOP_AT,
    NOOP_TOKEN_AT,
    OF_CONTEXT,
    OF_GLOBALS,
    OF_TOKEN,
    PLACES_AT,
    SECOND_AT,
    SINGLE,
    SLOTS,
    STATE_AT,
    TOKENS_AT,
    UNITS,
    WEIGHT_AT,
    WIDTH,
    WINDOW,
    Architecture,
)
from yardmaster.engine.state import Ints, Reals


@kernel
def look(net: Ints, weights: Reals, observation: Reals, legal: Ints, scratch: Reals) -> int:
    """Compute what does not depend on the action; return how many tokens there are to look at."""
    if net[ARCHITECTURE] == Architecture.CROSS_ATTENTION:
        return _look_at_gpus(net, weights, observation, legal, scratch)
    first, layer = net[FIRST_AT], net[OF_CONTEXT]
    clear(scratch, first, net[layer + INPUTS])
    _copy_globals(net, observation, scratch)
    copy(observation, net[GPUS_AT], scratch, first + net[GLOBALS], net[SLOTS])
    apply(net, layer, weights, scratch, first, net[SINGLE], net[CONTEXT_AT])
    if net[ARCHITECTURE] == Architecture.SELF_ATTENTION:
        return _look_at_jobs(net, weights, observation, legal, scratch)
    return 0


@kernel
def embed(
    net: Ints, weights: Reals, observation: Reals, scratch: Reals, rows: int, seen: int
) -> None:
    """Leave the embeddings of the chosen actions in the first rows."""
    if net[ARCHITECTURE] == Architecture.CROSS_ATTENTION:
        _embed_among_gpus(net, weights, observation, scratch, rows, seen)
        return
    first, second, layer = net[FIRST_AT], net[SECOND_AT], net[OF_TOKEN]
    inputs, units, chosen = net[layer + INPUTS], net[layer + UNITS], net[CHOSEN_AT]
    action, last = int(scratch[chosen]), int(scratch[chosen + rows - 1])
    given, source = scratch, first
    if net[ARCHITECTURE] == Architecture.SELF_ATTENTION:
        for row in range(rows):
            place = int(scratch[net[PLACES_AT] + int(scratch[chosen + row])])
            copy(scratch, net[TOKENS_AT] + place * inputs, scratch, first + row * inputs, inputs)
        attend(net, weights, scratch, rows, seen)
    elif last - action == rows - 1 and last < net[WINDOW]:
        # Jobs that stand side by side are read where they are.
        given, source = observation, net[JOBS_AT] + action * inputs
    else:
        _copy_features(net, observation, scratch, rows, inputs)
    context, matrix = net[CONTEXT_AT], net[layer + WEIGHT_AT]
    add_products(
        scratch, context, 0, weights, matrix, given, source, inputs, rows, scratch, second, units
    )
    if net[ARCHITECTURE] == Architecture.KERNEL and last == net[WINDOW]:
        to = second + (rows - 1) * units
        for unit in range(units):
            scratch[to + unit] += weights[net[NOOP_AT] + unit]
    gate(scratch, second, first, rows * units)
    apply_hidden(net, net[HIDDEN], net[HIDDEN_COUNT], weights, scratch, rows)


@kernel
def counts(net: Ints, observation: Reals, action: int) -> bool:
    """Whether the action stands for something: the no-op, or a job token that is not all 0."""
    if action == net[WINDOW]:
        return True
    token = net[JOBS_AT] + action * net[FEATURES]
    filled = 0
    for index in range(token, token + net[FEATURES]):
        filled += int(observation[index] != ZERO)
    return filled > 0


@kernel
def _copy_globals(net: Ints, observation: Reals, scratch: Reals) -> None:
    """Copy the globals to the first row."""
    for index in range(net[GLOBALS]):
        scratch[net[FIRST_AT] + index] = observation[net[net[GLOBALS_LIST] + index]]


@spliced_kernel
def _look_at_jobs(
    net: Ints, weights: Reals, observation: Reals, legal: Ints, scratch: Reals
) -> int:
    """Make the tokens of the no-op, of all jobs, and last of legal actions without a job."""
    width, tokens, window = net[net[JOB] + LAYER + UNITS], net[TOKENS_AT], net[WINDOW]
    copy(weights, net[NOOP_AT], scratch, tokens, width)
    scratch[net[PLACES_AT] + window] = 0
    made = seen = net[SINGLE]
    for is_seen in range(1, -1, -1):
        action = 0
        while action < window:
            rows = 0
            while action < window and rows < CHUNK:
                is_job = counts(net, observation, action)
                if (is_job and is_seen == 1) or (
                    not is_job and is_seen == 0 and legal[action] != 0
                ):
                    scratch[net[CHOSEN_AT] + rows] = action
                    scratch[net[PLACES_AT] + action] = made + rows
                    rows += 1
                action += 1
            if rows > 0:
                _make_tokens(net, weights, observation, scratch, rows, tokens + made * width)
                made += rows
        if is_seen == 1:
            seen = made
            made = rounded(seen)  # up to there, `show` puts zeros
    show(net, scratch, seen, width)
    return seen


@kernel
def _copy_features(net: Ints, observation: Reals, scratch: Reals, rows: int, room: int) -> None:
    """Copy the job tokens of the chosen actions to the first rows; the no-op's is all 0."""
    features = net[FEATURES]
    for row in range(rows):
        action, to = int(scratch[net[CHOSEN_AT] + row]), net[FIRST_AT] + row * room
        filled = features if action < net[WINDOW] else 0
        copy(observation, net[JOBS_AT] + action * features, scratch, to, filled)
        clear(scratch, to + filled, room - filled)


@kernel
def _make_tokens(
    net: Ints, weights: Reals, observation: Reals, scratch: Reals, rows: int, target: int
) -> None:
    """Make tokens of what is known of the chosen jobs."""
    _copy_features(net, observation, scratch, rows, net[net[JOB] + INPUTS])
    apply_hidden(net, net[JOB], net[SINGLE], weights, scratch, rows)
    apply(net, net[JOB] + LAYER, weights, scratch, net[FIRST_AT], rows, target)


@spliced_kernel
def _look_at_gpus(
    net: Ints, weights: Reals, observation: Reals, legal: Ints, scratch: Reals
) -> int:
    """Make the tokens of GPU slots, of the globals, and of the no-op if it is legal."""
    layer, tokens, width = net[GPU], net[TOKENS_AT], net[net[GPU] + UNITS]
    for slot in range(net[SLOTS]):
        value = observation[net[GPUS_AT] + slot]
        to = tokens + slot * width
        for unit in range(width):
            raw = (
                weights[net[layer + BIAS_AT] + unit]
                + value * weights[net[layer + WEIGHT_AT] + unit]
            )
            scratch[to + unit] = max(ZERO, raw)
    show(net, scratch, net[SLOTS], width)
    if net[GLOBALS] > 0:
        layer = net[OF_GLOBALS]
        clear(scratch, net[FIRST_AT], net[layer + INPUTS])
        _copy_globals(net, observation, scratch)
        apply_hidden(net, layer, net[SINGLE], weights, scratch, net[SINGLE])
        apply(net, layer + LAYER, weights, scratch, net[FIRST_AT], net[SINGLE], net[STATE_AT])
        apply(net, net[ADD_GLOBALS], weights, scratch, net[STATE_AT], net[SINGLE], net[CONTEXT_AT])
    if legal[net[WINDOW]] != 0 or net[IS_POOLED] == 1:
        _make_noop(net, weights, observation, scratch)
    return int(net[SLOTS])


@spliced_kernel
def _make_noop(net: Ints, weights: Reals, observation: Reals, scratch: Reals) -> None:
    """Make the no-op's token: the mean of the mean job, the mean GPU slot and the globals.

    A mean of tokens is the token of the mean, from the layer on that has no ReLU.
    """
    first, noop, mean = net[FIRST_AT], net[NOOP_TOKEN_AT], net[MEAN_AT]
    width = net[net[JOB] + LAYER + UNITS]
    hidden = net[net[GPU] + UNITS]
    clear(scratch, mean, hidden)
    for slot in range(net[SLOTS]):
        add(scratch, net[TOKENS_AT] + slot * hidden, mean, hidden)
    divide(scratch, mean, hidden, net[SLOTS])
    apply(net, net[GPU] + LAYER, weights, scratch, mean, net[SINGLE], noop)
    if _average_jobs(net, weights, observation, scratch) > 0:
        apply(net, net[JOB] + LAYER, weights, scratch, mean, net[SINGLE], first)
        add(scratch, first, noop, width)
    parts = 2
    if net[GLOBALS] > 0:
        add(scratch, net[STATE_AT], noop, width)
        parts = 3
    divide(scratch, noop, width, parts)


@spliced_kernel
def _average_jobs(net: Ints, weights: Reals, observation: Reals, scratch: Reals) -> int:
    """Average what the first layer makes of all jobs; return how many there are."""
    mean, layer, hidden, jobs = net[MEAN_AT], net[JOB], net[net[JOB] + UNITS], 0
    clear(scratch, mean, hidden)
    action = 0
    while action < net[WINDOW]:
        rows = 0
        while action < net[WINDOW] and rows < CHUNK:
            if counts(net, observation, action):
                scratch[net[CHOSEN_AT] + rows] = action
                rows += 1
            action += 1
        _copy_features(net, observation, scratch, rows, net[layer + INPUTS])
        apply_hidden(net, layer, net[SINGLE], weights, scratch, rows)
        for row in range(rows):
            add(scratch, net[FIRST_AT] + row * hidden, mean, hidden)
        jobs += rows
    divide(scratch, mean, hidden, max(jobs, 1))
    return jobs


@spliced_kernel
def _embed_among_gpus(
    net: Ints, weights: Reals, observation: Reals, scratch: Reals, rows: int, seen: int
) -> None:
    """Leave the embeddings of the chosen actions, having looked at GPU slots, in the first rows."""
    first, second, width = net[FIRST_AT], net[SECOND_AT], net[WIDTH]
    _make_tokens(net, weights, observation, scratch, rows, second)
    if int(scratch[net[CHOSEN_AT] + rows - 1]) == net[WINDOW]:
        copy(scratch, net[NOOP_TOKEN_AT], scratch, second + (rows - 1) * width, width)
    copy(scratch, second, scratch, first, rows * width)
    attend(net, weights, scratch, rows, seen)
    for row in range(rows):
        to = first + row * width
        if net[GLOBALS] > 0:
            add(scratch, net[CONTEXT_AT], to, width)
        normalise(weights, net[LAST_NORM_AT], scratch, to, net[DIM], width)
