"""Parts that follow each other in time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.model.workload import Workload
from yardmaster.workloads.operations.splitting import split


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 9), min_size=2, max_size=5),
    st.sampled_from(["time", "jobs"]),
)
def test_every_job_is_in_one_part(random_jobs, seed, weights, by):
    """Parts are disjoint, complete, in order, and no second is in two of them."""
    jobs = random_jobs(seed, jobs=300)
    try:
        found = split(jobs, fractions=np.array(weights) / sum(weights), by=by)
    except InvalidWorkloadError:
        reject()  # a part so small that no job is in it
    parts = list(found.parts.values())
    assert found.dropped == 0
    assert np.concatenate([part.id for part in parts]).tolist() == jobs.id.tolist()
    for before, after in pairwise(parts):
        assert before.submit_s[-1] < after.submit_s[0]
        assert before.begins == after.begins == jobs.begins
    for key in ("submit_s", "duration_s", "gpus", "deadline_s"):
        whole = np.concatenate([getattr(part, key) for part in parts])
        np.testing.assert_array_equal(whole, getattr(jobs, key))


def test_shares_are_of_the_time_or_of_the_jobs():
    """Half of the time may hold a tenth of the jobs."""
    jobs = Workload.of(
        name="log", submit_s=[*range(0, 500, 50), *range(500, 1001)], duration_s=[1] * 511
    )
    by_time = split(jobs, fractions=[0.5, 0.5]).parts
    assert {name: len(part) for name, part in by_time.items()} == {"train": 10, "test": 501}
    by_jobs = split(jobs, fractions=[0.5, 0.5], by="jobs").parts
    assert {name: len(part) for name, part in by_jobs.items()} == {"train": 256, "test": 255}
    default = split(jobs)
    assert list(default.parts) == ["train", "validation", "test"]
    assert [part.submit_s[-1] for part in default.parts.values()] == [599, 799, 1000]
    assert default.parts["test"].name == "log-test"
    assert list(split(jobs, fractions=[0.25] * 4).parts) == [f"part-{n}" for n in (1, 2, 3, 4)]


def test_jobs_of_one_second_stay_together():
    """Where the share ends within a second, that second goes to the later part."""
    jobs = Workload.of(submit_s=[0, 5, 5, 5, 5, 9], duration_s=[1] * 6)
    parts = split(jobs, fractions=[0.5, 0.5], by="jobs").parts
    assert parts["train"].submit_s.tolist() == [0]
    assert parts["test"].submit_s.tolist() == [5, 5, 5, 5, 9]


def test_dates_as_borders(random_jobs):
    """The border's own second belongs to the later part."""
    jobs = random_jobs(1, jobs=400, begins="2020-04-08T00:00:00")
    parts = split(jobs, at=["2020-04-15", "2020-04-20"]).parts
    assert parts["train"].submit_s.max() < 7 * 86_400 <= parts["validation"].submit_s.min()
    assert parts["validation"].submit_s.max() < 12 * 86_400 <= parts["test"].submit_s.min()
    assert list(split(jobs, at=["1w"]).parts) == ["train", "test"]


@given(st.integers(0, 10**6), st.integers(0, 60))
def test_a_gap_belongs_to_no_part(random_jobs, seed, hours):
    """Exactly the jobs submitted less than the gap before a border are left out, and counted."""
    jobs = random_jobs(seed, jobs=300)
    found = split(jobs, at=["8d", "14d"], gap=f"{hours}h")
    kept = [
        not any(border - hours * 3600 <= at < border for border in (8 * 86_400, 14 * 86_400))
        for at in jobs.submit_s
    ]
    ids = np.concatenate([part.id for part in found.parts.values()])
    assert ids.tolist() == jobs.id[np.array(kept)].tolist()
    assert found.dropped == kept.count(False)


def test_jobs_that_run_past_the_border_are_counted():
    """A gap as long as the longest job leaves none of them."""
    jobs = Workload.of(submit_s=[0, 40, 90, 100, 150], duration_s=[200, 10, 20, 5, 5])
    train = split(jobs, at=["100"]).parts["train"]
    assert "2 of them would run past second 100" in train.notes[-1]
    train = split(jobs, at=["100"], gap=20).parts["train"]
    assert train.submit_s.tolist() == [0, 40]
    assert "1 of them would run past second 100" in train.notes[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fractions": [0.6, 0.6]}, "fractions must add up to 1, got 1.2"),
        ({"fractions": [1.0]}, "at least two parts"),
        ({"fractions": [1.5, -0.5]}, "a fraction must be at most 1"),
        ({"at": ["5d", "2d"]}, "Borders must follow each other"),
        ({"at": ["2021-01-01"]}, r"The test part would be empty: .* from .*2021-01-01"),
        ({"at": ["0"]}, "The train part would be empty"),
        ({"at": ["5d"], "gap": "5d"}, "The train part would be empty"),
        ({"gap": "x"}, "gap must be a time such as"),
    ],
)
def test_mistakes_are_explained(random_jobs, options, message):
    """An empty part says which range the workload covers."""
    with pytest.raises(InvalidWorkloadError, match=message):
        split(random_jobs(0), **options)


def test_an_unknown_way_is_named(random_jobs):
    """A misspelt way is not taken for another."""
    with pytest.raises(UnknownNameError, match="Unknown way to share out 'job'"):
        split(random_jobs(0), by="job")
