"""The pictures of a comparison, each as small SVG text with its caption and its words.

Curves are drawn from the schedules of the first workload; the bars show the paired estimates of the
whole comparison. `all_figures` leaves out what a comparison has no data for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.comparison import Comparison
from yardmaster.metrics.per_job import is_finished, is_unfinished, jct_s
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, IntArray
from yardmaster.report.drawing import Figure, draw
from yardmaster.report.legend import INFORMATION_MARKS
from yardmaster.report.series import (
    SHORTEST_S,
    Curve,
    Look,
    add_legend,
    draw_bars,
    draw_curves,
    draw_spread,
    looks,
    series_name,
    time_ticks,
    whisker_words,
)
from yardmaster.report.site_figures import site_figures
from yardmaster.report.tables import objective_unit
from yardmaster.report.timelines import CURVE_POINTS, axis_label, drawn_from, over_time, told
from yardmaster.report.values import (
    decimals,
    duration_unit,
    metric_title,
    number,
    sentence,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PriorityClass = tuple[str, IntArray]
"""Name and rows of the jobs of like priority."""
MOST_GROUPS = 5
"""Priority levels drawn one by one; more are gathered into this many classes of like size."""


def all_figures(comparison: Comparison) -> tuple[Figure, ...]:
    """Return every figure the comparison has data for, in the order of the report."""
    if not comparison.rows:
        return ()
    figures = [objective_bars(comparison)]
    if comparison.schedules:
        figures += [jct_cdf(comparison), *over_time(comparison), *site_figures(comparison)]
        if len(np.unique(comparison.schedules[0].workload.priority)) > 1:
            figures.append(jct_by_priority(comparison))
    return tuple(figures)


def objective_bars(comparison: Comparison) -> Figure:
    """Draw the objective of every scheduler with its 95 % interval, best on top."""
    unit, title = objective_unit(comparison), metric_title(comparison.objective)
    estimates = [row.metrics[comparison.objective] for row in comparison.rows]
    places = decimals([each.mean for each in estimates], unit)
    texts = [number(each.mean, places, unit) for each in estimates]
    names = [
        f"{series_name(comparison, row)} {INFORMATION_MARKS.get(row.information, '')}".rstrip()
        for row in comparison.rows
    ]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        draw_bars(axes, looks(comparison), estimates, texts, size=unit.size)
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel(axis_label(title, unit.symbol))

    told = ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    return draw(
        "objective",
        title=f"{sentence(title)} of each scheduler",
        caption=f"Bars are means{whisker_words(estimates)} over {comparison.units}.",
        alt=f"{axis_label(title, unit.symbol)}, best first: {told}.",
        height_in=max(0.9 + 0.28 * len(names), 2.2),
        paint=paint,
    )


def jct_cdf(comparison: Comparison) -> Figure:
    """Draw which share of the jobs was complete within which time, on a logarithmic axis."""
    curves = [_cdf(schedule) for schedule in comparison.schedules]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        draw_curves(axes, comparison, curves)
        time_ticks(axes)
        axes.set_ylim(0, 100)
        axes.set_xlabel("job completion time")
        axes.set_ylabel("jobs complete (%)")
        add_legend(canvas, comparison)

    medians = [_median_text(schedule) for schedule in comparison.schedules]
    return draw(
        "jct-cdf",
        title="How fast jobs were complete",
        caption="Share of all submitted, placeable jobs complete within a time from submission. "
        f"Higher and further left is better.{drawn_from(comparison)}",
        alt=f"Cumulative distribution of job completion time. {told(comparison, medians)}",
        height_in=3.7,
        paint=paint,
    )


def jct_by_priority(comparison: Comparison) -> Figure:
    """Draw median and 95th percentile of the completion time for each priority class."""
    classes = priority_classes(comparison.schedules[0].workload.priority)
    shown = [
        (look, jct_s(schedule))
        for look, schedule in zip(looks(comparison), comparison.schedules, strict=True)
        if look.highlighted
    ]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        _draw_classes(axes, classes, shown)
        time_ticks(axes)
        axes.set_xlabel("job completion time")
        axes.set_ylabel("priority")
        add_legend(canvas, comparison, with_rest=False)

    names = ", ".join(name for name, _ in classes)
    return draw(
        "priority",
        title="Completion time by priority",
        caption="Markers are medians, lines reach to the 95th percentile of finished jobs; "
        f"larger priorities are more urgent.{drawn_from(comparison)}",
        alt=f"Median and 95th percentile of job completion time for priority {names}, "
        "one mark per scheduler.",
        height_in=1.5 + len(classes) * (0.2 + 0.13 * len(shown)),
        paint=paint,
    )


def _cdf(schedule: Schedule) -> Curve:
    """Return completion times and the percentage of jobs complete by then, thinned out.

    Unfinished jobs count among all jobs but never as complete: their curve ends below 100 %.
    """
    times = np.sort(np.maximum(jct_s(schedule)[is_finished(schedule)], SHORTEST_S))
    jobs = len(times) + np.count_nonzero(is_unfinished(schedule))
    if not len(times):
        return np.array([SHORTEST_S]), np.zeros(1)
    ranks = np.unique(np.linspace(0, len(times) - 1, CURVE_POINTS).round().astype(np.int64))
    return times[ranks], (ranks + 1) * 100.0 / jobs


def _draw_classes(
    axes: Axes, classes: Sequence[PriorityClass], shown: Sequence[tuple[Look, FloatArray]]
) -> None:
    """Draw one block of lines per priority class, one line per scheduler."""
    offsets = (np.arange(len(shown)) - (len(shown) - 1) / 2) * 0.15
    for place, (_, members) in enumerate(classes):
        for (look, jct), offset in zip(shown, offsets, strict=True):
            draw_spread(axes, look, jct[members], place + offset)
    axes.set_yticks(range(len(classes)), [name for name, _ in classes])
    axes.set_ylim(len(classes) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def priority_classes(priority: FloatArray) -> list[PriorityClass]:
    """Return (name, rows) of each priority class, the most urgent first."""
    levels = np.unique(priority)
    if len(levels) > MOST_GROUPS:
        inner = np.unique(np.quantile(priority, np.linspace(0, 1, MOST_GROUPS + 1)[1:-1]))
        borders = np.concatenate(([-np.inf], inner, [np.inf]))
    else:
        borders = np.concatenate(([-np.inf], levels))
    place = np.searchsorted(borders, priority, side="left")
    return [
        (_range_text(priority[place == each]), np.flatnonzero(place == each))
        for each in np.unique(place)[::-1]
    ]


def _range_text(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _median_text(schedule: Schedule) -> str:
    times = jct_s(schedule)[is_finished(schedule)]
    if not len(times):
        return "no job finished"
    median = float(np.median(times))
    unit = duration_unit([median])
    return f"median {number(median, decimals([median], unit), unit)} {unit.symbol}"
