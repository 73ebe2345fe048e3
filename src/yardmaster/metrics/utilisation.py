"""How much of the cluster's capacity did work: by GPU time, and by the arithmetic it could do.

Running jobs count, waiting jobs do not. A job cut by the end of the simulation counts up to the
cut. Fractions of a GPU count as fractions.
"""

from __future__ import annotations

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray


def horizon_length_s(schedule: Schedule) -> float:
    """Return the seconds of the measured horizon."""
    begin, end = schedule.horizon_s
    return end - begin


def gpus_by_type(cluster: Cluster) -> FloatArray:
    """Return (types,) how many GPUs of each type the cluster holds."""
    counts = np.bincount(
        cluster.node_type, weights=cluster.node_gpus, minlength=len(cluster.gpu_types)
    )
    return counts.astype(np.float64)


def busy_gpu_s(schedule: Schedule) -> FloatArray:
    """Return (types,) GPU-seconds that running jobs held on each GPU type."""
    cluster = schedule.cluster
    per_gpu = schedule.segment_end_s - schedule.segment_start_s
    held = np.diff(schedule.segment_gpu_offset)
    if len(cluster.gpu_types) == 1:
        return np.array([np.sum(per_gpu * held)])
    kind = cluster.node_type[cluster.gpu_node][schedule.gpu_ids]
    weights = np.repeat(per_gpu, held)
    return np.asarray(np.bincount(kind, weights, len(cluster.gpu_types)), dtype=np.float64)


def utilisation(schedule: Schedule) -> float:
    """Return busy GPU-hours divided by all GPU-hours of the horizon; NaN over zero length."""
    capacity_s = schedule.cluster.gpus * horizon_length_s(schedule)
    return float(busy_gpu_s(schedule).sum()) / capacity_s if capacity_s > 0 else float("nan")


def utilisation_by_type(schedule: Schedule) -> dict[str, float]:
    """Return the utilisation of the GPUs of each type, by type name."""
    capacity_s = gpus_by_type(schedule.cluster) * horizon_length_s(schedule)
    return {
        kind.name: float(busy / capacity) if capacity > 0 else float("nan")
        for kind, busy, capacity in zip(
            schedule.cluster.gpu_types, busy_gpu_s(schedule), capacity_s, strict=True
        )
    }


def flops_utilisation(schedule: Schedule) -> float:
    """Return utilisation with each GPU weighted by its peak arithmetic rate.

    Leaving a fast GPU idle costs more here than leaving a slow one idle.
    """
    flops = np.array([kind.flops for kind in schedule.cluster.gpu_types])
    capacity = float(flops @ gpus_by_type(schedule.cluster)) * horizon_length_s(schedule)
    return float(flops @ busy_gpu_s(schedule)) / capacity if capacity > 0 else float("nan")
