"""Names and units of numbers."""

from __future__ import annotations

from yardmaster.experiments.suite.measuring import MEASURES
from yardmaster.report.suite.measures import axis, better, definition, title, unit


def test_every_number_of_a_run_can_be_shown():
    """All of them have a title, a unit, a direction and a definition."""
    for name in MEASURES:
        assert title(name)
        assert unit(name, [100.0]) is not None
        assert better(name) in {"lower", "higher", "neither"}
        assert definition(name)


def test_units_are_those_people_use():
    """Durations read in the unit that suits them, shares in percent."""
    assert axis("mean_jct_s", unit("mean_jct_s", [7000.0])) == "mean JCT (min)"
    assert unit("recovery_s", [30.0]).symbol == "s"
    assert unit("sla").symbol == "%"
    assert unit("jain_jobs").symbol == ""
