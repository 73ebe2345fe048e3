"""What sets schedules of the same jobs apart, checked against slow computations of the same."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.metrics import per_job
from yardmaster.model.schedule import Outcome
from yardmaster.model.workload import Workload
from yardmaster.report.contrast import box, cdf, contrast, differences, movers
from yardmaster.report.same_jobs import SameJobs, Side, same_jobs


@pytest.fixture(scope="module")
def jobs(comparison):
    """Return three schedules of the same jobs."""
    return same_jobs(comparison.schedules[-1:] + comparison.schedules[:2])


def unfinished(schedule, count):
    """Return a schedule whose last jobs were cut off while they ran."""
    outcome = schedule.outcome.copy()
    outcome[-count:] = Outcome.RUNNING
    return replace(schedule, outcome=outcome)


def percentile(values, share):
    """Return the value at a share of the sorted values, between two of them on a line."""
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (ranked[high] - ranked[low]) * (place - low)


@pytest.mark.parametrize("measure", ["jct_s", "wait_s", "bounded_slowdown"])
def test_every_point_of_a_distribution_is_a_count_of_jobs(jobs, measure):
    """At each x, the share is that of the jobs with at most x; the extremes are there."""
    for side in jobs.sides:
        values = side.columns[measure]
        curve = cdf(side, measure, points=60)
        for x, y in zip(curve["x"], curve["y"], strict=True):
            # Numbers are written with six digits.
            counted = sum(value <= x * (1 + 1e-5) for value in values) / len(values)
            assert y == pytest.approx(counted, rel=1e-5)
        assert curve["x"][0] == pytest.approx(values.min(), rel=1e-5)
        assert curve["x"][-1] == pytest.approx(values.max(), rel=1e-5)
        assert curve["y"][-1] == 1


def test_unfinished_jobs_count_but_never_as_complete(comparison):
    """The curve of a schedule that was cut ends below one, by the share of jobs cut off."""
    (side,) = same_jobs([unfinished(comparison.schedules[0], 80)]).sides
    assert cdf(side, "jct_s")["y"][-1] == pytest.approx(1 - 80 / 320)


def test_a_million_jobs_make_a_small_curve_with_its_tail():
    """Thinning bounds the size and keeps the last one in a hundred thousand."""
    values = np.random.default_rng(0).lognormal(5, 2, 1_000_000)
    curve = cdf(Side("x", {"jct_s": values}, np.ones(len(values), dtype=bool)), "jct_s")
    assert len(curve["x"]) <= 320
    assert any(0.99998 < y < 1 for y in curve["y"])
    assert curve["x"] == sorted(curve["x"])


def test_boxes_are_percentiles(jobs):
    """The five numbers are those of a slow computation over sorted values."""
    values = jobs.sides[0].columns["jct_s"]
    found = box(values)
    expected = [percentile(values.tolist(), share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
    assert [found[key] for key in ("low", "q1", "median", "q3", "high")] == pytest.approx(expected)
    assert found["mean"] == pytest.approx(statistics.fmean(values))
    assert box(np.array([math.nan])) is None


def test_every_job_is_in_one_group_and_small_tenants_share_one():
    """Tenants beyond the largest are gathered; nobody is left out or counted twice."""
    count = 400
    tenants = [f"t{min(int(abs(random.Random(row).gauss(0, 9))), 30)}" for row in range(count)]
    workload = Workload.of(
        submit_s=np.arange(count), duration_s=np.ones(count), tenant=tenants,
        priority=np.arange(count) % 2,
    )  # fmt: skip
    columns = {name: np.arange(1.0, count + 1) for name in ("jct_s", "wait_s", "bounded_slowdown")}
    side = Side("a", columns, np.ones(count, dtype=bool))
    found = contrast(SameJobs(workload, (side, side)))
    tenant, priority = found["boxes"]
    for grouping in (tenant, priority):
        assert sum(group["jobs"] for group in grouping["groups"]) == count
    assert tenant["groups"][-1]["name"].endswith(" others")
    largest = max(set(tenants), key=lambda name: (tenants.count(name), name))
    assert tenant["groups"][0]["jobs"] == tenants.count(largest)
    rows = [row for row in range(count) if tenants[row] == tenant["groups"][0]["name"]]
    median = statistics.median(float(row + 1) for row in rows)
    assert tenant["boxes"]["jct_s"][0][0]["median"] == median


def slow_interval(a, b, draws=4_000):
    """Return the bootstrap-t interval of mean(a) / mean(b) − 1, in plain Python."""
    dice = random.Random(7)
    units = list(zip(a, b, strict=True))

    def ratio_and_error(sample):
        scale = statistics.fmean(y for _, y in sample)
        ratio = statistics.fmean(x - y for x, y in sample) / scale
        rest = [x - y - ratio * y for x, y in sample]
        spread = math.sqrt(statistics.fmean(r * r for r in rest) / (len(rest) - 1))
        return ratio, spread / abs(scale)

    ratio, error = ratio_and_error(units)
    distances = []
    for _ in range(draws):
        drawn, own = ratio_and_error(dice.choices(units, k=len(units)))
        distances.append((drawn - ratio) / max(own, 0.01 * error))
    low, high = percentile(distances, 0.975), percentile(distances, 0.025)
    return ratio, ratio - low * error, ratio - high * error


def test_differences_over_workloads_are_paired(jobs):
    """Mean and interval are those of a slow bootstrap over the same workloads."""
    dice = np.random.default_rng(3)
    values = dice.lognormal(6, 0.5, 8) * dice.lognormal(0, 0.1, (3, 8)) * [[1.0], [0.8], [1.1]]
    (found,) = differences(jobs, {"mean_jct_s": values}, baseline=0)
    assert found["sides"][0] is None
    for side in (1, 2):
        ratio, low, high = slow_interval(values[side].tolist(), values[0].tolist())
        shown = found["sides"][side]
        assert shown["mean"] == pytest.approx(ratio)
        assert shown["low"] == pytest.approx(low, abs=0.1 * (high - low))
        assert shown["high"] == pytest.approx(high, abs=0.1 * (high - low))


def test_differences_of_one_workload_are_over_blocks_of_its_jobs(jobs):
    """The twenty blocks follow one another; the difference is that of the whole workload."""
    found = {one["metric"]: one for one in differences(jobs, None, baseline=0)}
    assert set(found) == {"mean_jct_s", "mean_wait_s", "mean_bounded_slowdown"}
    for name, one in found.items():
        columns = [side.columns[name.removeprefix("mean_")] for side in jobs.sides]
        means = [statistics.fmean(column) for column in columns]
        assert one["values"] == pytest.approx(means)
        blocks = [[statistics.fmean(part) for part in np.split(each, 20)] for each in columns]
        ratio, low, high = slow_interval(blocks[1], blocks[0])
        shown = one["sides"][1]
        assert shown["mean"] == pytest.approx(means[1] / means[0] - 1)
        assert shown["mean"] == pytest.approx(ratio)
        assert shown["low"] == pytest.approx(low, abs=0.12 * (high - low))
        assert shown["high"] == pytest.approx(high, abs=0.12 * (high - low))


def test_there_is_no_interval_where_jobs_did_not_finish(comparison):
    """Averages over those that did may flatter: a difference, but no interval."""
    first, second = comparison.schedules[:2]
    found = differences(same_jobs([first, unfinished(second, 5)]), None, baseline=0)
    for one in found:
        assert one["sides"][1]["mean"] is not None
        assert one["sides"][1]["low"] is None
        assert one["sides"][1]["high"] is None


def test_movers_are_the_jobs_whose_completion_changed_most(comparison, jobs):
    """Both lists and all counts are those of a sort of all jobs."""
    schedules = comparison.schedules[-1:] + comparison.schedules[:2]
    before, after = (per_job.jct_s(schedule).tolist() for schedule in schedules[:2])
    change = [now - then for now, then in zip(after, before, strict=True)]
    found = movers(jobs, 1, 0, most=7)
    assert found["sooner"] == sum(each < 0 for each in change)
    assert found["later"] == sum(each > 0 for each in change)
    assert found["same"] == sum(each == 0 for each in change)
    gained = [job["jct_s"] - job["before_s"] for job in found["gained"]]
    lost = [job["jct_s"] - job["before_s"] for job in found["lost"]]
    assert gained == sorted(each for each in change if each < 0)[:7]
    assert lost == sorted((each for each in change if each > 0), reverse=True)[:7]
    for job in found["gained"] + found["lost"]:
        assert job["id"] == str(jobs.workload.id[job["row"]])
        assert after[job["row"]] == job["jct_s"]


def test_the_whole_contrast_can_be_written_as_json(comparison):
    """No number in it is NaN or infinite, whatever happened to the jobs."""
    import json

    schedules = [comparison.schedules[0], unfinished(comparison.schedules[1], 320)]
    text = json.dumps(contrast(same_jobs(schedules)), allow_nan=False)
    assert '"finished": 0' in text
