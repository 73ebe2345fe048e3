"""A schedule in one line: every metric of the catalogue at once.

Averages are over all finished jobs. Jobs that did not finish are never dropped silently: how many
were unfinished, unplaceable or not submitted stands beside the averages, with the age of the
unfinished ones. Percentiles interpolate linearly between neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yardmaster.metrics import energy, fairness, fragmentation, per_job, timeline, utilisation
from yardmaster.metrics.catalogue import METRIC_NAMES, METRICS, Metric, metric
from yardmaster.metrics.groups import by_group
from yardmaster.model.schedule import Outcome, Schedule
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
    slowdown: FloatArray
    bounded_slowdown: FloatArray
    tardiness_s: FloatArray
    age_s: FloatArray
    preemptions: IntArray
    wasted_gpu_s: FloatArray


def summarise(
    schedule: Schedule,
    *,
    queue_threshold: int = timeline.EXPLOSION_THRESHOLD,
    price_per_kwh: float = energy.PRICE_PER_KWH,
) -> dict[str, float]:
    """Return every metric of `METRICS` by name, in that order; NaN where one has no meaning."""
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
        slowdown=per_job.slowdown(schedule),
        bounded_slowdown=per_job.bounded_slowdown(schedule),
        tardiness_s=per_job.tardiness_s(schedule),
        age_s=per_job.age_s(schedule),
        preemptions=per_job.preemptions(schedule),
        wasted_gpu_s=per_job.wasted_gpu_s(schedule),
    )


def _job_metrics(columns: _Columns, rows: slice) -> dict[str, float]:
    tardiness = columns.tardiness_s[rows]
    known = tardiness[~np.isnan(tardiness)]
    return {
        **_spread("jct_s", columns.jct_s[rows], (50, 95, 99)),
        **_spread("wait_s", columns.wait_s[rows], (95, 99)),
        **_spread("slowdown", columns.slowdown[rows], ()),
        **_spread("bounded_slowdown", columns.bounded_slowdown[rows], (95,)),
        **_spread("tardiness_s", known, ()),
        **_spread("age_unfinished_s", columns.age_s[rows], ()),
        "deadline_miss_rate": float(np.mean(known > 0)) if len(known) else float("nan"),
        "preemptions": float(columns.preemptions[rows].sum()),
        "wasted_gpu_h": float(columns.wasted_gpu_s[rows].sum()) / 3600.0,
        **_counts(columns.outcome[rows]),
    }


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
        "unplaceable": float(counts[Outcome.UNPLACEABLE]),
        "not_submitted": float(counts[Outcome.NOT_SUBMITTED]),
        "jobs": float(len(outcome)),
    }


def _schedule_metrics(schedule: Schedule, threshold: int, price: float) -> dict[str, float]:
    queue = timeline.queue_length(schedule)
    kwh = energy.energy_kwh(schedule)
    return {
        "makespan_s": makespan_s(schedule),
        "utilisation": utilisation.utilisation(schedule),
        "flops_utilisation": utilisation.flops_utilisation(schedule),
        "mean_queue": queue.time_average(),
        "max_queue": queue.maximum(),
        "queue_exploded": float(
            timeline.queue_exploded(schedule, threshold=threshold, queue=queue)
        ),
        "jain_slowdown": fairness.jain_slowdown(schedule),
        "slowdown_ratio": fairness.slowdown_ratio(schedule),
        "energy_kwh": kwh,
        "energy_cost": kwh * price,
        "fragmentation_gpus": fragmentation.fragmentation_gpus(schedule),
    }
