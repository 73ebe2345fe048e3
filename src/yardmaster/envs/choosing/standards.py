"""What the schedulers of a menu make of an episode: the standard that choosing is held to.

Of every metric the best sets the unit in which rewards count. The scheduler whose return would be
highest, kept from the first job to the last, is the one to compare with: what it earns in a span of
time is taken off what the chooser earns in it, so that a return above 0 means better than every
scheduler of the menu.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.engine.choosing.places import GRID, SHORT_S, Term
from yardmaster.envs.choosing.rewards import Best, ChoosingReward
from yardmaster.metrics import per_job
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Standards:
    """What an episode is measured by."""

    best: Best
    mixed: float
    """Lowest `mixed_cost` of a scheduler that is kept all the time."""
    tail_s: tuple[float, float]
    """Ages between which a job counts as old, seconds."""
    weights: FloatArray
    """(terms,) weights of the reward in this episode's units."""
    compared: FloatArray
    """(GRID + 1,) rewards, up to evenly spaced seconds, of the scheduler to compare with."""
    span_s: float
    """The last of these seconds."""


def standards(
    schedules: Sequence[Schedule], reward: ChoosingReward, tail: tuple[float, float]
) -> Standards:
    """Return what an episode is measured by, from the schedules of the menu's schedulers."""
    found = np.array([_measured(one) for one in schedules])
    best = Best(*found.min(axis=0).tolist())
    tail_s = (tail[0] * best.p95_jct_s, tail[1] * best.p95_jct_s)
    weights = reward.row(best, tail)
    mixed = min(mixed_cost(best, row[0], row[1], row[-1]) for row in found.tolist())
    totals = [float(_earned(one, weights, tail_s, np.array([np.inf]))[0]) for one in schedules]
    chosen = schedules[int(np.argmax(totals))]
    span_s = _last_s(chosen)
    curve = _earned(chosen, weights, tail_s, np.linspace(0.0, span_s, GRID + 1))
    curve[-1] = max(totals)
    return Standards(best, mixed, tail_s, weights, curve, span_s)


def kept_gaps(schedules: Sequence[Schedule]) -> FloatArray:
    """Return how far schedulers that were kept all the time are behind the best of them.

    (schedulers, 3): mean and 95th percentile of completion times and `mixed_cost`, each by the
    least of any scheduler, less 1.
    """
    found = [_measured(one) for one in schedules]
    best = Best(*np.min(found, axis=0).tolist())
    costs = np.array([[row[0], row[1], mixed_cost(best, row[0], row[1], row[-1])] for row in found])
    return np.asarray(costs / costs.min(axis=0) - 1.0)


def _measured(schedule: Schedule) -> list[float]:
    """Return the metrics of `Best`, over finished jobs; a summary of everything takes longer."""
    done = per_job.is_finished(schedule)
    jobs = schedule.workload
    jct_s = (schedule.end_s - jobs.submit_s)[done]
    run_s = jobs.duration_s[done]
    return [
        float(jct_s.mean()),
        float(np.percentile(jct_s, 95)),
        float(np.maximum(jct_s / np.maximum(run_s, SHORT_S), 1.0).mean()),
        float((jct_s / np.maximum(run_s, 1.0)).mean()),
        float(_energy_kwh(schedule, np.array([np.inf]))[0]),
        _last_s(schedule),
        float(_missed(schedule)[done | per_job.is_failed(schedule)].mean()),
    ]


def _missed(schedule: Schedule) -> BoolArray:
    """Return which jobs finished after their deadline, or were given up and had one."""
    deadline_s = schedule.workload.deadline_s
    return (schedule.end_s > deadline_s) | (per_job.is_failed(schedule) & np.isfinite(deadline_s))


def _left_s(schedule: Schedule) -> FloatArray:
    """Return the second at which each job finished or was given up; NaN where it did neither."""
    left_s = schedule.end_s.copy()
    failed = per_job.is_failed(schedule)
    if failed.any():
        ran_until_s = np.zeros(len(left_s))
        np.maximum.at(ran_until_s, schedule.segment_job, schedule.segment_end_s)
        left_s[failed] = ran_until_s[failed]
    return left_s


def _last_s(schedule: Schedule) -> float:
    """Return the second at which the last job finished or was given up."""
    return float(np.nanmax(_left_s(schedule)))


