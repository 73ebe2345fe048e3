"""Whether tenants suffered alike.

A tenant's share of the pain is the mean slowdown of its finished jobs. What tenants were promised,
and whether they got it, is in `tenants`. Users stand in for tenants
where the workload names none. Jobs without a name form one group of their own, so that no job is
left out; tenants without any finished job have no mean and do not count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yardmaster.metrics.per_job import bounded_slowdown, is_finished, slowdown
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Labels, Workload

UNNAMED = "(none)"
"""What tables call the group of jobs without a label."""


def tenant_labels(workload: Workload) -> Labels | None:
    """Return the column that says who suffers: tenants, else users, else None."""
    for labels in (workload.tenant, workload.user):
        if (labels.codes >= 0).any():
            return labels
    return None


def tenant_slowdown(schedule: Schedule) -> dict[str, float]:
    """Return the mean slowdown of each tenant's finished jobs, by name; empty without tenants."""
    return _tenant_means(schedule, slowdown(schedule))


def _tenant_means(schedule: Schedule, column: FloatArray) -> dict[str, float]:
    """Return the mean of a column over each tenant's finished jobs, by name."""
    labels = tenant_labels(schedule.workload)
    if labels is None:
        return {}
    finished = is_finished(schedule)
    codes = labels.codes[finished] + 1
    groups = len(labels.names) + 1
    jobs = np.bincount(codes, minlength=groups)
    total = np.bincount(codes, weights=column[finished], minlength=groups)
    names = (UNNAMED, *labels.names)
    return {names[group]: float(total[group] / jobs[group]) for group in np.flatnonzero(jobs)}


def jain_index(values: npt.ArrayLike) -> float:
    """Return (Σx)² / (n·Σx²): 1 if all values are equal, 1/n if one has everything.

    NaN for no values.
    """
    x: FloatArray = np.asarray(values, dtype=np.float64)
    squares = float(x @ x)
    return float(x.sum()) ** 2 / (len(x) * squares) if squares > 0 else float("nan")


def jain_slowdown(schedule: Schedule) -> float:
    """Return Jain's index over the tenants' mean slowdowns; NaN without tenants and users."""
    return jain_index(list(tenant_slowdown(schedule).values()))


def slowdown_ratio(schedule: Schedule) -> float:
    """Return the worst tenant's mean slowdown divided by the best one's; NaN without tenants."""
    means = tenant_slowdown(schedule).values()
    return max(means) / min(means) if means else float("nan")


def worst_tenant_slowdown(schedule: Schedule) -> float:
    """Return the largest mean bounded slowdown of a tenant; NaN without tenants.

    To lower it, a scheduler must help those who suffer most (max-min fairness).
    """
    means = _tenant_means(schedule, bounded_slowdown(schedule)).values()
    return max(means, default=float("nan"))
