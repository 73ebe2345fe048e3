"""The rows and columns of a comparison and of a summary."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

import pytest

from yardmaster.experiments.comparison import Estimate
from yardmaster.metrics.summary import METRIC_NAMES, summarise
from yardmaster.report.tables import comparison_table, summary_table


def column(table, title):
    """Return the texts of one column."""
    place = [column.title for column in table.columns].index(title)
    return [row[place].text for row in table.rows]


def with_row(comparison, place, **changes):
    """Return the comparison with one row changed."""
    rows = list(comparison.rows)
    rows[place] = replace(rows[place], **changes)
    return replace(comparison, rows=tuple(rows))


def with_metric(comparison, name, value):
    """Return the comparison with one metric set in its first row."""
    metrics = comparison.rows[0].metrics | {name: Estimate(value, nan, nan)}
    return with_row(comparison, 0, metrics=metrics)


def test_one_row_per_scheduler_in_the_given_order(comparison):
    """The table keeps the comparison's order, best first."""
    names = column(comparison_table(comparison), "scheduler")
    assert names == [row.scheduler for row in comparison.rows]


def test_the_star_marks_only_a_winner(comparison):
    """Leading is not winning: without a clear winner there is no star, and the legend says so."""
    starred = comparison_table(comparison)
    assert [row[0].text for row in starred.rows] == ["★"] + [""] * 11
    plain = comparison_table(with_row(comparison, 0, is_winner=False))
    assert not any(row[0].text for row in plain.rows)
    assert any("No ★" in line for line in plain.legend)


def test_information_classes_are_marked_and_explained(comparison):
    """Clairvoyant and estimate-based schedulers carry a mark that the legend explains."""
    table = comparison_table(comparison)
    marks = {"clairvoyant": "◆", "estimate-based": "◇", "blind": ""}
    assert [row[2].text for row in table.rows] == [
        marks[row.information] for row in comparison.rows
    ]
    legend = "\n".join(table.legend)
    assert "◆ clairvoyant: reads true durations" in legend
    assert "◇ estimate-based" in legend


def test_the_difference_names_the_baseline_and_its_tone(comparison):
    """Clear differences are toned and unclear ones are not; the baseline has none to itself."""
    unclear = Estimate(-0.05, -0.2, 0.1)
    worse = Estimate(0.3, 0.2, 0.4)
    changed = with_row(with_row(comparison, 1, difference=unclear), 2, difference=worse)
    table = comparison_table(changed)
    cells = [row[4] for row in table.rows]
    assert cells[-1].text == "baseline"
    assert [cell.tone for cell in cells[:3]] == ["better", "", "worse"]
    assert cells[1].text == "−5.0 [−20.0, +10.0]"


def test_more_is_better_where_the_objective_says_so(comparison):
    """For utilisation a positive difference is the better one."""
    table = comparison_table(
        with_row(
            replace(comparison, objective="utilisation"), 0, difference=Estimate(0.1, 0.05, 0.2)
        )
    )
    assert table.rows[0][4].tone == "better"
    assert any("positive is better" in line for line in table.legend)


def test_the_objective_is_not_shown_twice(comparison):
    """The objective has its own column with an interval; the others follow without it."""
    titles = [column.title for column in comparison_table(comparison).columns]
    assert titles.count("mean JCT") == 1
    by_wait = comparison_table(replace(comparison, objective="mean_wait_s"))
    titles = [column.title for column in by_wait.columns]
    assert titles.count("mean wait") == 1
    assert "mean JCT" in titles


@pytest.mark.parametrize("name", ["unfinished", "unplaceable", "not_submitted"])
def test_jobs_that_did_not_finish_get_a_column_only_if_there_are_any(comparison, name):
    """A column of zeros is noise, a single unfinished job is news that no width may hide."""
    title = name.replace("_", " ")
    assert title not in [column.title for column in comparison_table(comparison).columns]
    table = comparison_table(with_metric(comparison, name, 3.0))
    assert column(table, title)[0] == "3"
    found = next(column for column in table.columns if column.title == title)
    assert found.importance == 0


def test_unknown_gaps_have_no_column(comparison, one_job):
    """Where no bound is known there is no column of dashes."""
    assert "bound gap" in [column.title for column in comparison_table(comparison).columns]
    titles = [column.title for column in comparison_table(one_job).columns]
    assert "bound gap" not in titles
    assert "hindsight gap" not in titles


def test_the_legend_says_what_was_paired_and_repeats_the_notes(comparison):
    """Units, baseline and every note stand below the table."""
    table = comparison_table(comparison)
    legend = "\n".join(table.legend)
    assert "8 seeds" in legend
    assert "against fifo" in legend
    assert table.notes == comparison.notes


def test_without_intervals_the_legend_says_so(one_job):
    """One measurement shows nothing about chance."""
    table = comparison_table(one_job)
    assert any("No intervals" in line for line in table.legend)
    assert "[" not in column(table, "mean JCT")[0]


def test_records_hold_every_metric_unrounded(comparison):
    """Programs get what the comparison holds, with the ends of every interval."""
    for record, row in zip(comparison_table(comparison).records, comparison.rows, strict=True):
        for name in METRIC_NAMES:
            estimate = row.metrics[name]
            expected = None if isnan(estimate.mean) else estimate.mean
            assert record[name] == expected
        assert record["difference_low"] == row.difference.low
        assert record["is_winner"] is row.is_winner


def test_a_summary_shows_every_metric_with_a_value_and_names_the_others(comparison):
    """No metric disappears: it has a row or is named as having no value."""
    schedule = comparison.schedules[0]
    table = summary_table(schedule, summarise(schedule))
    unnamed = table.legend[0].removeprefix("Without a value here: ").rstrip(".").split(", ")
    assert len(table.rows) + len(unnamed) == len(METRIC_NAMES)
    assert ["utilisation", "%"] in [[row[0].text, row[2].text] for row in table.rows]
    assert table.records[0]["mean_jct_s"] == summarise(schedule)["mean_jct_s"]


def test_hostile_names_become_plain_text(hostile):
    """No control character of a name reaches any cell, title or legend."""
    table = comparison_table(hostile)
    texts = [
        table.title,
        *table.legend,
        *table.notes,
        *(cell.text for row in table.rows for cell in row),
    ]
    assert all(text.isprintable() for text in texts)
