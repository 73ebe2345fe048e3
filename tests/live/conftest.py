"""What the tests of live parts share: the state of a simulated cluster at one moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from yardmaster.live.state import State, columns_of
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import IntArray

Moment = Callable[[Schedule, float], tuple[State, IntArray]]


@pytest.fixture(scope="session")
def moment() -> Moment:
    """Return what turns a schedule and a second into the state just before that second's pass."""
    return state_at


def state_at(schedule: Schedule, now_s: float) -> tuple[State, IntArray]:
    jobs = schedule.workload
    rows = np.flatnonzero((jobs.submit_s <= now_s) & ~(schedule.end_s <= now_s))
    place = np.full(len(jobs), -1)
    place[rows] = np.arange(len(rows))
    holdings = []
    for segment, job in enumerate(schedule.segment_job.tolist()):
        if place[job] < 0 or not schedule.start_s[job] < now_s:
            continue
        first, last = schedule.segment_gpu_offset[segment : segment + 2]
        nodes, gpus = np.unique(
            schedule.cluster.gpu_node[schedule.gpu_ids[first:last]], return_counts=True
        )
        holdings += [(place[job], node, held) for node, held in zip(nodes, gpus, strict=True)]
    state = State.of(
        time_s=now_s,
        columns=columns_of(jobs, rows),
        since_s=np.where(schedule.start_s < now_s, schedule.start_s, np.nan)[rows],
        cluster=schedule.cluster,
        holdings=np.array(holdings, dtype=np.int64).reshape(-1, 3),
    )
    return state, rows
