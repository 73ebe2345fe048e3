"""Fractional jobs: which GPU each joins, and what happens to a GPU as they come and go.

A shared GPU holds fractional jobs only. It is not free for whole-GPU jobs until its last sharer
has left. Sharers of one GPU are chained, so that all of them can be slowed down or set free.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel
from yardmaster.engine.core.bits import WORD_BITS, dice
from yardmaster.engine.core.gangs import plan_gang
from yardmaster.engine.core.nodes import enlist, lowest_free_gpu, unlist
from yardmaster.engine.core.room import WHOLE_MILLI, can_join, share_taken, usable_now
from yardmaster.engine.core.scores import fragments_gained, node_score
from yardmaster.engine.state import (
    FREE_GPUS,
    GPU_BITS,
    GPU_MIB,
    GPU_MILLI,
    GPU_NODE,
    GPU_SHARERS,
    GPUS,
    JOB_SHAPE,
    NODE_FIRST_GPU,
    NODE_FREE,
    NODE_TYPE,
    NODE_WORD,
    NODES,
    NOTHING,
    PLACEMENT,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    PLAN_SHARED,
    RECORD,
    RECORDS,
    RECORDS_GPUS,
    SEED,
    SHAPE_GPU_MIB,
    SHARED,
    SHARED_AT,
    SHARED_GPU,
    SHARED_LIST,
    SHARER,
    SHARER_NEXT,
    TYPE_MIB,
    Ints,
    Placement,
    Reals,
)

FULLEST = 1
EMPTIEST = -1


@kernel
def plan_part(ints: Ints, reals: Reals, job: int) -> bool:
    """Plan part of a GPU for a fractional job: of a shared one, or of a fresh one."""
    placement = ints[PLACEMENT]
    if placement == Placement.FIRST or placement == Placement.RANDOM:
        return _plan_by_number(ints, job)
    if placement == Placement.FGD:
        return _plan_by_fragments(ints, job)
    if placement == Placement.SPREAD:
        return plan_gang(ints, reals, job) or _plan_joining(ints, reals, job, EMPTIEST, -math.inf)
    if placement == Placement.FASTEST or placement == Placement.POWER:
        return _plan_by_score(ints, reals, job)
    return _plan_joining(ints, reals, job, FULLEST, -math.inf) or plan_gang(ints, reals, job)


@kernel
def _plan_on(ints: Ints, gpu: int) -> bool:
    """Plan on this GPU: as a sharer if it is shared, as its first if it is free."""
    ints[PLAN] = 1
    ints[ints[PLAN_NODE]] = ints[ints[GPU_NODE] + gpu]
    ints[ints[PLAN_GPUS]] = 1
    ints[PLAN_SHARED] = gpu if ints[ints[GPU_SHARERS] + gpu] > 0 else NOTHING
    return True


@kernel
def _plan_joining(ints: Ints, reals: Reals, job: int, which: int, score: float) -> bool:
    """Join the fullest or the emptiest shared GPU; unless −∞, only on nodes of this score."""
    shape = ints[ints[JOB_SHAPE] + job]
    best = NOTHING
    best_left = 0
    for place in range(ints[SHARED]):
        gpu = ints[ints[SHARED_LIST] + place]
        if not can_join(ints, shape, gpu):
            continue
        if score != -math.inf and _score_of_gpu(ints, reals, shape, gpu) != score:
            continue
        left = which * ints[ints[GPU_MILLI] + gpu]
        if best == NOTHING or left < best_left or (left == best_left and gpu < best):
            best = gpu
            best_left = left
    return best != NOTHING and _plan_on(ints, best)


@kernel
def _score_of_gpu(ints: Ints, reals: Reals, shape: int, gpu: int) -> float:
    return node_score(ints, reals, shape, ints[ints[GPU_NODE] + gpu], ints[PLACEMENT], 1)


@kernel
def _plan_by_score(ints: Ints, reals: Reals, job: int) -> bool:
    """Among the options on nodes of least score, join the fullest GPU, else take a fresh one."""
    shape = ints[ints[JOB_SHAPE] + job]
    least = math.inf
    for place in range(ints[SHARED]):
        gpu = ints[ints[SHARED_LIST] + place]
        if can_join(ints, shape, gpu):
            least = min(least, _score_of_gpu(ints, reals, shape, gpu))
    is_joinable = least < math.inf
    for node in range(ints[NODES]):
        if usable_now(ints, shape, node) >= 1:
            least = min(least, node_score(ints, reals, shape, node, ints[PLACEMENT], 1))
    if is_joinable and _plan_joining(ints, reals, job, FULLEST, least):
        return True
    return plan_gang(ints, reals, job)


@kernel
def _is_option(ints: Ints, shape: int, gpu: int) -> bool:
    """Whether a fractional job could join this GPU, or open it as its node's lowest free one."""
    if ints[ints[GPU_SHARERS] + gpu] > 0:
        return can_join(ints, shape, gpu)
    node = ints[ints[GPU_NODE] + gpu]
    if ints[ints[NODE_FREE] + node] == 0 or lowest_free_gpu(ints, node) != gpu:
        return False
    return usable_now(ints, shape, node) >= 1


