"""Numbers, intervals and names as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.metrics.catalogue import METRIC_NAMES
from yardmaster.report.values import (
    PERCENT,
    PLAIN,
    cut_inside,
    decimals,
    duration_unit,
    interval,
    metric_title,
    metric_unit,
    number,
    plain,
    sentence,
    shortened,
)

sensible = st.floats(min_value=0.01, max_value=1e9)


@given(st.lists(sensible, min_size=1), st.floats(0, 1e9))
def test_a_written_number_is_the_number_rounded(values, value):
    """Reading a written number back gives the value within half of its last digit."""
    unit = duration_unit(values)
    places = decimals(values, unit)
    back = float(number(value, places, unit)) * unit.size
    assert abs(back - value) <= unit.size * 10**-places * 0.5000001 + 1e-6


@given(sensible)
def test_a_typical_value_shows_at_least_three_digits(value):
    """A value is written with three significant digits or more, unless it is whole."""
    unit = duration_unit([value])
    places = decimals([value], unit)
    scaled = value / unit.size
    assert places == 3 or scaled == round(scaled) or scaled * 10**places >= 99.5


@pytest.mark.parametrize(
    ("seconds", "symbol"), [(45, "s"), (600, "min"), (30_000, "h"), (1e6, "d"), (0, "s")]
)
def test_durations_are_written_in_the_unit_that_reads_best(seconds, symbol):
    """Seconds, minutes, hours and days each have their range."""
    assert duration_unit([seconds]).symbol == symbol


def test_signs_and_missing_numbers_are_visible():
    """Differences carry a sign, minus is a minus, and nothing is a dash."""
    assert number(-0.125, 1, PERCENT, signed=True) == "−12.5"
    assert number(0.125, 1, PERCENT, signed=True) == "+12.5"
    assert number(-0.0001, 1, PERCENT, signed=True) == "0.0"
    assert number(math.nan, 2) == "–"
    assert number(-math.inf, 2) == "−∞"


def test_an_interval_without_ends_is_empty():
    """Where there is no interval nothing is written."""
    assert interval(math.nan, math.nan, 1) == ""
    assert interval(-1.0, 2.0, 1, PLAIN, signed=True) == "[−1.0, +2.0]"


def test_whole_numbers_have_no_decimals():
    """Counts are written as counts."""
    assert decimals([3.0, 12.0, math.nan]) == 0


@given(st.text())
def test_plain_text_is_one_printable_line(text):
    """Whatever a name holds, its plain form prints on one line and keeps its length."""
    written = plain(text)
    assert written.isprintable()
    assert len(written) == len(text)
    assert plain(written) == written
    written.encode("utf-8")


def test_printable_names_stay_as_they_are():
    """Names in any script are left alone."""
    assert plain("sjf+easy@tier 作业 é") == "sjf+easy@tier 作业 é"


@given(st.text(), st.integers(1, 40))
def test_shortened_text_fits(text, length):
    """A shortened name is never longer than asked for."""
    assert len(shortened(text, length)) <= length


def test_every_metric_has_a_title_and_a_unit():
    """No metric of the catalogue shows its programming name or fails to be written."""
    titles = [metric_title(name) for name in METRIC_NAMES]
    assert len(set(titles)) == len(METRIC_NAMES)
    assert not any("_" in title for title in titles)
    assert all(metric_unit(name).size > 0 for name in METRIC_NAMES)


def test_a_sentence_keeps_its_abbreviations():
    """Only the first letter changes."""
    assert sentence("mean JCT") == "Mean JCT"
    assert sentence("") == ""


def test_names_of_one_origin_stay_apart_when_cut():
    """A cut in the middle keeps the end, where schedulers of one file differ."""
    names = ["mine.py:area_and_age+easy~estimate", "mine.py:area_and_age+skip"]
    cut = [cut_inside(name, 20) for name in names]
    assert [len(one) for one in cut] == [20, 20]
    assert len(set(cut)) == 2
    assert [one.partition("…")[2] for one in cut] == ["asy~estimate", "and_age+skip"]
    assert cut_inside("fifo+easy", 20) == "fifo+easy"
