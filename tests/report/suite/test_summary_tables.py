"""Who is best, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from yardmaster.report.renderers import to_csv, to_latex, to_markdown
from yardmaster.report.suite.measures import OBJECTIVES
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.summary_tables import (
    ORACLE,
    best_counts,
    regime_table,
    scheduler_table,
)


def test_schedulers_are_ranked_and_the_hindsight_best_stands_last(clean: Runs):
    """The least mean comes first, learned or fixed; the oracle is a row below all."""
    records = scheduler_table(clean, "mean_jct_s").records
    names = [record["scheduler"] for record in records]
    assert names == ["meta:runs/x/policy.npz", "best+skip", "mid+skip", "worst+easy", ORACLE]
    assert {record["baseline"] for record in records} == {"best+skip"}


def test_differences_and_gaps_are_against_fixed_schedulers(clean: Runs):
    """The baseline is the best fixed scheduler of the mean, the gap that of each run."""
    records = {r["scheduler"]: r for r in scheduler_table(clean, "mean_jct_s").records}
    learned, worst = records["meta:runs/x/policy.npz"], records["worst+easy"]
    assert learned["difference_high"] == pytest.approx(-0.05)
    assert worst["difference"] == pytest.approx(0.5)
    assert worst["oracle_gap_mean_jct_s"] == pytest.approx(0.5)
    assert records[ORACLE]["mean_jct_s"] == pytest.approx(records["best+skip"]["mean_jct_s"])
    assert records[ORACLE]["information"] is None


def test_clear_differences_have_a_tone(clean: Runs):
    """Better and worse are marked where the interval excludes zero, the baseline is named."""
    table = scheduler_table(clean, "mean_jct_s")
    place = [column.title for column in table.columns].index("Δ vs best+skip")
    cells = {row[0].text: row[place] for row in table.rows}
    assert cells["meta:runs/x/policy.npz"].tone == "better"
    assert cells["worst+easy"].tone == "worse"
    assert cells["best+skip"].text == "baseline"


def test_missing_runs_are_told_below_the_table(clean: Runs):
    """What does not count is named, up to a few."""
    lost = replace(clean, left_out=tuple(f"regime-{place}" for place in range(11)))
    (note,) = scheduler_table(lost, "mean_jct_s").notes
    assert "regime-7" in note
    assert "and 3 more" in note


def test_every_regime_has_its_best(clean: Runs):
    """The best of a regime is the least mean, and the next one stands at its known distance."""
    records = regime_table(clean, OBJECTIVES).records
    assert [record["regime"] for record in records] == ["base-2", "base-4", "bursty-2", "bursty-4"]
    for record in records:
        assert record["best_mean_jct_s"] == "meta:runs/x/policy.npz"
        assert record["next_mean_jct_s"] == pytest.approx(1 / 0.95 - 1)
        assert record["best_p95_jct_s"] == "worst+easy meta:runs/x/policy.npz"
        assert record["next_p95_jct_s"] == pytest.approx(0.5)
    assert best_counts(clean, "p95_jct_s") == [0, 0, 4, 4]


def test_tables_can_be_written_in_every_format(clean: Runs):
    """Markdown, LaTeX and CSV have one line per row."""
    table = regime_table(clean, OBJECTIVES)
    assert to_markdown(table).count("\n| ") == 1 + 1 + 4
    assert to_latex(table).count("\\\\\n") == 1 + 4
    assert len(to_csv(table).splitlines()) == 1 + 4
