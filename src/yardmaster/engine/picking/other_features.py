"""The observations of other schedulers' programs, number by number as they define them."""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.core.room import fits
from yardmaster.engine.picking.line import at_place, gpus_of, known_run_s
from yardmaster.engine.picking.lookahead import show_gpus
from yardmaster.engine.picking.places import (
    EPISODE_SPAN_S,
    FACTS,
    GLOBALS_AT,
    LINE_LENGTH,
    LONGEST_S,
    PRIORITY,
    SHOWN,
    TOKEN,
    TOKENS_AT,
    WINDOW,
)
from yardmaster.engine.state import (
    FREE_GPUS,
    GPUS,
    JOB_SHAPE,
    JOBS,
    LEVEL_COUNT,
    LEVELS,
    NODE_FIRST_GPU,
    NODE_FREE,
    NODE_TYPE,
    NODES,
    NOW,
    SHAPE_TYPES,
    SUBMIT,
    Ints,
    Reals,
)

GPU_OPTIMIZER_JOB = ("duration", "priority", "gpus", "wait")
GPU_OPTIMIZER_GLOBALS = ("idle", "busy")
DRL_SCHEDULER_JOB = ("priority", "flops", "gpus", "run_time")
DRL_SCHEDULER_GLOBALS = ("free", "waiting")
RLTUNE_JOB = ("wait", "gpus", "share_of_free", "room_left", "partly_used", "ways", "can_run")

ALMOST_ONE = 1.0 - 1e-5
HALF_DAY_S = 43_200.0
FLOPS_PER_GPU_S = 1e12
FLOPS_SCALE = 5e12


@kernel
def show_gpu_optimizer(
    ints: Ints, reals: Reals, rules: Ints, scales: Reals, facts: Reals, book: Ints, view: Reals
) -> None:
    """Write the observation of system gpu-optimizer: 4 numbers per job, the GPUs, idle and busy."""
    shown = min(book[LINE_LENGTH], rules[WINDOW])
    at = rules[TOKENS_AT]
    for place in range(shown):
        job = at_place(book, place)
        wait_s = reals[NOW] - reals[ints[SUBMIT] + job]
        view[at] = min(known_run_s(rules, facts, job) / scales[LONGEST_S], 1.0)
        view[at + 1] = facts[FACTS + PRIORITY * ints[JOBS] + job] / 10.0
        view[at + 2] = gpus_of(ints, job) / float(ints[GPUS])
        view[at + 3] = min(wait_s / facts[EPISODE_SPAN_S], 1.0)
        at += rules[TOKEN]
    _blank(rules, book, view, at, shown, 0.0)
    show_gpus(ints, reals, rules, scales, view)
    view[rules[GLOBALS_AT]] = ints[FREE_GPUS] / float(ints[GPUS])
    view[rules[GLOBALS_AT] + 1] = 1.0 - ints[FREE_GPUS] / float(ints[GPUS])


@kernel
def show_drl_scheduler(
    ints: Ints, rules: Ints, scales: Reals, facts: Reals, book: Ints, view: Reals
) -> None:
    """Write the observation of system DRL_Scheduler; the queue's length may pass 1."""
    shown = min(book[LINE_LENGTH], rules[WINDOW])
    at, gpus = rules[TOKENS_AT], float(ints[GPUS])
    for place in range(shown):
        job = at_place(book, place)
        run_s = known_run_s(rules, facts, job)
        flops = run_s * gpus_of(ints, job) * FLOPS_PER_GPU_S
        view[at] = facts[FACTS + PRIORITY * ints[JOBS] + job] / 5.0
        view[at + 1] = min(flops / FLOPS_SCALE, 1.0)
        view[at + 2] = gpus_of(ints, job) / gpus
        view[at + 3] = min(run_s, scales[LONGEST_S]) / scales[LONGEST_S]
        at += rules[TOKEN]
    _blank(rules, book, view, at, shown, 0.0)
    view[0] = ints[FREE_GPUS] / gpus
    view[at_end(rules)] = book[LINE_LENGTH] / 200.0


@hot_kernel
def at_end(rules: Ints) -> int:
    """Return the place just behind the tokens."""
    return rules[TOKENS_AT] + rules[WINDOW] * rules[TOKEN]


@hot_kernel
def _blank(rules: Ints, book: Ints, view: Reals, at: int, shown: int, value: float) -> None:
    """Blank the tokens behind the last one that held a job before."""
    for blank in range(at, rules[TOKENS_AT] + book[SHOWN] * rules[TOKEN]):
        view[blank] = value
    book[SHOWN] = shown


@kernel
def show_rltune(ints: Ints, reals: Reals, rules: Ints, book: Ints, view: Reals) -> None:
    """Write the observation of RLTune: 7 numbers per job, none of which tells a run time.

    A job's pool is the nodes of the GPU types it may use.
    """
    shown = min(book[LINE_LENGTH], rules[WINDOW])
    at = rules[TOKENS_AT]
    for place in range(shown):
        _show_rltune_job(ints, reals, book, view, at_place(book, place), at, shown)
        at += rules[TOKEN]
    for blank in range(shown, rules[WINDOW]):
        for index in range(7):
            is_between = 0 < index < 6
            view[rules[TOKENS_AT] + blank * rules[TOKEN] + index] = 1.0 if is_between else 0.0
    book[SHOWN] = shown


