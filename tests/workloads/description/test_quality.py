"""Cut-off run times and what else a trace cannot say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.model.workload import Workload
from yardmaster.workloads.description.quality import shared_duration
from yardmaster.workloads.description.summary import describe


def test_censored_jobs_are_counted_by_their_status():
    """Running and clipped jobs, in any spelling, and their share of the work."""
    jobs = Workload.of(
        submit_s=[0, 0, 0, 0],
        duration_s=[10, 20, 30, 40],
        status=["running", "Censored", "completed", None],
    )
    found = describe(jobs).censoring
    assert (found.jobs, found.jobs_share) == (2, 0.5)
    assert found.gpu_time_share == pytest.approx(0.3)


@given(st.integers(0, 10**6), st.integers(20_000, 100_000))
def test_a_clip_is_found_where_it_is(seed, limit):
    """Run times cut off at a limit that one in twenty would pass show that limit."""
    dice = np.random.default_rng(seed)
    duration = dice.exponential(limit / 3.0, 2000).round()
    found = shared_duration(np.minimum(duration, limit))
    assert found.duration_s == limit
    assert found.jobs == np.count_nonzero(duration >= limit)


def test_of_two_limits_the_larger_is_told():
    """Queues may have limits of their own; the last one is where run times end."""
    duration = np.random.default_rng(3).exponential(3e4, 3000).round()
    limit = np.where(np.arange(3000) % 2, 20_000, 60_000)
    assert shared_duration(np.minimum(duration, limit)).duration_s == 60_000


@given(st.integers(0, 10**6), st.sampled_from(["exponential", "rounded", "few", "constant"]))
def test_natural_run_times_are_not_suspicious(seed, kind):
    """Smooth ones are not, nor those rounded to minutes, nor a few round ones, nor a constant."""
    dice = np.random.default_rng(seed)
    duration = dice.exponential(5000.0, 2000)
    if kind == "rounded":
        duration = np.ceil(duration / 60) * 60
    elif kind == "few":
        duration = dice.choice([60.0, 600.0, 3600.0], 2000, p=[0.5, 0.1, 0.4])
    elif kind == "constant":
        duration = np.full(2000, 60.0)
    assert shared_duration(duration) is None


def test_known_censoring_is_no_news():
    """A clip whose jobs are all marked is not pointed out again."""
    duration = np.minimum(np.random.default_rng(0).exponential(3e4, 2000).round(), 80_000)
    plain = Workload.of(submit_s=np.arange(2000) * 100.0, duration_s=duration)
    marked = plain.with_columns(
        status=["censored" if each == 80_000 else "completed" for each in duration]
    )
    assert any("exactly 80000 s" in remark for remark in describe(plain).remarks)
    assert not any("exactly" in remark for remark in describe(marked).remarks)


def test_estimates_that_know_the_future_are_pointed_out():
    """Limits equal to the run time are an oracle, not an estimate."""
    jobs = Workload.of(submit_s=[0, 9], duration_s=[10, 20], estimate_s=[10, 20])
    assert any("know the future" in remark for remark in describe(jobs).remarks)
    honest = jobs.with_columns(estimate_s=[60, 60])
    assert not any("future" in remark for remark in describe(honest).remarks)


def test_an_assumed_clock_is_pointed_out():
    """Hours and weekdays without dates rest on an assumption."""
    undated = Workload.of(submit_s=[0, 1e6], duration_s=[1, 1])
    dated = Workload.of(submit_s=[0, 1e6], duration_s=[1, 1], begins="2020-01-01")
    assert any("Monday" in remark for remark in describe(undated).remarks)
    assert describe(dated).remarks == ()
    assert describe(dated).first_submit == "2020-01-01 00:00:00"
