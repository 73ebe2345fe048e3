"""Schedulers that look at prices and watts really lower the bill, on the same jobs.

Three generations of GPUs under a price that is low at night, with nodes that go to sleep. Jobs are
those of Venus that fit into a node: gangs across nodes would mix GPU types.
"""

import numpy as np
import pytest

from yardmaster.metrics.energy import energy_cost, energy_kwh
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.schedule import Outcome
from yardmaster.model.site import Power, Site
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.demands import Demands, Kinds
from yardmaster.workloads.synthetic import generate

PRICES = (0.12,) * 6 + (0.25,) * 4 + (0.38,) * 10 + (0.25,) * 2 + (0.12,) * 2
SEEDS = range(4)
BASELINE = "fifo+easy"


@pytest.fixture(scope="module")
def schedules():
    """Return the schedule of each scheduler on each of four workloads."""
    site = Site(power=Power(price_per_kwh=PRICES, sleep_after_s=600.0))
    cluster = load_cluster("mixed-3-types").under(site)
    names = (BASELINE, "off-peak+easy", "fifo+easy@power", "off-peak+easy@power")
    found = {name: [] for name in names}
    for seed in SEEDS:
        jobs = generate(
            "venus-like",
            jobs=300,
            seed=seed,
            gpus=cluster.gpus,
            load=0.5,
            max_gpus=8,
            demands=Demands(kinds=Kinds.MEASURED),
        )
        for name in names:
            found[name].append(simulate(jobs, cluster, name, compile_core="never"))
    return found


def saved(schedules, name, figure):
    """Return by which part of it each workload's figure is below that of the baseline."""
    pairs = zip(schedules[name], schedules[BASELINE], strict=True)
    return np.array([1.0 - figure(ours) / figure(theirs) for ours, theirs in pairs])


def mean_wait_h(schedules, name):
    """Return the mean wait over all workloads, hours."""
    return np.mean(
        [np.mean(one.start_s - one.workload.submit_s) / 3600.0 for one in schedules[name]]
    )


def test_the_same_work_is_done(schedules):
    """Every scheduler finishes every job: nobody saves by leaving work undone."""
    for found in schedules.values():
        for schedule in found:
            assert np.all(schedule.outcome == Outcome.FINISHED)
    work = {sum(one.workload.work_gpu_s for one in found) for found in schedules.values()}
    assert len(work) == 1


@pytest.mark.parametrize(
    ("name", "mean"),
    [("off-peak+easy", 0.10), ("fifo+easy@power", 0.04), ("off-peak+easy@power", 0.15)],
)
def test_the_bill_is_lower(schedules, name, mean):
    """Waiting for the night and choosing frugal nodes lower every bill, both together most."""
    bill = saved(schedules, name, energy_cost)
    assert np.all(bill > 0.0)
    assert np.mean(bill) > mean


def test_frugal_nodes_save_energy_and_waiting_does_not(schedules):
    """Choosing nodes lowers the kilowatt-hours; waiting for the night only moves them."""
    assert np.mean(saved(schedules, "fifo+easy@power", energy_kwh)) > 0.04
    assert abs(np.mean(saved(schedules, "off-peak+easy", energy_kwh))) < 0.10


def test_waiting_for_the_night_is_paid_in_hours(schedules):
    """Nobody is held back for more than twelve hours; on average it costs a few."""
    assert mean_wait_h(schedules, "fifo+easy@power") < 0.2
    assert 2.0 < mean_wait_h(schedules, "off-peak+easy") < 6.0
    for name in ("off-peak+easy", "off-peak+easy@power"):
        for schedule in schedules[name]:
            waits_h = (schedule.start_s - schedule.workload.submit_s) / 3600.0
            assert np.quantile(waits_h, 0.95) <= 12.0
            has_deadline = ~np.isnan(schedule.workload.deadline_s)
            assert np.mean(waits_h[has_deadline]) < np.mean(waits_h[~has_deadline])
