"""GPUs that stand idle although jobs wait, because no waiting job can use what is left of a node.

At an instant, the idle GPUs of a node are usable if some queued job allowed on their type could
take them: a job that must stay within one node needs that many idle GPUs there (an elastic one its
fewest), a gang that spans nodes anyway (larger than every node it may use, capped by
`max_gpus_per_node`, or split as the site allows) can use any. All other idle GPUs count as
fragmented, and none while the queue is empty. A GPU held by a fraction is not idle, nor is one of
a node that is away; CPU cores and host memory are not looked at.

Whoever waits, the free GPUs of nodes that are partly used measure how scattered the jobs are.

Schedules of up to `EXACT_EVENTS` events are swept exactly; longer ones are looked at in the
middle of `SAMPLES` equal slices of the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from yardmaster.metrics.outages import outage_spans
from yardmaster.metrics.timeline import StepFunction, queue_intervals
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


class Leftovers(NamedTuple):
    """Idle GPUs over time that are hard to use."""

    fragmented: StepFunction
    """Idle GPUs that no queued job can use."""
    partial: StepFunction
    """Idle GPUs on nodes of which other GPUs are held; a pool has no nodes and NaN here."""


def leftovers(schedule: Schedule) -> Leftovers:
    """Return both kinds of idle GPUs that are hard to use, from one look at the schedule."""
    edges, instants = _instants(schedule)
    needed, is_waiting = _least_need(schedule, instants)
    unusable, partial = np.zeros(len(instants)), np.zeros(len(instants))
    for nodes, idle in _idle_gpus(schedule, instants):
        cluster = schedule.cluster
        too_few = idle < needed[cluster.node_type[nodes]]
        unusable += np.where(too_few, idle, 0).sum(axis=0)
        partial += np.where(idle < cluster.node_gpus[nodes, None], idle, 0).sum(axis=0)
    if schedule.cluster.is_pool:
        partial[:] = np.nan
    fragmented = np.where(is_waiting, unusable, 0.0)
    return Leftovers(StepFunction(edges, fragmented), StepFunction(edges, partial))


def fragmentation_timeline(schedule: Schedule) -> StepFunction:
    """Return idle GPUs that no queued job can use, over time: `times, gpus = …`."""
    return leftovers(schedule).fragmented


def fragmentation_gpus(schedule: Schedule) -> float:
    """Return the time average of idle GPUs that no queued job can use; NaN over zero length."""
    return leftovers(schedule).fragmented.time_average()


def free_partial_gpus(schedule: Schedule) -> float:
    """Return the time average of free GPUs on nodes that are partly used; NaN in a pool."""
    return leftovers(schedule).partial.time_average()


def _instants(schedule: Schedule) -> tuple[FloatArray, FloatArray]:
    """Return the borders of the steps, and the instant at which each step is looked at."""
    begin, end = schedule.horizon_s
    if len(schedule.workload) + 2 * len(schedule.segment_job) > EXACT_EVENTS:
        edges = np.linspace(begin, end, SAMPLES + 1)
        return edges, (edges[1:] + edges[:-1]) / 2
    events = (schedule.workload.submit_s, schedule.segment_start_s, schedule.segment_end_s)
    times = np.unique(np.concatenate(([begin], *events, *outage_spans(schedule)[1:])))
    instants = times[(times >= begin) & (times < end)]
    if not len(instants):
        return np.array([begin, end]), np.array([begin])
    return np.append(instants, end), instants


def _least_need(schedule: Schedule, instants: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the fewest idle GPUs on one node that a queued job could use, and whether any waits.

    Shapes are (types, instants) and (instants,); infinite where no queued job may use the type.
    """
    jobs, begin, end = queue_intervals(schedule)
    first, past = np.searchsorted(instants, begin), np.searchsorted(instants, end)
    is_seen = first < past
    labels = schedule.workload.gpu_types
    allowed = allowed_types(schedule)
    need = _need(schedule, allowed)[jobs[is_seen]]
    # Equal requests are one thing with a count: a long queue has few distinct ones.
    requests = need * len(allowed) + (labels.codes[jobs[is_seen]] + 1)
    distinct, thing = np.unique(requests, return_inverse=True)
    spans = _Spans(thing, first[is_seen], past[is_seen])
    is_queued = _present(spans, len(distinct), len(instants)) > 0
    needs = np.where(is_queued, (distinct // len(allowed))[:, None], np.inf)
    least = np.full((len(schedule.cluster.gpu_types), len(instants)), np.inf)
    for kind in range(len(least)):
        usable = needs[allowed[distinct % len(allowed), kind]]
        least[kind] = usable.min(axis=0, initial=np.inf)
    return least, np.asarray(is_queued.any(axis=0))


def allowed_types(schedule: Schedule) -> BoolArray:
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
    spans_nodes |= cluster.site.splits_gangs
    fewest = np.where(workload.min_gpus > 0, workload.min_gpus, workload.gpus)
    return np.where(spans_nodes & (not cluster.is_pool), 1, fewest)


def _idle_gpus(schedule: Schedule, instants: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield some nodes at a time, with their (nodes, instants) idle GPUs."""
    cluster = schedule.cluster
    held, away = _held_gpus(schedule, instants), _away_gpus(schedule, instants)
    node = np.concatenate((cluster.gpu_node[held.thing], away.thing))
    first, past = np.concatenate((held.first, away.first)), np.concatenate((held.past, away.past))
    at_once = max(1, CELLS_AT_ONCE // (len(instants) + 1))
    for begin in range(0, cluster.nodes, at_once):
        nodes = np.arange(begin, min(begin + at_once, cluster.nodes))
        inside = (node >= begin) & (node <= nodes[-1])
        spans = _Spans(node[inside] - begin, first[inside], past[inside])
        yield nodes, cluster.node_gpus[nodes, None] - _present(spans, len(nodes), len(instants))


def _away_gpus(schedule: Schedule, instants: FloatArray) -> _Spans:
    """Return the node of every GPU that was away, once for each: they are as good as held."""
    node, begin, end = outage_spans(schedule)
    gpus = schedule.cluster.node_gpus[node]
    columns = (node, np.searchsorted(instants, begin), np.searchsorted(instants, end))
    return _Spans(*(np.repeat(column, gpus) for column in columns))


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
