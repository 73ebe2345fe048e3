"""Terminal, Markdown, CSV, LaTeX and JSON: the same numbers in each."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from yardmaster.metrics.summary import summarise
from yardmaster.report.renderers import to_csv, to_dict, to_latex, to_markdown, to_terminal
from yardmaster.report.tables import comparison_table, summary_table

MINUTE = 60.0


@pytest.fixture(scope="module")
def table(comparison):
    """Return the comparison's table; its durations are in minutes."""
    made = comparison_table(comparison)
    assert made.columns[3].unit == "min"
    return made


def first_numbers(line):
    """Return the objective's mean and interval found in a line of text."""
    found = re.search(r"(\d+\.\d) \[(\d+\.\d), (\d+\.\d)\]", line)
    return [float(text) for text in found.groups()]


def test_all_renderers_agree_on_the_objective(table, comparison):
    """Every format shows the comparison's own numbers, rounded or not."""
    rendered = {
        "terminal": to_terminal(table),
        "markdown": to_markdown(table),
        "latex": to_latex(table),
    }
    records = list(csv.DictReader(io.StringIO(to_csv(table))))
    for place, row in enumerate(comparison.rows):
        estimate = row.metrics["mean_jct_s"]
        exact = [estimate.mean, estimate.low, estimate.high]
        keys = ["mean_jct_s", "mean_jct_s_low", "mean_jct_s_high"]
        assert [float(records[place][key]) for key in keys] == exact
        assert [to_dict(table)["rows"][place][key] for key in keys] == exact
        pattern = re.compile(rf"(?<![\w+]){re.escape(row.scheduler)}(?![\w+@])")
        for text in rendered.values():
            body = text.splitlines()
            line = next(line for line in body if pattern.search(line) and "[" in line)
            assert first_numbers(line) == pytest.approx(
                [value / MINUTE for value in exact], abs=0.0501
            )


def test_all_cells_are_in_markdown_and_latex(table):
    """Nothing is left out where space is not short."""
    for row in table.rows:
        for cell in row:
            assert cell.text in to_markdown(table).replace("\\", "")
            assert cell.text.replace("−", "$-$") in to_latex(table) or cell.text in "★◆◇"


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_the_terminal_table_fits(table, width):
    """No line is longer than the terminal, no row is wrapped."""
    lines = to_terminal(table, width=width).splitlines()
    assert max(map(len, lines)) <= width
    starts = [line for line in lines if re.match(r"^[★ ]  \S", line)]
    assert len([line for line in starts if "[" in line]) == len(table.rows)


def test_a_long_name_pushes_no_column_out(table):
    """It goes on in the next line, and what fits beside the other names still does."""
    first, *rest = table.rows
    long = replace(table, rows=((first[0]._replace(text="n" * 90), *first[1:]), *rest))
    text = to_terminal(long, width=140)
    assert ("n" * 48) in text
    assert ("n" * 49) not in text
    named = first[0]._replace(text="n" * 48)
    beside = to_terminal(replace(table, rows=((named, *first[1:]), *rest)), width=140)
    assert text.splitlines()[-1] == beside.splitlines()[-1]


def test_columns_left_out_are_named(table):
    """A narrow table drops the least important columns first and says which."""
    narrow, wide = to_terminal(table, width=100), to_terminal(table, width=400)
    assert "Left out to fit 100 characters" in narrow
    assert "max queue (jobs)" in narrow.split("Left out")[1]
    assert "Left out" not in wide
    assert "baseline" in narrow


def test_a_typical_table_shows_the_gaps_in_120_columns(table):
    """The gaps and the tail survive the default width."""
    text = to_terminal(table)
    header = "\n".join(text.splitlines()[:6])
    assert "hindsight" in header
    assert "bound" in header
    assert "p95" in header


def test_piped_text_has_no_escape_codes(table):
    """Colour is only written when asked for."""
    assert "\x1b" not in to_terminal(table)
    assert "\x1b" in to_terminal(table, colour=True)


def test_notes_stand_below_the_table(table, comparison):
    """What the reader must know is in every text format."""
    for text in (to_terminal(table), to_markdown(table), to_latex(table)):
        assert f"Note: {comparison.notes[0]}" in text


def test_json_is_strict(comparison, one_job):
    """The dictionary can be written as JSON without NaN."""
    for each in (comparison, one_job):
        text = json.dumps(to_dict(comparison_table(each)), allow_nan=False)
        assert json.loads(text)["objective"] == "mean_jct_s"


def test_csv_says_true_and_false_and_leaves_unknown_empty(one_job):
    """Flags are words and missing numbers are empty fields."""
    record = next(csv.DictReader(io.StringIO(to_csv(comparison_table(one_job)))))
    assert record["is_winner"] == "false"
    assert record["bound_gap"] == ""


def test_markdown_rows_have_equal_columns_whatever_the_names(hostile):
    """A pipe or a bracket in a name cannot break the table."""
    lines = to_markdown(comparison_table(hostile)).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    counts = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert len(counts) == 1
    assert not re.search(r"(?<!\\)<script", "\n".join(lines))
    assert not re.search(r"(?<!\\)\]\(", "\n".join(lines))


def test_latex_escapes_names(hostile):
    """Every special character of a name is escaped, and braces balance."""
    text = to_latex(comparison_table(hostile))
    body = text.split("\\begin{tabular}")[1]
    assert "\\_\\$x\\$\\textbackslash{}" in body
    assert not re.search(r"(?<!\\)[#%]", text.replace("% needs", ""))
    assert len(re.findall(r"(?<!\\){", text)) == len(re.findall(r"(?<!\\)}", text))


def test_latex_uses_booktabs(table):
    """The table has the three rules of booktabs and as many rows as schedulers."""
    text = to_latex(table)
    assert all(rule in text for rule in ("\\toprule", "\\midrule", "\\bottomrule"))
    assert text.count(r" \\") == len(table.rows) + 1


def test_names_are_never_markup_in_the_terminal(hostile):
    """Brackets in a name are shown, and its escape codes are not sent."""
    text = to_terminal(comparison_table(hostile), width=1000)
    assert "[red]" in text
    assert "\x1b" not in text


def test_the_summary_renders_everywhere(comparison):
    """One schedule's summary takes the same renderers."""
    schedule = comparison.schedules[0]
    table = summary_table(schedule, summarise(schedule))
    assert "mean JCT" in to_terminal(table)
    assert "| mean JCT |" in to_markdown(table)
    assert "mean_jct_s" in to_csv(table)
    assert "mean JCT" in to_latex(table)
    json.dumps(to_dict(table), allow_nan=False)
