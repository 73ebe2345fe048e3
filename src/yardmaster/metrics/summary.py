"""A schedule in one line: every metric of the catalogue at once.

Averages are over all finished jobs. Jobs that did not finish are never dropped silently: how many
were unfinished, failed, unplaceable or not submitted stands beside the averages, with the age of
the unfinished ones. Percentiles interpolate linearly between neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yardmaster.metrics import energy, fairness, per_job, tenants, timeline, utilisation
from yardmaster.metrics.catalogue import METRIC_NAMES, METRICS, Metric, metric
from yardmaster.metrics.fragmentation import leftovers
from yardmaster.metrics.groups import by_group
from yardmaster.metrics.outages import availability
from yardmaster.metrics.power import power_timeline
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import FloatArray, IntArray

__all__ = [
    "METRICS",
    "METRIC_NAMES",
    "Metric",
    "by_group",
    "makespan_s",
    "metric",
    "summarise",
    "summarise_blocks",
]


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The per-job columns that job metrics sum up."""

    outcome: npt.NDArray[np.int8]
    jct_s: FloatArray
    wait_s: FloatArray
    queued_s: FloatArray
    slowdown: FloatArray
    bounded_slowdown: FloatArray
    tardiness_s: FloatArray
    deadline_missed: FloatArray
    age_s: FloatArray
    events: Mapping[str, IntArray]
    """Counts by the metric's name."""
    held_gpu_s: FloatArray
    wasted_gpu_s: FloatArray


def summarise(
    schedule: Schedule,
    *,
    queue_threshold: int = timeline.EXPLOSION_THRESHOLD,
    price_per_kwh: float | None = None,
) -> dict[str, float]:
    """Return every metric of `METRICS` by name, in that order; NaN where one has no meaning.

    Args:
        schedule: what happened.
        queue_threshold: queued jobs beyond which a queue that does not drain has exploded.
        price_per_kwh: a flat price of electricity in place of the site's.
    """
    everyone = slice(0, len(schedule.workload))
    found = _job_metrics(_columns(schedule), everyone)
    found |= _schedule_metrics(schedule, queue_threshold, price_per_kwh)
    return {name: float(found[name]) for name in METRIC_NAMES}


def summarise_blocks(schedule: Schedule, blocks: Sequence[slice]) -> list[dict[str, float]]:
    """Return the metrics of scope `jobs` for each block of rows (see `statistics.blocks`)."""
    columns = _columns(schedule)
    return [_job_metrics(columns, block) for block in blocks]


def makespan_s(schedule: Schedule) -> float:
    """Return seconds from the first submission to the last completion.

    Where jobs are unfinished at the cut, it is the time to the cut: a lower bound.
    """
    begin, cut = schedule.horizon_s
    if per_job.is_unfinished(schedule).any():
        return cut - begin
    ends = schedule.end_s[per_job.is_finished(schedule)]
    return float(ends.max()) - begin if len(ends) else float("nan")


def _columns(schedule: Schedule) -> _Columns:
    return _Columns(
        outcome=schedule.outcome,
        jct_s=per_job.jct_s(schedule),
        wait_s=per_job.wait_s(schedule),
        queued_s=per_job.queued_s(schedule),
        slowdown=per_job.slowdown(schedule),
        bounded_slowdown=per_job.bounded_slowdown(schedule),
        tardiness_s=per_job.tardiness_s(schedule),
        deadline_missed=per_job.deadline_missed(schedule),
        age_s=per_job.age_s(schedule),
        events={
            "preemptions": per_job.interruptions(schedule, Cause.PREEMPTED),
            "migrations": per_job.interruptions(schedule, Cause.MIGRATED),
            "resizes": per_job.interruptions(schedule, Cause.RESIZED),
            "restarts": per_job.restarts(schedule),
        },
        held_gpu_s=per_job.held_gpu_s(schedule),
        wasted_gpu_s=per_job.wasted_gpu_s(schedule),
    )


