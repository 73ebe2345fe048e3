"""Episodes: which jobs an environment gets, and everything laid out for them in advance.

A task has three sets of episodes that share nothing: `train`, `val` and `report`. Generated
workloads have seeds of their own per set; a trace is cut by time, its first part for training, the
next for validation, the last for the report; windows of the last two share no job as long as
there are enough. Episode `n` of a set is the same on every machine. A fourth set, `all`, is the
whole of a trace, for policies that were trained on another.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.places import Score
from yardmaster.engine.requests import shapes_of
from yardmaster.envs.rewards import reward_of
from yardmaster.envs.task import Task
from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.metrics import per_job
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.names import unknown
from yardmaster.schedulers.picking import Prepared, prepare
from yardmaster.schedulers.simulation import simulate

Split = Literal["train", "val", "report", "all"]
FIRST_SEED = {"train": 1_000_000, "val": 2_000_000, "report": 12_000_000}
"""Seed of episode 0 of each set of generated episodes."""

PARTS = {"train": (0.0, 0.6), "val": (0.6, 0.8), "report": (0.8, 1.0), "all": (0.0, 1.0)}
"""Which part of a trace's jobs, by submission, each set takes its windows from."""

_DICE = FIRST_SEED | {"all": 22_000_000}
"""Seed of where the windows of each set begin once they overlap."""

MEASURED_EPISODES = 8
"""Training episodes whose mean run time becomes the time unit."""


GOLDEN_SHARE = (math.sqrt(5.0) - 1.0) / 2.0
"""Multiples of it, without their whole parts, never lie far from evenly."""


class Episodes:
    """The episodes of one set of a task."""

    def __init__(self, task: Task, split: Split = "train") -> None:
        if split not in PARTS:
            raise unknown("set of episodes", split, PARTS)
        self.split = split
        self.cluster: Cluster = (
            task.cluster if isinstance(task.cluster, Cluster) else load_cluster(task.cluster)
        )
        self._trace = _trace(task, self.cluster)
        if split == "all" and self._trace is None:
            raise YardmasterError(
                f"{task.workload} generates jobs without end, there is no `all` of them: use val or"
                " report, which no policy was trained on."
            )
        self.task = task
        if task.measured_unit:
            unit = self._mean_run_time(task)
            self.task = replace(task, sight=replace(task.sight, time_unit_s=unit))
        self.reward = reward_of(task.reward)
        self._prepared: dict[int, Prepared] = {}

    def _mean_run_time(self, task: Task) -> float:
        """Return the mean run time of the first training episodes (or of all), seconds."""
        if self.split not in ("train", "all"):
            return Episodes(task, "train").task.sight.time_unit_s
        runs = [self.workload(number).duration_s.mean() for number in range(MEASURED_EPISODES)]
        return max(float(np.mean(runs)), 1.0)

    def workload(self, number: int) -> Workload:
        """Return the jobs of an episode; the first is submitted at second 0."""
        trace = self._trace
        jobs = self._generated(number) if trace is None else self._window(trace, number)
        return jobs.starting_at(float(jobs.submit_s[0]))

    def _generated(self, number: int) -> Workload:
        from yardmaster.workloads.synthetic import generate

        task = self.task
        return generate(
            str(task.workload),
            seed=FIRST_SEED[self.split] + number,
            jobs=task.jobs,
            gpus=self.cluster.gpus if task.load is not None else None,
            load=task.load,
            max_gpus=self.cluster.gpus,
        )

    def _window(self, trace: Workload, number: int) -> Workload:
        """Return consecutive jobs of this set's part of the trace; see `window_begins`."""
        jobs = self.task.jobs
        low, high = (int(share * len(trace)) for share in PARTS[self.split])
        if high - low < jobs:
            raise YardmasterError(
                f"The {self.split} part of {trace.name!r} has {high - low} jobs, fewer than the"
                f" {jobs} of an episode; use shorter episodes (jobs) or a longer trace."
            )
        first = window_begins(self.split, number, low=low, high=high, jobs=jobs)
        return trace.select(np.arange(first, first + jobs))

    def cluster_of(self, number: int) -> Cluster:
        """Return the machines of an episode: here they are the same for all."""
        del number
        return self.cluster

    def prepared(self, number: int) -> Prepared:
        """Return an episode laid out at its first instant; kept for the next time."""
        if number not in self._prepared:
            self._prepared[number] = self._prepare(number)
        return self._prepared[number]

    def _prepare(self, number: int) -> Prepared:
        workload = self.workload(number)
        if not (shapes_of(workload, self.cluster).of_job >= 0).any():
            raise InvalidWorkloadError(
                f"No job of episode {number} of {workload.name!r} can ever run on"
                f" {self.cluster.name!r}."
            )
        baseline = self.baseline_score(number) if self.reward.needs_baseline else np.nan
        return prepare(
            workload,
            self.cluster,
            self.task.sight,
            seed=number,
            horizon_s=self._horizon_s(workload),
            baseline=baseline,
        )

    def _horizon_s(self, workload: Workload) -> float:
        horizon = np.inf if self.task.time_limit_s is None else self.task.time_limit_s
        if self.task.horizon_factor is not None:
            work_s = workload.work_gpu_s / self.cluster.gpus
            horizon = min(horizon, workload.submit_s[-1] + self.task.horizon_factor * work_s)
        return float(horizon)

    def baseline_score(self, number: int) -> float:
        """Return what the baseline scheduler scores on an episode."""
        workload = self.workload(number)
        schedule = simulate(workload, self.cluster, self.task.baseline, seed=number)
        return score_of(schedule, Score[self.reward.score.upper()])

    @cached_property
    def numbers(self) -> IntArray:
        """The episodes to draw from: all, or for training those that `keep` lets through."""
        everything = np.arange(self.task.episodes)
        low, high = self.task.keep
        if self.split != "train" or (low, high) == (0.0, 1.0):
            return everything
        scores = np.array([self.baseline_score(number) for number in everything.tolist()])
        least, most = np.nanquantile(scores, [low, high])
        return np.asarray(everything[(scores >= least) & (scores <= most)], dtype=np.int64)

    def scales(self) -> FloatArray:
        """Return the row of reals that says what the task is; see `engine.picking.places`."""
        sight = self.task.sight
        scales = sight.scales()
        scales[at.WEIGHT_AT : at.WEIGHT_AT + at.TERMS] = self.reward.row(sight.time_unit_s)
        for kind, gpu in enumerate(self.cluster.gpu_types[: at.MOST_TYPES]):
            scales[at.IDLE_W_AT + kind] = gpu.idle_w
            scales[at.EXTRA_W_AT + kind] = gpu.busy_w - gpu.idle_w
        return scales

    def rules(self) -> IntArray:
        """Return the row of integers that says what the task is."""
        rules = self.task.sight.rules(is_fixed=self.prepared(0).is_fixed)
        rules[at.MAX_STEPS] = self.task.max_steps
        rules[at.SCORE] = Score[self.reward.score.upper()]
        rules[at.USES_ENERGY] = self.reward.weights.get("energy", 0.0) != 0.0
        return rules


