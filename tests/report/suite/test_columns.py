"""Columns of tables."""

from __future__ import annotations

from math import nan

from yardmaster.metrics.statistics import Interval
from yardmaster.report.suite.columns import change_column, number_column, record_of
from yardmaster.report.values import PERCENT


def test_changes_have_signs_and_tones():
    """Only an interval on one side of zero has a tone; small changes have a digit more."""
    _, cells = change_column(
        "Δ", [Interval(0.5, 0.4, 0.6), Interval(-0.001, -0.002, 0.001), None], none="baseline"
    )
    assert cells[0] == ("+50.0 [+40.0, +60.0]", "worse")
    assert cells[1] == ("−0.10 [−0.20, +0.10]", "")
    assert cells[2].text == "baseline"


def test_an_interval_that_is_a_point_is_not_written():
    """Where chance has no part there is no interval to read."""
    _, cells = change_column("Δ", [Interval(0.0, 0.0, 0.0)])
    assert cells[0].text == "0.00"


def test_unknown_numbers_are_none_for_programs():
    """Estimates become three columns, and what is not finite becomes None."""
    record = record_of({"x": Interval(1.0, nan, nan), "y": nan})
    assert record == {"x": 1.0, "x_low": None, "x_high": None, "y": None}


def test_shares_have_one_decimal_at_most():
    """Percent need no more digits than that."""
    column, cells = number_column("share", [0.12345, nan], PERCENT)
    assert column.header == "share (%)"
    assert [cell.text for cell in cells] == ["12.3", "–"]
