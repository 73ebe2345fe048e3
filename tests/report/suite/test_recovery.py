"""Recoveries after changes."""

from __future__ import annotations

import pytest

from yardmaster.report.suite.recovery import recoveries
from yardmaster.report.suite.runs import Runs


def test_runs_that_never_recover_have_no_time_but_count(drift: Runs):
    """The mean is over those that recovered, the share says how many did."""
    found = {each.scheduler: each for each in recoveries(drift)}
    assert found["mid+skip"].mean_s == pytest.approx((110.0, 110.0, 110.0))
    assert found["mid+skip"].recovered == 1.0
    assert found["worst+easy"].mean_s.mean == pytest.approx(150.0)
    assert found["worst+easy"].recovered == pytest.approx(0.8)


def test_nothing_changes_nothing_recovers(clean: Runs):
    """Regimes that do not drift have no recoveries."""
    assert recoveries(clean) == []
