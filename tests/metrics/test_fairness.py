"""Fairness across tenants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.metrics import fairness
from yardmaster.model.cluster import Cluster


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=30))
def test_jain_lies_between_one_nth_and_one(values):
    """Jain's index of n positive values is in [1/n, 1]."""
    index = fairness.jain_index(values)
    assert 1 / len(values) - 1e-12 <= index <= 1 + 1e-12


@given(st.integers(1, 20), st.floats(0.1, 1e5))
def test_jain_extremes_and_scale(count, value):
    """Equal values give 1, a single holder gives 1/n, and the unit does not matter."""
    assert fairness.jain_index([value] * count) == pytest.approx(1)
    assert fairness.jain_index([value] + [0.0] * (count - 1)) == pytest.approx(1 / count)
    ramp = np.arange(1.0, count + 1)
    assert fairness.jain_index(ramp * value) == pytest.approx(fairness.jain_index(ramp))


def waits_of(make, **labels):
    """Four jobs of 10 s with slowdowns 1, 3, 2 and 2, one after another on GPUs of their own."""
    starts = [0.0, 20.0, 10.0, 10.0]
    runs = [(job, start, start + 10, [job]) for job, start in enumerate(starts)]
    return make(Cluster.pool(4), runs, submit_s=[0] * 4, duration_s=[10] * 4, **labels)


def test_tenants_mean_slowdowns(make):
    """Means are per tenant; here 2 and 2 are fair although the jobs are not."""
    schedule = waits_of(make, tenant=["a", "a", "b", "b"])
    assert fairness.tenant_slowdown(schedule) == {"a": 2.0, "b": 2.0}
    assert fairness.jain_slowdown(schedule) == pytest.approx(1)
    assert fairness.slowdown_ratio(schedule) == 1


def test_users_stand_in_for_tenants(make):
    """Without tenants the users are compared: 1, 3 and 2 give 36 / (3 · 14)."""
    schedule = waits_of(make, user=["x", "y", "z", "z"])
    assert fairness.jain_slowdown(schedule) == pytest.approx(36 / 42)
    assert fairness.slowdown_ratio(schedule) == 3
    assert fairness.worst_tenant_slowdown(schedule) == 3


def test_unnamed_jobs_form_a_group(make):
    """Jobs without a tenant are compared too, as one group."""
    schedule = waits_of(make, tenant=["a", None, "a", None], user=["x"] * 4)
    assert fairness.tenant_slowdown(schedule) == {"(none)": 2.5, "a": 1.5}


def test_nobody_to_compare(make):
    """Without tenants and users fairness has no meaning."""
    schedule = waits_of(make)
    assert fairness.tenant_slowdown(schedule) == {}
    assert math.isnan(fairness.jain_slowdown(schedule))
    assert math.isnan(fairness.slowdown_ratio(schedule))
    assert math.isnan(fairness.worst_tenant_slowdown(schedule))


def test_the_worst_tenant_counts_bounded_slowdowns(make):
    """A job of 1 s that took 5 s suffers 5-fold, but not when short jobs count as 10 s."""
    schedule = make(
        Cluster.pool(2), [(0, 4, 5, [0]), (1, 10, 30, [1])],
        submit_s=[0, 0], duration_s=[1, 20], tenant=["a", "b"],
    )  # fmt: skip
    assert fairness.tenant_slowdown(schedule) == {"a": 5, "b": 1.5}
    assert fairness.worst_tenant_slowdown(schedule) == 1.5


def test_tenants_without_finished_jobs_do_not_count(make):
    """A tenant whose only job is still queued has no mean slowdown."""
    schedule = make(
        Cluster.pool(1), [(0, 0, 10, [0])], cut_s=10.0,
        submit_s=[0, 0], duration_s=[10, 10], tenant=["a", "b"],
    )  # fmt: skip
    assert fairness.tenant_slowdown(schedule) == {"a": 1.0}
