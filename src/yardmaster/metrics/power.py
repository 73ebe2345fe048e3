"""What the cluster drew from the wall at every instant.

A GPU draws its type's idle watts when nobody holds it and its busy watts when it is held; a shared
GPU draws in between, in proportion to the shares held of it. Nodes add their overhead. A node that
is away draws nothing. Where the site lets nodes sleep, a node that has been without a job for
`sleep_after_s` draws nothing either until its next job; nodes are awake when the horizon begins
and when they come back from an outage.
"""

from __future__ import annotations

import math

import numpy as np

from yardmaster.metrics.holdings import busy_spans
from yardmaster.metrics.outages import NodeSpans, outage_spans
from yardmaster.metrics.timeline import StepFunction, stacked
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray


def power_timeline(schedule: Schedule) -> StepFunction:
    """Return the watts of all GPUs and nodes over the horizon.

    It unpacks into times and watts. There is one time more than watts: the end of the last step.
    """
    kinds = schedule.cluster.gpu_types
    above_idle_w = np.array([kind.busy_w - kind.idle_w for kind in kinds], dtype=np.float64)
    busy = busy_spans(schedule, above_idle_w)
    node, off_begin, off_end = _off_spans(schedule)
    resting_w = _resting_w(schedule.cluster)
    drawn = stacked(
        schedule,
        np.concatenate((busy.begin_s, off_begin)),
        np.concatenate((busy.end_s, off_end)),
        np.concatenate((busy.amount, -resting_w[node])),
    )
    # Sums of watts that cancel may end a hair below zero.
    return StepFunction(drawn.edges_s, np.maximum(float(resting_w.sum()) + drawn.values, 0.0))


def _resting_w(cluster: Cluster) -> FloatArray:
    """Return (nodes,) watts of each node that is awake and runs nothing."""
    idle_w = np.array([kind.idle_w for kind in cluster.gpu_types], dtype=np.float64)
    return np.asarray(idle_w[cluster.node_type] * cluster.node_gpus + cluster.node_overhead_w)


def _off_spans(schedule: Schedule) -> NodeSpans:
    """Return when nodes drew nothing: away, or asleep."""
    away = outage_spans(schedule)
    patience_s = schedule.cluster.site.power.sleep_after_s
    if math.isinf(patience_s):
        return away
    node, begin, end = _idle_spans(schedule, away)
    sleeps = end - begin > patience_s
    asleep = NodeSpans(node[sleeps], begin[sleeps] + patience_s, end[sleeps])
    return NodeSpans(*(np.concatenate(pair) for pair in zip(away, asleep, strict=True)))


def _idle_spans(schedule: Schedule, away: NodeSpans) -> NodeSpans:
    """Return when nodes were there and ran nothing."""
    cluster = schedule.cluster
    held = np.diff(schedule.segment_gpu_offset)
    # Spans of no length on every node close the idle time at both ends of the horizon.
    walls = np.tile(np.arange(cluster.nodes), 2)
    wall_s = np.repeat(schedule.horizon_s, cluster.nodes)
    begin = np.concatenate((np.repeat(schedule.segment_start_s, held), away.begin_s, wall_s))
    end = np.concatenate((np.repeat(schedule.segment_end_s, held), away.end_s, wall_s))
    node = np.tile(np.concatenate((cluster.gpu_node[schedule.gpu_ids], away.node, walls)), 2)
    times = np.concatenate((begin, end))
    change = np.repeat((1, -1), len(begin))
    order = np.lexsort((times, node))
    node, times, level = node[order], times[order], np.cumsum(change[order])
    is_idle = (level[:-1] == 0) & (node[1:] == node[:-1]) & (times[1:] > times[:-1])
    return NodeSpans(node[:-1][is_idle], times[:-1][is_idle], times[1:][is_idle])
