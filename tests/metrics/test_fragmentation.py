"""Fragmentation: hand-made cases, and a plain instant-by-instant count as the oracle."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import fragmentation
from yardmaster.metrics.fragmentation import fragmentation_gpus
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Sharing, Site


def counted(schedule) -> float:
    """Count unusable idle GPUs instant by instant, job by job, in plain Python."""
    cluster, jobs = schedule.cluster, schedule.workload
    begin, end = schedule.horizon_s
    times = sorted({begin, end, *jobs.submit_s, *schedule.start_s, *schedule.end_s})
    total = 0.0
    for now, then in pairwise(times):
        queued = [j for j in range(len(jobs)) if jobs.submit_s[j] <= now < schedule.start_s[j]]
        for node in range(cluster.nodes):
            held = {
                gpu
                for segment, (start, stop) in enumerate(
                    zip(schedule.segment_start_s, schedule.segment_end_s, strict=True)
                )
                if start <= now < stop
                for gpu in schedule.gpus_of(segment).tolist()
                if cluster.gpu_node[gpu] == node
            }
            idle = int(cluster.node_gpus[node]) - len(held)
            kind = cluster.gpu_types[cluster.node_type[node]].name
            names = [jobs.gpu_types.values()[job] for job in queued]
            allowed = [name is None or kind in name.split("|") for name in names]
            usable = any(
                ok and jobs.gpus[job] <= idle for ok, job in zip(allowed, queued, strict=True)
            )
            if queued and not usable:
                total += idle * (then - now)
    return total / (end - begin)


JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 30), st.sampled_from([1, 2, 3, 4])),
    min_size=1,
    max_size=10,
)


@settings(max_examples=60)
@given(JOBS)
def test_agrees_with_a_plain_count(simulate, jobs):
    """The sweep gives what counting every instant gives."""
    submit, duration, gpus = zip(*sorted(jobs, key=lambda job: job[0]), strict=True)
    cluster = Cluster.of("2x A100:4", "1x V100:4")
    schedule = simulate(cluster, submit_s=submit, duration_s=duration, gpus=gpus)
    assert fragmentation_gpus(schedule) == pytest.approx(counted(schedule))


def test_idle_gpus_too_few_for_the_queue(make):
    """Two nodes with 2 of 4 GPUs idle and a job of 4 waiting 10 of 20 s: 4 GPUs × a half."""
    schedule = make(
        Cluster.of("2x A100:4"),
        [(0, 0, 10, [0, 1]), (1, 0, 10, [4, 5]), (2, 10, 20, [0, 1, 2, 3])],
        submit_s=[0, 0, 0], duration_s=[10, 10, 10], gpus=[2, 2, 4],
    )  # fmt: skip
    assert fragmentation_gpus(schedule) == 2.0


def test_a_pool_has_no_nodes_to_fragment(make):
    """In a pool only jobs larger than everything idle leave GPUs unusable."""
    columns = {"submit_s": [0, 0, 0], "duration_s": [10, 10, 10], "gpus": [3, 3, 3]}
    runs = [(0, 0, 10, [0, 1, 2]), (1, 0, 10, [3, 4, 5]), (2, 10, 20, [0, 1, 2])]
    assert fragmentation_gpus(make(Cluster.pool(8), runs, **columns)) == 1.0
    assert fragmentation_gpus(make(Cluster.pool(9), runs, **columns)) == 0.0


@pytest.mark.parametrize(
    "columns", [{"gpus": [2, 8]}, {"gpus": [2, 4], "max_gpus_per_node": [0, 2]}]
)
def test_gangs_that_span_nodes_can_use_any_gpu(make, columns):
    """A gang larger than a node, or capped per node, finds a use for every idle GPU."""
    gpus = [*range(8)] if columns["gpus"][1] == 8 else [0, 1, 4, 5]
    schedule = make(
        Cluster.of("2x A100:4"), [(0, 0, 10, [0, 1]), (1, 10, 20, gpus)],
        submit_s=[0, 0], duration_s=[10, 10], **columns,
    )  # fmt: skip
    assert fragmentation_gpus(schedule) == 0.0


def test_gpus_of_a_type_nobody_waits_for(make):
    """Idle V100s are of no use to a queue that wants A100s only, however it spells them."""
    schedule = make(
        Cluster.of("1x A100:1", "1x V100:2"),
        [(0, 0, 10, [0]), (1, 10, 20, [0])],
        submit_s=[0, 0], duration_s=[10, 10], gpu_types=["a100", "a100"],
    )  # fmt: skip
    # The A100 is busy while somebody waits, so the two V100s count, for half of the time.
    assert fragmentation_gpus(schedule) == 1.0


def test_shared_gpus_are_held_once(make):
    """Two halves on one GPU hold one GPU, and the other is idle and too few for the queue."""
    schedule = make(
        Cluster.of("1x A100:2"),
        [(0, 0, 10, [0]), (1, 0, 6, [0]), (2, 10, 20, [0, 1])],
        submit_s=[0, 0, 0], duration_s=[10, 6, 10], gpus=[1, 1, 2], milli_gpu=[500, 500, 1000],
    )  # fmt: skip
    assert fragmentation_gpus(schedule) == 0.5


def test_jobs_that_wait_again_count(make):
    """A gang of 4 that was preempted waits beside 3 idle GPUs from 10 to 20 of 30 s."""
    schedule = make(
        Cluster.of("1x A100:4"),
        [(0, 0, 10, [0, 1, 2, 3]), (1, 10, 20, [0]), (0, 20, 30, [0, 1, 2, 3])],
        submit_s=[0, 5], duration_s=[20, 10], gpus=[4, 1],
    )  # fmt: skip
    assert fragmentation_gpus(schedule) == 1.0
    times, gpus = fragmentation.fragmentation_timeline(schedule)
    np.testing.assert_array_equal(times, [0, 5, 10, 20, 30])
    np.testing.assert_array_equal(gpus, [0, 0, 3, 0])
    # Free GPUs on a partly used node: the same three, and none while the gang has all.
    assert fragmentation.free_partial_gpus(schedule) == 1.0


def test_nodes_that_are_away_are_not_idle(make):
    """A node of 2 is of no use to the gang of 4 that waits, but is idle only while it is there."""
    columns = {"submit_s": [0, 0], "duration_s": [20, 10], "gpus": [2, 4]}
    runs = [(0, 0, 20, [0, 1]), (1, 20, 30, [0, 1, 2, 3])]
    cluster = Cluster.of("1x A100:4", "1x A100:2")
    assert fragmentation_gpus(make(cluster, runs, **columns)) == (2 + 2) * 20 / 30
    schedule = make(cluster, runs, outages=[(1, 5.0, 15.0)], **columns)
    times, gpus = fragmentation.fragmentation_timeline(schedule)
    np.testing.assert_array_equal(times, [0, 5, 15, 20, 30])
    np.testing.assert_array_equal(gpus, [4, 2, 4, 0])


def test_elastic_jobs_and_split_gangs_use_smaller_holes(make):
    """Two idle GPUs are of use to a gang of 4 that runs on 2, or that may be split."""
    columns = {"submit_s": [0, 0], "duration_s": [10, 10], "gpus": [2, 4]}
    runs = [(0, 0, 10, [0, 1]), (1, 10, 20, [0, 1, 2, 3])]
    cluster = Cluster.of("1x A100:4")
    assert fragmentation_gpus(make(cluster, runs, **columns)) == 1.0
    assert fragmentation_gpus(make(cluster, runs, min_gpus=[0, 2], **columns)) == 0.0
    assert fragmentation_gpus(make(cluster, runs, min_gpus=[0, 3], **columns)) == 1.0
    split = cluster.under(Site(splits_gangs=True))
    assert fragmentation_gpus(make(split, runs, **columns)) == 0.0


def test_free_gpus_of_partly_used_nodes(make, share):
    """Whole free nodes do not count, a shared GPU is not free, and a pool has no nodes."""
    columns = {"submit_s": [0, 0], "duration_s": [10, 10], "milli_gpu": [500, 500]}
    runs = [(0, 0, 10, [0]), (1, 0, 10, [0])]
    shared = make(share(Cluster.of("3x A100:4"), Sharing.MPS), runs, cut_s=20.0, **columns)
    assert fragmentation.free_partial_gpus(shared) == 3 / 2
    pool = make(Cluster.pool(4), runs[:1], submit_s=[0], duration_s=[10])
    assert math.isnan(fragmentation.free_partial_gpus(pool))


def test_nothing_is_fragmented_while_nobody_waits(make):
    """Idle GPUs without a queue are spare, not fragmented; no horizon, no number."""
    idle = make(Cluster.of("2x A100:4"), [(0, 0, 10, [0])], submit_s=[0], duration_s=[10])
    assert fragmentation_gpus(idle) == 0.0
    instant = make(Cluster.of("2x A100:4"), [(0, 0, 0, [0])], submit_s=[0], duration_s=[0])
    assert math.isnan(fragmentation_gpus(instant))


def test_sampling_comes_close_to_the_sweep(simulate, monkeypatch):
    """Looking at evenly spaced instants, in chunks of nodes, gives nearly the exact average."""
    rng = np.random.default_rng(3)
    schedule = simulate(
        Cluster.of("3x A100:4"), submit_s=np.sort(rng.integers(0, 900, 150)),
        duration_s=rng.integers(1, 120, 150), gpus=rng.choice([1, 2, 3, 4], 150),
    )  # fmt: skip
    exact = fragmentation_gpus(schedule)
    assert exact > 0.1
    monkeypatch.setattr(fragmentation, "CELLS_AT_ONCE", 1)
    assert fragmentation_gpus(schedule) == exact
    monkeypatch.setattr(fragmentation, "EXACT_EVENTS", 0)
    assert fragmentation_gpus(schedule) == pytest.approx(exact, rel=0.05)
