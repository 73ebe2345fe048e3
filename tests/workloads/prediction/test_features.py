"""What a learnt model sees of a job."""

from __future__ import annotations

import numpy as np

from yardmaster.model.workload import Workload
from yardmaster.workloads.prediction.features import features
from yardmaster.workloads.prediction.past import Past

HOUR, WEEKDAY = 8, 9
"""Columns, after the eight of the request."""


def test_hours_and_weekdays_are_those_of_the_calendar():
    """On a clock that begins on a Wednesday at 22:30, second 7200 is Thursday 00:30."""
    jobs = Workload.of(submit_s=[0, 7200], duration_s=[1, 1], begins="2020-04-08T22:30:00")
    table = features(Past.of(jobs))
    assert table[:, HOUR].tolist() == [22.5, 0.5]
    assert table[:, WEEKDAY].tolist() == [2, 3]


def test_without_a_date_the_clock_begins_on_monday():
    """As in generated workloads, second 0 is Monday midnight."""
    jobs = Workload.of(submit_s=[3600, 86_400 * 8], duration_s=[1, 1])
    table = features(Past.of(jobs))
    assert table[:, HOUR].tolist() == [1, 0]
    assert table[:, WEEKDAY].tolist() == [0, 1]


def test_names_do_not_matter():
    """Users and kinds under other names, numbered otherwise, give the same numbers."""
    rng = np.random.default_rng(1)
    columns = {
        "submit_s": np.sort(rng.integers(0, 1000, 80)).astype(float),
        "duration_s": rng.integers(1, 50, 80).astype(float),
    }
    who = rng.integers(0, 5, 80)
    one = Workload.of(**columns, user=[f"u{x}" for x in who], kind=[f"k{x}" for x in who])
    other = Workload.of(**columns, user=[f"{9 - x}" for x in who], kind=[f"{x}z" for x in who])
    np.testing.assert_array_equal(features(Past.of(one)), features(Past.of(other)))


def test_the_users_past_is_seen():
    """The last run time of the same user is among the numbers, as a logarithm; unknown is NaN."""
    jobs = Workload.of(
        submit_s=[0, 50, 90], duration_s=[20, 30, 1], user=["a", "b", "a"], gpus=[1, 2, 4]
    )
    table = features(Past.of(jobs))
    assert np.isclose(table[2], np.log(20)).sum() >= 3
    assert np.isnan(table[0]).sum() > np.isnan(table[2]).sum()
