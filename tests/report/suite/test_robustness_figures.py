"""Figures of disturbances and changes."""

from __future__ import annotations

from yardmaster.report.suite.looks import looks_of
from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.robustness import robustness
from yardmaster.report.suite.robustness_figures import by_severity, radar, recovery
from yardmaster.report.suite.runs import Runs


def test_the_star_has_a_ray_for_each_perturbation(plain_family: Runs):
    """Every perturbation and objective is named; with less than three rays there is no star."""
    found = robustness(plain_family, OBJECTIVES)
    assert found is not None
    looks = looks_of(plain_family.schedulers)
    sketch = radar(found, looks)
    assert sketch is not None
    svg = sketch.figure().svg
    for text in ("capacity", "phase", "arrival", "p95 JCT"):
        assert text in svg
    few = robustness(
        plain_family.only(lambda scenario, _: scenario.perturbation in {"none", "capacity-dip"}),
        OBJECTIVES,
    )
    assert few is not None
    assert radar(few, looks) is None


def test_each_perturbation_has_a_panel_with_its_severities(plain_family: Runs):
    """Severities are named on the axis, and what they are."""
    found = robustness(plain_family, OBJECTIVES)
    assert found is not None
    sketch = by_severity(found, looks_of(plain_family.schedulers), "p95_jct_s")
    svg = sketch.figure().svg
    for text in (">0.25<", ">capacity-dip<", "share of the GPU time lost", "Δ p95 JCT (%)"):
        assert text in svg
    assert "capacity-dip: best+skip 37.5 %" in sketch.alt


def test_recovery_is_drawn_where_something_changes(drift: Runs, clean: Runs):
    """Those that did not always recover are told by their share."""
    sketch = recovery(drift, looks_of(drift.schedulers))
    assert sketch is not None
    assert ">80 %<" in sketch.figure().svg
    assert recovery(clean, looks_of(clean.schedulers)) is None
