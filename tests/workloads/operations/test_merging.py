"""Several workloads on one clock."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.workload import COLUMN_NAMES, Labels, Workload
from yardmaster.workloads.operations.merging import merged


def rows(workload: Workload, *, without: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return every job as the text of its cells."""
    columns = []
    for key in COLUMN_NAMES:
        if key not in without:
            value = getattr(workload, key)
            cells = value.values() if isinstance(value, Labels) else value.tolist()
            columns.append([repr(cell) for cell in cells])
    return list(zip(*columns, strict=True))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 30)), min_size=2, max_size=4))
def test_merging_is_the_multiset_union(random_jobs, sources):
    """On the same clock every job is there once, with all its columns."""
    parts = [random_jobs(seed, jobs, name=f"w{n}") for n, (seed, jobs) in enumerate(sources)]
    together = merged(parts)
    expected = Counter(row for part in parts for row in rows(part, without=("id",)))
    assert Counter(rows(together, without=("id",))) == expected
    assert len(set(together.id.tolist())) == len(together)
    assert together.begins == parts[0].begins
    assert together.name == "+".join(part.name for part in parts)


def test_ids_are_changed_only_where_they_clash():
    """Different numbers stay numbers; equal ones get the workload's name."""
    one = Workload.of(name="a", id=[1, 2], submit_s=[0, 4], duration_s=[1, 1])
    two = Workload.of(name="b", id=[3, 4], submit_s=[0, 3], duration_s=[1, 1])
    assert merged([one, two]).id.tolist() == [1, 3, 4, 2]
    assert merged([one, one]).id.tolist() == ["a:1", "a-2:1", "a:2", "a-2:2"]
    texts = two.with_columns(id=["1", "x"])
    assert merged([one, texts]).id.tolist() == ["a:1", "b:1", "b:x", "a:2"]
    distinct = two.with_columns(id=["y", "x"])
    assert merged([one, distinct]).id.tolist() == ["1", "y", "x", "2"]


@given(st.lists(st.sampled_from(["a", "a:b", "a-2", "a-b", ":"]), min_size=2, max_size=5))
def test_names_never_make_ids_clash(names):
    """Whatever the workloads are called, colons and numbers included."""
    parts = [
        Workload.of(name=name, id=["1", "b:1", "2:1"], submit_s=[0, 0, 0], duration_s=[1, 1, 1])
        for name in names
    ]
    assert len(set(merged(parts).id.tolist())) == 3 * len(names)


def test_labels_tell_the_sources_apart():
    """Tenants get the workload's name in front; jobs of nobody belong to the workload."""
    one = Workload.of(
        name="x", submit_s=[0, 1], duration_s=[1, 1], tenant=["t", None], user=["u", "v"]
    )
    two = Workload.of(
        name="y", submit_s=[2, 3], duration_s=[1, 1], tenant=["t", "s"], user=["u", None]
    )
    plain = merged([one, two])
    assert plain.tenant.values() == ["t", None, "t", "s"]
    labelled = merged([one, two], label_tenants=True)
    assert labelled.tenant.values() == ["x/t", "x", "y/t", "y/s"]
    assert labelled.user.values() == ["u", "v", "u", None]
    assert merged([one, two], label_users=True).user.values() == ["x/u", "x/v", "y/u", "y"]


@given(st.integers(0, 10**6), st.integers(-(10**6), 10**6))
def test_by_dates_every_job_keeps_its_date(random_jobs, seed, minutes):
    """The earliest second 0 becomes that of all."""
    other = datetime(2020, 4, 8, 7, 30) + timedelta(minutes=minutes)  # noqa: DTZ001 - local
    parts = [
        random_jobs(seed, name="w0"),
        random_jobs(seed + 1, name="w1", begins=other.isoformat()),
    ]
    together = merged(parts, how="dates")

    def dates(workload: Workload) -> list[datetime]:
        begins = datetime.fromisoformat(workload.begins)
        return [begins + timedelta(seconds=second) for second in workload.submit_s.tolist()]

    assert sorted(dates(together)) == sorted(dates(parts[0]) + dates(parts[1]))


@given(st.integers(0, 10**6), st.integers(0, 20_000), st.booleans())
def test_appending_keeps_the_hour_of_the_week(random_jobs, seed, minutes, dated):
    """Each workload begins after the last, less than a week later, at its own hour of the week."""
    begins = (datetime(2018, 1, 1) + timedelta(minutes=minutes)).isoformat()  # noqa: DTZ001
    parts = [
        random_jobs(seed, name="w0"),
        random_jobs(seed + 1, name="w1", begins=begins if dated else ""),
        random_jobs(seed + 2, name="w2"),
    ]
    together = merged(parts, how="append")
    start = 0
    for part in parts:
        own = together.submit_s[start : start + len(part)]
        if start:
            gap_s = own[0] - together.submit_s[start - 1]
            assert 0 < gap_s <= 604_800
        np.testing.assert_array_equal(np.diff(own), np.diff(part.submit_s))
        if part.begins:
            first = datetime.fromisoformat(part.begins) + timedelta(seconds=part.submit_s[0])
            moved = datetime.fromisoformat(together.begins) + timedelta(seconds=own[0])
            assert (first - moved) % timedelta(weeks=1) == timedelta(0)
        start += len(part)


def test_dates_that_differ_are_not_passed_on(random_jobs):
    """On a common clock, jobs of different years have no common date."""
    parts = [random_jobs(0, name="w0"), random_jobs(1, name="w1", begins="2018-01-01")]
    assert merged(parts).begins == ""


def test_notes_say_what_came_from_where(random_jobs):
    """Each source's notes carry its name."""
    one, two = random_jobs(0, name="x").renamed("x", "seen"), random_jobs(1, name="y")
    assert merged([one, two]).notes == (
        "x: seen",
        "merged: 60 jobs of x, 60 jobs of y, all second 0s at once",
    )


def test_mistakes_are_explained(random_jobs):
    """One workload cannot be merged, and dates must be known."""
    jobs = random_jobs(0)
    with pytest.raises(InvalidWorkloadError, match="at least two"):
        merged([jobs])
    undated = random_jobs(1, begins="", name="swf")
    with pytest.raises(InvalidWorkloadError, match="unknown for swf"):
        merged([jobs, undated], how="dates")
    with pytest.raises(UnknownNameError, match="Unknown way to merge 'date'"):
        merged([jobs, jobs], how="date")