def window_begins(split: Split, number: int, *, low: int, high: int, jobs: int) -> int:
    """Return the first job of a window of jobs `low` to `high`.

    Training begins anywhere. What is measured on shares no job as long as there are enough: the
    first windows of the other sets stand side by side, only the rest begin anywhere.
    """
    apart = 0 if split == "train" else (high - low) // jobs
    if number < apart:
        return low + _spread(apart, number) * (high - low) // apart
    dice = np.random.default_rng([_DICE[split], number])
    return int(dice.integers(low, high - jobs + 1))


def _spread(count: int, number: int) -> int:
    """Return which of so many windows comes at a place: any first few lie all over the trace."""
    shares = np.arange(count) * GOLDEN_SHARE % 1.0
    return int(np.argsort(shares, kind="stable")[number])


def score_of(schedule: Schedule, score: Score) -> float:
    """Return what a schedule scores: a mean over its finished jobs, or its utilisation."""
    if score is Score.WAIT:
        return float(np.nanmean(per_job.wait_s(schedule)))
    if score is Score.TURNAROUND:
        return float(np.nanmean(per_job.jct_s(schedule)))
    if score is Score.SLOWDOWN:
        run_s = np.maximum(schedule.workload.duration_s, 1.0)
        return float(np.nanmean(per_job.jct_s(schedule) / run_s))
    if score is Score.UTILISATION:
        done = per_job.is_finished(schedule)
        work = (schedule.workload.duration_s * schedule.workload.gpus)[done].sum()
        wall = float(np.nanmax(schedule.end_s)) - float(schedule.workload.submit_s[0])
        return float(work / (wall * schedule.cluster.gpus))
    run_s = np.maximum(schedule.workload.duration_s, at.SHORT_S)
    return float(np.nanmean(np.maximum(per_job.jct_s(schedule) / run_s, 1.0)))


def _trace(task: Task, cluster: Cluster) -> Workload | None:
    """Return the trace that episodes are windows of; None if they are generated."""
    from yardmaster.workloads.sources import is_generated, load_workload, with_load

    if isinstance(task.workload, str):
        if is_generated(task.workload):
            return None
        return load_workload(task.workload, gpus=cluster.gpus, load=task.load)
    if task.load is None:
        return task.workload
    return with_load(task.workload, gpus=cluster.gpus, load=task.load)
