"""What a policy sees, as plain Python: the observations of `ReferencePickJob`.

Every function returns numbers in the order of the observation; see `engine.picking` for the same,
compiled.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking.places import SHORT_S
from yardmaster.engine.picking.sight import LONGEST_S
from yardmaster.engine.reference.rules import Gang

if TYPE_CHECKING:
    from yardmaster.envs.reference.environment import ReferencePickJob

Floats = npt.NDArray[np.float32]
HALF_DAY_S = 43_200.0
ALMOST_ONE = 1.0 - 1e-5


def look(env: ReferencePickJob) -> Floats:
    """Return the observation of an environment."""
    numbers = {
        "standard": _standard,
        "gpu_optimizer": _gpu_optimizer,
        "drl_scheduler": _drl_scheduler,
        "rltune": _rltune,
    }[env.sight.features](env)
    return np.array(numbers, dtype=np.float32)


def _filled(env: ReferencePickJob, tokens: list[list[float]], blank: list[float]) -> list[float]:
    """Return the numbers of all tokens; places of the window without a job are blank."""
    tokens = tokens + [blank] * (env.sight.window - len(tokens))
    return [number for token in tokens for number in token]


def _squashed(seconds: float, unit_s: float) -> float:
    """Return seconds of any sign as a number between −1 and 1."""
    return seconds / (abs(seconds) + unit_s)


# The standard observation.


def _standard(env: ReferencePickJob) -> list[float]:
    tokens = [_token(env, row) + _ranks(env, row) for row in env.window]
    blank = [0.0] * (13 + len(env.rank_keys))
    return _filled(env, tokens, blank) + gpu_slots(env) + _globals(env)


def _token(env: ReferencePickJob, row: int) -> list[float]:
    """Return what is shown of one job."""
    gpus, total = float(env.workload.gpus[row]), env.cluster.gpus
    unit_s, wait_s = env.sight.time_unit_s, env.now_s - env.submit_s[row]
    knows = env.known_s is not None
    run_s = env.known_s[row] if env.known_s is not None else 0.0
    most_area = math.log1p(LONGEST_S * total)
    deadline_s = env.deadline_s[row]
    harmless, slack = _beside_the_reservation(env, row, run_s)
    return [
        1.0,
        min(math.log2(1.0 + gpus) / math.log2(1.0 + total), 1.0),
        min(gpus / total, 1.0),
        min(math.log1p(run_s) / math.log1p(LONGEST_S), 1.0) if knows else 0.0,
        min(math.log1p(run_s * gpus) / most_area, 1.0) if knows else 0.0,
        env.priority[row] / (1.0 + abs(env.priority[row])),
        wait_s / (wait_s + unit_s),
        wait_s / (wait_s + max(run_s, SHORT_S)) if knows else 0.0,
        float(env.fitting[row]),
        float(row == env.head),
        float(harmless),
        slack,
        0.0 if math.isnan(deadline_s) else _squashed(deadline_s - env.now_s - run_s, unit_s),
    ]


def _beside_the_reservation(env: ReferencePickJob, row: int, run_s: float) -> tuple[bool, float]:
    """Return whether a job fits without delaying the reserved one, and the seconds left by then."""
    held = env.reservation
    if held is None:
        return env.fitting[row], 0.0
    harmless = env.fitting[row] and (env.gangs[row].fits(env.beside) or env.ends_in_time(row, held))
    return harmless, _squashed(held.shadow_s - env.now_s - run_s, env.sight.time_unit_s)


def _ranks(env: ReferencePickJob, row: int) -> list[float]:
    """Return a job's place in the window under each heuristic, as a share of the jobs shown."""
    ranks = []
    for name, keys in zip(env.sight.ranks, env.rank_keys, strict=True):
        order = env.window
        if name != env.sight.window_order:
            order = sorted(env.window, key=lambda other: (keys[other], other))
        ranks.append((order.index(row) + 1) / len(order))
    return ranks


def _globals(env: ReferencePickJob) -> list[float]:
    gpus, waiting, held = env.cluster.gpus, len(env.line), env.reservation
    free = sum(env.free)
    shadow = 0.0 if held is None else _squashed(held.shadow_s - env.now_s, env.sight.time_unit_s)
    return [
        free / gpus,
        waiting / (waiting + env.sight.window),
        (waiting - len(env.window)) / (waiting + 1),
        min(len(env.running) / gpus, 1.0),
        shadow,
        sum(env.beside) / gpus,
    ]


# When GPUs become free.


