"""Parts of a workload."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.workload import Workload
from yardmaster.workloads.operations.slicing import sliced


@given(st.integers(0, 10**6), st.integers(0, 480), st.integers(1, 480))
def test_windows_are_half_open(random_jobs, seed, begin, length):
    """Exactly the jobs with begin ≤ submit < end are kept, untouched."""
    jobs = random_jobs(seed)
    start, end = begin * 3600.0, (begin + length) * 3600.0
    wanted = [row for row in range(len(jobs)) if start <= jobs.submit_s[row] < end]
    if not wanted:
        with pytest.raises(InvalidWorkloadError, match="No job is left; the 60 jobs of random are"):
            sliced(jobs, start=start, end=end)
        return
    part = sliced(jobs, start=start, end=end)
    assert part.fingerprint() == jobs.select(np.array(wanted)).fingerprint()
    assert (part.name, part.begins) == (jobs.name, jobs.begins)
    assert f"slice: {len(wanted)} of 60 jobs" in part.notes[-1]


@given(st.integers(0, 10**6), st.sets(st.sampled_from("abc"), min_size=1), st.booleans())
def test_tenants_and_their_negation(random_jobs, seed, tenants, negated):
    """Naming tenants and leaving them out share the jobs out; those of nobody go with the rest."""
    jobs = random_jobs(seed, jobs=200)
    names = sorted(tenants)
    part = sliced(jobs, **{"not_tenants" if negated else "tenants": names})
    wanted = [(value in tenants) != negated for value in jobs.tenant.values()]
    assert part.id.tolist() == jobs.id[np.array(wanted)].tolist()


def test_all_conditions_hold_together(random_jobs):
    """Tenants, users, endings, sizes and the window are all asked of each job."""
    jobs = random_jobs(3, jobs=3000)
    part = sliced(
        jobs, start="2d", end="2020-04-20", tenants=["a", "b"], not_users=["u1"],
        not_statuses=["running", "censored"], min_gpus=2, max_gpus=12,
    )  # fmt: skip
    end_s = (datetime(2020, 4, 20) - datetime(2020, 4, 8, 7, 30)).total_seconds()  # noqa: DTZ001
    columns = zip(
        jobs.submit_s, jobs.tenant.values(), jobs.user.values(), jobs.status.values(), jobs.gpus,
        strict=True,
    )  # fmt: skip
    wanted = [
        2 * 86_400 <= at < end_s
        and tenant in ("a", "b")
        and user != "u1"
        and status not in ("running", "censored")
        and 2 <= gpus <= 12
        for at, tenant, user, status, gpus in columns
    ]
    assert part.id.tolist() == jobs.id[np.array(wanted)].tolist()
    assert len(part) > 10
    only = sliced(jobs, users=["u2"], statuses=["failed"])
    assert set(only.user.values()) == {"u2"}
    assert set(only.status.values()) == {"failed"}


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_restarting_the_clock_keeps_every_date(random_jobs, seed, begin):
    """Second 0 becomes the window's start; the date and the deadline of each job stay the same."""
    jobs = random_jobs(seed, days=30)
    plain = sliced(jobs, start=begin * 3600)
    moved = sliced(jobs, start=begin * 3600, restart_clock=True)

    def dates(workload: Workload) -> list[datetime]:
        begins = datetime.fromisoformat(workload.begins)
        return [begins + timedelta(seconds=second) for second in workload.submit_s.tolist()]

    assert dates(moved) == dates(plain)
    assert datetime.fromisoformat(moved.begins) == datetime.fromisoformat(jobs.begins) + timedelta(
        hours=begin
    )
    np.testing.assert_array_equal(
        moved.deadline_s - moved.submit_s, plain.deadline_s - plain.submit_s
    )


def test_restarting_without_a_window():
    """The first submission becomes second 0; a clock without dates says what is lost."""
    jobs = Workload.of(submit_s=[50.0, 70.0], duration_s=[1, 1])
    moved = sliced(jobs, restart_clock=True)
    assert moved.submit_s.tolist() == [0, 20]
    assert "if that clock began on a Monday at midnight, this one does not" in moved.notes[-1]
    week = sliced(
        jobs.with_columns(submit_s=[604_800.0, 604_801.0]), start="1w", restart_clock=True
    )
    assert "Monday" not in week.notes[-1]


@pytest.mark.parametrize(
    ("start", "is_warned"), [("2020-04-10", False), ("2020-04-10T05:00", True)]
)
def test_a_clock_that_is_not_from_midnight_is_pointed_out(random_jobs, start, is_warned):
    """Prices by the hour count from second 0."""
    moved = sliced(random_jobs(0), start=start, restart_clock=True)
    assert ("not a midnight" in moved.notes[-1]) == is_warned


def test_unknown_names_are_suggested(random_jobs):
    """A misspelt tenant brings up the right one; a column without names says so."""
    jobs = random_jobs(0).with_columns(tenant=["vc-nlp", "vc-vision"] * 30, user=None)
    with pytest.raises(
        UnknownNameError, match=r"random has no tenant 'vc-nlq'. Did you mean 'vc-n"
    ):
        sliced(jobs, tenants=["vc-nlq"])
    with pytest.raises(UnknownNameError, match="random names no user for any job"):
        sliced(jobs, not_users=["u1"])
    many = jobs.with_columns(user=[f"user-{number}" for number in range(60)])
    with pytest.raises(UnknownNameError, match=r"user-0, .* and 48 more\."):
        sliced(many, users=["nobody"])


def test_names_no_longer_in_use_are_unknown(random_jobs):
    """After a slice its other tenants are gone, although their codes are remembered."""
    only = sliced(random_jobs(0), tenants=["a"])
    with pytest.raises(UnknownNameError, match=r"no tenant 'b'.*It has: a\."):
        sliced(only, tenants=["b"])


def test_empty_results_say_where_the_jobs_went(random_jobs):
    """The count after each condition shows which of them was too much."""
    with pytest.raises(InvalidWorkloadError) as caught:
        sliced(random_jobs(0), tenants=["a"], min_gpus=41)
    text = str(caught.value)
    assert "2020-04-08 " in text
    assert "at least 41 GPUs: 0 left" in text
    with pytest.raises(InvalidWorkloadError, match="The window is empty"):
        sliced(random_jobs(0), start="3d", end="2d")
    with pytest.raises(InvalidWorkloadError, match="Nothing to cut"):
        sliced(random_jobs(0))
    with pytest.raises(InvalidWorkloadError, match="min_gpus must be at least 1"):
        sliced(random_jobs(0), min_gpus=0)