@kernel
def _show_rltune_job(
    ints: Ints, reals: Reals, book: Ints, view: Reals, job: int, at: int, shown: int
) -> None:
    shape = ints[ints[JOB_SHAPE] + job]
    types = ints[ints[SHAPE_TYPES] + shape]
    gpus = gpus_of(ints, job)
    free, capacity, largest, partly, nodes = 0, 0, 1, 0, 0
    for node in range(ints[NODES]):
        if (types >> ints[ints[NODE_TYPE] + node]) & 1 == 1:
            here, left = _node_gpus(ints, node), ints[ints[NODE_FREE] + node]
            free += left
            capacity += here
            largest = max(largest, here)
            nodes += 1
            partly += 1 if 0 < left < here else 0
    demand = 0
    for place in range(shown):
        other = at_place(book, place)
        if other != job and ints[ints[SHAPE_TYPES] + ints[ints[JOB_SHAPE] + other]] & types != 0:
            demand += gpus_of(ints, other)
    can_run = fits(ints, shape)
    ways = _ways(ints, types, gpus, largest) if can_run else 0
    wait_s = reals[NOW] - reals[ints[SUBMIT] + job]
    view[at] = min(wait_s / HALF_DAY_S, ALMOST_ONE)
    view[at + 1] = min(gpus / float(largest), ALMOST_ONE)
    view[at + 2] = min(gpus / float(max(free, 1)) / capacity, ALMOST_ONE)
    room = (free - gpus) - demand + capacity
    view[at + 3] = min(max(room / (2.0 * capacity), 0.0), ALMOST_ONE)
    view[at + 4] = min(partly / float(max(nodes, 1)), ALMOST_ONE)
    view[at + 5] = min(ways / 3.0, ALMOST_ONE)
    view[at + 6] = ALMOST_ONE if can_run else 1e-5


@hot_kernel
def _node_gpus(ints: Ints, node: int) -> int:
    after = ints[ints[NODE_FIRST_GPU] + node + 1] if node + 1 < ints[NODES] else ints[GPUS]
    return after - ints[ints[NODE_FIRST_GPU] + node]


@kernel
def _ways(ints: Ints, types: int, gpus: int, largest: int) -> int:
    """Return 2 if the fewest nodes possible offer a choice, else 1, plus 1 if one more helps.

    One more node helps if the gang then leaves no more nodes partly used than before.
    """
    nodes = -(-gpus // largest)
    if nodes > 1:
        best, next_best = _largest_free(ints, types, nodes, 0), _largest_free(ints, types, nodes, 1)
        ways = 2 if next_best >= gpus else (1 if best >= gpus else 0)
        return ways + (1 if _largest_free(ints, types, nodes + 1, 0) >= gpus else 0)
    options = _nodes_with(ints, types, gpus, ints[LEVELS] - 1)
    ways = 2 if options > 1 else options
    return ways + (1 if gpus > 1 and _splits_well(ints, types, gpus) else 0)


@kernel
def _nodes_with(ints: Ints, types: int, low: int, high: int) -> int:
    """Count the nodes of the pool with so many GPUs free."""
    total = 0
    for kind in range(32):
        if (types >> kind) & 1 == 1:
            for free in range(low, high + 1):
                total += ints[ints[LEVEL_COUNT] + kind * ints[LEVELS] + free]
    return total


@kernel
def _largest_free(ints: Ints, types: int, count: int, skipped: int) -> int:
    """Sum the free GPUs of the `count` emptiest nodes; with `skipped` the next one for the last."""
    total, taken = 0, 0
    for free in range(ints[LEVELS] - 1, 0, -1):
        for _ in range(_nodes_with(ints, types, free, free)):
            taken += 1
            if taken < count or taken == count + skipped:
                total += free
            if taken == count + skipped:
                return total
    return total


@kernel
def _splits_well(ints: Ints, types: int, gpus: int) -> bool:
    """Whether two nodes can share the gang so that no more nodes are partly used than before."""
    for one in range(ints[NODES]):
        left = ints[ints[NODE_FREE] + one]
        if left == 0 or (types >> ints[ints[NODE_TYPE] + one]) & 1 == 0:
            continue
        for two in range(one):
            right = ints[ints[NODE_FREE] + two]
            is_allowed = (types >> ints[ints[NODE_TYPE] + two]) & 1 == 1
            if right == 0 or not is_allowed or left + right < gpus:
                continue
            before = 1 if left < _node_gpus(ints, one) else 0
            before += 1 if right < _node_gpus(ints, two) else 0
            after = 1 if left < gpus or right < gpus else 2
            if left + right == gpus or after <= before:
                return True
    return False
