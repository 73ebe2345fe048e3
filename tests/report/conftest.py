"""A realistic comparison to report on: random jobs, put in order by a loop of a few lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from yardmaster.experiments.comparison import Comparison, ComparisonRow, Estimate
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import Workload

JOBS = 320
SEEDS = 8
Order = Callable[[Workload, int], float]

SCHEDULERS: dict[str, tuple[str, Order, bool]] = {
    "fifo": ("blind", lambda jobs, row: jobs.submit_s[row], False),
    "fifo+skip": ("blind", lambda jobs, row: jobs.submit_s[row], True),
    "lifo+skip": ("blind", lambda jobs, row: -jobs.submit_s[row], True),
    "priority+skip@pack": ("blind", lambda jobs, row: -jobs.priority[row], True),
    "smallest+skip": ("blind", lambda jobs, row: jobs.gpus[row], True),
    "largest+skip": ("blind", lambda jobs, row: -jobs.gpus[row], True),
    "random+skip": ("blind", lambda _, row: (row * 7919) % 1009, True),
    "sjf": ("clairvoyant", lambda jobs, row: jobs.duration_s[row], False),
    "sjf+conservative@spread": ("clairvoyant", lambda jobs, row: jobs.duration_s[row], True),
    "area+skip": ("clairvoyant", lambda jobs, row: jobs.duration_s[row] * jobs.gpus[row], True),
    "estimate+skip": ("estimate-based", lambda jobs, row: jobs.estimate_s[row], True),
    "estimate@tier": ("estimate-based", lambda jobs, row: jobs.estimate_s[row], False),
}


def make_workload(seed: int) -> Workload:
    """Return a few hundred jobs that fill 32 GPUs for most of a day and a half."""
    dice = np.random.default_rng(seed)
    duration = np.maximum(dice.lognormal(7.6, 1.0, JOBS), 5.0).round()
    return Workload.of(
        name=f"synthetic-{seed}",
        submit_s=dice.exponential(260.0, JOBS).cumsum().round(),
        duration_s=duration,
        estimate_s=(duration * dice.lognormal(0.3, 0.7, JOBS)).round() + 1.0,
        gpus=dice.choice([1, 2, 4, 8], JOBS, p=[0.55, 0.2, 0.15, 0.1]),
        priority=dice.choice([0.0, 1.0, 2.0], JOBS, p=[0.6, 0.3, 0.1]),
    )


def make_schedule(
    jobs: Workload, cluster: Cluster, name: str, order: Order, *, skip: bool
) -> Schedule:
    """Start queued jobs in order whenever GPUs are free; without `skip` the first one blocks."""
    free = list(range(cluster.gpus))
    start = np.full(len(jobs), np.nan)
    held: dict[int, list[int]] = {}
    queue: list[int] = []
    arrivals, running = list(range(len(jobs))), []
    while arrivals or running:
        next_end = min(running)[0] if running else np.inf
        now = min(next_end, jobs.submit_s[arrivals[0]] if arrivals else np.inf)
        for done in [item for item in running if item[0] <= now]:
            running.remove(done)
            free += held[done[1]]
        while arrivals and jobs.submit_s[arrivals[0]] <= now:
            queue.append(arrivals.pop(0))
        for job in sorted(queue, key=lambda row: (order(jobs, row), row)):
            if jobs.gpus[job] > len(free):
                if skip:
                    continue
                break
            held[job], free = free[: jobs.gpus[job]], free[jobs.gpus[job] :]
            start[job] = now
            queue.remove(job)
            running.append((now + jobs.duration_s[job], job))
    return _recorded(jobs, cluster, name, start, held)


def _recorded(jobs, cluster, name, start, held) -> Schedule:
    rows = np.argsort(start, kind="stable")
    end = start + jobs.duration_s
    return Schedule(
        workload=jobs,
        cluster=cluster,
        scheduler=name,
        start_s=start,
        end_s=end,
        outcome=np.full(len(jobs), Outcome.FINISHED, dtype=np.int8),
        segment_job=rows,
        segment_start_s=start[rows],
        segment_end_s=end[rows],
        segment_gpu_offset=np.concatenate(([0], np.cumsum(jobs.gpus[rows]))),
        gpu_ids=np.concatenate([held[row] for row in rows]).astype(np.int32),
        horizon_s=(float(jobs.submit_s[0]), float(end.max())),
    )


def spread(values) -> Estimate:
    """Return the mean with a rough interval of two standard errors."""
    values = np.asarray(values, dtype=float)
    mean, error = values.mean(), 2.0 * values.std(ddof=1) / np.sqrt(len(values))
    return Estimate(float(mean), float(mean - error), float(mean + error))


def _row(name: str, summaries, all_summaries) -> ComparisonRow:
    jct = np.array([each["mean_jct_s"] for each in summaries])
    base = np.array([each["mean_jct_s"] for each in all_summaries["fifo"]])
    best = np.min([[s["mean_jct_s"] for s in each] for each in all_summaries.values()], axis=0)
    metrics = {key: spread([each[key] for each in summaries]) for key in summaries[0]}
    return ComparisonRow(
        scheduler=name,
        information=SCHEDULERS[name][0],
        metrics=metrics,
        difference=spread((jct - base) / base.mean()),
        hindsight_gap=float(np.mean(jct / best - 1.0)),
        bound_gap=float(jct.mean() / best.mean() * 1.12 - 1.0),
        is_winner=False,
    )


@cache
def make_comparison() -> Comparison:
    """Return all schedulers on a few seeds, ranked by mean JCT, the best one marked."""
    cluster = Cluster.of("4x V100:8", name="four-nodes")
    schedules = {
        name: [
            make_schedule(make_workload(seed), cluster, name, order, skip=skip)
            for seed in range(SEEDS)
        ]
        for name, (_, order, skip) in SCHEDULERS.items()
    }
    summaries = {name: [summarise(each) for each in made] for name, made in schedules.items()}
    rows = [_row(name, each, summaries) for name, each in summaries.items()]
    rows.sort(key=lambda row: row.metrics["mean_jct_s"].mean)
    rows[0] = replace(rows[0], is_winner=True)
    return Comparison(
        workload="synthetic",
        cluster="four-nodes: 4 nodes, 32 GPUs (32 V100)",
        objective="mean_jct_s",
        baseline="fifo",
        units=f"{SEEDS} seeds",
        rows=tuple(rows),
        schedules=tuple(schedules[row.scheduler][0] for row in rows),
        notes=("Durations are log-normal, arrivals are Poisson.",),
    )


@pytest.fixture(scope="session")
def comparison() -> Comparison:
    """Return twelve schedulers on four seeds."""
    return make_comparison()


@pytest.fixture(scope="session")
def one_job() -> Comparison:
    """Return one job of no length under two schedulers: every span and spread is zero."""
    jobs = Workload.of(name="one", submit_s=[0.0], duration_s=[0.0])
    cluster = Cluster.of("1x V100:1", name="one-gpu")
    full = make_comparison()
    nothing = Estimate(np.nan, np.nan, np.nan)
    rows, schedules = [], []
    for row in full.rows[-2:]:
        _, order, skip = SCHEDULERS[row.scheduler]
        schedules.append(make_schedule(jobs, cluster, row.scheduler, order, skip=skip))
        found = summarise(schedules[-1])
        metrics = {key: Estimate(value, np.nan, np.nan) for key, value in found.items()}
        rows.append(
            replace(
                row, metrics=metrics, difference=nothing, hindsight_gap=np.nan, bound_gap=np.nan
            )
        )
    return replace(full, units="1 seed", rows=tuple(rows), schedules=tuple(schedules))


HOSTILE = "<script>alert(1)</script>\"'&|_$x$\\[red]\x1b[31m\n](javascript:x)"


@pytest.fixture(scope="session")
def hostile() -> Comparison:
    """Return a comparison in which every name tries to be more than a name."""
    full = make_comparison()
    rows = [replace(row, scheduler=f"{HOSTILE}{place}") for place, row in enumerate(full.rows)]
    jobs = full.schedules[0].workload.renamed(HOSTILE, HOSTILE)
    schedules = [
        replace(schedule, scheduler=row.scheduler, workload=jobs, notes=(HOSTILE,))
        for schedule, row in zip(full.schedules, rows, strict=True)
    ]
    return replace(
        full,
        workload=HOSTILE,
        cluster=HOSTILE,
        baseline=rows[-1].scheduler,
        units=HOSTILE,
        rows=tuple(rows),
        schedules=tuple(schedules),
        notes=(HOSTILE,),
    )
