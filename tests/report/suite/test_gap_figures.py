"""Figures of the distance to the best fixed scheduler."""

from __future__ import annotations

import re

from yardmaster.report.suite.gap_figures import gap_bars, gap_map
from yardmaster.report.suite.looks import looks_of
from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.runs import Runs


def test_bars_tell_every_gap(clean: Runs):
    """Each objective has a panel, and gaps below zero are written with their sign."""
    sketch = gap_bars(clean, looks_of(clean.schedulers), OBJECTIVES)
    assert "mean JCT: meta:x −5" in sketch.alt
    svg = sketch.figure().svg
    assert svg.count("hindsight gap (%)") == 3
    assert ">−5.0<" in svg


def test_the_map_has_a_number_for_every_regime_and_scheduler(clean: Runs):
    """Gaps stand in the map as numbers; who is best where is told in words."""
    sketch = gap_map(clean, "mean_jct_s")
    svg = sketch.figure().svg
    assert len(re.findall(r">10<", svg)) >= 4
    assert len(re.findall(r">50<", svg)) == 4
    assert "meta:x in 4" in sketch.alt
    assert "<image" not in svg
