"""How fast jobs do their work where they run: reference seconds of work per second.

Durations are seconds on the GPU type they were measured on. Elsewhere a job is faster or slower,
and what it has done so far is not the time it has run. Two jobs that share a GPU slow each other
down as well, but for how long is not in a schedule: that is left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from yardmaster.engine.conditions import Conditions, conditions_of
from yardmaster.engine.requests import shapes_of, tells_kinds_apart
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import FloatArray, IntArray
from yardmaster.model.schedule import Schedule
from yardmaster.model.site import Checkpoints, Failures


def without_failures(cluster: Cluster) -> Cluster:
    """Return the cluster with nodes that never fail; the same object if they do not anyway."""
    if cluster.site.failures == Failures():
        return cluster
    return cluster.under(replace(cluster.site, failures=Failures()))


def share_not_saving(checkpoints: Checkpoints) -> float:
    """Return the share of its time in which a running job is not held up by checkpoints."""
    return 1.0 - checkpoints.save_s / checkpoints.every_s


def speeds(schedule: Schedule, segments: IntArray) -> FloatArray:
    """Return the speed of some segments of a schedule, 1 where durations were measured."""
    cluster = without_failures(schedule.cluster)
    if not len(segments) or not tells_kinds_apart(schedule.workload, cluster):
        return np.ones(len(segments))
    shapes = shapes_of(schedule.workload, cluster)
    conditions = conditions_of(schedule.workload, cluster, shapes, is_needed=True)
    if conditions is None:
        return np.ones(len(segments))
    shape = shapes.of_job[schedule.segment_job[segments]]
    return _speeds(schedule, segments, shape, conditions)


def _speeds(
    schedule: Schedule, segments: IntArray, shape: IntArray, conditions: Conditions
) -> FloatArray:
    """Return the speed of the slowest GPU of each gang, less what its distance and size cost."""
    cluster, offset = schedule.cluster, schedule.segment_gpu_offset
    size = (offset[segments + 1] - offset[segments]).astype(np.int64)
    first = np.concatenate(([0], np.cumsum(size)[:-1]))
    place = np.repeat(offset[segments] - first, size) + np.arange(int(size.sum()))
    node = cluster.gpu_node[schedule.gpu_ids[place]]
    on_each = conditions.speed[np.repeat(shape, size), cluster.node_type[node]]
    slowest = np.minimum.reduceat(on_each, first)
    spans_nodes = _differ(node, first)
    spans_racks = _differ(cluster.node_rack[node], first)
    factor = np.where(spans_nodes, conditions.node_factor[shape], 1.0)
    factor = np.where(spans_racks, conditions.rack_factor[shape], factor)
    scale = conditions.scale[shape, np.minimum(size, conditions.scale.shape[1] - 1)]
    return np.asarray(slowest * factor * scale, dtype=np.float64)


def _differ(values: IntArray, first: IntArray) -> np.typing.NDArray[np.bool_]:
    """Return for each stretch of values, beginning at `first`, whether they differ."""
    return np.asarray(np.minimum.reduceat(values, first) != np.maximum.reduceat(values, first))
