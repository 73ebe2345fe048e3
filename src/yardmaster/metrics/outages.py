"""When nodes were away: GPU time that no scheduler could have used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, IntArray


class NodeSpans(NamedTuple):
    """Spans of time on nodes, within the horizon."""

    node: IntArray
    begin_s: FloatArray
    end_s: FloatArray


def outage_spans(schedule: Schedule) -> NodeSpans:
    """Return the part of every outage that lies within the horizon."""
    first, cut = schedule.horizon_s
    node = np.array([outage.node for outage in schedule.outages], dtype=np.int64)
    down = np.array([outage.down_s for outage in schedule.outages], dtype=np.float64)
    up = np.array([outage.up_s for outage in schedule.outages], dtype=np.float64)
    begin, end = np.maximum(down, first), np.minimum(up, cut)
    is_seen = begin < end
    return NodeSpans(node[is_seen], begin[is_seen], end[is_seen])


def capacity_gpu_s(schedule: Schedule) -> FloatArray:
    """Return (types,) GPU-seconds that each type could give over the horizon, less outages."""
    cluster = schedule.cluster
    first, cut = schedule.horizon_s
    node, begin, end = outage_spans(schedule)
    away_s = np.bincount(node, end - begin, minlength=cluster.nodes)
    present = cluster.node_gpus * ((cut - first) - away_s)
    types = len(cluster.gpu_types)
    return np.asarray(np.bincount(cluster.node_type, present, minlength=types), dtype=np.float64)


def availability(schedule: Schedule) -> float:
    """Return GPU-hours not lost to outages / all of the horizon; NaN over zero length."""
    first, cut = schedule.horizon_s
    whole_s = schedule.cluster.gpus * (cut - first)
    return float(capacity_gpu_s(schedule).sum()) / whole_s if whole_s > 0 else float("nan")
