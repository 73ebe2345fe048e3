"""GPUs that stand idle although jobs wait, because no waiting job can use what is left of a node.

At an instant, the idle GPUs of a node are usable if some queued job allowed on their type could
take them: a job that must stay within one node needs that many idle GPUs there, a gang that spans
nodes anyway (larger than every node it may use, or capped by `max_gpus_per_node`) can use any.
All other idle GPUs count as fragmented, and none while the queue is empty. A GPU held by a
fraction is not idle; CPU cores and host memory are not looked at.

Schedules of up to `EXACT_EVENTS` events are swept exactly; longer ones are looked at in the
middle of `SAMPLES` equal slices of the horizon.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from yardmaster.metrics.timeline import queue_intervals
from yardmaster.model.gpus import type_key
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray

EXACT_EVENTS = 6_000
"""Submissions, segment starts and segment ends up to which every instant is looked at."""

SAMPLES = 2_000
"""Instants at which a longer schedule is looked at."""

CELLS_AT_ONCE = 4_000_000
"""Node × instant cells held in memory at a time."""


class _Spans(NamedTuple):
    """Things (GPUs, requests) present at the instants `first` up to, not including, `past`."""

    thing: IntArray
    first: IntArray
    past: IntArray


def fragmentation_gpus(schedule: Schedule) -> float:
    """Return the time average of idle GPUs that no queued job can use; NaN over zero length."""
    begin, end = schedule.horizon_s
    if end <= begin:
        return float("nan")
    instants, seconds = _instants(schedule)
    needed, is_waiting = _least_need(schedule, instants)
    unusable = _unusable(schedule, instants, needed)
    return float(np.where(is_waiting, unusable, 0) @ seconds / seconds.sum())


def _instants(schedule: Schedule) -> tuple[FloatArray, FloatArray]:
    """Return the instants to look at, and the seconds each stands for."""
    begin, end = schedule.horizon_s
    if len(schedule.workload) + 2 * len(schedule.segment_job) > EXACT_EVENTS:
        edges = np.linspace(begin, end, SAMPLES + 1)
        return (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    events = (schedule.workload.submit_s, schedule.segment_start_s, schedule.segment_end_s)
    times = np.unique(np.concatenate(([begin], *events)))
    instants = times[(times >= begin) & (times < end)]
    return instants, np.diff(np.append(instants, end))


def _least_need(schedule: Schedule, instants: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the fewest idle GPUs on one node that a queued job could use, and whether any waits.

    Shapes are (types, instants) and (instants,); infinite where no queued job may use the type.
    """
    jobs, begin, end = queue_intervals(schedule)
    first, past = np.searchsorted(instants, begin), np.searchsorted(instants, end)
    is_seen = first < past
    labels = schedule.workload.gpu_types
    allowed = _allowed_types(schedule)
    need = _need(schedule, allowed)[jobs[is_seen]]
    requests = np.stack((need, labels.codes[jobs[is_seen]] + 1))
    # Equal requests are one thing with a count: a long queue has few distinct ones.
    distinct, thing = np.unique(requests, axis=1, return_inverse=True)
    spans = _Spans(thing.reshape(-1), first[is_seen], past[is_seen])
    is_queued = _present(spans, distinct.shape[1], len(instants)) > 0
    needs = np.where(is_queued, distinct[0][:, None], np.inf)
    least = np.full((len(schedule.cluster.gpu_types), len(instants)), np.inf)
    for kind in range(len(least)):
        usable = needs[allowed[distinct[1], kind]]
        least[kind] = usable.min(axis=0, initial=np.inf)
    return least, np.asarray(is_queued.any(axis=0))


def _allowed_types(schedule: Schedule) -> BoolArray:
    """Return (labels + 1, types) which GPU types a request may use; row 0: no constraint."""
    kinds = [type_key(kind.name) for kind in schedule.cluster.gpu_types]
    rows = [[True] * len(kinds)]
    for label in schedule.workload.gpu_types.names:
        wanted = {type_key(name) for name in label.split("|")}
        rows.append([kind in wanted for kind in kinds])
    return np.array(rows)


def _need(schedule: Schedule, allowed: BoolArray) -> IntArray:
    """Return (jobs,) the idle GPUs a node must have to be of use: 1 for gangs that span nodes."""
    cluster, workload = schedule.cluster, schedule.workload
    largest = np.zeros(len(cluster.gpu_types), dtype=np.int64)
    np.maximum.at(largest, cluster.node_type, cluster.node_gpus)
    widest = (allowed * largest).max(axis=1)[workload.gpu_types.codes + 1]
    cap = workload.max_gpus_per_node
    spans_nodes = (workload.gpus > widest) | ((cap > 0) & (cap < workload.gpus))
    return np.where(spans_nodes & (not cluster.is_pool), 1, workload.gpus)


def _unusable(schedule: Schedule, instants: FloatArray, needed: FloatArray) -> FloatArray:
    """Return (instants,) idle GPUs on nodes with fewer than the needed number idle."""
    cluster = schedule.cluster
    held = _held_gpus(schedule, instants)
    node = cluster.gpu_node[held.thing]
    total = np.zeros(len(instants))
    at_once = max(1, CELLS_AT_ONCE // (len(instants) + 1))
    for begin in range(0, cluster.nodes, at_once):
        end = min(begin + at_once, cluster.nodes)
        inside = (node >= begin) & (node < end)
        spans = _Spans(node[inside] - begin, held.first[inside], held.past[inside])
        busy = _present(spans, end - begin, len(instants))
        idle = cluster.node_gpus[begin:end, None] - busy
        total += np.where(idle < needed[cluster.node_type[begin:end]], idle, 0).sum(axis=0)
    return total


def _held_gpus(schedule: Schedule, instants: FloatArray) -> _Spans:
    """Return which GPU was held at which instants; overlapping shares of one GPU count once."""
    first = np.searchsorted(instants, schedule.segment_start_s)
    past = np.searchsorted(instants, schedule.segment_end_s)
    held = np.diff(schedule.segment_gpu_offset)
    is_seen = np.repeat(first < past, held)
    spans = _Spans(
        schedule.gpu_ids[is_seen].astype(np.int64),
        np.repeat(first, held)[is_seen],
        np.repeat(past, held)[is_seen],
    )
    is_shared = bool((schedule.workload.milli_gpu < 1000).any())
    return _merged(spans, len(instants) + 1) if is_shared else spans


def _merged(spans: _Spans, width: int) -> _Spans:
    """Return the union of the spans of each thing."""
    keys = np.concatenate((spans.thing * width + spans.first, spans.thing * width + spans.past))
    changes = np.repeat((1, -1), len(spans.thing))
    places, inverse = np.unique(keys, return_inverse=True)
    level = np.cumsum(np.bincount(inverse, weights=changes, minlength=len(places)))
    before = level - np.diff(level, prepend=0)
    opened = places[(level > 0) & (before == 0)]
    closed = places[(level == 0) & (before > 0)]
    return _Spans(opened // width, opened % width, closed % width)


def _present(spans: _Spans, things: int, instants: int) -> IntArray:
    """Return (things, instants) how many spans of each thing cover each instant."""
    width = instants + 1
    arrivals = np.bincount(spans.thing * width + spans.first, minlength=things * width)
    departures = np.bincount(spans.thing * width + spans.past, minlength=things * width)
    # Every span leaves again within its own row, so one running sum serves all rows.
    return np.cumsum(arrivals - departures).reshape(things, width)[:, :instants]
