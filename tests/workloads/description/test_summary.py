"""A workload described: against plain Python, and against published statistics."""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.workloads.description.summary import Description, describe
from yardmaster.workloads.operations.slicing import sliced

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
NEEDS_TRACES = pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")
SIZES = [("< 1", 0, 1), ("1", 1, 2), ("2-3", 2, 4), ("4-7", 4, 8), ("8", 8, 9), ("9-16", 9, 17),
         ("17-32", 17, 33), ("33+", 33, math.inf)]  # fmt: skip


def held(jobs: Workload) -> list[float]:
    return [g * m / 1000 for g, m in zip(jobs.gpus.tolist(), jobs.milli_gpu.tolist(), strict=True)]


def work(jobs: Workload) -> list[float]:
    return [g * d for g, d in zip(held(jobs), jobs.duration_s.tolist(), strict=True)]


def quantile(values: list[float], point: float) -> float:
    """Interpolate linearly between the two nearest values."""
    ordered = sorted(values)
    place = point * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@given(st.integers(0, 10**6), st.integers(2, 80))
def test_sizes_and_run_times(random_jobs, seed, count):
    """Shares of jobs and GPU time, and quantiles of run times, of every size and class."""
    jobs = random_jobs(seed, jobs=count)
    about = describe(jobs)
    amounts, works, whole = held(jobs), work(jobs), sum(work(jobs))
    for size in about.sizes:
        rows = [row for row, amount in enumerate(amounts) if amount == size.gpus]
        assert size.jobs == len(rows)
        assert size.jobs_share == pytest.approx(len(rows) / count)
        assert size.gpu_time_share == pytest.approx(sum(works[row] for row in rows) / whole)
    assert sum(size.jobs for size in about.sizes) == count
    classes = {each.name: each for each in about.size_classes}
    for name, low, high in SIZES:
        times = [d for d, g in zip(jobs.duration_s, amounts, strict=True) if low <= g < high]
        assert (name in classes) == bool(times)
        if times:
            spread = classes[name].duration_s
            assert (spread.count, spread.largest) == (len(times), max(times))
            assert spread.quantiles["p50"] == pytest.approx(statistics.median(times))
            assert spread.quantiles["p90"] == pytest.approx(quantile(times, 0.9))
            assert spread.quantiles["p99.9"] == pytest.approx(quantile(times, 0.999))
    assert about.duration_s.mean == pytest.approx(statistics.fmean(jobs.duration_s))
    assert about.jobs_of_no_length == jobs.duration_s.tolist().count(0)


