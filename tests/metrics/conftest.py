"""Small schedules: written down by hand, or made by a first-fit scheduler simple to trust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import Workload

Run = tuple[int, float, float, Sequence[int]]
"""Job, start, end and GPUs of one segment."""

Build = Callable[..., Schedule]


def build(
    cluster: Cluster,
    runs: Sequence[Run],
    *,
    cut_s: float | None = None,
    unplaceable: Sequence[int] = (),
    unfinished: Sequence[int] = (),
    **columns: Any,
) -> Schedule:
    """Write down what happened; jobs run to their last segment unless listed as `unfinished`."""
    workload = Workload.of(**columns)
    jobs = len(workload)
    runs = sorted(runs, key=lambda run: run[1])
    start, end = np.full(jobs, np.nan), np.full(jobs, np.nan)
    outcome = np.full(jobs, Outcome.QUEUED, dtype=np.int8)
    for job, began, ended, _ in runs:
        start[job] = began if np.isnan(start[job]) else start[job]
        end[job] = np.nan if job in unfinished else ended
        outcome[job] = Outcome.RUNNING if job in unfinished else Outcome.FINISHED
    outcome[list(unplaceable)] = Outcome.UNPLACEABLE
    last = max([*(run[2] for run in runs), workload.submit_s[-1]])
    if cut_s is not None:
        outcome[workload.submit_s > cut_s] = Outcome.NOT_SUBMITTED
        last = cut_s
    gpus = [list(run[3]) for run in runs]
    return Schedule(
        workload=workload,
        cluster=cluster,
        scheduler="by hand",
        start_s=start,
        end_s=end,
        outcome=outcome,
        segment_job=np.array([run[0] for run in runs], dtype=np.int64),
        segment_start_s=np.array([run[1] for run in runs], dtype=np.float64),
        segment_end_s=np.array([run[2] for run in runs], dtype=np.float64),
        segment_gpu_offset=np.cumsum([0, *map(len, gpus)]),
        gpu_ids=np.array([gpu for held in gpus for gpu in held], dtype=np.int32),
        horizon_s=(float(workload.submit_s[0]), float(last)),
    )


def first_fit(cluster: Cluster, **columns: Any) -> Schedule:
    """Start every queued job on the first node with room, in order of submission, skipping.

    Jobs must fit into a node and their row order must be their submit order.
    """
    workload = Workload.of(**columns)
    free_at = np.full(cluster.gpus, -np.inf)
    clock = sorted({*workload.submit_s.tolist()})
    waiting = list(range(len(workload)))
    runs: list[Run] = []
    while waiting:
        now = clock.pop(0)
        for job in [job for job in waiting if workload.submit_s[job] <= now]:
            for node in range(cluster.nodes):
                held = np.flatnonzero((cluster.gpu_node == node) & (free_at <= now))
                if len(held) >= workload.gpus[job]:
                    end = now + float(workload.duration_s[job])
                    held = held[: workload.gpus[job]]
                    free_at[held] = end
                    runs.append((job, now, end, held.tolist()))
                    waiting.remove(job)
                    clock = sorted({*clock, end})
                    break
    return build(cluster, runs, **columns)


@pytest.fixture(scope="session")
def make() -> Build:
    """The builder of schedules written by hand."""
    return build


@pytest.fixture(scope="session")
def simulate() -> Build:
    """The first-fit scheduler."""
    return first_fit
