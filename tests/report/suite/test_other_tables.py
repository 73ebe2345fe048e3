"""What disturbances and changes do, as tables."""

from __future__ import annotations

import pytest

from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.other_tables import recovery_table, robustness_table, scenario_table
from yardmaster.report.suite.robustness import robustness
from yardmaster.report.suite.runs import Runs


def test_every_scenario_has_a_row(plain_family: Runs):
    """Each perturbation, severity and scheduler is one row with its change and its interval."""
    found = robustness(plain_family, OBJECTIVES)
    assert found is not None
    table = scenario_table(found)
    assert len(table.rows) == len(table.records) == 6 * 4
    record = next(
        r for r in table.records if (r["perturbation"], r["severity"]) == ("capacity-dip", 0.2)
    )
    assert record["change_mean_jct_s"] == pytest.approx(0.5)
    assert record["explosions"] == 1.0
    assert "seed_sd_mean_jct_s" in record


def test_perturbations_stand_beside_each_other(plain_family: Runs):
    """The short table has one row per scheduler and one column per perturbation."""
    found = robustness(plain_family, OBJECTIVES)
    assert found is not None
    table = robustness_table(found, "mean_jct_s")
    titles = [column.title for column in table.columns]
    assert titles[1:4] == ["arrival-noise", "capacity-dip", "phase-shift"]
    cells = table.rows[0]
    assert (cells[2].text, cells[2].tone) == ("+37.5 [+37.5, +37.5]", "worse")
    assert cells[3].tone == "better"


def test_recoveries_are_ranked(drift: Runs, clean: Runs):
    """The fastest comes first; without changes there is no table."""
    table = recovery_table(drift)
    assert table is not None
    assert [record["scheduler"] for record in table.records][-1] == "worst+easy"
    assert table.records[-1]["recovered"] == pytest.approx(0.8)
    assert recovery_table(clean) is None
