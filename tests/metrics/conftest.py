"""Small schedules: written down by hand, or made by a first-fit scheduler simple to trust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.site import Outage, Power, Sharing, Site
from yardmaster.model.workload import Workload

Run = tuple[Any, ...]
"""Job, start, end and GPUs of one segment; then, if need be, its cause and wasted seconds."""

Build = Callable[..., Schedule]


def build(
    cluster: Cluster,
    runs: Sequence[Run],
    *,
    cut_s: float | None = None,
    unplaceable: Sequence[int] = (),
    unfinished: Sequence[int] = (),
    failed: Sequence[int] = (),
    outages: Sequence[tuple[int, float, float]] = (),
    **columns: Any,
) -> Schedule:
    """Write down what happened.

    Jobs are done with their last segment unless listed as `unfinished` or `failed`. Segments that
    are not a job's last were preempted unless they say otherwise.
    """
    workload = Workload.of(**columns)
    jobs = len(workload)
    runs = sorted(runs, key=lambda run: run[1])
    start, end = np.full(jobs, np.nan), np.full(jobs, np.nan)
    outcome = np.full(jobs, Outcome.QUEUED, dtype=np.int8)
    for job, began, ended, *_ in runs:
        start[job] = began if np.isnan(start[job]) else start[job]
        end[job] = np.nan if job in (*unfinished, *failed) else ended
        outcome[job] = Outcome.RUNNING if job in unfinished else Outcome.FINISHED
    outcome[list(failed)] = Outcome.FAILED
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
        segment_cause=np.array(_causes(runs, outcome, last), dtype=np.int8),
        segment_wasted_s=np.array([run[5] if len(run) > 5 else 0.0 for run in runs], dtype=float),
        outages=tuple(Outage(*outage) for outage in outages),
    )


def _causes(runs: Sequence[Run], outcome: Any, cut_s: float) -> list[Cause]:
    """Return why each segment ended, as far as it does not say so itself."""
    last = {run[0]: number for number, run in enumerate(runs)}
    by_outcome = {Outcome.FINISHED: Cause.FINISHED, Outcome.FAILED: Cause.NODE_FAILED}
    causes = []
    for number, run in enumerate(runs):
        at_end = Cause.CUT if run[2] >= cut_s else Cause.PREEMPTED
        at_end = by_outcome.get(Outcome(outcome[run[0]]), at_end)
        cause = at_end if last[run[0]] == number else Cause.PREEMPTED
        causes.append(run[4] if len(run) > 4 else cause)
    return causes


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


def sharing(cluster: Cluster, how: Sharing) -> Cluster:
    """Return the cluster with nodes on which fractional jobs share GPUs."""
    return replace(cluster, node_sharing=np.full(cluster.nodes, int(how)))


@st.composite
def eventful(draw: st.DrawFn) -> Schedule:
    """Draw a schedule with shares, interruptions and outages; node 0 shares, node 1 does not.

    Times are whole seconds. GPUs are never held twice over, and no job runs on a node that is away.
    """
    site = Site(power=Power(sleep_after_s=draw(st.sampled_from([np.inf, 0.0, 4.0]))))
    cluster = replace(
        Cluster.of("1x A100:2", "1x T4:2").under(site),
        node_sharing=np.array([Sharing.MPS, Sharing.NONE]),
        node_overhead_w=np.array([100.0, 30.0]),
    )
    runs, columns = [], {"submit_s": [], "duration_s": [], "milli_gpu": []}
    for gpu, milli in ((0, 300), (0, 600), (1, 500), (2, 1000), (3, 250)):
        now = draw(st.integers(0, 9))
        for _ in range(draw(st.integers(0, 2))):
            job = len(columns["submit_s"])
            columns["submit_s"].append(0.0)
            columns["duration_s"].append(5.0)
            columns["milli_gpu"].append(milli)
            for _ in range(draw(st.integers(1, 2))):
                start = now + draw(st.integers(0, 8))
                now = start + draw(st.integers(0, 9))
                runs.append((job, float(start), float(now), [gpu]))
    if not runs:
        return build(cluster, [], cut_s=40.0, submit_s=[0.0], duration_s=[5.0])
    outages = []
    if draw(st.booleans()):
        # Node 0 goes away after everything on it has ended, node 1 before anything starts.
        ends = [run[2] for run in runs if run[3][0] < 2]
        down_s = max(ends, default=3.0)
        outages.append((0, down_s, down_s + draw(st.sampled_from([10.0, 99.0]))))
        starts = [run[1] for run in runs if run[3][0] >= 2]
        outages.append((1, -5.0, min(starts, default=6.0)))
    return build(cluster, runs, cut_s=60.0, outages=outages, **columns)


@pytest.fixture(scope="session")
def make() -> Build:
    """The builder of schedules written by hand."""
    return build


@pytest.fixture(scope="session")
def share() -> Callable[[Cluster, Sharing], Cluster]:
    """Turns sharing on."""
    return sharing


@pytest.fixture(scope="session")
def eventful_schedules() -> st.SearchStrategy[Schedule]:
    """Schedules with everything that real clusters do to jobs."""
    return eventful()


@pytest.fixture(scope="session")
def simulate() -> Build:
    """The first-fit scheduler."""
    return first_fit
