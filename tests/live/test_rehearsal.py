"""Rehearsals: the simulator, driven by live decisions."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.live.decision import Decider
from yardmaster.live.rehearsal import rehearse
from yardmaster.model.cluster import Cluster
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple


@pytest.mark.parametrize("name", ["fifo+strict", "sjf+easy", "wfp3+easy", "saf+skip"])
def test_a_rehearsal_is_a_simulation_with_estimates(name):
    """With beliefs that are wrong, every start and end is that of the simulator with ~estimate."""
    cluster = Cluster.of("2x A100:8")
    jobs = simple(jobs=80, seed=4, gpus=cluster.gpus, load=1.3)
    wrong = np.random.default_rng(1).uniform(1.0, 3.0, len(jobs))
    estimated = jobs.with_columns(estimate_s=jobs.duration_s * wrong)
    schedule = simulate(estimated, cluster, f"{name}~estimate")
    believed = estimated.with_columns(duration_s=estimated.estimate_s)
    start_s, end_s = rehearse(believed, jobs.duration_s, cluster, Decider(name))
    np.testing.assert_allclose(start_s, schedule.start_s, atol=1e-6)
    np.testing.assert_allclose(end_s, schedule.end_s, atol=1e-6)


def test_every_scheduler_can_be_rehearsed():
    """Policies and choosers start every job, and never more than there is room for."""
    cluster = Cluster.of("A100:8")
    jobs = simple(jobs=40, seed=9, gpus=8, load=1.5, max_gpus=8)
    for name in ("policy:slowdown-clairvoyant", "meta:mixed"):
        start_s, end_s = rehearse(jobs, jobs.duration_s, cluster, Decider(name, picks=0))
        assert (start_s >= jobs.submit_s).all()
        for now_s in start_s:
            running = (start_s <= now_s) & (end_s > now_s)
            assert jobs.gpus[running].sum() <= 8
