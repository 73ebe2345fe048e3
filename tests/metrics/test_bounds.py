"""Lower bounds against optima found by trying everything on tiny instances."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import bounds, per_job
from yardmaster.metrics.summary import makespan_s
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Sharing, Site
from yardmaster.model.speeds import speed

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


def test_faster_gpus_lower_the_bound_by_their_speed(make):
    """Ten V100s and one A100: jobs may run as much faster as the A100 is, unless they may not."""
    cluster = Cluster.of("5x V100:2", "1x A100:1")
    slow, fast = cluster.gpu_types
    ratio = fast.fp32_tflops / slow.fp32_tflops
    schedule = make(
        cluster, [(0, 0, 100, [0]), (1, 0, 100, [1])],
        submit_s=[0, 0], duration_s=[100, 100], gpu_types=[None, "V100"],
    )  # fmt: skip
    np.testing.assert_allclose(bounds.largest_speed_up(schedule), [ratio, 1], rtol=1e-5)
    expected = (100 / ratio + 100) / 2
    assert bounds.mean_jct_bound_s(schedule) == pytest.approx(expected, rel=1e-5)
    assert bounds.mean_jct_bound_s(schedule, speed_up=np.array([4.0, 2.0])) == 37.5
    assert bounds.makespan_bound_s(schedule, speed_up=np.array([4.0, 2.0])) == 50
    equal = replace(schedule, cluster=cluster.under(Site(equal_speeds=True)))
    np.testing.assert_array_equal(bounds.largest_speed_up(equal), [1, 1])


@pytest.mark.parametrize("kind", [None, "resnet50", "lm"])
def test_speed_ups_follow_the_reference_and_the_kind(make, kind):
    """Durations measured elsewhere shrink or stretch by what the model says about the kind."""
    columns = {"submit_s": [0], "duration_s": [9], "kind": [kind]}
    runs = [(0, 0, 9, [0])]
    v100, k80 = gpu_type("V100"), gpu_type("K80")
    plain = make(Cluster.of("2x V100:1"), runs, **columns)
    np.testing.assert_array_equal(bounds.largest_speed_up(plain), [1])
    for reference, factor in (("K80", speed(kind, v100, k80)), ("v100", 1.0)):
        cluster = Cluster.of("2x V100:1").under(Site(reference_gpu=reference))
        measured_there = make(cluster, runs, **columns)
        np.testing.assert_allclose(bounds.largest_speed_up(measured_there), [factor])
    # Two types as numerous: durations may be those of the slower one.
    even = make(Cluster.of("1x V100:1", "1x K80:1"), runs, **columns)
    np.testing.assert_allclose(bounds.largest_speed_up(even), [speed(kind, v100, k80)])


def test_elastic_jobs_may_scale_linearly(make):
    """A job of 4 GPUs, elastic from 2 to 8, may run in half the time and hold 2 GPUs."""
    schedule = make(
        Cluster.pool(8), [(0, 0, 50, [*range(8)])],
        submit_s=[0], duration_s=[100], gpus=[4], min_gpus=[2], max_gpus=[8],
    )  # fmt: skip
    assert bounds.largest_speed_up(schedule) == [2]
    assert bounds.mean_jct_bound_s(schedule) == 50
    many = make(
        Cluster.pool(8), [(job, 0, 50, [*range(8)]) for job in range(9)],
        submit_s=[0] * 9, duration_s=[100] * 9, gpus=[4] * 9, min_gpus=[2] * 9, max_gpus=[4] * 9,
    )  # fmt: skip
    assert bounds.makespan_bound_s(many) == 9 * 2 * 100 / 8


def test_shares_use_their_part_of_the_pool_where_nodes_share(make, share):
    """Eight quarters of a GPU for 10 s on one GPU: 20 s if they share it, 80 s if they cannot."""
    columns = {"submit_s": [0] * 8, "duration_s": [10] * 8, "milli_gpu": [250] * 8}
    runs = [(job, 10.0 * job, 10.0 * job + 10, [0]) for job in range(8)]
    alone = make(Cluster.of("1x A100:1"), runs, **columns)
    assert bounds.makespan_bound_s(alone) == 80
    runs = [(job, 10.0 * (job // 4), 10.0 * (job // 4) + 10, [0]) for job in range(8)]
    shared = make(share(Cluster.of("1x A100:1"), Sharing.MPS), runs, **columns)
    assert bounds.makespan_bound_s(shared) == 20


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 50), st.integers(0, 2), st.floats(0.5, 1.0)),
        min_size=1,
        max_size=8,
    )
)
def test_bounds_hold_on_mixed_gpus_with_elastic_jobs(make, jobs):
    """No schedule on mixed GPUs, jobs resized at the start, beats the bound.

    Jobs run one after another on any of three nodes, with the speed of their node and a speed-up
    of (GPUs held / GPUs asked for) to the power of an exponent up to 1.
    """
    cluster = Cluster.of("1x V100:2", "1x A100:4", "1x K80:4")
    jobs = sorted(jobs)
    free_at, runs = [0.0, 0.0, 0.0], []
    sizes = (1, 2, 4)
    for row, (submit, duration, choice, exponent) in enumerate(jobs):
        node = row % 3
        held = min(sizes[choice], int(cluster.node_gpus[node]))
        kind = cluster.gpu_types[cluster.node_type[node]]
        # A100 and K80 are equally numerous here, so the reference is one of them; take the slower.
        rate = speed(None, kind, cluster.gpu_types[2]) * (held / 2) ** exponent
        start = max(float(submit), free_at[node])
        free_at[node] = start + duration / rate
        first = int(cluster.node_first_gpu[node])
        runs.append((row, start, free_at[node], [*range(first, first + held)]))
    count = len(jobs)
    schedule = make(
        cluster, runs, submit_s=[job[0] for job in jobs], duration_s=[job[1] for job in jobs],
        gpus=[2] * count, min_gpus=[1] * count, max_gpus=[4] * count,
    )  # fmt: skip
    assert bounds.lower_bound("mean_jct_s", schedule) <= np.mean(per_job.jct_s(schedule)) + 1e-9
    assert bounds.lower_bound("makespan_s", schedule) <= makespan_s(schedule) + 1e-9


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
    failed = make(Cluster.pool(1), runs, failed=[1], **columns)
    assert math.isnan(bounds.lower_bound("mean_jct_s", failed))
