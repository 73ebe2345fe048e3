"""Utilisation: capacity used, by GPU time and by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.metrics import timeline, utilisation
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Sharing

JOBS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 30), st.sampled_from([1, 2, 4])),
    min_size=1,
    max_size=12,
)


@given(JOBS)
def test_gpu_seconds_are_conserved(simulate, jobs):
    """Utilisation × capacity × horizon = Σ duration · gpus, in total and over types."""
    submit, duration, gpus = zip(*sorted(jobs, key=lambda job: job[0]), strict=True)
    cluster = Cluster.of("2x A100:4", "1x V100:4")
    schedule = simulate(cluster, submit_s=submit, duration_s=duration, gpus=gpus)
    begin, end = schedule.horizon_s
    if end == begin:
        assert np.isnan(utilisation.utilisation(schedule))
        return
    work = float(np.dot(duration, gpus))
    assert utilisation.utilisation(schedule) * 12 * (end - begin) == pytest.approx(work)
    assert utilisation.busy_gpu_s(schedule).sum() == pytest.approx(work)
    by_type = utilisation.utilisation_by_type(schedule)
    held = (8 * by_type["A100"] + 4 * by_type["V100"]) * (end - begin)
    assert held == pytest.approx(work)
    assert timeline.busy_gpus(schedule).time_average() * (end - begin) == pytest.approx(work)


def test_utilisation_by_type_and_flops(make):
    """A slow GPU busy and a fast one idle: half by time, less than half by arithmetic."""
    cluster = Cluster.of("1x A100:1", "1x V100:1")
    fast, slow = (kind.fp32_tflops for kind in cluster.gpu_types)
    schedule = make(cluster, [(0, 0, 10, [1])], submit_s=[0], duration_s=[10])
    assert utilisation.utilisation(schedule) == 0.5
    assert utilisation.utilisation_by_type(schedule) == {"A100": 0.0, "V100": 1.0}
    assert utilisation.flops_utilisation(schedule) == pytest.approx(slow / (slow + fast))


def test_both_utilisations_agree_on_one_type(make):
    """With GPUs of one type the weights cancel."""
    schedule = make(
        Cluster.of("2x T4:2"), [(0, 0, 10, [0, 1]), (1, 5, 10, [3])],
        submit_s=[0, 5], duration_s=[10, 5], gpus=[2, 1],
    )  # fmt: skip
    assert utilisation.utilisation(schedule) == 25 / 40
    assert utilisation.flops_utilisation(schedule) == pytest.approx(25 / 40)


def test_cut_jobs_count_up_to_the_cut_and_held_gpus_count_whole(make):
    """One of two GPUs held for all of 20 s is a half, though a quarter of it was asked for."""
    schedule = make(
        Cluster.pool(2), [(0, 0, 20, [0])], cut_s=20.0, unfinished=[0],
        submit_s=[0], duration_s=[500], milli_gpu=[250],
    )  # fmt: skip
    assert utilisation.utilisation(schedule) == 0.5


def test_shares_count_as_fractions_where_nodes_share(make, share):
    """A quarter and a half of one of two GPUs, for 20 and 10 of 20 s: 10 of 40 GPU-seconds."""
    columns = {"submit_s": [0, 0], "duration_s": [20, 10], "milli_gpu": [250, 500]}
    shared = make(
        share(Cluster.of("1x A100:2"), Sharing.MPS), [(0, 0, 20, [0]), (1, 5, 15, [0])], **columns
    )
    assert utilisation.utilisation(shared) == 10 / 40
    alone = make(Cluster.of("1x A100:2"), [(0, 0, 20, [0]), (1, 5, 15, [1])], **columns)
    assert utilisation.utilisation(alone) == 30 / 40


def test_outages_are_no_capacity(make):
    """Two nodes of 2 GPUs, one away for 10 of 20 s: 30 of 60 GPU-seconds and 30 of 80 are two."""
    columns = {"submit_s": [0, 0], "duration_s": [10, 20]}
    runs = [(0, 0, 10, [0]), (1, 0, 20, [2])]
    cluster = Cluster.of("1x A100:2", "1x V100:2")
    whole = make(cluster, runs, **columns)
    broken = make(cluster, runs, outages=[(0, 10.0, 99.0)], **columns)
    assert utilisation.utilisation(whole) == 30 / 80
    assert utilisation.utilisation(broken) == 30 / 60
    assert utilisation.utilisation_by_type(broken) == {"A100": 0.5, "V100": 0.5}
    gone = make(cluster, [], cut_s=5.0, outages=[(0, 0, 5), (1, 0, 5)], **columns)
    assert np.isnan(utilisation.utilisation(gone))
