"""What the schedule drew from the wall, and what that cost.

A GPU draws its type's busy watts while a job holds it and its idle watts otherwise; a GPU held by
a fraction draws in between, in proportion. Nodes add their overhead for the whole horizon.
"""

from __future__ import annotations

import numpy as np

from yardmaster.metrics.utilisation import busy_gpu_s, gpus_by_type, horizon_length_s
from yardmaster.model.schedule import Schedule

JOULES_PER_KWH = 3.6e6

PRICE_PER_KWH = 0.15
"""Price of a kilowatt-hour, in whatever currency the reader thinks in."""


def energy_kwh(schedule: Schedule) -> float:
    """Return the kilowatt-hours of GPUs and nodes over the horizon."""
    cluster = schedule.cluster
    length_s = horizon_length_s(schedule)
    busy_s = busy_gpu_s(schedule)
    idle_s = gpus_by_type(cluster) * length_s - busy_s
    busy_w = np.array([kind.busy_w for kind in cluster.gpu_types])
    idle_w = np.array([kind.idle_w for kind in cluster.gpu_types])
    overhead_j = float(cluster.node_overhead_w.sum()) * length_s
    return (float(busy_w @ busy_s) + float(idle_w @ idle_s) + overhead_j) / JOULES_PER_KWH


def energy_cost(schedule: Schedule, *, price_per_kwh: float = PRICE_PER_KWH) -> float:
    """Return the price of that energy at one flat price per kilowatt-hour."""
    return energy_kwh(schedule) * price_per_kwh
