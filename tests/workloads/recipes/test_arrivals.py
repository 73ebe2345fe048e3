"""Processes of arrivals against their definitions: rates, gaps, counts, dispersion."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.calibration import calibration
from yardmaster.workloads.recipes.arrivals import (
    ARRIVALS,
    Alternating,
    AtOnce,
    Bursts,
    CalibratedArrivals,
    Daily,
    MarkovModulated,
    Poisson,
    Replayed,
    Sine,
    Weekly,
)
from yardmaster.workloads.tables import write_table

HOUR_S = 3600.0
HOURS = tuple(np.linspace(0.2, 1.8, 24))
WEEKDAYS = (1.5, 1.3, 1.2, 1.1, 1.0, 0.5, 0.4)
WITH_A_RATE = [
    Poisson(),
    Alternating(busy=3, quiet=0.3, every_s=300),
    Sine(period_s=HOUR_S, depth=0.5, shift_s=900),
    Daily(hours=HOURS),
    Weekly(hours=HOURS, weekdays=WEEKDAYS, bursts=0.5),
    CalibratedArrivals(trace="venus-like"),
    MarkovModulated(rates=(5, 1, 0), sojourns_s=(600, 3000, 300)),
]
HELD = [Alternating(busy=3, quiet=0.3, every_s=300, held=True), Sine(period_s=HOUR_S, held=True)]
EVERY = [*WITH_A_RATE, *HELD, Bursts(), AtOnce()]


def named(process):
    return process.process + (" held" if getattr(process, "held", False) else "")


def ks_limit(times):
    return 1.95 / np.sqrt(len(times))


@pytest.mark.parametrize("process", EVERY, ids=named)
@settings(max_examples=15, deadline=None)
@given(jobs=st.integers(1, 60), span_s=st.floats(1, 1e6), seed=st.integers(0, 1000))
def test_submissions_stay_within_the_span_in_order(process, jobs, span_s, seed):
    """Over a span every process gives as many sorted times as asked for, all within it."""
    times = process.over_span(np.random.default_rng(seed), jobs, span_s)
    assert len(times) == jobs
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert times[-1] <= span_s * (1 + 1e-12)


@pytest.mark.parametrize("process", [*WITH_A_RATE, *HELD, Bursts()], ids=named)
@settings(max_examples=15, deadline=None)
@given(jobs=st.integers(1, 60), span_s=st.floats(1, 1e6), seed=st.integers(0, 1000))
def test_filling_a_span_fixes_its_ends(process, jobs, span_s, seed):
    """For an exact load the first job comes at 0 and the last at the end."""
    times = process.filling(np.random.default_rng(seed), jobs, span_s)
    assert len(times) == jobs
    assert times[0] == 0
    assert times[-1] == (span_s if jobs > 1 else 0)
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("process", WITH_A_RATE, ids=named)
def test_the_mean_rate_is_what_was_asked_for(process):
    """Whatever the shape of the rate, in the long run jobs come at the given mean."""
    times = process.at_rate(np.random.default_rng(5), 200_000, 100 / HOUR_S)
    assert len(times) / times[-1] * HOUR_S == pytest.approx(100, rel=0.04)


@pytest.mark.parametrize("process", [*WITH_A_RATE, *HELD], ids=named)
def test_all_jobs_until_a_moment_are_the_first_jobs_at_the_rate(process):
    """Asking until a moment and asking for a number are the same process, cut differently."""
    until = process.until(np.random.default_rng(6), 20 * HOUR_S, 200 / HOUR_S)
    count = process.at_rate(np.random.default_rng(6), len(until) + 1, 200 / HOUR_S)
    assert (until == count[:-1]).all()
    assert until[-1] < 20 * HOUR_S <= count[-1]


@pytest.mark.parametrize("process", [*WITH_A_RATE, *HELD], ids=named)
def test_more_jobs_do_not_move_the_first(process):
    """The beginning of a longer workload is the shorter one."""
    few, many = (process.at_rate(np.random.default_rng(7), jobs, 0.1) for jobs in (50, 2000))
    assert (few == many[:50]).all()


def test_poisson_gaps_are_exponential():
    """Gaps are memoryless, the first from second 0 too."""
    times = Poisson().at_rate(np.random.default_rng(8), 50_000, 2.5)
    gaps = np.diff(times, prepend=0.0)
    assert stats.kstest(gaps, stats.expon(scale=0.4).cdf).statistic < ks_limit(gaps)


def test_the_number_until_a_moment_is_poisson():
    """Counts over many seeds have the mean and the variance of a Poisson law."""
    counts = [
        len(Sine(period_s=HOUR_S).until(np.random.default_rng(seed), HOUR_S, 60 / HOUR_S))
        for seed in range(800)
    ]
    assert np.mean(counts) == pytest.approx(60, abs=4 * np.sqrt(60 / 800))
    assert np.var(counts) == pytest.approx(60, rel=4 * np.sqrt(2 / 800))


@pytest.mark.parametrize("way", ["at_rate", "over_span"])
def test_alternating_phases(way):
    """Ten times as many jobs in busy phases as in quiet ones, evenly spread within each."""
    process = Alternating(busy=3, quiet=0.3, every_s=300)
    rng = np.random.default_rng(9)
    span_s = 500 * 600.0
    times = (
        process.at_rate(rng, 60_000, 60_000 / span_s)
        if way == "at_rate"
        else process.over_span(rng, 60_000, span_s)
    )
    busy = times % 600 < 300
    assert busy.mean() == pytest.approx(3 / 3.3, abs=4 * 0.29 / np.sqrt(60_000))
    for phase in (times[busy] % 300, times[~busy] % 300):
        assert stats.kstest(phase, stats.uniform(0, 300).cdf).statistic < ks_limit(phase)


@pytest.mark.parametrize("shift_s", [0.0, 900.0])
def test_a_sine_of_an_hour(shift_s):
    """Within the period submissions have the density 1 + 0.5·sin(2π (t + shift)/H)."""
    process = Sine(period_s=HOUR_S, depth=0.5, shift_s=shift_s)
    times = process.at_rate(np.random.default_rng(10), 40_000, 1.0)
    whole = times[times < times[-1] // HOUR_S * HOUR_S] % HOUR_S
    turn = HOUR_S / (2 * math.pi)

    def cdf(second):
        swing = np.cos(shift_s / turn) - np.cos((second + shift_s) / turn)
        return (second + 0.5 * turn * swing) / HOUR_S

    assert stats.kstest(whole, cdf).statistic < ks_limit(whole)


def test_hours_and_weekdays_keep_their_weights():
    """Shares by hour of the day and by weekday follow the weights (chi-square)."""
    process = Weekly(hours=HOURS, weekdays=WEEKDAYS)
    weeks_s = 40 * 168 * HOUR_S
    times = process.until(np.random.default_rng(11), weeks_s, 100_000 / weeks_s)
    by_hour = np.bincount((times // HOUR_S % 24).astype(int), minlength=24)
    by_day = np.bincount((times // (24 * HOUR_S) % 7).astype(int), minlength=7)
    for counts, weights in ((by_hour, HOURS), (by_day, WEEKDAYS)):
        expected = np.array(weights) / sum(weights) * len(times)
        assert stats.chisquare(counts, expected).pvalue > 1e-3
    daily = Daily(hours=HOURS).until(np.random.default_rng(11), weeks_s, 100_000 / weeks_s)
    by_day = np.bincount((daily // (24 * HOUR_S) % 7).astype(int), minlength=7)
    assert stats.chisquare(by_day).pvalue > 1e-3


@pytest.mark.parametrize("way", ["at_rate", "over_span"])
def test_bursts_of_hours_disperse_counts(way):
    """Hourly counts have variance / mean = 1 + mean · cv² of the rate, season and bursts."""
    process = Weekly(hours=HOURS, weekdays=WEEKDAYS, bursts=0.8)
    week = np.outer(WEEKDAYS, HOURS)
    cv2 = (1 + week.var() / week.mean() ** 2) * 1.8 - 1
    hours = 168 * 100
    rng = np.random.default_rng(12)
    times = (
        process.at_rate(rng, 20 * hours, 20 / HOUR_S)
        if way == "at_rate"
        else process.over_span(rng, 20 * hours, hours * HOUR_S)
    )
    counts = np.bincount((times // HOUR_S).astype(int))[: int(times[-1] // HOUR_S)]
    assert counts.var() / counts.mean() == pytest.approx(1 + counts.mean() * cv2, rel=0.08)


def test_the_season_of_a_trace():
    """Calibrated arrivals are the weekly ones with the trace's numbers."""
    season = calibration("venus-like").season
    like = Weekly(
        hours=tuple(season.hour_weights),
        weekdays=tuple(season.weekday_weights),
        bursts=season.burst_variance(),
    )
    ours = CalibratedArrivals(trace="venus-like")
    one, other = (each.at_rate(np.random.default_rng(1), 500, 0.01) for each in (like, ours))
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("window_s", [300.0, 3600.0, 36_000.0])
def test_markov_modulation_disperses_counts(window_s):
    """The index of dispersion of counts is that of the two-state process in closed form."""
    sojourns_s, rates = np.array([600.0, 3000.0]), np.array([5.0, 1.0])
    process = MarkovModulated(rates=tuple(rates), sojourns_s=tuple(sojourns_s))
    mean = 0.2
    times = process.at_rate(np.random.default_rng(13), 1_500_000, mean)
    counts = np.bincount((times // window_s).astype(int))[:-1]
    stay = sojourns_s / sojourns_s.sum()
    rates = rates * mean / (rates @ stay)
    leave = 1 / sojourns_s
    both = leave.sum()
    limit = 2 * leave.prod() * np.diff(rates)[0] ** 2 / (both**2 * (rates @ leave[::-1]))
    expected = 1 + limit * (1 - (1 - math.exp(-both * window_s)) / (both * window_s))
    assert counts.mean() == pytest.approx(mean * window_s, rel=0.02)
    assert counts.var() / counts.mean() == pytest.approx(expected, rel=0.06)


def test_markov_states_are_visited_in_proportion_to_their_time():
    """Every other state is equally likely next; the share of time in a state is its sojourn's."""
    process = MarkovModulated(rates=(10, 0, 1), sojourns_s=(500, 1000, 500))
    clock = process.clock(np.random.default_rng(14))
    pieces = [clock._more() for _ in range(100)]
    lengths_s, rates = (np.concatenate(column) for column in zip(*pieces, strict=True))
    states = np.searchsorted(np.unique(rates), rates)
    assert (np.diff(states) != 0).all()
    steps = np.bincount(np.diff(states) % 3, minlength=3)[1:]
    assert stats.chisquare(steps).pvalue > 1e-3
    time_s = np.bincount(states, weights=lengths_s)  # silent, quiet, busy
    assert time_s / time_s.sum() == pytest.approx([0.5, 0.25, 0.25], abs=0.01)
    assert np.unique(rates) == pytest.approx(np.array([0, 1, 10]) / (10 * 0.25 + 1 * 0.25))
    silent = lengths_s[states == 0]
    assert stats.kstest(silent, stats.expon(scale=1000).cdf).statistic < ks_limit(silent)


def test_a_span_in_which_nothing_would_come():
    """If the first state is silent beyond the span, jobs come any time instead of never."""
    process = MarkovModulated(rates=(0, 1), sojourns_s=(1e9, 1.0))
    times = process.over_span(np.random.default_rng(0), 1000, 10.0)
    assert stats.kstest(times, stats.uniform(0, 10).cdf).statistic < ks_limit(times)


def test_bursts_follow_their_definition():
    """Over many seeds one job is 80 % uniform centre + 3 % normal, clipped, and 20 % uniform."""
    at = np.concatenate(
        [Bursts().over_span(np.random.default_rng(seed), 1, 1000.0) for seed in range(4000)]
    )
    grid = np.linspace(0, 1, 4001)
    inner = np.linspace(0.02, 0.98, 49)
    near = [stats.norm.cdf((x - grid) / 0.03).mean() for x in inner]
    cdf = 0.8 * np.array(near) + 0.2 * inner
    found = np.searchsorted(np.sort(at), 1000 * inner) / len(at)
    assert np.abs(found - cdf).max() < 1.95 / np.sqrt(len(at))
    # P(centre + noise < 0) = 0.03/√(2π) on either side
    assert np.mean(at == 0) == pytest.approx(0.8 * 0.03 / math.sqrt(2 * math.pi), abs=0.006)


def test_jobs_of_a_workload_share_its_bursts():
    """One centre and no background: all jobs are normal around one moment."""
    process = Bursts(centres=1, share=1.0, width=0.03)
    times = process.over_span(np.random.default_rng(3), 20_000, 1000.0)
    assert 150 < times.mean() < 850  # far from both ends, with this seed
    assert times.std() == pytest.approx(30, rel=0.03)
    fitted = stats.norm(times.mean(), 30)
    assert stats.kstest(times, fitted.cdf).statistic < ks_limit(times)


def test_a_held_rate_is_looked_up_at_the_last_submission():
    """Counts agree with a plain loop that draws each gap at the rate of its beginning."""

    def plain(seed):
        rng, at, count = random.Random(seed), 0.0, 0
        while True:
            at += rng.expovariate((4 / 60) * (0.3 if int(at // 300) % 2 else 3.0))
            if at >= 3600:
                return count
            count += 1

    process = Alternating(busy=3, quiet=0.3, every_s=300, held=True)
    expected = np.array([plain(seed) for seed in range(500)])
    found = np.array(
        [
            len(process.until(np.random.default_rng(seed), 3600, 4 / 60 * 1.65))
            for seed in range(500)
        ]
    )
    noise = np.sqrt(expected.var() / 500 + found.var() / 500)
    assert found.mean() == pytest.approx(expected.mean(), abs=4 * noise)
    assert found.std() == pytest.approx(expected.std(), rel=0.15)
    assert found.mean() < 0.95 * 4 / 60 * 1.65 * 3600  # fewer than the rate would bring


@pytest.fixture
def trace(tmp_path):
    """Return a file of jobs submitted at seconds 100, 110, 130, 160 and 200."""
    path = tmp_path / "trace.csv"
    submit_s = [100, 110, 130, 160, 200]
    write_table(Workload.of(submit_s=submit_s, duration_s=[5] * 5), path)
    return path


def test_replaying_a_file(trace):
    """Submit times are the file's: all, the first few, those before a moment, or stretched."""
    process, rng = Replayed(file=str(trace)), np.random.default_rng(0)
    assert process.own_times(None, None).tolist() == [100, 110, 130, 160, 200]
    assert process.own_times(2, None).tolist() == [100, 110]
    assert process.own_times(None, 150).tolist() == [100, 110, 130]
    assert process.filling(rng, 5, 1000.0).tolist() == [100, 200, 400, 700, 1100]
    assert process.over_span(rng, 3, 60.0).tolist() == [100, 120, 160]
    assert process.filling(rng, 1, 60.0).tolist() == [100]


def test_a_file_that_cannot_be_replayed(trace, tmp_path):
    """Too few jobs, no span to stretch, a recipe or no file at all are refused by name."""
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidWorkloadError, match=r"trace\.csv: 9 jobs .* there are 5"):
        Replayed(file=str(trace)).own_times(9, None)
    write_table(Workload.of(submit_s=[5, 5], duration_s=[1, 1]), tmp_path / "burst.csv")
    with pytest.raises(InvalidWorkloadError, match=r"burst\.csv: cannot be stretched"):
        Replayed(file=str(tmp_path / "burst.csv")).filling(rng, 2, 60.0)
    with pytest.raises(InvalidWorkloadError, match="a recipe has no submit times"):
        Replayed(file="other.toml").own_times(1, None)
    with pytest.raises(InvalidWorkloadError, match="No such file"):
        Replayed(file=str(tmp_path / "none.csv")).own_times(1, None)


@pytest.mark.parametrize(
    ("process", "values", "message"),
    [
        (Alternating, {"busy": 0}, "busy must be a number above 0"),
        (Sine, {"depth": 1.1}, "depth must be at most 1"),
        (Sine, {"depth": 1, "held": True}, "depth must be below 1 where the rate is held"),
        (Daily, {"hours": (1,) * 23}, "hours must be a list of 24 numbers"),
        (Daily, {"hours": (0,) * 24}, "hours must not all be 0"),
        (Weekly, {"hours": HOURS, "weekdays": (0,) * 7}, "nor weekdays"),
        (MarkovModulated, {"rates": (1, 2), "sojourns_s": (1,)}, "2 rates and 1 sojourns_s"),
        (MarkovModulated, {"rates": (0, 0), "sojourns_s": (1, 1)}, "rates must not all be 0"),
        (MarkovModulated, {"rates": (1, 1), "sojourns_s": (1, 0)}, r"sojourns_s\[1\] must be"),
        (Bursts, {"centres": 0}, "centres must be at least 1"),
        (Bursts, {"share": -0.1}, "share must be from 0 to 1"),
    ],
)
def test_parameters_that_make_no_sense_are_named(process, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        process(**values)


def test_every_process_is_tried_here():
    """A new process must be put into the lists above."""
    tried = {type(process) for process in EVERY} | {Replayed}
    assert set(ARRIVALS.values()) == tried
