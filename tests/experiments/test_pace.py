"""Speeds of segments are what the engine ran them at."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.experiments.pace import share_not_saving, speeds, without_failures
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Site
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

MIXED = Cluster.of("2x V100:8", "3x T4:4", "1x A100:8")


def sample(**columns):
    sizes = {1: 4, 2: 3, 5: 2, 12: 1}
    jobs = simple(jobs=80, seed=3, gpus=MIXED.gpus, load=1.2, sizes=sizes, max_gpus=12)
    return jobs.with_columns(**columns) if columns else jobs


@pytest.mark.parametrize("site", [Site(), Site(splits_gangs=True)], ids=["whole", "split"])
def test_speed_times_time_is_work(site):
    """Every job that ran through did its duration's work: gangs over types and nodes too."""
    kinds = np.where(np.arange(80) % 3 == 0, "ResNet-50 (batch size 64)", "").tolist()
    schedule = simulate(sample(kind=kinds), MIXED.under(site), "fifo+skip@spread")
    segments = np.arange(len(schedule.segment_job))
    ran_s = schedule.segment_end_s - schedule.segment_start_s
    speed = speeds(schedule, segments)
    assert len(np.unique(speed)) > 3
    work_s = schedule.workload.duration_s[schedule.segment_job]
    np.testing.assert_allclose(speed * ran_s, work_s, rtol=1e-9)


def test_equal_gpus_are_equally_fast():
    """Where the site says so, or there is one type only, everybody has speed 1."""
    equal = simulate(sample(), MIXED.under(Site(equal_speeds=True)), "fifo")
    assert (speeds(equal, np.arange(len(equal.segment_job))) == 1.0).all()
    one = simulate(sample(), Cluster.of("6x V100:8"), "fifo")
    assert (speeds(one, np.array([0, 3])) == 1.0).all()
    assert len(speeds(one, np.zeros(0, dtype=np.int64))) == 0


def test_checkpoints_take_their_share():
    """Five minutes of saving in every hour leave eleven twelfths; no checkpoints leave all."""
    assert share_not_saving(Checkpoints(every_s=3600.0, save_s=300.0)) == pytest.approx(11 / 12)
    assert share_not_saving(Checkpoints()) == 1.0


def test_calm_clusters_stay_what_they_are():
    """Without failures the very same cluster comes back, so that what is known of it is kept."""
    assert without_failures(MIXED) is MIXED
    shaky = MIXED.under(Site(failures=Failures(mtbf_h=10.0), quantum_s=5.0))
    assert without_failures(shaky).site == Site(quantum_s=5.0)
