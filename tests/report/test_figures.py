"""The figures: well-formed, small, the same every time, and true to the schedules."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from yardmaster.experiments.comparison import Estimate
from yardmaster.model.schedule import Outcome
from yardmaster.report import figures
from yardmaster.report.figures import all_figures, jct_by_priority, jct_cdf, objective_bars

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn(comparison):
    """Return every figure of the comparison by name."""
    return {figure.name: figure for figure in all_figures(comparison)}


def parsed(figure):
    """Parse a figure as XML."""
    return ET.fromstring(figure.svg)  # noqa: S314 - our own text


def texts(figure):
    """Return all text drawn in a figure."""
    return ["".join(node.itertext()) for node in parsed(figure).iter(f"{SVG}text")]


def test_every_figure_is_drawn(drawn):
    """The six figures of a report on a plain cluster are there."""
    names = ["objective", "jct-cdf", "queue", "utilisation", "fragmentation", "priority"]
    assert list(drawn) == names


def test_figures_are_well_formed_and_described(drawn):
    """Each is one SVG element with a title and a description for those who cannot see it."""
    for figure in drawn.values():
        root = parsed(figure)
        assert root.tag == f"{SVG}svg"
        assert root.attrib["role"] == "img"
        assert root.find(f"{SVG}title").text == figure.title
        assert root.find(f"{SVG}desc").text == figure.alt
        assert figure.caption


def test_figures_are_the_same_every_time(comparison, drawn):
    """Same comparison, same bytes."""
    assert {figure.name: figure for figure in all_figures(comparison)} == drawn


def test_figures_are_small(drawn):
    """Twelve schedulers stay under 100 kB a figure, no curve over 400 points."""
    for figure in drawn.values():
        assert len(figure.svg.encode()) < 100_000
        for path in parsed(figure).iter(f"{SVG}path"):
            assert len(re.findall("[ML]", path.attrib["d"])) <= 400


def test_ids_do_not_clash_between_figures(drawn):
    """Figures share a page, so their ids begin with their name."""
    for figure in drawn.values():
        ids = [node.attrib["id"] for node in parsed(figure).iter() if "id" in node.attrib]
        assert all(name.startswith(f"{figure.name}-") for name in ids)
        references = re.findall(r'(?:href="#|url\(#)([^")]+)', figure.svg)
        assert set(references) <= set(ids)


def test_the_background_is_transparent_and_black_is_not_used(drawn):
    """A figure must read on white and on black."""
    for figure in drawn.values():
        assert "<style" not in figure.svg
        assert "#000000" not in figure.svg
        assert "#ffffff" not in figure.svg


def test_figures_draw_text_as_text(drawn, comparison):
    """Names can be searched and read aloud."""
    words = texts(drawn["objective"])
    for row in comparison.rows:
        assert any(word.startswith(row.scheduler) for word in words)
    assert "fifo (baseline)" in texts(drawn["queue"])


def test_few_are_highlighted_and_the_rest_counted(drawn):
    """Twelve lines need a choice: the baseline and the best in colour, the others together."""
    assert "7 others" in texts(drawn["jct-cdf"])


def test_unfinished_jobs_keep_the_curve_below_the_top(comparison):
    """Jobs that did not finish count among all jobs, never as complete."""
    schedule = comparison.schedules[0]
    outcome = schedule.outcome.copy()
    outcome[::2] = Outcome.QUEUED
    times, shares = figures._cdf(replace(schedule, outcome=outcome))
    assert shares[-1] == pytest.approx(50.0)
    assert (np.diff(times) >= 0).all()
    assert len(times) <= 400


def test_the_curve_passes_through_the_quantiles(comparison):
    """At every drawn time the curve says which share of jobs was complete by then."""
    schedule = comparison.schedules[0]
    jct = schedule.end_s - schedule.workload.submit_s
    times, shares = figures._cdf(schedule)
    for time, share in zip(times[::20], shares[::20], strict=True):
        below, upto = (jct < time).mean() * 100, (jct <= time).mean() * 100
        assert below <= share <= upto + 1e-9


@pytest.mark.parametrize("levels", [2, 5, 6, 40])
def test_priority_classes_hold_every_job_once(levels):
    """Few levels stand alone, many are gathered; no job is lost, the most urgent come first."""
    priority = np.random.default_rng(levels).integers(0, levels, 500).astype(float)
    classes = figures.priority_classes(priority)
    rows = np.concatenate([members for _, members in classes])
    assert sorted(rows) == list(range(500))
    assert len(classes) == min(levels, 5)
    tops = [priority[members].min() for _, members in classes]
    assert tops == sorted(tops, reverse=True)


def test_one_priority_needs_no_figure(comparison):
    """Without priorities there is nothing to compare between them."""
    jobs = comparison.schedules[0].workload.with_columns(priority=None)
    schedules = tuple(replace(each, workload=jobs) for each in comparison.schedules)
    names = [figure.name for figure in all_figures(replace(comparison, schedules=schedules))]
    assert "priority" not in names


def test_a_whisker_out_of_proportion_is_cut_and_says_so(comparison):
    """One interval of ten times the longest bar leaves the bars readable, with a word about it."""
    row = comparison.rows[0]
    mean = row.metrics["mean_jct_s"].mean
    wide = replace(row, metrics=row.metrics | {"mean_jct_s": Estimate(mean, 0.0, 100 * mean)})
    assert "arrows" not in objective_bars(comparison).caption
    changed = objective_bars(replace(comparison, rows=(wide, *comparison.rows[1:])))
    assert "arrows: longer than drawn" in changed.caption


def test_hostile_names_stay_text(hostile):
    """A name cannot add an element, a formula or a control character to a figure."""
    for figure in (objective_bars(hostile), jct_cdf(hostile), jct_by_priority(hostile)):
        tags = {node.tag for node in parsed(figure).iter()}
        assert f"{SVG}script" not in tags
        assert any("<script>" in text for text in texts(figure))


def test_names_in_other_scripts_are_drawn_without_complaint(comparison):
    """A glyph that the drawing font lacks is the reader's font's business."""
    rows = tuple(replace(row, scheduler=f"作业-{row.scheduler}") for row in comparison.rows)
    words = texts(objective_bars(replace(comparison, rows=rows)))
    assert any(word.startswith("作业-") for word in words)


def test_degenerate_comparisons_are_drawn(one_job, comparison):
    """One job of no length, no finished job, no schedules: figures, not errors."""
    assert len(all_figures(one_job)) == 4
    assert [figure.name for figure in all_figures(replace(comparison, schedules=()))] == [
        "objective"
    ]
    assert all_figures(replace(comparison, rows=(), schedules=())) == ()
    nan = float("nan")
    metrics = comparison.rows[0].metrics | {"mean_jct_s": Estimate(nan, nan, nan)}
    row = replace(comparison.rows[0], metrics=metrics)
    schedule = comparison.schedules[0]
    queued = replace(schedule, outcome=np.full_like(schedule.outcome, Outcome.QUEUED))
    assert len(all_figures(replace(comparison, rows=(row,), schedules=(queued,)))) == 6