def gpu_slots(env: ReferencePickJob) -> list[float]:
    """Return the numbers of the GPU slots under the lookahead mode."""
    slots, mode = env.sight.gpu_slots, env.sight.lookahead
    if mode == "off" or slots == 0:
        return [0.0] * slots
    left = [0.0] * env.cluster.gpus
    for job in env.running.values():
        for gpu in job.gpus:
            left[gpu] = _share_left(env, job.expected_end_s - env.now_s)
    if mode == "cdf":
        steps = [value * slots for value in left]
        return [sum(step <= slot for step in steps) / len(left) for slot in range(1, slots + 1)]
    if mode == "sorted":
        left.sort()
    members: list[list[float]] = [[] for _ in range(slots)]
    for gpu, value in enumerate(left):
        members[gpu * slots // len(left)].append(value)
    return [sum(values) / len(values) if values else 0.0 for values in members]


def _share_left(env: ReferencePickJob, left_s: float) -> float:
    """Return seconds left as a number from 0 to 1; 1 if the policy is blind."""
    if env.known_s is None:
        return 1.0
    left_s = max(left_s, 0.0)
    if env.sight.features == "gpu_optimizer":
        return min(left_s / env.sight.longest_s, 1.0)
    return left_s / (left_s + env.sight.time_unit_s)


# The observations of other programs.


def _gpu_optimizer(env: ReferencePickJob) -> list[float]:
    tokens = [
        [
            min(_shown_run_s(env, row) / env.sight.longest_s, 1.0),
            env.priority[row] / 10.0,
            env.gangs[row].gpus / env.cluster.gpus,
            min((env.now_s - env.submit_s[row]) / env.span_s, 1.0),
        ]
        for row in env.window
    ]
    idle = sum(env.free) / env.cluster.gpus
    return [*_filled(env, tokens, [0.0] * 4), *gpu_slots(env), idle, 1.0 - idle]


def _drl_scheduler(env: ReferencePickJob) -> list[float]:
    tokens = []
    for row in env.window:
        gpus, run_s = env.gangs[row].gpus, _shown_run_s(env, row)
        tokens.append(
            [
                env.priority[row] / 5.0,
                min(run_s * gpus * 1e12 / 5e12, 1.0),
                gpus / env.cluster.gpus,
                min(run_s / env.sight.longest_s, 1.0),
            ]
        )
    free = sum(env.free) / env.cluster.gpus
    return [free, *_filled(env, tokens, [0.0] * 4), len(env.line) / 200.0]


def _shown_run_s(env: ReferencePickJob, row: int) -> float:
    """Return the run time a policy is shown; nothing if it is blind."""
    return 0.0 if env.known_s is None else env.known_s[row]


def _rltune(env: ReferencePickJob) -> list[float]:
    tokens = [_rltune_token(env, row) for row in env.window]
    return _filled(env, tokens, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])


def _rltune_token(env: ReferencePickJob, row: int) -> list[float]:
    """Return RLTune's seven numbers of one job; its pool is the nodes it may use."""
    gang, built, free = env.gangs[row], env.rules.node_gpus, env.free
    capacity = sum(built[node] for node in gang.nodes)
    left = sum(free[node] for node in gang.nodes)
    largest = max(built[node] for node in gang.nodes)
    rivals = [other for other in env.window if other != row]
    demand = sum(
        env.gangs[other].gpus for other in rivals if set(env.gangs[other].nodes) & set(gang.nodes)
    )
    partly = sum(0 < free[node] < built[node] for node in gang.nodes)
    numbers = [
        (env.now_s - env.submit_s[row]) / HALF_DAY_S,
        gang.gpus / largest,
        gang.gpus / max(left, 1) / capacity,
        max((left - gang.gpus - demand + capacity) / (2.0 * capacity), 0.0),
        partly / len(gang.nodes),
        ways(gang, free, built) / 3.0 if env.fitting[row] else 0.0,
        1.0 if env.fitting[row] else 1e-5,
    ]
    return [min(number, ALMOST_ONE) for number in numbers]


def ways(gang: Gang, free: list[int], built: list[int]) -> int:
    """Return 2 if several sets of the fewest possible nodes hold the gang, 1 if one does, plus 1.

    The last is for one more node, if a gang over so many leaves no more nodes partly used than
    before. A single GPU cannot be split.
    """
    fewest = -(-gang.gpus // max(built[node] for node in gang.nodes))
    open_nodes = [node for node in gang.nodes if free[node] > 0]
    tight = [
        nodes
        for nodes in combinations(open_nodes, fewest)
        if sum(free[node] for node in nodes) >= gang.gpus
    ]
    splits = any(
        _splits_well([free[node] for node in nodes], [built[node] for node in nodes], gang.gpus)
        for nodes in combinations(open_nodes, fewest + 1)
    )
    return min(len(tight), 2) + (gang.gpus > 1 and splits)


def _splits_well(free: list[int], built: list[int], gpus: int) -> bool:
    """Whether a gang can take some of every one of these nodes and leave no more partly used."""
    before = sum(here < size for here, size in zip(free, built, strict=True))
    after = {0: 0}
    """GPUs taken of the nodes so far → fewest of them that are partly used then."""
    for here in free:
        reached: dict[int, int] = {}
        for taken, partly in after.items():
            for part in range(1, min(here, gpus - taken) + 1):
                best = partly + (part < here)
                reached[taken + part] = min(best, reached.get(taken + part, best))
        after = reached
    return after.get(gpus, before + 1) <= before
