"""Words of figures and tables."""

from __future__ import annotations

from dataclasses import replace

from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.words import counted, family_words, interval_words, listed
from yardmaster.report.values import PERCENT


def test_counts_and_regimes_read_well(clean: Runs):
    """One is one, many are many, and one seed has no interval."""
    assert counted(1, "seed") == "1 seed"
    assert counted(1234, "run") == "1,234 runs"
    assert family_words(clean) == "4 regimes of plain"
    assert "5 paired seeds" in interval_words(clean)
    assert interval_words(replace(clean, seeds=(0,))) == ""


def test_values_are_listed_with_their_schedulers():
    """Names are short, numbers have their unit."""
    assert listed(["sjf", "meta:a/b.npz"], [0.5, 0.25], PERCENT) == "sjf 50 %, meta:b 25 %"
