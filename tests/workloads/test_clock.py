"""Moments and lengths of time as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload
from yardmaster.workloads import clock


def jobs(begins: str = "2020-04-08T07:30:00") -> Workload:
    return Workload.of(name="log", begins=begins, submit_s=[10, 20], duration_s=[1, 1])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), (90.5, 90.5), ("1e3", 1000), ("3d", 3 * 86_400), ("2w", 1_209_600),
        ("1d12h", 129_600), ("1d 12h", 129_600), ("1.5h", 5400), ("30min", 1800), ("2m", 120),
        ("5S", 5), (" 7d ", 604_800),
    ],
)  # fmt: skip
def test_lengths_of_time(text, seconds):
    """Numbers are seconds; units add up."""
    assert clock.length_s(text) == seconds
    assert clock.second_of(jobs(""), text) == seconds


@pytest.mark.parametrize("text", ["", "d", "3x", "-5", "nan", "inf", "3d-", "1 2", "d3", -1.0])
def test_nonsense_is_refused(text):
    """What is no length is named in the message."""
    with pytest.raises(InvalidWorkloadError, match=r"gap must be a time such as"):
        clock.length_s(text, what="gap")


@given(st.datetimes(datetime(2020, 4, 9), datetime(2030, 1, 1)))  # noqa: DTZ001 - local times
def test_dates_are_counted_from_the_beginning(date):
    """A date is so many seconds after the date of second 0, and back again."""
    date = date.replace(microsecond=0)
    second = clock.second_of(jobs(), date.isoformat())
    assert datetime(2020, 4, 8, 7, 30) + timedelta(seconds=second) == date  # noqa: DTZ001
    assert clock.date_of(jobs(), second) == date.isoformat(sep=" ")


def test_a_date_without_a_time_is_midnight():
    """The half-open window up to a date ends as that day begins."""
    assert clock.second_of(jobs(), "2020-04-09") == 16.5 * 3600
    assert clock.second_of(jobs(), "2020-04-09 00:00:30") == 16.5 * 3600 + 30


def test_dates_need_a_beginning():
    """Without a date of second 0 a date means nothing, and the message says what does."""
    with pytest.raises(InvalidWorkloadError, match="log does not know the date of its second 0"):
        clock.second_of(jobs(""), "2020-04-09")
    assert clock.date_of(jobs(""), 5.0) == ""
    assert clock.in_words(jobs(""), 5.0) == "second 5"


@pytest.mark.parametrize("text", ["2020-13-01", "2020-04-09T00:00+02:00", "2020-4", "yesterday"])
def test_bad_dates_are_named(text):
    """A date that is none, or one of another time zone, is refused with the text."""
    with pytest.raises(InvalidWorkloadError) as caught:
        clock.second_of(jobs(), text)
    assert repr(text) in str(caught.value)


def test_a_beginning_that_is_no_date_is_named():
    """A file may claim anything."""
    with pytest.raises(InvalidWorkloadError, match="log begins at 'soon'"):
        clock.beginning(jobs("soon"))


@given(st.integers(0, 10**7))
def test_seconds_since_monday(minutes):
    """The weekday and the hour of second 0 are those of the calendar."""
    begins = datetime(2020, 1, 6) + timedelta(minutes=minutes)  # noqa: DTZ001 - a Monday
    found = clock.since_monday_s(jobs(begins.isoformat()))
    assert divmod(found, 86_400)[0] == begins.weekday()
    assert found == minutes * 60 % 604_800


def test_far_seconds_have_no_date():
    """Beyond the year 9999 there is only the second."""
    assert clock.in_words(jobs(), 1e15) == "second 1e+15"
    assert "second 10 (2020-04-08 07:30:10) to second 20" in clock.covered(jobs())
