"""Watts over time: by hand, and against a plain account of every node at an instant."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics.holdings import segment_milli
from yardmaster.metrics.power import power_timeline
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Power, Sharing, Site


def test_power_steps_with_jobs(make):
    """Idle, one GPU busy, two busy, one busy: a step at each start and end."""
    cluster = replace(Cluster.of("1x A100:2"), node_overhead_w=np.array([100.0]))
    idle, busy = cluster.gpu_types[0].idle_w, cluster.gpu_types[0].busy_w
    schedule = make(
        cluster, [(0, 5, 20, [0]), (1, 10, 15, [1])], cut_s=30.0,
        submit_s=[0, 0], duration_s=[15, 5],
    )  # fmt: skip
    times, watts = power_timeline(schedule)
    np.testing.assert_array_equal(times, [0, 5, 10, 15, 20, 30])
    resting = 100 + 2 * idle
    above = busy - idle
    expected = [resting, resting + above, resting + 2 * above, resting + above, resting]
    np.testing.assert_allclose(watts, expected)
    assert power_timeline(schedule).maximum() == pytest.approx(100 + 2 * busy)


def test_shared_gpus_draw_in_proportion(make, share):
    """Shares of 300 and 200 on one GPU draw half of what a whole job draws above idle."""
    cluster = share(Cluster.of("1x V100:1"), Sharing.MPS)
    kind = cluster.gpu_types[0]
    schedule = make(
        cluster, [(0, 0, 10, [0]), (1, 0, 10, [0])],
        submit_s=[0, 0], duration_s=[10, 10], milli_gpu=[300, 200],
    )  # fmt: skip
    _, watts = power_timeline(schedule)
    np.testing.assert_allclose(watts, [(kind.idle_w + kind.busy_w) / 2])


def test_nodes_sleep_until_their_next_job(make):
    """With patience 10 a node sleeps from 10 s after its last job, and not in shorter gaps."""
    cluster = Cluster.of("1x T4:1").under(Site(power=Power(sleep_after_s=10.0)))
    idle, busy = cluster.gpu_types[0].idle_w, cluster.gpu_types[0].busy_w
    schedule = make(
        cluster, [(0, 25, 30, [0]), (1, 40, 50, [0])], cut_s=100.0,
        submit_s=[0, 0], duration_s=[5, 10],
    )  # fmt: skip
    times, watts = power_timeline(schedule)
    np.testing.assert_array_equal(times, [0, 10, 25, 30, 40, 50, 60, 100])
    np.testing.assert_allclose(watts, [idle, 0, busy, idle, busy, idle, 0], atol=1e-9)


def test_nodes_that_are_away_draw_nothing_and_come_back_awake(make):
    """Away from 5 to 20 s, then awake until its patience of 10 s is over."""
    cluster = Cluster.of("1x T4:1", "1x T4:1").under(Site(power=Power(sleep_after_s=10.0)))
    idle, busy = cluster.gpu_types[0].idle_w, cluster.gpu_types[0].busy_w
    schedule = make(
        cluster, [(0, 0, 60, [1])], outages=[(0, 5.0, 20.0)], submit_s=[0], duration_s=[60]
    )
    times, watts = power_timeline(schedule)
    np.testing.assert_array_equal(times, [0, 5, 20, 30, 60])
    np.testing.assert_allclose(watts, [idle + busy, busy, idle + busy, busy])


def watts_at(schedule, now) -> float:
    """Add up the watts of one instant, node by node and GPU by GPU."""
    cluster = schedule.cluster
    patience = cluster.site.power.sleep_after_s
    milli = segment_milli(schedule)
    segments = [
        (start, end, int(gpu), milli[number])
        for number, (start, end) in enumerate(
            zip(schedule.segment_start_s, schedule.segment_end_s, strict=True)
        )
        for gpu in schedule.gpus_of(number)
    ]
    total = 0.0
    for node in range(cluster.nodes):
        outages = [outage for outage in schedule.outages if outage.node == node]
        if any(outage.down_s <= now < outage.up_s for outage in outages):
            continue
        mine = [each for each in segments if cluster.gpu_node[each[2]] == node]
        shares = dict.fromkeys(np.flatnonzero(cluster.gpu_node == node).tolist(), 0)
        for start, end, gpu, thousandths in mine:
            shares[gpu] += thousandths if start <= now < end else 0
        active = [end for _, end, *_ in mine if end <= now]
        back = [outage.up_s for outage in outages if outage.up_s <= now]
        idle_since = max([schedule.horizon_s[0], *active, *back])
        if not any(shares.values()) and now - idle_since > patience:
            continue
        kind = cluster.gpu_types[cluster.node_type[node]]
        total += cluster.node_overhead_w[node] + sum(
            kind.idle_w + min(share, 1000) / 1000 * (kind.busy_w - kind.idle_w)
            for share in shares.values()
        )
    return total


@settings(max_examples=60)
@given(st.data())
def test_power_agrees_with_a_plain_account(eventful_schedules, data):
    """Between any two seconds the timeline says what counting every GPU says."""
    schedule = data.draw(eventful_schedules)
    power = power_timeline(schedule)
    begin, end = schedule.horizon_s
    assert (power.edges_s[0], power.edges_s[-1]) == (begin, end)
    for now in np.arange(begin + 0.5, end):
        assert power.at(now) == pytest.approx(watts_at(schedule, now), abs=1e-6)


def test_a_cluster_that_never_sleeps_rests_at_idle(make):
    """Infinite patience means idle watts for ever."""
    schedule = make(Cluster.of("2x A100:4"), [], cut_s=1e6, submit_s=[0], duration_s=[1])
    assert math.isinf(schedule.cluster.site.power.sleep_after_s)
    _, watts = power_timeline(schedule)
    np.testing.assert_allclose(watts, [8 * schedule.cluster.gpu_types[0].idle_w])