@given(st.integers(0, 10**6), st.integers(2, 80), st.sampled_from(["2020-04-08T07:30:00", ""]))
def test_arrivals(random_jobs, seed, count, begins):
    """Hours, weekdays, gaps and dispersion, by the calendar or from Monday's midnight."""
    jobs = random_jobs(seed, jobs=count, begins=begins)
    found = describe(jobs).arrivals
    start = datetime.fromisoformat(begins or "2020-04-06T00:00:00")  # any Monday
    dates = [start + timedelta(seconds=second) for second in jobs.submit_s.tolist()]
    by_hour, by_day = Counter(d.hour for d in dates), Counter(d.weekday() for d in dates)
    assert found.jobs_by_hour == tuple(by_hour[hour] for hour in range(24))
    assert found.jobs_by_weekday == tuple(by_day[day] for day in range(7))
    both = Counter((date.weekday(), date.hour) for date in dates)
    assert found.jobs_by_hour_of_week[2][9] == both[2, 9]
    assert found.is_dated == bool(begins)
    gaps = np.diff(jobs.submit_s)
    assert found.gaps_s.quantiles["p75"] == pytest.approx(quantile(gaps.tolist(), 0.75))
    hours = int((jobs.submit_s[-1] - jobs.submit_s[0]) // 3600)
    if hours > 1:
        counts = Counter(int(at // 3600) for at in (jobs.submit_s - jobs.submit_s[0]).tolist())
        each = [counts[hour] for hour in range(hours)]
        assert found.hourly_mean == pytest.approx(statistics.fmean(each))
        dispersion = statistics.pvariance(each) / statistics.fmean(each)
        assert found.hourly_dispersion == pytest.approx(dispersion)


@given(st.integers(0, 20_000), st.integers(0, 50_000))
def test_hours_of_the_week_are_covered(begin, minutes):
    """Each minute between first and last submission counts for its hour of the week."""
    submit_s = [begin * 60, (begin + minutes) * 60]
    jobs = Workload.of(submit_s=submit_s, duration_s=[1, 1], begins="2020-04-08T07:30:00")
    found = np.array(describe(jobs).arrivals.hours_of_week)
    offset = 2 * 1440 + 450 + begin  # minutes since Monday's midnight
    hours = (offset + np.arange(minutes)) // 60 % 168
    np.testing.assert_allclose(found.ravel(), np.bincount(hours, minlength=168) / 60, atol=1e-9)


def test_rates_divide_by_the_hours_there_are():
    """Ten days of one job an hour are one job an hour on every weekday."""
    jobs = Workload.of(submit_s=np.arange(240) * 3600.0, duration_s=np.ones(240))
    arrivals = describe(jobs).arrivals
    np.testing.assert_allclose(arrivals.rates_by_weekday(), 1.0, atol=0.03)
    np.testing.assert_allclose(arrivals.rates_by_hour()[:23], 1.0, atol=0.01)
    assert arrivals.hourly_dispersion == 0.0
    short = Workload.of(submit_s=[0, 1800], duration_s=[1, 1])
    assert np.isnan(describe(short).arrivals.rates()).sum() == 167


@given(st.integers(0, 10**6), st.integers(1, 80))
def test_owners_and_endings(random_jobs, seed, count):
    """Every tenant's, user's and ending's jobs and GPU time, most of it first."""
    jobs = random_jobs(seed, jobs=count)
    about = describe(jobs)
    works, whole = work(jobs), sum(work(jobs))
    for column, groups in (
        (jobs.tenant, about.tenants.groups), (jobs.user, about.users.groups),
        (jobs.status, about.statuses),
    ):  # fmt: skip
        jobs_of, work_of = Counter(), defaultdict(float)
        for name, each in zip(column.values(), works, strict=True):
            jobs_of[name] += 1
            work_of[name] += each
        assert {group.name: group.jobs for group in groups} == dict(jobs_of)
        named = [group.name for group in groups if group.name is not None]
        assert [work_of[name] for name in named] == sorted(
            (work_of[name] for name in named), reverse=True
        )
        for group in groups:
            assert group.jobs_share == pytest.approx(jobs_of[group.name] / count)
            assert group.gpu_time_share == pytest.approx(work_of[group.name] / whole)
    assert about.tenants.count == len({name for name in jobs.tenant.values() if name})
    assert about.tenants.jobs_of_nobody == jobs.tenant.values().count(None)


def test_concentration():
    """One of four users has 60 %, two have 80 %: one has half of it, the largest tenth is one."""
    jobs = Workload.of(
        submit_s=[0] * 5, duration_s=[60, 20, 10, 10, 100], user=["a", "b", "c", "d", None]
    )
    users = describe(jobs).users
    assert (users.count, users.half, users.jobs_of_nobody) == (4, 1, 1)
    assert users.largest_tenth_share == pytest.approx(0.6)
    assert users.groups[0].gpu_time_share == pytest.approx(0.3)
    nobody = describe(Workload.of(submit_s=[0], duration_s=[1])).users
    assert (nobody.count, nobody.half) == (0, 0)
    assert math.isnan(nobody.largest_tenth_share)


@given(st.integers(0, 10**6), st.integers(2, 60))
def test_demand_and_load(random_jobs, seed, count):
    """Peaks against a count of every minute, loads against sums."""
    jobs = random_jobs(seed, jobs=count, days=5)
    jobs = jobs.with_columns(
        submit_s=jobs.submit_s // 60 * 60, duration_s=jobs.duration_s // 600 * 60, deadline_s=None
    )
    if jobs.submit_s[0] == jobs.submit_s[-1]:
        return
    fits = np.arange(count) % 3 > 0
    demand = describe(jobs, cluster=Cluster.pool(50), fits=fits).demand
    works = work(jobs)
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    assert demand.work_gpu_h == pytest.approx(sum(works) / 3600)
    assert demand.mean_gpus == pytest.approx(sum(works) / span_s)
    assert demand.load.load == pytest.approx(sum(works) / span_s / 50)
    assert sum(each.load for each in demand.load.tenants) == pytest.approx(demand.load.load)
    assert demand.load.jobs_too_large == (count + 2) // 3
    assert demand.load.too_large_gpu_time_share == pytest.approx(sum(works[::3]) / sum(works))
    minutes = int(jobs.submit_s[-1]) // 60 + 2 * 1440  # past the end of the last day
    busy = np.zeros(minutes + 450)  # the day of second 0 has begun 450 minutes before
    for at, length, gpus in zip(jobs.submit_s, jobs.duration_s, held(jobs), strict=True):
        busy[int(at) // 60 + 450 : int(at + length) // 60 + 450] += gpus
    for peak, step in ((demand.peak_hour, 60), (demand.peak_day, 1440)):
        if jobs.submit_s[-1] - jobs.submit_s[0] < step * 60:
            assert peak is None  # averaged over time without submissions, it would be none
            continue
        first = (int(jobs.submit_s[0]) // 60 + 450) // step
        last = (int(jobs.submit_s[-1]) // 60 + 450) // step
        means = [busy[n * step : (n + 1) * step].mean() for n in range(first, last + 1)]
        assert peak.gpus == pytest.approx(max(means), abs=1e-9)
        assert peak.load == pytest.approx(max(means) / 50, abs=1e-9)
        at = round(peak.begins_s / 60 + 450)
        assert busy[at : at + step].mean() == pytest.approx(max(means), abs=1e-9)
        assert at % step == 0


@given(st.integers(0, 10**6), st.integers(1, 80))
def test_estimates_waits_and_coverage(random_jobs, seed, count):
    """Only jobs that have an estimate and run at all are compared."""
    jobs = random_jobs(seed, jobs=count)
    about = describe(jobs)
    pairs = [
        (estimate, run)
        for estimate, run in zip(jobs.estimate_s, jobs.duration_s, strict=True)
        if not math.isnan(estimate) and run > 0
    ]
    having = [value for value in jobs.estimate_s if not math.isnan(value)]
    assert about.estimates.jobs_share == pytest.approx(len(having) / count)
    if pairs:
        ratios = [estimate / run for estimate, run in pairs]
        assert about.estimates.ratio.quantiles["p50"] == pytest.approx(statistics.median(ratios))
        too_short = sum(estimate < run for estimate, run in pairs)
        assert about.estimates.below_share == pytest.approx(too_short / len(pairs))
    waits = [value for value in jobs.recorded_wait_s if not math.isnan(value)]
    assert about.waits.wait_s.count == len(waits)
    if waits:
        assert about.waits.wait_s.quantiles["p90"] == pytest.approx(quantile(waits, 0.9))
    assert about.coverage["tenant"] == pytest.approx(
        sum(name is not None for name in jobs.tenant.values()) / count
    )
    assert "kind" in about.missing_columns
    assert ("status" in about.missing_columns) == (set(jobs.status.values()) == {None})


def test_a_single_job_has_no_rates():
    """What has no value is NaN, not an error."""
    about = describe(Workload.of(submit_s=[5], duration_s=[0]), cluster=Cluster.pool(4))
    assert math.isinf(about.demand.load.load)
    assert math.isnan(about.arrivals.hourly_mean)
    assert math.isnan(about.arrivals.gaps_s.mean)
    assert about.demand.peak_hour is None
    assert math.isnan(about.size_classes[0].gpu_time_share)


def test_clocks_that_are_off_by_ages():
    """A million years between two jobs take neither memory nor time."""
    about = describe(Workload.of(submit_s=[0, 1, 3e13], duration_s=[1, 1, 1]))
    assert about.demand.peak_hour is None
    assert about.arrivals.hourly_mean == pytest.approx(2 / 8_333_333_333, rel=1e-6)
    assert about.arrivals.hourly_dispersion == pytest.approx(2.0, rel=1e-6)


def test_json(random_jobs):
    """A description is plain data, and everything in it can be written."""
    found = json.loads(json.dumps(describe(random_jobs(0), cluster=Cluster.pool(9)).to_dict()))
    assert found["demand"]["load"]["gpus"] == 9
    assert found["arrivals"]["jobs_by_hour"]
    assert found["span_s"] == found["last_submit_s"] - found["first_submit_s"]


def read_venus() -> Workload:
    """Read the file as it is: seconds since 2020-03-18 04:01:39."""
    with (TRACES / "helios" / "venus_until_2020-07.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Workload.of(
        name="venus",
        begins="2020-03-18T04:01:39",
        submit_s=[float(row["arrival_s"]) for row in rows],
        duration_s=[float(row["service_sec"]) for row in rows],
        gpus=[int(row["gpu_count"]) for row in rows],
    )


def read_philly() -> Workload:
    """Read the file as it is: seconds since 2017-08-14 23:27:00; jobs of no length left out."""
    with (TRACES / "philly" / "philly_rfold_until_2017-10.csv").open(newline="") as file:
        rows = [row for row in list(csv.reader(file))[1:] if float(row[5]) > 0]
    return Workload.of(
        name="philly",
        begins="2017-08-14T23:27:00",
        submit_s=[float(row[1]) for row in rows],
        duration_s=[float(row[5]) for row in rows],
        gpus=[int(row[4]) for row in rows],
    )


def as_published(about: Description) -> dict[str, object]:
    """Return the description in the words of the published statistics."""
    by_hour, by_day = (
        np.array(about.arrivals.jobs_by_hour),
        np.array(about.arrivals.jobs_by_weekday),
    )
    gaps = about.arrivals.gaps_s
    return {
        "jobs": about.jobs,
        "span_s": about.span_s,
        "offered_gpus": about.demand.mean_gpus,
        "gpu_pmf": {f"{s.gpus:g}": s.jobs_share for s in about.sizes if s.jobs_share >= 0.001},
        "interarrival_quantiles_s": gaps.quantiles,
        "interarrival_cv": gaps.cv * math.sqrt(gaps.count / (gaps.count - 1)),
        "hourly_count_mean": about.arrivals.hourly_mean,
        "hourly_count_index_of_dispersion": about.arrivals.hourly_dispersion,
        "hour_of_day_weight": (by_hour / by_hour.mean()).tolist(),
        "day_of_week_weight_mon0": (by_day / by_day.mean()).tolist(),
        "duration_quantiles_s": {"all": about.duration_s.quantiles}
        | {each.name: each.duration_s.quantiles for each in about.size_classes},
    }


@NEEDS_TRACES
@pytest.mark.parametrize(
    ("read", "key", "start", "end"),
    [
        (read_venus, "helios_venus_2020-04..07", "2020-04-01", "2020-08-01"),
        (read_philly, "philly_2017-10-03..31", "2017-10-03", "2017-11-01"),
    ],
)
def test_published_statistics(read, key, start, end):
    """Every number that others computed from the same jobs comes out the same."""
    published = json.loads((TRACES / "generator_stats.json").read_text())[key]
    found = as_published(describe(sliced(read(), start=start, end=end)))
    for name in ("jobs", "span_s", "offered_gpus", "interarrival_cv", "hourly_count_mean",
                 "hourly_count_index_of_dispersion"):  # fmt: skip
        assert found[name] == pytest.approx(published[name], rel=1e-9), name
    for name in ("hour_of_day_weight", "day_of_week_weight_mon0", "gpu_pmf"):
        assert found[name] == pytest.approx(published[name], abs=6e-5), name
    points = {
        "interarrival": (found["interarrival_quantiles_s"], published["interarrival_quantiles_s"])
    }
    points |= {
        name: (found["duration_quantiles_s"][name], values)
        for name, values in published["duration_quantiles_s"].items()
    }
    for name, (mine, theirs) in points.items():
        for point, value in theirs.items():
            assert mine[f"p{100 * float(point):g}"] == pytest.approx(value), (name, point)


@NEEDS_TRACES
def test_a_publishers_clip_is_noticed():
    """Venus was cut off at two days, Philly was not cut off."""
    venus = describe(read_venus())
    assert venus.censoring.shared_duration.duration_s == 172_800
    assert venus.censoring.shared_duration.jobs_share == pytest.approx(0.018, abs=0.002)
    assert any("run for exactly 172800 s" in remark for remark in venus.remarks)
    assert describe(read_philly()).censoring.shared_duration is None
