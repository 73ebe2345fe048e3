"""What a change brings: every metric with its interval, beside the cluster as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from yardmaster.experiments.compare import BLOCKS
from yardmaster.experiments.comparison import Estimate, Run
from yardmaster.experiments.whatif_changes import Change
from yardmaster.metrics import per_job
from yardmaster.metrics.catalogue import METRIC_NAMES
from yardmaster.metrics.statistics import blocks, bootstrap_mean, paired_difference
from yardmaster.metrics.summary import summarise_blocks
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray

RESAMPLES = 2_000
"""Draws behind each interval: fewer than for a comparison, as every metric of every row has one."""
Role = Literal["baseline", "change", "sweep", "search"]


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """What one change would bring."""

    change: str
    role: Role
    nodes: int
    gpus: int
    load: float
    """Factor on the load."""
    amount: float
    """Where it stands in a sweep or a search; NaN elsewhere."""
    metrics: dict[str, Estimate]
    differences: dict[str, Estimate]
    """Every metric minus that of the cluster as it is, as a fraction of the latter."""
    is_answer: bool = False
    """The fewest extra nodes that meet the target."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answers: the cluster as it is first, then every change."""

    workload: str
    cluster: str
    scheduler: str
    information: str
    objective: str
    units: str
    """What was paired."""
    rows: tuple[WhatIfRow, ...]
    notes: tuple[str, ...]
    runs: tuple[Run, ...]
    axis: str = ""
    """What the sweep changes; empty if there is none."""
    target: str = ""
    answer: str = ""
    """What the search for the target found, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a change did on every workload."""

    change: Change
    cluster: Cluster
    runs: list[Run]
    units: list[dict[str, float]]
    notes: tuple[str, ...]
    per_job: dict[str, list[FloatArray]]
    """Metric → the column it is the mean of, for every workload; NaN where a job has none."""

    def column(self, name: str) -> FloatArray:
        """Return a metric of every paired unit."""
        return np.asarray([unit[name] for unit in self.units], dtype=np.float64)

    def whole(self, name: str) -> float:
        """Return the mean of a metric over workloads."""
        return float(np.mean([run.summary[name] for run in self.runs]))

    def left_out(self) -> list[tuple[float, float]]:
        """Return per workload how many jobs did not finish, and how many cannot be placed."""
        return [
            (run.summary["unfinished"] + run.summary["failed"], run.summary["unplaceable"])
            for run in self.runs
        ]

    def unplaceable(self) -> list[float]:
        """Return per workload how many jobs cannot be placed."""
        return [run.summary["unplaceable"] for run in self.runs]


def paired_units(runs: Sequence[Run], first: Schedule) -> list[dict[str, float]]:
    """Return the metrics of every paired unit: a workload, or a block of the only one.

    Over blocks only means over jobs have a meaning for the whole; others are NaN there.
    """
    if len(runs) > 1:
        return [run.summary for run in runs]
    found = summarise_blocks(first, blocks(first, min(BLOCKS, len(first.workload))))
    return [
        {name: block[name] if name.startswith("mean_") and name in block else math.nan
         for name in METRIC_NAMES}
        for block in found
    ]  # fmt: skip


def per_job_columns(schedules: Sequence[Schedule]) -> dict[str, list[FloatArray]]:
    """Return what means over jobs are taken of, schedule by schedule."""
    return {
        "mean_jct_s": [per_job.jct_s(schedule) for schedule in schedules],
        "mean_wait_s": [
            np.where(per_job.is_finished(schedule), per_job.wait_s(schedule), np.nan)
            for schedule in schedules
        ],
    }


def row_of(outcome: Outcome, baseline: Outcome, role: Role, amount: float) -> WhatIfRow:
    """Return the row of a change, with differences to the cluster as it is."""
    return WhatIfRow(
        change=outcome.change.name,
        role=role,
        nodes=outcome.cluster.nodes,
        gpus=outcome.cluster.gpus,
        load=outcome.change.load,
        amount=amount,
        metrics={name: _estimate(outcome, name) for name in METRIC_NAMES},
        differences={name: _difference(outcome, baseline, name) for name in METRIC_NAMES},
    )


def _estimate(outcome: Outcome, name: str) -> Estimate:
    found = bootstrap_mean(outcome.column(name), resamples=RESAMPLES)
    return Estimate(outcome.whole(name), found.low, found.high)


def _difference(outcome: Outcome, baseline: Outcome, name: str) -> Estimate:
    """Return the relative difference to the baseline, with its paired interval."""
    whole = baseline.whole(name)
    mean = outcome.whole(name) / whole - 1.0 if whole else math.nan
    pair = outcome.column(name), baseline.column(name)
    if any(late for late, _ in (*outcome.left_out(), *baseline.left_out())):
        return Estimate(mean, math.nan, math.nan)
    if outcome.left_out() != baseline.left_out():
        if name not in outcome.per_job:
            return Estimate(mean, math.nan, math.nan)
        pair = _on_the_same_jobs(outcome.per_job[name], baseline.per_job[name])
    paired = paired_difference(*pair, resamples=RESAMPLES).relative
    same_jobs = outcome.left_out() == baseline.left_out()
    return Estimate(mean if same_jobs else paired.mean, paired.low, paired.high)


def _on_the_same_jobs(
    changed: Sequence[FloatArray], today: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the means of every paired unit over the jobs that finish either way."""
    both = [
        (a[known], b[known])
        for a, b in zip(changed, today, strict=True)
        for known in [~np.isnan(a) & ~np.isnan(b)]
    ]
    if len(both) == 1:
        cut = blocks(both[0][0], min(BLOCKS, len(both[0][0])))
        both = [(both[0][0][rows], both[0][1][rows]) for rows in cut]
    return np.array([a.mean() for a, _ in both]), np.array([b.mean() for _, b in both])
