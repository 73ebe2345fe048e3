"""Who had ended when somebody was submitted."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads.prediction.past import (
    Past,
    is_censored,
    means,
    medians,
    trace_ends_s,
)


def test_a_job_ends_after_its_recorded_wait_and_its_run():
    """Recorded waits count; without one a job ends as if it had started at once."""
    jobs = Workload.of(submit_s=[0, 10, 20], duration_s=[5, 6, 7], recorded_wait_s=[100, None, 0])
    assert trace_ends_s(jobs).tolist() == [105, 16, 27]


def test_ends_in_the_second_of_a_submission_are_known():
    """A job that ends when another is submitted has ended; a second later it would not have."""
    jobs = Workload.of(submit_s=[0, 0, 10], duration_s=[10, 11, 1])
    assert Past.of(jobs).known.tolist() == [0, 0, 1]


def test_nobody_knows_jobs_of_the_same_second():
    """Jobs that take no time are unknown to themselves and to all submitted with them."""
    jobs = Workload.of(submit_s=[5, 5, 6], duration_s=[0, 0, 0])
    assert Past.of(jobs).known.tolist() == [0, 0, 2]


def test_given_ends_replace_those_of_the_trace():
    """With ends of a schedule, these count; a job without an end is never known."""
    jobs = Workload.of(submit_s=[0, 1, 2, 50], duration_s=[1, 1, 1, 1])
    past = Past.of(jobs, np.array([60.0, 40.0, np.nan, 61.0]))
    assert past.by_end.tolist() == [1, 0, 3]
    assert past.known.tolist() == [0, 0, 0, 1]
    assert "schedule" in past.source


@pytest.mark.parametrize(
    ("ends", "message"),
    [([1.0], "one time for each of the 2 jobs"), ([9.0, 4.0], r"row 1 \(id 1\) .* at 5 s")],
)
def test_senseless_ends_are_refused(ends, message):
    """Ends must be one per job and not before its submission; the message names the row."""
    jobs = Workload.of(submit_s=[0, 5], duration_s=[1, 1])
    with pytest.raises(InvalidWorkloadError, match=message):
        Past.of(jobs, np.array(ends))


@pytest.mark.parametrize(
    ("waits", "words"),
    [([None, None], "no waits"), ([1, 2], "by recorded waits"), ([1, None], "1 jobs without")],
)
def test_the_source_of_ends_is_told(waits, words):
    """Whether ends are recorded, guessed or both is said in words."""
    jobs = Workload.of(submit_s=[0, 5], duration_s=[1, 1], recorded_wait_s=waits)
    assert words in Past.of(jobs).source


def test_censored_is_what_runs_on():
    """Jobs still running and jobs with clipped run times are censored, whatever the letters."""
    jobs = Workload.of(
        submit_s=[0] * 4, duration_s=[1] * 4, status=["running", "Censored", "completed", None]
    )
    assert is_censored(jobs).tolist() == [True, True, False, False]


@settings(deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 8), st.sampled_from(["a", "b", None])),
        min_size=1,
        max_size=25,
    ),
    many=st.integers(1, 4),
)
def test_the_latest_alike_are_found(jobs, many):
    """For every job: the last of the same user to have ended, the latest first, then NaN."""
    jobs.sort(key=lambda job: job[0])
    submit_s, duration_s, user = (list(column) for column in zip(*jobs, strict=True))
    past = Past.of(Workload.of(submit_s=submit_s, duration_s=duration_s, user=user))
    alike = past.alike(past.workload.user)
    number = np.arange(float(len(jobs)))
    found = alike.latest(number, many, np.arange(len(jobs)))
    for row, (now, _, me) in enumerate(jobs):
        ended = sorted(
            (submit + run, other)
            for other, (submit, run, owner) in enumerate(jobs)
            if owner == me is not None and submit < now and submit + run <= now
        )
        latest = [float(other) for _, other in reversed(ended)][:many]
        assert found[row][: len(latest)].tolist() == latest
        assert np.isnan(found[row][len(latest) :]).all()
        assert alike.count[row] == len(ended)


def test_groups_need_every_property_to_agree():
    """Jobs are alike if user, size and requested time are; unknown requests equal each other."""
    jobs = Workload.of(
        submit_s=[0, 0, 0, 0, 9],
        duration_s=[1, 2, 3, 4, 5],
        gpus=[1, 2, 1, 1, 1],
        user=["a", "a", "b", "a", "a"],
        estimate_s=[None, None, None, 60, None],
    )
    past = Past.of(jobs)
    same = past.alike(jobs.user, past.size, past.requested_s)
    assert same.latest(past.run_s, 2, np.array([4])).tolist()[0][0] == 1
    assert same.count.tolist() == [0, 0, 0, 0, 1]


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=4), min_size=1, max_size=6))
def test_means_and_medians_leave_out_what_is_missing(rows):
    """Each row gives the mean and median of its numbers, NaN if it has none."""
    table = np.array([row + [np.nan] * (4 - len(row)) for row in rows])
    for row, mean, median in zip(rows, means(table), medians(table), strict=True):
        if row:
            assert mean == pytest.approx(statistics.fmean(row), abs=1e-6)
            assert median == pytest.approx(statistics.median(row), abs=1e-6)
        else:
            assert np.isnan(mean)
            assert np.isnan(median)
