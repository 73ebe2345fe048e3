"""What running jobs held: whole GPUs, or a share of one GPU where its node lets jobs share.

A job that asks for part of a GPU holds a whole one on nodes without sharing, its thousandths under
MPS, and its slices under MIG. A GPU is busy to the extent that it is held, and at most once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from yardmaster.model.schedule import Schedule
from yardmaster.model.site import MIG_SLICE_MILLI, MIG_SLICES, Sharing
from yardmaster.model.workload import FloatArray, IntArray

WHOLE_MILLI = 1000


class BusySpans(NamedTuple):
    """Spans of time in which GPUs were busy, and what that adds up to while it lasts."""

    begin_s: FloatArray
    end_s: FloatArray
    amount: FloatArray


def segment_milli(schedule: Schedule) -> IntArray:
    """Return (segments,) the thousandths that a segment holds of each of its GPUs."""
    asked = schedule.workload.milli_gpu[schedule.segment_job]
    held = np.full(len(asked), WHOLE_MILLI)
    sharing = schedule.cluster.node_sharing
    if (asked == WHOLE_MILLI).all() or (sharing == Sharing.NONE).all():
        return held
    parts = np.flatnonzero(asked < WHOLE_MILLI)
    node = schedule.cluster.gpu_node[schedule.gpu_ids[schedule.segment_gpu_offset[parts]]]
    slices = -(-asked[parts] // MIG_SLICE_MILLI)
    sliced = np.where(slices <= MIG_SLICES, slices * MIG_SLICE_MILLI, WHOLE_MILLI)
    how = sharing[node]
    held[parts] = np.where(how == Sharing.MPS, asked[parts], WHOLE_MILLI)
    held[parts] = np.where(how == Sharing.MIG, sliced, held[parts])
    return held


def segment_gpus(schedule: Schedule) -> FloatArray:
    """Return (segments,) GPUs each segment held, shares of a GPU counted as fractions."""
    held = np.diff(schedule.segment_gpu_offset)
    return np.asarray(held * (segment_milli(schedule) / WHOLE_MILLI))


def busy_spans(schedule: Schedule, weight: FloatArray) -> BusySpans:
    """Return spans of busy GPUs, each GPU weighted by its type's `weight` (types,).

    With weights of 1 the amounts are GPUs. A shared GPU counts with the sum of its shares, at most
    1, so overlapping spans of different GPUs add up to what the cluster as a whole did.
    """
    milli = segment_milli(schedule)
    begin, end = schedule.segment_start_s, schedule.segment_end_s
    amount = _weighted_gpus(schedule, weight)
    is_part = milli < WHOLE_MILLI
    if not is_part.any():
        return BusySpans(begin, end, amount)
    shared = _shared_spans(schedule, np.flatnonzero(is_part), milli, weight)
    alone = (begin[~is_part], end[~is_part], amount[~is_part])
    return BusySpans(*(np.concatenate(pair) for pair in zip(alone, shared, strict=True)))


def _weighted_gpus(schedule: Schedule, weight: FloatArray) -> FloatArray:
    """Return (segments,) the total weight of the GPUs each segment holds."""
    held = np.diff(schedule.segment_gpu_offset)
    if (weight == weight[0]).all():
        return np.asarray(held * weight[0])
    cluster = schedule.cluster
    of_gpu = weight[cluster.node_type[cluster.gpu_node]]
    owner = np.repeat(np.arange(len(held)), held)
    total = np.bincount(owner, of_gpu[schedule.gpu_ids], minlength=len(held))
    return np.asarray(total, dtype=np.float64)


def _shared_spans(
    schedule: Schedule, segments: IntArray, milli: IntArray, weight: FloatArray
) -> BusySpans:
    """Return how busy shared GPUs were from each coming or going of a sharer to the next."""
    cluster = schedule.cluster
    held = schedule.gpu_ids[schedule.segment_gpu_offset[segments]]
    gpu = np.concatenate((held, held))
    times = np.concatenate((schedule.segment_start_s[segments], schedule.segment_end_s[segments]))
    change = np.concatenate((milli[segments], -milli[segments]))
    order = np.lexsort((times, gpu))
    gpu, times = gpu[order], times[order]
    # Whole thousandths add up exactly, so every GPU ends at 0 and one running sum serves all.
    level = np.minimum(np.cumsum(change[order]), WHOLE_MILLI)[:-1]
    is_span = (gpu[1:] == gpu[:-1]) & (times[1:] > times[:-1]) & (level > 0)
    kind = cluster.node_type[cluster.gpu_node[gpu[:-1][is_span]]]
    amount = level[is_span] / WHOLE_MILLI * weight[kind]
    return BusySpans(times[:-1][is_span], times[1:][is_span], np.asarray(amount))
