"""What tenants were guaranteed, what they got, and when one lived at another's expense.

Quotas name tenants, so users never stand in for them here unless there are neither quotas nor
tenants. Tenants without a quota, and jobs without a tenant, are guaranteed nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from yardmaster.metrics.fairness import tenant_labels
from yardmaster.metrics.groups import group_codes
from yardmaster.metrics.per_job import (
    bounded_slowdown,
    gpu_share,
    held_gpu_s,
    is_failed,
    is_finished,
    is_unfinished,
    jct_s,
    slowdown,
)
from yardmaster.metrics.timeline import QueueIntervals, queue_intervals
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray


class TenantRow(NamedTuple):
    """One tenant; means are over its finished jobs, NaN if there are none."""

    tenant: str
    jobs: int
    finished: int
    gpu_h: float
    """GPU-hours its jobs held."""
    mean_jct_s: float
    mean_slowdown: float
    mean_bounded_slowdown: float
    guaranteed_gpus: int


class _Tenants(NamedTuple):
    """Tenants in the order of tables, the one of jobs without a name last."""

    names: list[str]
    of_job: IntArray
    guaranteed_gpus: IntArray


def tenant_table(schedule: Schedule) -> tuple[TenantRow, ...]:
    """Return one row per tenant (else user) with jobs, by name; jobs without one come last."""
    names, of_job, guaranteed = _tenants(schedule)
    count = len(names)
    finished = is_finished(schedule)
    jobs = np.bincount(of_job, minlength=count)
    done = np.bincount(of_job[finished], minlength=count)
    held_h = np.bincount(of_job, held_gpu_s(schedule), minlength=count) / 3600.0
    means = [
        np.bincount(of_job[finished], column[finished], minlength=count) / np.maximum(done, 1)
        for column in (jct_s(schedule), slowdown(schedule), bounded_slowdown(schedule))
    ]
    jct, slow, bounded = (np.where(done > 0, mean, np.nan) for mean in means)
    columns = (jobs, done, held_h, jct, slow, bounded, guaranteed)
    return tuple(
        TenantRow(names[tenant], *(column[tenant].item() for column in columns))
        for tenant in np.flatnonzero(jobs)
    )


def min_tenant_share(schedule: Schedule) -> float:
    """Return the least, over tenants, of GPU-hours held / those it was entitled to.

    A tenant is entitled to what its jobs ask for, up to its guarantee over the horizon. A finished
    job asked for what it held; any other for its run time on its GPUs, or what it held if that is
    more. NaN without quotas, and if no tenant with a guarantee asked for anything.
    """
    if not schedule.cluster.site.quotas:
        return float("nan")
    names, of_job, guaranteed = _tenants(schedule)
    held_s = held_gpu_s(schedule)
    open_s = np.maximum(held_s, schedule.workload.duration_s * gpu_share(schedule))
    is_open = is_unfinished(schedule) | is_failed(schedule)
    asked_s = np.where(is_open, open_s, np.where(is_finished(schedule), held_s, 0.0))
    begin, end = schedule.horizon_s
    received = np.bincount(of_job, held_s, minlength=len(names))
    asked = np.bincount(of_job, asked_s, minlength=len(names))
    entitled = np.minimum(asked, guaranteed * (end - begin))
    counts = entitled > 0
    return float((received[counts] / entitled[counts]).min()) if counts.any() else float("nan")


def quota_violation_h(schedule: Schedule) -> float:
    """Return hours in which a tenant waited within its guarantee while another held more than its.

    A queued job is within the guarantee if its GPUs and those its tenant holds do not exceed it,
    whether or not it would fit where GPUs are free. Jobs count whole GPUs, as quotas do; an elastic
    job waits with its fewest and holds what it has. NaN without quotas.
    """
    if not schedule.cluster.site.quotas:
        return float("nan")
    tenants, queue = _tenants(schedule), queue_intervals(schedule)
    first, cut = schedule.horizon_s
    events = (schedule.segment_start_s, schedule.segment_end_s, queue.begin_s, queue.end_s)
    times = np.unique(np.concatenate(([first, cut], *events)))
    owner = tenants.of_job[schedule.segment_job]
    someone_waits = np.zeros(len(times), dtype=np.bool_)
    someone_over = np.zeros(len(times), dtype=np.bool_)
    for tenant in np.unique(tenants.of_job):
        used = _used(schedule, np.flatnonzero(owner == tenant), times)
        guaranteed = int(tenants.guaranteed_gpus[tenant])
        someone_over |= used > guaranteed
        if guaranteed > 0:
            own = tenants.of_job[queue.job] == tenant
            waiting = QueueIntervals(*(column[own] for column in queue))
            someone_waits |= _waits_within(schedule, waiting, guaranteed - used, times)
    # A tenant that waits within its guarantee holds less than that, so the other is another.
    is_violated = (someone_waits & someone_over)[:-1]
    return float(np.diff(times)[is_violated].sum()) / 3600.0


def _tenants(schedule: Schedule) -> _Tenants:
    site, workload = schedule.cluster.site, schedule.workload
    labels = workload.tenant if site.quotas else tenant_labels(workload)
    names, of_job = group_codes(workload.tenant if labels is None else labels)
    by_name = {quota.tenant: quota.guaranteed_gpus for quota in site.quotas}
    # The last group is that of jobs without a tenant, whatever a tenant may be called.
    guaranteed = [*(by_name.get(name, 0) for name in names[:-1]), 0]
    return _Tenants(names, of_job, np.array(guaranteed, dtype=np.int64))


def _used(schedule: Schedule, segments: IntArray, times: FloatArray) -> IntArray:
    """Return GPUs these segments hold from each time on."""
    gpus = np.diff(schedule.segment_gpu_offset)[segments]
    begin, end = schedule.segment_start_s[segments], schedule.segment_end_s[segments]
    return _level(times, begin, end, gpus)


def _waits_within(
    schedule: Schedule, queue: QueueIntervals, left_gpus: IntArray, times: FloatArray
) -> BoolArray:
    """Return whether, from each time on, some queued job needs no more than the GPUs left."""
    workload = schedule.workload
    fewest = np.where(workload.min_gpus > 0, workload.min_gpus, workload.gpus)[queue.job]
    found = np.zeros(len(times), dtype=np.bool_)
    for gpus in np.unique(fewest[fewest <= left_gpus.max()]):
        same = fewest == gpus
        ones = np.ones(np.count_nonzero(same), dtype=np.int64)
        waiting = _level(times, queue.begin_s[same], queue.end_s[same], ones)
        found |= (waiting > 0) & (left_gpus >= gpus)
    return found


def _level(times: FloatArray, begin_s: FloatArray, end_s: FloatArray, weight: IntArray) -> IntArray:
    """Return the total weight of the spans over each time; all begins and ends are times."""
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, np.searchsorted(times, begin_s), weight)
    np.subtract.at(change, np.searchsorted(times, end_s), weight)
    return np.cumsum(change)