def mixed_cost(best: Best, mean_jct_s: float, p95_jct_s: float, misses: float) -> float:
    """Return a cost of mean and tail of completion times, by the best, and of missed deadlines."""
    times = 0.45 * mean_jct_s / best.mean_jct_s + 0.45 * p95_jct_s / best.p95_jct_s
    return times + 0.1 * misses


def _earned(
    schedule: Schedule, weights: FloatArray, tail_s: tuple[float, float], until_s: FloatArray
) -> FloatArray:
    """Return the rewards of a schedule up to each of some seconds; the first job comes at 0.

    A job that is given up counts for as long as it was there, and its deadline is missed; of its
    slowdown only what accrued before its first start.
    """
    failed = per_job.is_failed(schedule)
    done = per_job.is_finished(schedule) | failed
    submit = schedule.workload.submit_s[done, None]
    start, end = schedule.start_s[done, None], _left_s(schedule)[done, None]
    run = schedule.workload.duration_s[done, None]
    jobs = max(int(done.sum()), 1)
    ended = until_s >= end
    first_wait = waited = np.clip(until_s - submit, 0.0, start - submit)
    aged = np.clip(until_s - submit, 0.0, end - submit)
    if len(np.unique(schedule.segment_job)) < len(schedule.segment_job):
        # Some lost their nodes and waited again.
        waited = aged - _ran_s(schedule, until_s)[done]
    low, high = tail_s
    lost = failed[done, None]
    bounded = np.maximum(aged / np.maximum(run, SHORT_S), 1.0)
    bounded = np.where(lost, first_wait / np.maximum(run, SHORT_S), bounded)
    late = ended & _missed(schedule)[done, None]
    terms = {
        Term.WAITING: waited.sum(axis=0) / jobs,
        Term.IN_SYSTEM: aged.sum(axis=0) / jobs,
        Term.TAIL: (np.clip(aged, low, max(low, high)) - low).sum(axis=0) / jobs,
        Term.BOUNDED_SLOWDOWN: np.where(ended, bounded, waited / np.maximum(run, SHORT_S)).sum(
            axis=0
        )
        / jobs,
        Term.SLOWDOWN: (np.where(lost, first_wait, aged) / np.maximum(run, 1.0)).sum(axis=0) / jobs,
        Term.LATE: late.sum(axis=0) / jobs,
        Term.ENERGY: _energy_kwh(schedule, until_s),
        Term.IDLE: _idle_s(schedule, until_s),
    }
    total = np.zeros(len(until_s))
    for term, amount in terms.items():
        if weights[term] != 0.0:
            total += weights[term] * amount
    return total


def _ran_s(schedule: Schedule, until_s: FloatArray) -> FloatArray:
    """Return for how long each job has run up to each of some seconds, over all its segments."""
    begin, end = schedule.segment_start_s[:, None], schedule.segment_end_s[:, None]
    ran_s = np.zeros((len(schedule.workload), len(until_s)))
    np.add.at(ran_s, schedule.segment_job, np.clip(until_s, begin, end) - begin)
    return ran_s


def _busy(schedule: Schedule, until_s: FloatArray, per_gpu: FloatArray) -> FloatArray:
    """Return the integral over time of what every GPU in use counts, by its type."""
    lengths = np.diff(schedule.segment_gpu_offset)
    gpu_type = schedule.cluster.node_type[schedule.cluster.gpu_node[schedule.gpu_ids]]
    owner = np.repeat(np.arange(len(lengths)), lengths)
    worth = np.bincount(owner, per_gpu[gpu_type], minlength=len(lengths))
    begin, end = schedule.segment_start_s[:, None], schedule.segment_end_s[:, None]
    held = np.clip(until_s, begin, end) - begin
    return np.asarray(worth @ held)


def _energy_kwh(schedule: Schedule, until_s: FloatArray) -> FloatArray:
    cluster = schedule.cluster
    idle_w = np.array([gpu.idle_w for gpu in cluster.gpu_types])
    extra_w = np.array([gpu.busy_w - gpu.idle_w for gpu in cluster.gpu_types])
    standing_w = float(idle_w[cluster.node_type] @ cluster.node_gpus)
    seconds = np.minimum(until_s, _last_s(schedule))
    return (standing_w * seconds + _busy(schedule, until_s, extra_w)) / 3.6e6


def _idle_s(schedule: Schedule, until_s: FloatArray) -> FloatArray:
    seconds = np.minimum(until_s, _last_s(schedule))
    ones = np.ones(len(schedule.cluster.gpu_types))
    return seconds - _busy(schedule, until_s, ones) / schedule.cluster.gpus
