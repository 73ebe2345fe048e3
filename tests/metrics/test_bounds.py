"""Lower bounds against optima found by trying everything on tiny instances."""

from __future__ import annotations

import math
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import bounds, per_job
from yardmaster.metrics.summary import makespan_s
from yardmaster.model.cluster import Cluster

INSTANCE = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=4
)


def least_preemptive_flow(submit, work) -> int:
    """Total JCT of the best preemptive schedule on one machine, by trying every choice."""

    @cache
    def best(now: int, left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        here = [j for j, s in enumerate(submit) if left[j] and s <= now]
        choices = [
            tuple(rest - (job == chosen) for job, rest in enumerate(left)) for chosen in here
        ]
        return len(here) + min(best(now + 1, choice) for choice in choices or [left])

    return best(min(submit), tuple(work))


def listed(submit, duration, gpus, order, capacity):
    """Starts when jobs begin in the given order, each as early as the GPUs of a pool allow."""
    free_at = [0] * capacity
    starts = {}
    for job in order:
        free_at.sort()
        start = max(submit[job], free_at[gpus[job] - 1])
        starts[job] = start
        # The longest-idle GPUs that are free at the start serve, the least useful to others.
        held = [i for i, free in enumerate(free_at) if free <= start][-gpus[job] :]
        for index in held:
            free_at[index] = start + duration[job]
    return starts


@settings(max_examples=60)
@given(INSTANCE)
def test_srpt_is_the_preemptive_optimum(jobs):
    """The value of SRPT on one machine is the least of all preemptive schedules."""
    submit, work, _ = zip(*sorted(jobs), strict=True)
    found = bounds.srpt_mean_jct_s(np.array(submit, float), np.array(work, float))
    assert found == pytest.approx(least_preemptive_flow(submit, work) / len(jobs))


@settings(max_examples=60)
@given(INSTANCE, st.integers(3, 4))
def test_bounds_hold_for_every_order(make, jobs, capacity):
    """No list schedule on a pool has a mean JCT or a makespan below its bound."""
    submit, duration, gpus = zip(*sorted(jobs), strict=True)
    for order in permutations(range(len(jobs))):
        starts = listed(submit, duration, gpus, order, capacity)
        runs = [(j, float(s), float(s + duration[j]), [0] * gpus[j]) for j, s in starts.items()]
        schedule = make(
            Cluster.pool(capacity), runs, submit_s=submit, duration_s=duration, gpus=gpus
        )
        mean_jct = float(np.mean(per_job.jct_s(schedule)))
        assert bounds.mean_jct_bound_s(schedule) <= mean_jct + 1e-9
        assert bounds.makespan_bound_s(schedule) <= makespan_s(schedule) + 1e-9


@given(st.lists(st.integers(1, 100), min_size=1, max_size=12))
def test_one_gpu_and_one_arrival_time_give_shortest_first(make, work):
    """With all jobs there at 0 on one GPU the bound is the mean flow time of SPT, and is met."""
    ends = np.cumsum(np.sort(work))
    runs = [(job, float(end - size), float(end), [0])
            for job, (end, size) in enumerate(zip(ends, sorted(work), strict=True))]  # fmt: skip
    schedule = make(Cluster.pool(1), runs, submit_s=[0] * len(work), duration_s=sorted(work))
    assert bounds.mean_jct_bound_s(schedule) == pytest.approx(ends.mean())
    assert bounds.mean_jct_bound_s(schedule) == pytest.approx(np.mean(per_job.jct_s(schedule)))
    assert bounds.makespan_bound_s(schedule) == pytest.approx(ends[-1])


def test_mean_duration_bounds_a_large_cluster(make):
    """Where GPUs abound no job can be faster than its duration."""
    schedule = make(
        Cluster.pool(100), [(0, 0, 10, [0]), (1, 5, 25, [1])], submit_s=[0, 5], duration_s=[10, 20]
    )
    assert bounds.mean_jct_bound_s(schedule) == 15
    assert bounds.makespan_bound_s(schedule) == 25


def test_makespan_bound_uses_the_work_after_a_release(make):
    """Work submitted late cannot be done early: 4 jobs of 10 s at 100 s need 2 GPUs until 120 s."""
    runs = [(0, 0, 1, [0]), *((1 + job, 100.0, 110.0, [job]) for job in range(4))]
    schedule = make(
        Cluster.pool(2), runs, submit_s=[0, 100, 100, 100, 100], duration_s=[1, 10, 10, 10, 10]
    )
    assert bounds.makespan_bound_s(schedule) == 120


def test_unplaceable_jobs_are_left_out(make):
    """A job that can never run is in no schedule and in no bound; without any job there is none."""
    cluster = Cluster.pool(1)
    schedule = make(
        cluster, [(0, 0, 10, [0])], unplaceable=[1],
        submit_s=[0, 0], duration_s=[10, 999], gpus=[1, 5],
    )  # fmt: skip
    assert bounds.mean_jct_bound_s(schedule) == 10
    assert bounds.makespan_bound_s(schedule) == 10
    none = make(cluster, [], unplaceable=[0], submit_s=[0], duration_s=[9], gpus=[5])
    assert math.isnan(bounds.mean_jct_bound_s(none))
    assert math.isnan(bounds.makespan_bound_s(none))


def test_lower_bound_by_objective_needs_a_complete_schedule(make):
    """Bounds are known for two objectives, and only where every placeable job finished."""
    columns = {"submit_s": [0, 0], "duration_s": [10, 10]}
    runs = [(0, 0, 10, [0]), (1, 10, 20, [0])]
    complete = make(Cluster.pool(1), runs, **columns)
    assert bounds.lower_bound("mean_jct_s", complete) == 15
    assert bounds.lower_bound("makespan_s", complete) == 20
    assert math.isnan(bounds.lower_bound("utilisation", complete))
    cut = make(Cluster.pool(1), runs[:1], cut_s=10.0, **columns)
    assert math.isnan(bounds.lower_bound("mean_jct_s", cut))
