"""How many GPUs the jobs ask for over time, and what load that is for a cluster.

Demand at a moment is the GPUs that would be busy if every job started when it is submitted. It says
when people want GPUs, whatever a scheduler makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import BoolArray, FloatArray, Workload
from yardmaster.workloads.clock import DAY_S, HOUR_S, date_of, since_monday_s
from yardmaster.workloads.description.owners import groups_of
from yardmaster.workloads.description.shapes import gpu_time_s, gpus_held
from yardmaster.workloads.description.spread import share

MOST_STEPS = 2_000_000
"""Peaks are not sought among more hours or days than these: such a clock has gone wrong."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The hour or day of the highest mean demand.

    Attributes:
        begins_s: when it begins, on the workload's clock.
        begins: the same as a local date, "" where unknown.
        gpus: mean demand in it.
        load: this divided by the cluster's GPUs; NaN without a cluster.
    """

    begins_s: float
    begins: str
    gpus: float
    load: float


@dataclass(frozen=True, slots=True)
class TenantLoad:
    """The load one tenant offers; None is the jobs without a tenant."""

    name: str | None
    load: float


@dataclass(frozen=True, slots=True)
class Load:
    """What the jobs mean to a cluster.

    Attributes:
        cluster: its name.
        gpus: its GPUs.
        load: offered load: work divided by what the cluster can do between the first and the last
            submission.
        tenants: the load each tenant offers, the largest first; they add up to `load`.
        jobs_too_large: jobs that the empty cluster could not hold; None if nobody looked.
        too_large_gpu_time_share: their share of all GPU time.
        too_large_reasons: why it could not, alike jobs together.
    """

    cluster: str
    gpus: int
    load: float
    tenants: tuple[TenantLoad, ...]
    jobs_too_large: int | None
    too_large_gpu_time_share: float
    too_large_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """How many GPUs the jobs ask for.

    Attributes:
        work_gpu_h: GPU-hours in total.
        mean_gpus: work divided by the time from first to last submission; infinite if that is 0.
        peak_hour: the hour of the highest mean demand; None if submissions take less than an hour,
            or too long to look.
        peak_day: the same for days, which begin at midnight.
        load: what this means to a cluster, if there is one.
    """

    work_gpu_h: float
    mean_gpus: float
    peak_hour: Peak | None
    peak_day: Peak | None
    load: Load | None


def demand_of(
    workload: Workload,
    cluster: Cluster | None,
    fits: BoolArray | None,
    reasons: Sequence[str] = (),
) -> Demand:
    """Sum up the demand, and the load on a cluster.

    Args:
        workload: the jobs.
        cluster: the machines, if known.
        fits: (jobs,) whether the empty cluster could hold each job; None if unknown.
        reasons: why it could not hold the others, alike jobs together.
    """
    gpus = None if cluster is None else cluster.gpus
    return Demand(
        work_gpu_h=workload.work_gpu_s / HOUR_S,
        mean_gpus=workload.load(1),
        peak_hour=_peak(workload, HOUR_S, gpus),
        peak_day=_peak(workload, DAY_S, gpus),
        load=None if cluster is None else _load(workload, cluster, fits, reasons),
    )


def mean_demand(workload: Workload, edges_s: FloatArray) -> FloatArray:
    """Return the mean demand in GPUs between each two of the increasing `edges_s`."""
    held, origin_s = gpus_held(workload), float(workload.submit_s[0])
    edges_s = edges_s - origin_s  # small numbers keep their digits in the sums below
    begin_s, end_s = workload.submit_s - origin_s, workload.submit_s - origin_s
    end_s = end_s + workload.duration_s
    by_end = np.argsort(end_s)
    work_s = _passed(begin_s, held, edges_s) - _passed(end_s[by_end], held[by_end], edges_s)
    return np.maximum(np.diff(work_s) / np.diff(edges_s), 0.0)


def bins_s(workload: Workload, step_s: float) -> FloatArray | None:
    """Return the borders of hours or days of the calendar that hold all submissions.

    None if there are more than `MOST_STEPS`.
    """
    offset_s = since_monday_s(workload)
    first = np.floor((workload.submit_s[0] + offset_s) / step_s)
    last = np.floor((workload.submit_s[-1] + offset_s) / step_s)
    if last - first > MOST_STEPS:
        return None
    return np.asarray(np.arange(first, last + 2) * step_s - offset_s, dtype=np.float64)


def _passed(times_s: FloatArray, held: FloatArray, edges_s: FloatArray) -> FloatArray:
    """Return Σ held · max(0, edge − time) at each edge, for increasing times."""
    place = np.searchsorted(times_s, edges_s)
    gpus = np.concatenate(([0.0], np.cumsum(held)))[place]
    return np.asarray(gpus * edges_s - np.concatenate(([0.0], np.cumsum(held * times_s)))[place])


def _peak(workload: Workload, step_s: float, gpus: int | None) -> Peak | None:
    edges_s = bins_s(workload, step_s)
    # The mean of a day in which jobs come for an hour is below the mean of the hour: no peak.
    if edges_s is None or np.ptp(workload.submit_s) < step_s:
        return None
    means = mean_demand(workload, edges_s)
    place = int(np.argmax(means))
    begins_s = float(edges_s[place])
    load = float("nan") if gpus is None else float(means[place]) / gpus
    return Peak(begins_s, date_of(workload, begins_s), float(means[place]), load)


def _load(
    workload: Workload, cluster: Cluster, fits: BoolArray | None, reasons: Sequence[str]
) -> Load:
    load = workload.load(cluster.gpus)
    work_s = gpu_time_s(workload)
    too_large_s = float("nan") if fits is None else float(work_s[~fits].sum())
    return Load(
        cluster=cluster.name,
        gpus=cluster.gpus,
        load=load,
        tenants=tuple(
            TenantLoad(group.name, group.gpu_time_share * load)
            for group in groups_of(workload, workload.tenant)
        ),
        jobs_too_large=None if fits is None else int(np.count_nonzero(~fits)),
        too_large_gpu_time_share=share(too_large_s, float(work_s.sum())),
        too_large_reasons=tuple(reasons),
    )
