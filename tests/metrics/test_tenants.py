"""Guarantees of tenants: what they got of them, and when others lived at their expense."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import tenants
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Quota, Site

H = 3600.0


def promising(gpus: int, **guaranteed: int) -> Cluster:
    """A cluster of one node whose site guarantees GPUs to tenants."""
    quotas = tuple(Quota(tenant, count) for tenant, count in guaranteed.items())
    return Cluster.of(f"1x A100:{gpus}").under(Site(quotas=quotas))


def test_table_by_tenant(make):
    """Jobs, GPU-hours, means and guarantees by name; jobs without a tenant come last."""
    schedule = make(
        promising(8, b=4, c=2),
        [(0, 0, H, [0, 1]), (1, H, 2 * H, [2]), (2, 0, 2 * H, [3, 4])],
        cut_s=2 * H,
        unfinished=[2],
        submit_s=[0] * 4,
        duration_s=[H, H, 9 * H, H],
        gpus=[2, 1, 2, 1],
        tenant=["b", None, "a", "b"],
    )
    a, b, unnamed = tenants.tenant_table(schedule)
    assert (a.tenant, a.jobs, a.finished, a.gpu_h, a.guaranteed_gpus) == ("a", 1, 0, 4, 0)
    assert all(math.isnan(mean) for mean in a[4:7])
    assert b == ("b", 2, 1, 2.0, H, 1.0, 1.0, 4)
    assert unnamed == ("(none)", 1, 1, 1.0, 2 * H, 2.0, 2.0, 0)


def test_table_of_users_where_there_are_no_tenants(make):
    """Users stand in unless there are quotas, which name tenants; every job is in one row."""
    columns = {"submit_s": [0, 0], "duration_s": [5, 5], "user": ["x", "y"]}
    runs = [(0, 0, 5, [0]), (1, 0, 5, [1])]
    rows = tenants.tenant_table(make(Cluster.pool(2), runs, **columns))
    assert [row.tenant for row in rows] == ["x", "y"]
    (row,) = tenants.tenant_table(make(promising(2, x=1), runs, **columns))
    assert (row.tenant, row.jobs, row.guaranteed_gpus) == ("(none)", 2, 0)


def test_share_is_the_least_of_what_tenants_were_entitled_to(make):
    """In 10 h a got 10 of min(40, 20) GPU-hours and b 5 of min(5, 20)."""
    schedule = make(
        promising(4, a=2, b=2, idle=2),
        [(0, 0, 10 * H, [0]), (1, 0, 5 * H, [1])],
        cut_s=10 * H,
        unfinished=[0],
        submit_s=[0, 0, 0],
        duration_s=[20 * H, 5 * H, 20 * H],
        tenant=["a", "b", "a"],
    )
    assert tenants.min_tenant_share(schedule) == pytest.approx(0.5)


def test_fast_gpus_are_no_smaller_share(make):
    """A finished job got all it asked for, however few seconds a fast GPU needed for it."""
    schedule = make(promising(4, a=2), [(0, 0, 10, [0])], submit_s=[0], duration_s=[40],
                    tenant=["a"])  # fmt: skip
    assert tenants.min_tenant_share(schedule) == 1


def test_shares_and_violations_need_quotas(make):
    """Without quotas nothing is guaranteed; with quotas for others there is no share."""
    columns = {"submit_s": [0], "duration_s": [40], "tenant": ["a"]}
    plain = make(Cluster.pool(1), [(0, 0, 40, [0])], **columns)
    assert math.isnan(tenants.min_tenant_share(plain))
    assert math.isnan(tenants.quota_violation_h(plain))
    others = make(promising(1, b=1), [(0, 0, 40, [0])], **columns)
    assert math.isnan(tenants.min_tenant_share(others))
    assert tenants.quota_violation_h(others) == 0


def test_violation_hours_by_hand(make):
    """Tenant b holds 3 GPUs, 1 of them guaranteed; a, guaranteed 2, waits with 2 for an hour."""
    columns = {"submit_s": [0, H, H], "duration_s": [2 * H, H, H], "gpus": [3, 2, 3],
               "tenant": ["b", "a", "a"]}  # fmt: skip
    runs = [(0, 0, 2 * H, [0, 1, 2]), (1, 2 * H, 3 * H, [0, 1]), (2, 3 * H, 4 * H, [0, 1, 2])]
    assert tenants.quota_violation_h(make(promising(4, a=2, b=1), runs, **columns)) == 1
    # Without job 1, a's only job is one beyond its guarantee; with 3 for b, nobody borrows.
    alone = {key: [values[0], values[2]] for key, values in columns.items()}
    rest = [runs[0], (1, *runs[2][1:])]
    assert tenants.quota_violation_h(make(promising(4, a=2, b=1), rest, **alone)) == 0
    assert tenants.quota_violation_h(make(promising(4, a=2, b=3), runs, **columns)) == 0


def test_elastic_jobs_wait_with_their_fewest_gpus(make):
    """A job of 4 GPUs that can run on 2 waits within a guarantee of 2."""
    columns = {"submit_s": [0, 0], "duration_s": [H, H], "gpus": [4, 4], "tenant": ["b", "a"]}
    runs = [(0, 0, H, [0, 1, 2, 3]), (1, H, 2 * H, [0, 1, 2, 3])]
    cluster = promising(4, a=2)
    assert tenants.quota_violation_h(make(cluster, runs, **columns)) == 0
    assert tenants.quota_violation_h(make(cluster, runs, min_gpus=[0, 2], **columns)) == 1


def violated_s(schedule) -> float:
    """Seconds of violation, looking at every pair of tenants between any two events."""
    jobs, owner = schedule.workload, schedule.workload.tenant.values()
    quotas = {quota.tenant: quota.guaranteed_gpus for quota in schedule.cluster.site.quotas}
    segments = list(zip(schedule.segment_job, schedule.segment_start_s, schedule.segment_end_s,
                        np.diff(schedule.segment_gpu_offset), strict=True))  # fmt: skip
    times = sorted({*schedule.horizon_s, *jobs.submit_s, *schedule.segment_start_s,
                    *schedule.segment_end_s})  # fmt: skip
    total = 0.0
    for now, then in pairwise(times):
        running = {job: gpus for job, start, end, gpus in segments if start <= now < end}
        used = {name: sum(gpus for job, gpus in running.items() if owner[job] == name)
                for name in set(owner)}  # fmt: skip
        last = {job: end for job, _, end, _ in segments}  # segments are in order of start
        waiting = [
            job
            for job in set(range(len(jobs))) - set(running)
            if jobs.submit_s[job] <= now < last.get(job, np.inf)
        ]
        if any(
            used[owner[job]] + jobs.gpus[job] <= quotas.get(owner[job], 0)
            and any(used[other] > quotas.get(other, 0) for other in used if other != owner[job])
            for job in waiting
        ):
            total += then - now
    return total


@st.composite
def quarrels(draw):
    """Jobs of three tenants and of nobody, some preempted once, with whole-second times."""
    runs, columns = [], {"submit_s": [], "duration_s": [], "gpus": [], "tenant": []}
    for job, submit in enumerate(sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=7)))):
        gpus = draw(st.integers(1, 3))
        now = submit
        for _ in range(draw(st.integers(0, 2))):
            start = now + draw(st.integers(0, 6))
            now = start + draw(st.integers(0, 6))
            runs.append((job, float(start), float(now), list(range(gpus))))
        columns["submit_s"].append(float(submit))
        columns["duration_s"].append(5.0)
        columns["gpus"].append(gpus)
        columns["tenant"].append(draw(st.sampled_from(["a", "b", "c", None])))
    return runs, columns, draw(st.integers(0, 4)), draw(st.integers(1, 4))


@settings(max_examples=80)
@given(quarrels())
def test_violations_agree_with_a_plain_account(make, drawn):
    """The sweep finds the seconds that looking at every pair of tenants finds."""
    runs, columns, a, b = drawn
    schedule = make(promising(99, a=a, b=b), runs, cut_s=40.0, **columns)
    assert tenants.quota_violation_h(schedule) * H == pytest.approx(violated_s(schedule))


def test_jobs_that_wait_again_can_be_wronged_again(make):
    """A job preempted within its guarantee by a borrower waits at the borrower's expense."""
    schedule = make(
        promising(2, a=2),
        [(0, 0, H, [0, 1], Cause.PREEMPTED), (1, H, 3 * H, [0, 1]), (0, 3 * H, 4 * H, [0, 1])],
        submit_s=[0, H], duration_s=[2 * H, 2 * H], gpus=[2, 2], tenant=["a", "b"],
    )  # fmt: skip
    assert tenants.quota_violation_h(schedule) == 2
