"""What both sides of a comparison come to for single jobs, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.experiments.fidelity.evidence import Evidence
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate


def held(warm_up_ends_s: float = 0.0, **columns: list[float]) -> Evidence:
    """Hold jobs on 8 GPUs, with recorded waits, against first come, first served."""
    jobs = Workload.of(**columns)
    return Evidence.of(simulate(jobs, Cluster.pool(8), "fifo+skip"), warm_up_ends_s)


def test_who_came_to_a_machine_with_room_and_nobody_waiting():
    """Not who came while another waited, nor who did not fit, nor who came in the warm-up."""
    evidence = held(
        warm_up_ends_s=5.0,
        submit_s=[0, 10, 20, 30, 200, 300],
        duration_s=[5, 100, 50, 10, 10, 10],
        gpus=[1, 4, 8, 1, 2, 2],
        # warm-up; prompt; needs all 8; comes while that one waits; late though alone; at once
        recorded_wait_s=[0, 0, 90, 40, 7, 0],
    )
    assert evidence.found_room_and_nobody().tolist() == [False, True, False, False, True, True]


def test_differences_are_counted_after_the_warm_up_where_both_waits_are_known():
    """Missing seconds, extra room and shares leave out all other jobs."""
    evidence = held(
        warm_up_ends_s=5.0,
        submit_s=[0, 10, 20, 30],
        duration_s=[1, 1, 1, 1],
        gpus=[1, 1, 1, 9],  # the last one never starts in the simulation
        recorded_wait_s=[50, 30, np.nan, 60],
    )
    assert evidence.is_compared.tolist() == [True, True, False, False]
    assert evidence.counts.tolist() == [False, True, False, False]
    assert evidence.missing_s.tolist() == [0, 30, 0, 0]
    assert evidence.waited_s == 30
    assert evidence.extra_with_room_s(10.0).tolist() == [0, 20, 0, 0]
    assert evidence.share(np.full(4, 12.0)) == pytest.approx(12 / 30)
    assert evidence.share(np.full(4, 1e9)) == 1


def test_longer_simulated_waits_are_explained_by_nothing():
    """A delay in the record cannot explain that the simulation waits longer."""
    evidence = held(
        submit_s=[0, 0], duration_s=[100, 10], gpus=[8, 8], recorded_wait_s=[5, 0]
    )  # the second waits 100 s in the simulation
    assert evidence.missing_s.tolist() == [5, 0]
    assert evidence.share(np.full(2, 1e9)) == pytest.approx(5 / 105)
