"""Arrivals to come are those of the past, at the same hour of the week."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.experiments.past_arrivals import DAY_S, HOUR_S, WEEK_S, PastArrivals
from yardmaster.experiments.run_time_model import RunTimeModel
from yardmaster.experiments.snapshot import Snapshot, snapshot_of
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

CLUSTER = Cluster.of("4x V100:8")


def moment_after(history_s: float, every_s: float = 1800.0) -> Snapshot:
    submit = np.arange(0.0, history_s, every_s)
    jobs = Workload.of(submit_s=submit, duration_s=60.0 + np.arange(len(submit)) % 600)
    return snapshot_of(simulate(jobs, CLUSTER, "fifo"), history_s)


def drawn(moment: Snapshot, horizon_s: float, seed: int = 0):
    model = RunTimeModel.of(moment.jobs, moment.jobs.duration_s, moment.ended)
    return PastArrivals.of(moment).arrivals(model, [seed], horizon_s)


@pytest.mark.parametrize(
    ("history_s", "period_s"), [(3 * WEEK_S, WEEK_S), (5 * DAY_S, DAY_S), (7 * HOUR_S, 7 * HOUR_S)]
)
def test_the_past_comes_again_at_the_same_hour(history_s, period_s):
    """Every arrival is a past one a whole number of periods later, after now, with its run time."""
    moment = moment_after(history_s)
    rows, at_s, run_s = drawn(moment, 2.5 * period_s)
    later = (at_s - moment.jobs.submit_s[rows]) / period_s
    np.testing.assert_allclose(later, np.round(later), atol=1e-9)
    assert (at_s > moment.now_s).all()
    assert (at_s <= moment.now_s + 2.5 * period_s).all()
    assert (np.diff(at_s) >= 0).all()
    known = moment.ended[rows]
    np.testing.assert_array_equal(run_s[known], moment.jobs.duration_s[rows][known])
    assert len(rows) == pytest.approx(2.5 * period_s / 1800.0, rel=0.1)


def test_a_longer_look_sees_the_same_and_more():
    """Equal seeds give the same arrivals within the shorter horizon."""
    moment = moment_after(3 * WEEK_S)
    rows, at_s, _ = drawn(moment, DAY_S)
    more_rows, more_at_s, _ = drawn(moment, 2 * WEEK_S)
    np.testing.assert_array_equal(rows, more_rows[: len(rows)])
    np.testing.assert_array_equal(at_s, more_at_s[: len(rows)])


def test_jobs_still_running_come_again_with_a_longer_run():
    """A past job that has not ended is drawn a run time beyond what it has run."""
    jobs = Workload.of(submit_s=[0.0, 5000.0, 9000.0], duration_s=[100.0, 200.0, 1e6])
    moment = snapshot_of(simulate(jobs, CLUSTER, "fifo"), 10_000.0)
    rows, _, run_s = drawn(moment, 10_000.0)
    assert run_s[rows == 2] > 1000.0


def test_without_a_past_nobody_comes():
    """Within the first hour there is nothing to repeat, and a note says so."""
    moment = moment_after(1200.0, every_s=100.0)
    rows, _, _ = drawn(moment, DAY_S)
    assert len(rows) == 0
    assert "nobody else" in PastArrivals.of(moment).notes[0]