@kernel
def _plan_by_number(ints: Ints, job: int) -> bool:
    """Take the first option by number; for `random`, any of them."""
    shape = ints[ints[JOB_SHAPE] + job]
    skipped = 0
    if ints[PLACEMENT] == Placement.RANDOM:
        options = 0
        for gpu in range(ints[GPUS]):
            if _is_option(ints, shape, gpu):
                options += 1
        if options > 0:
            skipped = dice(ints[SEED], job, 0) % options
    for gpu in range(ints[GPUS]):
        if _is_option(ints, shape, gpu):
            if skipped == 0:
                return _plan_on(ints, gpu)
            skipped -= 1
    return False


@kernel
def _plan_by_fragments(ints: Ints, job: int) -> bool:
    """Take the option that leaves the fewest unusable fragments."""
    shape = ints[ints[JOB_SHAPE] + job]
    best = NOTHING
    best_gain = 0
    for gpu in range(ints[GPUS]):
        if _is_option(ints, shape, gpu):
            gain = fragments_gained(ints, shape, ints[ints[GPU_NODE] + gpu], 1, gpu)
            if best == NOTHING or gain < best_gain:
                best = gpu
                best_gain = gain
    return best != NOTHING and _plan_on(ints, best)


@kernel
def hold_part(ints: Ints, job: int) -> None:
    """Give the planned part of a GPU to the job."""
    gpu = ints[PLAN_SHARED]
    node = ints[ints[PLAN_NODE]]
    if gpu == NOTHING:
        gpu = _open(ints, node)
    shape = ints[ints[JOB_SHAPE] + job]
    ints[ints[GPU_MILLI] + gpu] -= share_taken(ints, shape, node)
    ints[ints[GPU_MIB] + gpu] -= ints[ints[SHAPE_GPU_MIB] + shape]
    ints[ints[GPU_SHARERS] + gpu] += 1
    ints[ints[SHARED_GPU] + job] = gpu
    ints[ints[SHARER_NEXT] + job] = ints[ints[SHARER] + gpu]
    ints[ints[SHARER] + gpu] = job
    if ints[RECORDS_GPUS] == 1:
        within = gpu - ints[ints[NODE_FIRST_GPU] + node]
        word = ints[ints[NODE_WORD] + node] + (within >> 5)
        ints[ints[RECORD] + ints[RECORDS]] = (word << WORD_BITS) + (1 << (within & 31))
        ints[RECORDS] += 1


@kernel
def _open(ints: Ints, node: int) -> int:
    """Turn the node's lowest free GPU into a shared one; return it."""
    gpu = lowest_free_gpu(ints, node)
    _flip_free(ints, node, gpu, -1)
    ints[ints[GPU_MILLI] + gpu] = WHOLE_MILLI
    ints[ints[GPU_MIB] + gpu] = ints[ints[TYPE_MIB] + ints[ints[NODE_TYPE] + node]]
    ints[ints[SHARER] + gpu] = NOTHING
    ints[ints[SHARED_LIST] + ints[SHARED]] = gpu
    ints[ints[SHARED_AT] + gpu] = ints[SHARED]
    ints[SHARED] += 1
    return gpu


@kernel
def _flip_free(ints: Ints, node: int, gpu: int, change: int) -> None:
    """Take a GPU out of the free ones of its node, or put it back."""
    within = gpu - ints[ints[NODE_FIRST_GPU] + node]
    unlist(ints, node)
    ints[ints[GPU_BITS] + ints[ints[NODE_WORD] + node] + (within >> 5)] ^= 1 << (within & 31)
    ints[ints[NODE_FREE] + node] += change
    ints[FREE_GPUS] += change
    enlist(ints, node)


@kernel
def release_part(ints: Ints, job: int) -> None:
    """Take the job's part of its GPU back; the GPU is free when it was the last."""
    gpu = ints[ints[SHARED_GPU] + job]
    node = ints[ints[GPU_NODE] + gpu]
    shape = ints[ints[JOB_SHAPE] + job]
    ints[ints[SHARED_GPU] + job] = NOTHING
    ints[ints[GPU_MILLI] + gpu] += share_taken(ints, shape, node)
    ints[ints[GPU_MIB] + gpu] += ints[ints[SHAPE_GPU_MIB] + shape]
    ints[ints[GPU_SHARERS] + gpu] -= 1
    _unchain(ints, gpu, job)
    if ints[ints[GPU_SHARERS] + gpu] == 0:
        place = ints[ints[SHARED_AT] + gpu]
        last = ints[ints[SHARED_LIST] + ints[SHARED] - 1]
        ints[ints[SHARED_LIST] + place] = last
        ints[ints[SHARED_AT] + last] = place
        ints[SHARED] -= 1
        _flip_free(ints, node, gpu, 1)


@kernel
def _unchain(ints: Ints, gpu: int, job: int) -> None:
    following = ints[ints[SHARER_NEXT] + job]
    if ints[ints[SHARER] + gpu] == job:
        ints[ints[SHARER] + gpu] = following
        return
    other = ints[ints[SHARER] + gpu]
    while ints[ints[SHARER_NEXT] + other] != job:
        other = ints[ints[SHARER_NEXT] + other]
    ints[ints[SHARER_NEXT] + other] = following
