"""The summary: complete, in order, and right on a schedule worked out by hand."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.metrics import statistics, summary
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Schedule
from yardmaster.model.site import Power, Quota, Site
from yardmaster.model.workload import Workload

COUNTS = ("finished", "unfinished", "failed", "unplaceable", "not_submitted")


@pytest.fixture
def cut_schedule(make):
    """Two GPUs, cut at 100 s; rows: finished, finished, unplaceable, running, queued, not yet."""
    return make(
        Cluster.pool(2),
        [(0, 0, 20, [0]), (1, 20, 60, [0, 1]), (3, 60, 100, [0, 1])],
        cut_s=100.0,
        unfinished=[3],
        unplaceable=[2],
        submit_s=[0, 10, 15, 40, 70, 200],
        duration_s=[20, 40, 5, 500, 5, 5],
        gpus=[1, 2, 9, 2, 1, 1],
        deadline_s=[30, 50, math.nan, 90, 400, 300],
        tenant=["a", "b", "a", "a", "b", "b"],
    )


def test_values_by_hand(cut_schedule):
    """Every number of a small cut schedule, computed on paper."""
    found = summary.summarise(cut_schedule)
    expected = {
        "mean_jct_s": (20 + 50) / 2,
        "p50_jct_s": 35,
        "p95_jct_s": 20 + 0.95 * 30,
        "p99_jct_s": 20 + 0.99 * 30,
        "mean_wait_s": 5,
        "p95_wait_s": 9.5,
        "p99_wait_s": 9.9,
        "mean_queued_s": 5,
        "mean_slowdown": (1 + 50 / 40) / 2,
        "mean_bounded_slowdown": (1 + 50 / 40) / 2,
        "p95_bounded_slowdown": 1 + 0.95 * 0.25,
        "makespan_s": 100,
        "utilisation": (20 + 80 + 80) / 200,
        "flops_utilisation": (20 + 80 + 80) / 200,
        "availability": 1,
        "mean_queue": (10 + 20 + 30) / 100,
        "max_queue": 1,
        "queue_exploded": 0,
        "jain_slowdown": 2.25**2 / (2 * (1 + 1.25**2)),
        "slowdown_ratio": 1.25,
        "worst_tenant_slowdown": 1.25,
        "peak_power_w": 2 * cut_schedule.cluster.gpu_types[0].busy_w,
        "deadline_miss_rate": 2 / 3,
        "mean_tardiness_s": (0 + 10 + 10) / 3,
        "fragmentation_gpus": 10 / 100,
        "preemptions": 0,
        "migrations": 0,
        "resizes": 0,
        "restarts": 0,
        "wasted_gpu_h": 0,
        "goodput": 1,
        "failed": 0,
        "finished": 2,
        "unfinished": 2,
        "mean_age_unfinished_s": (60 + 30) / 2,
        "unplaceable": 1,
        "not_submitted": 1,
        "jobs": 6,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["energy_cost"] == pytest.approx(0.15 * found["energy_kwh"])
    without = {"carbon_kg", "free_partial_gpus", "min_tenant_share", "quota_violation_h"}
    assert all(math.isnan(found[name]) for name in without)
    assert set(found) - set(expected) - without == {"energy_kwh", "energy_cost"}


def test_summary_follows_the_catalogue(cut_schedule):
    """Every metric is there, in catalogue order, as a plain float, and the counts add up."""
    found = summary.summarise(cut_schedule)
    assert tuple(found) == summary.METRIC_NAMES
    assert all(type(value) is float for value in found.values())
    assert sum(found[name] for name in COUNTS) == found["jobs"]


def test_options_reach_their_metrics(cut_schedule):
    """The queue threshold and the price are the caller's to choose."""
    found = summary.summarise(cut_schedule, queue_threshold=0, price_per_kwh=1.0)
    assert found["queue_exploded"] == 1
    assert found["energy_cost"] == found["energy_kwh"]


def test_nothing_finished(make):
    """Without a finished job averages are NaN, without warnings, and the counts say why."""
    found = summary.summarise(
        make(Cluster.pool(1), [], unplaceable=[0], submit_s=[0], duration_s=[1], gpus=[4])
    )
    assert found["unplaceable"] == 1
    assert found["finished"] == 0
    assert all(math.isnan(found[name]) for name in ("mean_jct_s", "p99_wait_s", "makespan_s"))


def test_makespan_ends_with_the_last_completion(make):
    """A horizon longer than the work does not lengthen the makespan."""
    schedule = make(Cluster.pool(1), [(0, 5, 15, [0])], cut_s=900.0, submit_s=[5], duration_s=[10])
    assert summary.makespan_s(schedule) == 10


def test_blocks_are_summed_up_like_schedules(cut_schedule):
    """One block of all jobs gives the job metrics of the whole; counts add up over blocks."""
    whole = summary.summarise(cut_schedule)
    (same,) = summary.summarise_blocks(cut_schedule, statistics.blocks(cut_schedule, 1))
    assert set(same) == {item.name for item in summary.METRICS if item.scope == "jobs"}
    assert same == pytest.approx({name: whole[name] for name in same}, nan_ok=True)
    parts = summary.summarise_blocks(cut_schedule, statistics.blocks(cut_schedule, 3))
    for name in (*COUNTS, "jobs"):
        assert sum(part[name] for part in parts) == whole[name]


