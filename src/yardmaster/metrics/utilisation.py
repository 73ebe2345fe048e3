"""How much of the cluster's capacity did work: by GPU time, and by the arithmetic it could do.

Running jobs count, waiting jobs do not. A job cut by the end of the simulation counts up to the
cut. A GPU shared by several jobs is busy to the sum of their shares. Nodes that are away are no
capacity.
"""

from __future__ import annotations

import numpy as np

from yardmaster.metrics.holdings import busy_spans
from yardmaster.metrics.outages import capacity_gpu_s
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray


def busy_gpu_s(schedule: Schedule) -> FloatArray:
    """Return (types,) GPU-seconds that running jobs held on each GPU type."""
    types = len(schedule.cluster.gpu_types)
    return np.array([_weighted_busy_s(schedule, one_type) for one_type in np.eye(types)])


def _weighted_busy_s(schedule: Schedule, weight: FloatArray) -> float:
    """Return the busy GPU-seconds, each GPU counted with its type's weight."""
    begin, end, amount = busy_spans(schedule, weight)
    return float(np.sum((end - begin) * amount))


def utilisation(schedule: Schedule) -> float:
    """Return busy GPU-hours / GPU-hours of the horizon that were there; NaN if there were none."""
    return _weighted_utilisation(schedule, np.ones(len(schedule.cluster.gpu_types)))


def utilisation_by_type(schedule: Schedule) -> dict[str, float]:
    """Return the utilisation of the GPUs of each type, by type name."""
    return {
        kind.name: float(busy / capacity) if capacity > 0 else float("nan")
        for kind, busy, capacity in zip(
            schedule.cluster.gpu_types, busy_gpu_s(schedule), capacity_gpu_s(schedule), strict=True
        )
    }


def flops_utilisation(schedule: Schedule) -> float:
    """Return utilisation with each GPU weighted by its peak arithmetic rate.

    Leaving a fast GPU idle costs more here than leaving a slow one idle.
    """
    flops = np.array([kind.flops for kind in schedule.cluster.gpu_types])
    return _weighted_utilisation(schedule, flops)


def _weighted_utilisation(schedule: Schedule, weight: FloatArray) -> float:
    capacity = float(weight @ capacity_gpu_s(schedule))
    return _weighted_busy_s(schedule, weight) / capacity if capacity > 0 else float("nan")
