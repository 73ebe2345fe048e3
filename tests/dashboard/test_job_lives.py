"""A job's life and the situation it met, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.dashboard.job_lives import free_gpus, life, moments, situation
from yardmaster.model.schedule import Outcome, Schedule


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    jobs = ym.load_workload("venus-like", jobs=150, seed=3, gpus=24, load=1.2)
    return ym.simulate(jobs, ym.Cluster.of("3x V100:8"), "srpt+preemptive")


def held_at(schedule: Schedule, time_s: float) -> list[int]:
    """GPUs per node that segments hold across a moment, counted one by one."""
    held = [set() for _ in range(schedule.cluster.nodes)]
    for segment in range(len(schedule.segment_job)):
        begin, end = schedule.segment_start_s[segment], schedule.segment_end_s[segment]
        if begin < time_s < end:
            for gpu in schedule.gpus_of(segment).tolist():
                held[gpu // 8].add(gpu)
    return [len(one) for one in held]


def test_what_was_free_is_what_nobody_held(schedule):
    """Before the starts of a second, free GPUs are those held by no segment across it."""
    for time_s in schedule.segment_start_s[::7].tolist():
        free = free_gpus(schedule, time_s)
        assert [8 - int(one) for one in free] == held_at(schedule, time_s)


def test_started_jobs_fit_into_what_was_free(schedule):
    """At every start, those that started needed no more than was free."""
    for row in np.flatnonzero(~np.isnan(schedule.start_s))[::9].tolist():
        met = situation(schedule, float(schedule.start_s[row]), row)
        started = np.flatnonzero(schedule.segment_start_s == schedule.start_s[row])
        needed = sum(len(schedule.gpus_of(int(one))) for one in started)
        assert needed <= met["free_gpus"]
        assert met["largest_hole"] <= 8
        assert row in [one["row"] for one in met["started"]] or met["started_count"] > 12


def test_who_waited_is_counted(schedule):
    """Others in the queue: submitted, and not in a segment, at that second."""
    workload = schedule.workload
    for row in range(0, len(workload), 11):
        time_s = float(workload.submit_s[row])
        met = situation(schedule, time_s, row)
        waiting = 0
        for other in range(len(workload)):
            if other == row or workload.submit_s[other] > time_s:
                continue
            mine = schedule.segment_job == other
            is_on = (schedule.segment_start_s <= time_s) & (schedule.segment_end_s > time_s)
            ended = schedule.end_s[other]
            is_over = schedule.outcome[other] == Outcome.UNPLACEABLE or (
                not np.isnan(ended) and ended <= time_s
            )
            waiting += not is_over and not bool((mine & is_on).any())
        assert met["waiting_count"] == waiting


def test_a_life_adds_up(schedule):
    """Stays are in order, after the submission, and hold the GPUs of the schedule."""
    for row in range(0, len(schedule.workload), 7):
        told = life(schedule, row)
        stays = told["segments"]
        assert told["segment_count"] == int((schedule.segment_job == row).sum())
        starts = [one["start_s"] for one in stays]
        assert starts == sorted(starts)
        if stays:
            assert told["submit_s"] <= starts[0] == told["start_s"]
            assert moments(schedule, row)[0] == told["submit_s"]
        for stay in stays:
            assert sum(node["gpus"] for node in stay["nodes"]) == stay["gpus"]


def test_a_node_that_is_away_has_nothing_free():
    """GPUs of a node in an outage are not free, though nobody holds them."""
    from yardmaster.model.site import Failures, Outage, Site

    site = Site(failures=Failures(outages=(Outage(1, 50.0, 500.0),)))
    cluster = ym.Cluster.of("2x V100:4").under(site)
    jobs = ym.Workload.of(submit_s=[0, 100, 900], duration_s=[10, 10, 10], gpus=[1, 1, 1])
    schedule = ym.simulate(jobs, cluster, "fifo+easy")
    assert free_gpus(schedule, 100.0).tolist() == [4, 0]
    assert free_gpus(schedule, 900.0).tolist() == [4, 4]
