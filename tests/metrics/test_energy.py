"""Energy against closed forms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import energy
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Power, Site


def test_idle_cluster_draws_idle_watts(make):
    """Without any run, energy is idle watts × GPUs × hours."""
    cluster = Cluster.of("2x A100:4")
    schedule = make(cluster, [], cut_s=7200.0, submit_s=[0], duration_s=[1])
    expected = cluster.gpu_types[0].idle_w * 8 * 2 / 1000
    assert energy.energy_kwh(schedule) == pytest.approx(expected)


def test_busy_idle_and_overhead_add_up(make):
    """Two types, one GPU of each busy for half an hour of one hour, plus 300 W per node."""
    cluster = Cluster.of("1x A100:2", "1x T4:1")
    cluster = replace(cluster, node_overhead_w=np.array([300.0, 300.0]))
    a100, t4 = cluster.gpu_types
    schedule = make(
        cluster, [(0, 0, 1800, [0]), (1, 0, 1800, [2])], cut_s=3600.0,
        submit_s=[0, 0], duration_s=[1800, 1800],
    )  # fmt: skip
    watt_hours = (
        0.5 * a100.busy_w + 1.5 * a100.idle_w + 0.5 * t4.busy_w + 0.5 * t4.idle_w + 2 * 300.0
    )
    assert energy.energy_kwh(schedule) == pytest.approx(watt_hours / 1000)


def test_a_held_gpu_is_busy_whatever_share_was_asked(make):
    """A job that asked for half a GPU holds a whole one, which draws what a busy one draws."""
    cluster = Cluster.of("1x V100:1")
    kind = cluster.gpu_types[0]
    schedule = make(cluster, [(0, 0, 3600, [0])], submit_s=[0], duration_s=[3600], milli_gpu=[500])
    assert energy.energy_kwh(schedule) == pytest.approx(kind.busy_w / 1000)


def test_cost_is_energy_times_price(make):
    """The default price is 0.15 per kWh; any other may be given."""
    schedule = make(Cluster.pool(4), [(0, 0, 3600, [0])], submit_s=[0], duration_s=[3600])
    kwh = energy.energy_kwh(schedule)
    assert energy.energy_cost(schedule) == pytest.approx(0.15 * kwh)
    assert energy.energy_cost(schedule, price_per_kwh=2.0) == pytest.approx(2 * kwh)


def under_power(schedule, **rules):
    """The same schedule where electricity has other prices."""
    return replace(schedule, cluster=schedule.cluster.under(Site(power=Power(**rules))))


@pytest.fixture
def two_hours(make):
    """One GPU, from 23:30 of the first day to 01:30, busy in the middle hour."""
    return make(
        Cluster.of("1x A100:1"), [(0, 86_400.0, 88_200.0, [0])], cut_s=91_800.0,
        submit_s=[84_600.0], duration_s=[1800.0],
    )  # fmt: skip


def test_cost_follows_the_hours_of_the_day(two_hours):
    """Half an hour idle at hour 23, half an hour busy and half idle at 0, half idle at 1."""
    kind = two_hours.cluster.gpu_types[0]
    prices = [0.0] * 24
    prices[23], prices[0], prices[1] = 3.0, 1.0, 10.0
    priced = under_power(two_hours, price_per_kwh=tuple(prices))
    watt_hours = 0.5 * (3.0 * kind.idle_w + kind.busy_w + kind.idle_w + 10.0 * kind.idle_w)
    assert energy.energy_cost(priced) == pytest.approx(watt_hours / 1000)
    assert energy.energy_cost(priced, price_per_kwh=2.0) == pytest.approx(
        2.0 * energy.energy_kwh(priced)
    )


def test_carbon_needs_figures(two_hours):
    """Grams by the hour like prices, in kilograms; NaN where the site says nothing."""
    assert math.isnan(energy.carbon_kg(two_hours))
    flat = under_power(two_hours, carbon_g_per_kwh=(400.0,))
    assert energy.carbon_kg(flat) == pytest.approx(0.4 * energy.energy_kwh(two_hours))
    only_at_23 = under_power(two_hours, carbon_g_per_kwh=(0.0,) * 23 + (1000.0,))
    idle_w = two_hours.cluster.gpu_types[0].idle_w
    assert energy.carbon_kg(only_at_23) == pytest.approx(0.5 * idle_w / 1000)


@settings(max_examples=40)
@given(st.data())
def test_cost_is_linear_in_the_prices(eventful_schedules, data):
    """Flat curves cost energy × price, and costs of two curves add up to that of their sum."""
    schedule = data.draw(eventful_schedules)
    # Stretched to 16 hours, for the prices of several hours to matter.
    schedule = replace(
        schedule,
        segment_start_s=schedule.segment_start_s * 1000.0,
        segment_end_s=schedule.segment_end_s * 1000.0,
        horizon_s=(0.0, 60_000.0),
        outages=(),
    )
    curves = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=24, max_size=24), max_size=2))
    kwh = energy.energy_kwh(schedule)
    flat = under_power(schedule, price_per_kwh=(0.5,) * 24)
    assert energy.energy_cost(flat) == pytest.approx(0.5 * energy.energy_kwh(flat))
    costs = [
        energy.energy_cost(under_power(schedule, price_per_kwh=tuple(map(float, curve))))
        for curve in curves
    ]
    total = tuple(float(sum(hour)) for hour in zip(*curves, strict=True))
    if total:
        together = under_power(schedule, price_per_kwh=total)
        assert energy.energy_cost(together) == pytest.approx(sum(costs))
        assert min(total) * energy.energy_kwh(together) <= sum(costs) + 1e-9
    assert kwh <= energy.energy_kwh(under_power(schedule)) + 1e-9


def test_energy_of_jobs_adds_up(make):
    """Two jobs cost, above idle, what each costs alone."""
    cluster = Cluster.of("2x A100:2")
    runs = [(0, 0, 50, [0, 1]), (1, 20, 90, [1 + 1])]
    columns = {"submit_s": [0, 0], "duration_s": [50, 70], "gpus": [2, 1], "cut_s": 100.0}
    idle, first, second, both = (
        energy.energy_kwh(make(cluster, some, **columns)) for some in ([], runs[:1], runs[1:], runs)
    )
    assert both - idle == pytest.approx((first - idle) + (second - idle))
    assert both > idle
