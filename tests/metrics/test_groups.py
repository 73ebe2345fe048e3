"""Tables by group of jobs."""

from __future__ import annotations

import math

import pytest

from yardmaster.errors import UnknownNameError
from yardmaster.metrics.groups import by_group
from yardmaster.model.cluster import Cluster


@pytest.fixture
def schedule(make):
    """Four jobs of 10 s with waits 0, 10, 30 and none yet (still queued at 60 s)."""
    starts = [0.0, 10.0, 30.0]
    runs = [(job, start, start + 10, [job]) for job, start in enumerate(starts)]
    return make(
        Cluster.pool(16), runs, cut_s=60.0, submit_s=[0] * 4, duration_s=[10] * 4,
        gpus=[8, 1, 1, 2], priority=[1, 0, 0.5, 1], tenant=["b", "a", None, "a"],
    )  # fmt: skip


def test_sizes_ascend_and_unfinished_jobs_are_counted(schedule):
    """Sizes are in order of GPUs; a group without a finished job has counts and NaN."""
    rows = by_group(schedule, "size")
    assert [row.group for row in rows] == ["1", "2", "8"]
    assert [(row.jobs, row.finished) for row in rows] == [(2, 2), (1, 0), (1, 1)]
    assert rows[0][3:] == pytest.approx((30, 30, 39, 20, 20, 29))
    assert all(math.isnan(value) for value in rows[1][3:])
    assert rows[2][3:] == (10, 10, 10, 0, 0, 0)


def test_labels_are_alphabetical_with_the_unnamed_last(schedule):
    """Tenants come by name, jobs without one at the end; every job is in exactly one row."""
    rows = by_group(schedule, "tenant")
    assert [(row.group, row.jobs, row.mean_wait_s) for row in rows] == [
        ("a", 2, 10), ("b", 1, 0), ("(none)", 1, 30),
    ]  # fmt: skip


def test_priorities_print_as_numbers(schedule):
    """Priorities need not be whole."""
    assert [row.group for row in by_group(schedule, "priority")] == ["0", "0.5", "1"]


def test_missing_labels_make_one_group(schedule):
    """A column nobody filled still shows all jobs."""
    (row,) = by_group(schedule, "user")
    assert (row.group, row.jobs, row.finished) == ("(none)", 4, 3)


def test_unknown_columns_get_a_suggestion(schedule):
    """The error names the nearest column."""
    with pytest.raises(UnknownNameError, match="Did you mean 'tenant'"):
        by_group(schedule, "tenants")
