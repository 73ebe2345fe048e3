"""Figures of real clusters: drawn when they say something, and true to the schedules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from yardmaster.experiments.compare import compare
from yardmaster.metrics.energy import energy_kwh
from yardmaster.metrics.power import power_timeline
from yardmaster.metrics.timeline import StepFunction
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Site
from yardmaster.model.workload import Workload
from yardmaster.report.figures import all_figures
from yardmaster.report.site_figures import share_while_waiting
from yardmaster.report.tables import comparison_table
from yardmaster.report.timelines import _mean_by_hour, power_over_time, utilisation_over_time
from yardmaster.schedulers.simulation import simulate

PRICES = tuple(0.1 + 0.01 * hour for hour in range(24))
SITE = Site(
    quotas=(Quota("a", 4, 6), Quota("b", 2)),
    checkpoints=Checkpoints(every_s=3600.0, save_s=10.0, restore_s=60.0),
    failures=Failures(outages=(Outage(0, 30_000.0, 60_000.0),)),
    power=Power(price_per_kwh=PRICES, carbon_g_per_kwh=(300.0,)),
    quantum_s=300.0,
)
CLUSTER = Cluster.of("1x V100:4", "1x V100:4", name="pair").under(SITE)
NAMES = ["fifo+skip", "srpt+preemptive", "off-peak+easy@power"]


def jobs_for(days: float) -> Workload:
    dice = np.random.default_rng(3)
    count = 60
    return Workload.of(
        submit_s=np.sort(dice.uniform(0, days * 86_400, count)).round(),
        duration_s=dice.lognormal(8.6, 1.0, count).round() + 30,
        gpus=dice.choice([1, 2, 4], count),
        tenant=dice.choice(["a", "b"], count).tolist(),
    )


@cache
def compared(days: float = 3.0):
    return compare(jobs_for(days), CLUSTER, NAMES)


def test_a_site_with_rules_has_figures_for_them():
    """Prices, stops and quotas each bring their figure."""
    names = [figure.name for figure in all_figures(compared())]
    for name in ("power", "power-by-hour", "lost-work", "tenants"):
        assert name in names


def test_figures_of_rules_that_are_not_set_stay_away():
    """The same jobs on the bare machines have none of them."""
    bare = compare(jobs_for(3.0), CLUSTER.under(Site()), NAMES[:1])
    names = {figure.name for figure in all_figures(bare)}
    assert not names & {"power", "power-by-hour", "lost-work", "tenants"}


def test_nodes_that_were_away_are_shaded():
    """The caption says so exactly when there were outages within the run."""
    assert "away" in utilisation_over_time(compared()).caption
    schedules = tuple(replace(each, outages=()) for each in compared().schedules)
    assert "away" not in utilisation_over_time(replace(compared(), schedules=schedules)).caption


def test_prices_are_drawn_while_hours_can_be_told_apart():
    """Beyond three weeks an hour is narrower than a pixel, and only the power is drawn."""
    assert "price" in power_over_time(compared()).caption
    assert "price" not in power_over_time(compared(40.0)).caption


def test_power_by_hour_keeps_the_energy():
    """Mean power × time in every hour of the day adds up to the energy of the run."""
    schedule = compared().schedules[0]
    power = power_timeline(schedule)
    begin, end = schedule.horizon_s
    seconds = np.arange(np.floor(begin), np.ceil(end)) + 0.5
    inside = seconds[(seconds > begin) & (seconds < end)]
    spent_s = np.bincount((inside // 3600).astype(int) % 24, minlength=24)
    mean_w = np.nan_to_num(_mean_by_hour(power, 24))
    assert mean_w @ spent_s / 3.6e6 == pytest.approx(energy_kwh(schedule), rel=1e-3)


def test_power_by_hour_of_a_known_curve():
    """One watt by day and three by night give just that, and hours never met have no value."""
    edges = np.array([0.0, 12 * 3600.0, 24 * 3600.0, 36 * 3600.0])
    found = _mean_by_hour(StepFunction(edges, np.array([1.0, 3.0, 1.0])), 24)
    assert found.tolist() == [1.0] * 12 + [3.0] * 12
    short = _mean_by_hour(StepFunction(np.array([0.0, 5400.0]), np.array([2.0])), 24)
    assert short[:2].tolist() == [2.0, 2.0]
    assert np.isnan(short[2:]).all()


@pytest.mark.parametrize(("guaranteed", "expected"), [(4, 0.5), (2, 1.0), (1, 2.0), (8, 0.5)])
def test_share_while_waiting_by_hand(guaranteed, expected):
    """A tenant holds 2 of 4 GPUs and waits for 2 more, which another one holds for 100 s.

    It asks for 4 in all, so it is entitled to at most that.
    """
    jobs = Workload.of(
        submit_s=[0, 0, 1], duration_s=[500, 101, 50], gpus=[2, 2, 2], tenant=["a", "b", "a"]
    )
    schedule = simulate(jobs, Cluster.of("1x V100:4"), "fifo")
    assert schedule.start_s.tolist() == [0, 0, 101]
    assert share_while_waiting(schedule, Quota("a", guaranteed)) == pytest.approx(expected)
    assert np.isnan(share_while_waiting(schedule, Quota("b", 2)))


def test_tables_show_what_matters_here():
    """Stops, goodput, cost, CO₂, quotas and availability have columns where they are news."""
    news = {"preemptions", "wasted work", "goodput", "energy cost", "CO₂", "quota violated"}
    titles = {column.title for column in comparison_table(compared()).columns}
    assert news | {"availability"} <= titles
    bare = compare(jobs_for(3.0), CLUSTER.under(Site()), NAMES[:1])
    assert not (news | {"availability"}) & {c.title for c in comparison_table(bare).columns}


def test_caps_and_sleep_show_power():
    """A power cap brings the peak, sleeping nodes the energy; both bring the curve."""
    power = Power(cap_w=1500.0, sleep_after_s=600.0)
    found = compare(jobs_for(3.0), CLUSTER.under(Site(power=power)), NAMES[:1])
    titles = {column.title for column in comparison_table(found).columns}
    assert {"peak power", "energy"} <= titles
    assert "power" in [figure.name for figure in all_figures(found)]