def test_failed_jobs_are_counted_apart(make):
    """Jobs that failed are neither finished nor unfinished, and are in no average of completion."""
    schedule = make(
        Cluster.of("2x A100:1"),
        [(0, 0, 5, [0], Cause.NODE_FAILED, 4.0), (0, 6, 9, [0], Cause.NODE_FAILED, 1.0),
         (1, 0, 10, [1])],
        failed=[0], outages=[(0, 5.0, 6.0), (0, 9.0, 10.0)],
        submit_s=[0, 0], duration_s=[50, 10], deadline_s=[99.0, 10.0],
    )  # fmt: skip
    found = summary.summarise(schedule)
    assert [found[name] for name in COUNTS] == [1, 0, 1, 0, 0]
    assert found["mean_jct_s"] == found["makespan_s"] == 10
    assert found["deadline_miss_rate"] == 0.5
    assert found["mean_tardiness_s"] == 0
    assert found["restarts"] == 1
    assert found["availability"] == pytest.approx(1 - 2 / 20)
    assert found["utilisation"] == 1
    assert found["wasted_gpu_h"] == pytest.approx(5 / 3600)
    assert found["goodput"] == pytest.approx(1 - 5 / 18)
    assert found["mean_queue"] == pytest.approx(1 / 10)
    assert math.isnan(found["mean_age_unfinished_s"])


def split(schedule: Schedule, parts: list[float]) -> Schedule:
    """Cut every segment in two at a part of its length, without a pause in between."""
    length = schedule.segment_end_s - schedule.segment_start_s
    middle = schedule.segment_start_s + length * np.resize(parts, len(length))
    start = np.concatenate((schedule.segment_start_s, middle))
    end = np.concatenate((middle, schedule.segment_end_s))
    order = np.argsort(start, kind="stable")
    cause = np.concatenate(
        (np.full(len(length), Cause.PREEMPTED, dtype=np.int8), schedule.segment_cause)
    )
    gpus = [schedule.gpus_of(segment % len(length)) for segment in order]
    return replace(
        schedule,
        segment_job=np.tile(schedule.segment_job, 2)[order],
        segment_start_s=start[order],
        segment_end_s=end[order],
        segment_cause=cause[order],
        segment_wasted_s=np.zeros(len(order)),
        segment_gpu_offset=np.cumsum([0, *map(len, gpus)]),
        gpu_ids=np.concatenate(gpus),
    )


JOBS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 30), st.sampled_from([1, 2, 4])),
    min_size=1,
    max_size=10,
)


@settings(max_examples=40)
@given(JOBS, st.lists(st.floats(0.1, 0.9), min_size=1, max_size=5))
def test_cutting_runs_in_two_changes_the_counts_alone(simulate, jobs, parts):
    """Stopping a job and starting it again at once on the same GPUs is free in every metric."""
    submit, duration, gpus = zip(*sorted(jobs, key=lambda job: job[0]), strict=True)
    rules = Site(
        quotas=(Quota("a", 4), Quota("b", 2)),
        power=Power(price_per_kwh=tuple(range(24)), carbon_g_per_kwh=(5.0,), sleep_after_s=3.0),
    )
    schedule = simulate(
        Cluster.of("2x A100:4", "1x V100:4").under(rules),
        submit_s=np.multiply(submit, 600.0), duration_s=np.multiply(duration, 600.0), gpus=gpus,
        tenant=np.resize(["a", "b"], len(jobs)), deadline_s=np.full(len(jobs), 9000.0),
    )  # fmt: skip
    whole, halves = summary.summarise(schedule), summary.summarise(split(schedule, parts))
    assert halves.pop("preemptions") == len(jobs)
    assert whole.pop("preemptions") == 0
    assert halves == pytest.approx(whole, nan_ok=True, abs=1e-9)


def test_large_schedules_take_seconds():
    """A million jobs are summed up without a loop over jobs; a tenth of them serves as the test."""
    jobs = 100_000
    rng = np.random.default_rng(0)
    submit = np.sort(rng.uniform(0, 1e6, jobs))
    start = submit + rng.exponential(500, jobs)
    end = start + 300.0
    order = np.argsort(start)
    schedule = Schedule(
        workload=Workload.of(submit_s=submit, duration_s=np.full(jobs, 300.0)),
        cluster=Cluster.of("32x A100:8"),
        scheduler="random",
        start_s=start,
        end_s=end,
        outcome=np.zeros(jobs, dtype=np.int8),
        segment_job=order,
        segment_start_s=start[order],
        segment_end_s=end[order],
        segment_gpu_offset=np.arange(jobs + 1),
        gpu_ids=(np.arange(jobs) % 256).astype(np.int32),
        horizon_s=(float(submit[0]), float(end.max())),
    )
    begin = time.perf_counter()
    assert summary.summarise(schedule)["finished"] == jobs
    assert time.perf_counter() - begin < 3


def test_importing_metrics_stays_light():
    """Metrics need NumPy alone: no data frames, plots or compilers."""
    code = (
        "import sys, yardmaster.metrics.summary, yardmaster.metrics.statistics, "
        "yardmaster.metrics.bounds; "
        "print([m for m in ('polars', 'matplotlib', 'numba', 'scipy', 'pydantic') "
        "if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