def _job_metrics(columns: _Columns, rows: slice) -> dict[str, float]:
    held = float(columns.held_gpu_s[rows].sum())
    wasted = float(columns.wasted_gpu_s[rows].sum())
    return {
        **_spread("jct_s", columns.jct_s[rows], (50, 95, 99)),
        **_spread("wait_s", columns.wait_s[rows], (95, 99)),
        **_spread("queued_s", columns.queued_s[rows], ()),
        **_spread("slowdown", columns.slowdown[rows], ()),
        **_spread("bounded_slowdown", columns.bounded_slowdown[rows], (95,)),
        **_spread("tardiness_s", columns.tardiness_s[rows], ()),
        **_spread("age_unfinished_s", columns.age_s[rows], ()),
        "deadline_miss_rate": _mean(columns.deadline_missed[rows]),
        **{name: float(column[rows].sum()) for name, column in columns.events.items()},
        "wasted_gpu_h": wasted / 3600.0,
        "goodput": 1.0 - wasted / held if held > 0 else float("nan"),
        **_counts(columns.outcome[rows]),
    }


def _mean(column: FloatArray) -> float:
    """Return the mean of the values that are there; NaN if none is."""
    values = column[~np.isnan(column)]
    return float(values.mean()) if len(values) else float("nan")


def _spread(name: str, column: FloatArray, percentiles: tuple[int, ...]) -> dict[str, float]:
    """Return the mean and the percentiles of the values that are there; NaN if none is."""
    values = column[~np.isnan(column)]
    names = [f"mean_{name}", *(f"p{percent}_{name}" for percent in percentiles)]
    if not len(values):
        return dict.fromkeys(names, float("nan"))
    numbers = [values.mean(), *np.percentile(values, percentiles)]
    return {key: float(number) for key, number in zip(names, numbers, strict=True)}


def _counts(outcome: npt.NDArray[np.int8]) -> dict[str, float]:
    counts = np.bincount(outcome, minlength=len(Outcome))
    return {
        "finished": float(counts[Outcome.FINISHED]),
        "unfinished": float(counts[Outcome.RUNNING] + counts[Outcome.QUEUED]),
        "failed": float(counts[Outcome.FAILED]),
        "unplaceable": float(counts[Outcome.UNPLACEABLE]),
        "not_submitted": float(counts[Outcome.NOT_SUBMITTED]),
        "jobs": float(len(outcome)),
    }


def _schedule_metrics(
    schedule: Schedule, threshold: int, price_per_kwh: float | None
) -> dict[str, float]:
    return {
        "makespan_s": makespan_s(schedule),
        "utilisation": utilisation.utilisation(schedule),
        "flops_utilisation": utilisation.flops_utilisation(schedule),
        "availability": availability(schedule),
        **_queue_metrics(schedule, threshold),
        "jain_slowdown": fairness.jain_slowdown(schedule),
        "slowdown_ratio": fairness.slowdown_ratio(schedule),
        "worst_tenant_slowdown": fairness.worst_tenant_slowdown(schedule),
        "min_tenant_share": tenants.min_tenant_share(schedule),
        "quota_violation_h": tenants.quota_violation_h(schedule),
        **_power_metrics(schedule, price_per_kwh),
        **_leftover_metrics(schedule),
    }


def _queue_metrics(schedule: Schedule, threshold: int) -> dict[str, float]:
    queue = timeline.queue_length(schedule)
    exploded = timeline.queue_exploded(schedule, threshold=threshold, queue=queue)
    return {
        "mean_queue": queue.time_average(),
        "max_queue": queue.maximum(),
        "queue_exploded": float(exploded),
    }


def _power_metrics(schedule: Schedule, price_per_kwh: float | None) -> dict[str, float]:
    power = power_timeline(schedule)
    return {
        "energy_kwh": energy.energy_kwh(schedule, power=power),
        "energy_cost": energy.energy_cost(schedule, price_per_kwh=price_per_kwh, power=power),
        "carbon_kg": energy.carbon_kg(schedule, power=power),
        "peak_power_w": power.maximum(),
    }


def _leftover_metrics(schedule: Schedule) -> dict[str, float]:
    fragmented, partial = leftovers(schedule)
    return {
        "fragmentation_gpus": fragmented.time_average(),
        "free_partial_gpus": partial.time_average(),
    }
