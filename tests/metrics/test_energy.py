"""Energy against closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.metrics import energy
from yardmaster.model.cluster import Cluster


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
