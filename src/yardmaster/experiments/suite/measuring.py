"""What a run is summed up to: all metrics of the catalogue, and what experiments ask for besides.

Part of what every run depends on (see `fingerprints`): a change here makes all runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from yardmaster.metrics import per_job, timeline
from yardmaster.metrics.catalogue import METRIC_NAMES
from yardmaster.metrics.fairness import jain_index
from yardmaster.metrics.summary import summarise
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray

MORE_MEASURES = MappingProxyType(
    {
        "sla": "Jobs that met their deadline / jobs with one: 1 − deadline_miss_rate.",
        "jain_jobs": "Jain's index over the slowdowns of finished jobs.",
        "jain_jct": "Jain's index over the completion times of finished jobs.",
        "utilisation_sd": "Standard deviation over time of busy GPUs / GPUs.",
        "thermal_sd_c": "The same of a GPU at 40 °C + 40 °C × utilisation: RLMetaDQN's stand-in"
        " for a temperature, 40 × utilisation_sd.",
        "decisions": "Times a scheduler was chosen; 0 where one is used throughout.",
        "switches": "Times another scheduler was chosen than the one in use.",
        "choice_entropy": "Entropy of the shares of the schedulers chosen, in nats.",
        "recovery_s": "Mean time after a change of the jobs until the queue is half its maximum"
        " since; NaN where nothing changes, or the queue never is.",
        "unrecovered": "Changes after which the queue never was.",
    }
)
"""Name → definition of what is measured beyond the catalogue of metrics."""

MEASURES: tuple[str, ...] = (*METRIC_NAMES, *MORE_MEASURES)
"""The numbers of every run, in this order."""

MIXED = "mixed_cost"
"""An objective that only runs on the same jobs together tell: see `MIXED_MEANING`."""
MIXED_MEANING = (
    "0.45 × mean completion time by the least of fixed schedulers on the same jobs, + 0.45 × the"
    " same of the 95th percentile, + 0.1 × share of deadlines missed."
)

JCT_SHARES = np.linspace(0.0, 1.0, 201)
"""Shares of the jobs at which the distribution of completion times is kept."""

WARM_C = 40.0
"""Degrees that RLMetaDQN lets a GPU warm up from idle to busy."""


class Measured(NamedTuple):
    """One run in numbers."""

    numbers: FloatArray
    """(measures,) in the order of `MEASURES`."""
    jct_quantiles_s: npt.NDArray[np.float32]
    """(201,) completion times of finished jobs at `JCT_SHARES`."""


def measured(schedule: Schedule, changes_s: Sequence[float] = ()) -> Measured:
    """Sum up a schedule; `changes_s` are the seconds at which its jobs change their nature."""
    found = summarise(schedule)
    finished = per_job.is_finished(schedule)
    jct_s = per_job.jct_s(schedule)[finished]
    spread = _utilisation_sd(schedule)
    more = {
        "sla": 1.0 - found["deadline_miss_rate"],
        "jain_jobs": jain_index(per_job.slowdown(schedule)[finished]),
        "jain_jct": jain_index(jct_s),
        "utilisation_sd": spread,
        "thermal_sd_c": WARM_C * spread,
        **_choices(schedule),
        **_recovery(schedule, changes_s),
    }
    numbers = np.array([(found | more)[name] for name in MEASURES])
    if not len(jct_s):
        return Measured(numbers, np.full(len(JCT_SHARES), np.nan, dtype=np.float32))
    return Measured(numbers, np.quantile(jct_s, JCT_SHARES).astype(np.float32))


def _utilisation_sd(schedule: Schedule) -> float:
    """Return how much the share of busy GPUs varies over time; NaN over no time."""
    busy = timeline.busy_gpus(schedule)
    span_s = np.diff(busy.edges_s)
    if not span_s.sum() > 0:
        return float("nan")
    share = busy.values / schedule.cluster.gpus
    mean = np.average(share, weights=span_s)
    return float(np.sqrt(np.average((share - mean) ** 2, weights=span_s)))


def _choices(schedule: Schedule) -> dict[str, float]:
    """Return how often and how evenly a scheduler that chooses among others did so."""
    chosen = np.array(list(schedule.choices.values()), dtype=np.float64)
    total = float(chosen.sum())
    if not total:
        return {"decisions": 0.0, "switches": 0.0, "choice_entropy": 0.0}
    share = chosen[chosen > 0] / total
    return {
        "decisions": total,
        "switches": float(schedule.switches),
        "choice_entropy": float(-(share @ np.log(share))) + 0.0,
    }


def _recovery(schedule: Schedule, changes_s: Sequence[float]) -> dict[str, float]:
    """Return how long the queue took to recover from changes, on average."""
    if not changes_s:
        return {"recovery_s": float("nan"), "unrecovered": 0.0}
    from yardmaster.metrics.recovery import transition_recovery_s

    taken = np.array([transition_recovery_s(schedule, change) for change in changes_s])
    return {
        "recovery_s": float(taken.mean()),
        "unrecovered": float(np.count_nonzero(np.isnan(taken))),
    }
