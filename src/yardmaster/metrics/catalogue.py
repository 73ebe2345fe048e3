"""Every metric by name: its unit, which way is better, and what exactly it means.

The names are what users type as an objective and what tables and result files carry.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from yardmaster.names import unknown

Better = Literal["lower", "higher", "neither"]
Scope = Literal["jobs", "schedule"]


class Metric(NamedTuple):
    """One number that sums up a schedule."""

    name: str
    unit: str
    better: Better
    """Which way is better; `neither` for what no scheduler can change."""
    scope: Scope
    """`jobs` can be computed over any part of the jobs, `schedule` over the whole only."""
    definition: str


METRICS: tuple[Metric, ...] = (
    Metric("mean_jct_s", "s", "lower", "jobs",
           "Mean time from submission to completion, over finished jobs."),
    Metric("p50_jct_s", "s", "lower", "jobs", "Median time from submission to completion."),
    Metric("p95_jct_s", "s", "lower", "jobs", "95th percentile of the completion time."),
    Metric("p99_jct_s", "s", "lower", "jobs", "99th percentile of the completion time."),
    Metric("mean_wait_s", "s", "lower", "jobs",
           "Mean time from submission to the first start, over finished jobs."),
    Metric("p95_wait_s", "s", "lower", "jobs", "95th percentile of the waiting time."),
    Metric("p99_wait_s", "s", "lower", "jobs", "99th percentile of the waiting time."),
    Metric("mean_queued_s", "s", "lower", "jobs",
           "Mean time submitted and not running, up to completion and between runs too."),
    Metric("mean_slowdown", "×", "lower", "jobs",
           "Mean of completion time / the run time asked for (duration_s, on the GPUs it was"
           " measured on), over finished jobs; zero run time counts as 1 s."),
    Metric("mean_bounded_slowdown", "×", "lower", "jobs",
           "Mean of max(1, completion time / max(run time asked for, 10 s)), over finished jobs."),
    Metric("p95_bounded_slowdown", "×", "lower", "jobs",
           "95th percentile of the bounded slowdown."),
    Metric("makespan_s", "s", "lower", "schedule",
           "First submission to last completion; to the cut if jobs are unfinished then."),
    Metric("utilisation", "fraction", "higher", "schedule",
           "GPU-hours held by running jobs / GPU-hours of the horizon, outages left out; a shared"
           " GPU counts with the sum of its shares."),
    Metric("flops_utilisation", "fraction", "higher", "schedule",
           "Utilisation with each GPU weighted by its peak FP32 rate."),
    Metric("availability", "fraction", "neither", "schedule",
           "GPU-hours not lost to outages / GPU-hours of the horizon."),
    Metric("mean_queue", "jobs", "lower", "schedule",
           "Time average of jobs submitted and not running, interrupted ones included."),
    Metric("max_queue", "jobs", "lower", "schedule", "Longest queue over the horizon."),
    Metric("queue_exploded", "0 or 1", "lower", "schedule",
           "1 if the queue passed the threshold and held as many still at the last submission."),
    Metric("jain_slowdown", "0…1", "higher", "schedule",
           "Jain's index over tenants' (else users') mean slowdowns; 1 if all suffer alike."),
    Metric("slowdown_ratio", "×", "lower", "schedule",
           "Largest mean slowdown of a tenant (else user) / smallest."),
    Metric("worst_tenant_slowdown", "×", "lower", "schedule",
           "Largest mean bounded slowdown of a tenant (else user)."),
    Metric("min_tenant_share", "fraction", "higher", "schedule",
           "Least, over tenants with a guarantee, of GPU-hours held / the smaller of GPU-hours"
           " asked for and guaranteed over the horizon; above 1: more than the guarantee."),
    Metric("quota_violation_h", "h", "lower", "schedule",
           "Hours in which a job within its tenant's guarantee waited while another tenant held"
           " more than its own."),
    Metric("deadline_miss_rate", "fraction", "lower", "jobs",
           "Jobs past their deadline / jobs with one whose fate is known; unfinished ones count"
           " from then on, failed ones always."),
    Metric("mean_tardiness_s", "s", "lower", "jobs",
           "Mean time past the deadline, 0 where met, over the same jobs; unfinished and failed"
           " ones up to the end of the horizon."),
    Metric("energy_kwh", "kWh", "lower", "schedule",
           "Busy and idle watts of all GPUs and overhead of all nodes over the horizon; nodes"
           " asleep or away draw nothing."),
    Metric("energy_cost", "currency", "lower", "schedule",
           "Energy at the site's price of each hour of the day, else at a flat 0.15 per kWh."),
    Metric("carbon_kg", "kg", "lower", "schedule",
           "CO₂ of the energy at the site's figure for each hour of the day."),
    Metric("peak_power_w", "W", "lower", "schedule",
           "Most watts drawn at once by GPUs and nodes."),
    Metric("fragmentation_gpus", "GPUs", "lower", "schedule",
           "Time average of idle GPUs that no queued job can use; 0 while the queue is empty."),
    Metric("free_partial_gpus", "GPUs", "lower", "schedule",
           "Time average of free GPUs on nodes that are partly used, whoever waits."),
    Metric("preemptions", "count", "lower", "jobs", "Runs stopped to make room for another job."),
    Metric("migrations", "count", "lower", "jobs", "Runs moved to other GPUs."),
    Metric("resizes", "count", "lower", "jobs", "Runs that went on with more or fewer GPUs."),
    Metric("restarts", "count", "lower", "jobs",
           "Starts of a job again after a node had failed under it."),
    Metric("wasted_gpu_h", "GPU-h", "lower", "jobs",
           "GPU-hours held without progress: restoring, and work lost and done again."),
    Metric("goodput", "fraction", "higher", "jobs", "GPU-hours not wasted / GPU-hours held."),
    Metric("finished", "jobs", "higher", "jobs", "Jobs that finished."),
    Metric("unfinished", "jobs", "lower", "jobs", "Jobs queued or running when it was cut."),
    Metric("mean_age_unfinished_s", "s", "lower", "jobs",
           "Mean time from submission to the cut, over unfinished jobs."),
    Metric("failed", "jobs", "lower", "jobs",
           "Jobs that lost their nodes more often than the site starts a job again."),
    Metric("unplaceable", "jobs", "neither", "jobs",
           "Jobs that ask for what the empty cluster could not give: GPUs, type, memory, host."),
    Metric("not_submitted", "jobs", "neither", "jobs", "Jobs whose submission lies past the cut."),
    Metric("jobs", "jobs", "neither", "jobs", "Jobs of the workload: the sum of the five counts."),
)  # fmt: skip

METRIC_NAMES: tuple[str, ...] = tuple(metric.name for metric in METRICS)

_BY_NAME = {metric.name: metric for metric in METRICS}


def metric(name: str) -> Metric:
    """Return the metric of this name.

    Raises:
        UnknownNameError: with the nearest names, if there is none.
    """
    if name not in _BY_NAME:
        raise unknown("metric", name, METRIC_NAMES)
    return _BY_NAME[name]
