"""What every scheduler's cluster did over time: curves since the first submission.

Curves are time averages over equal spans of the run, drawn from the first workload's schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.comparison import Comparison
from yardmaster.metrics.fragmentation import fragmentation_timeline
from yardmaster.metrics.outages import outage_spans
from yardmaster.metrics.power import power_timeline
from yardmaster.metrics.timeline import StepFunction, busy_gpus, queue_length, stacked
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray
from yardmaster.report.drawing import INK, Figure, draw
from yardmaster.report.series import Curve, add_legend, draw_curves
from yardmaster.report.values import PERCENT, Unit, duration_unit, number, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

CURVE_POINTS = 240
"""Points per curve: about two per pixel of the page the figure is made for."""
HOUR_S, DAY_S = 3_600.0, 86_400.0
LONGEST_PRICED_S = 21 * DAY_S
"""Beyond so many days the hours of a price curve are narrower than a pixel."""
TELLING_SHARE = 0.01
"""Share of the GPUs that must be fragmented on average for the curve to be worth a look."""

Backdrop = Callable[["Axes", Unit, float], None]
"""Draws behind the curves; told the unit of the time axis and where it begins, in seconds."""


def queue_over_time(comparison: Comparison) -> Figure:
    """Draw how many jobs waited at each time."""
    queues = [queue_length(schedule) for schedule in comparison.schedules]
    return _timeline(
        comparison,
        [resampled(queue) for queue in queues],
        name="queue",
        title="Queue length over time",
        y_label="jobs waiting",
        facts=[f"at most {queue.maximum():.0f} jobs" for queue in queues],
    )


def utilisation_over_time(comparison: Comparison) -> Figure:
    """Draw which share of the GPUs was busy at each time, and which share was away."""
    curves, facts = [], []
    for schedule in comparison.schedules:
        busy = busy_gpus(schedule)
        times, values = resampled(busy)
        curves.append((times, values * 100.0 / schedule.cluster.gpus))
        share = busy.time_average() / schedule.cluster.gpus
        facts.append(f"{number(share, 0, PERCENT)} % on average")
    longest = max(comparison.schedules, key=lambda schedule: schedule.horizon_s[1])
    away = _away(longest)
    return _timeline(
        comparison,
        curves,
        name="utilisation",
        title="GPU utilisation over time",
        y_label="GPUs busy (%)",
        facts=facts,
        top=102.0,
        note="" if away is None else " Shaded from above: GPUs of nodes that were away.",
        behind=None if away is None else _shaded_away(away, longest.cluster.gpus),
    )


def power_over_time(comparison: Comparison) -> Figure:
    """Draw the kilowatts drawn at each time, over the price of electricity where it changes."""
    site = comparison.schedules[0].cluster.site
    powers = [power_timeline(schedule) for schedule in comparison.schedules]
    curves = [(times, watts / 1000.0) for times, watts in map(resampled, powers)]
    prices = site.power.price_per_kwh if len(set(site.power.price_per_kwh)) > 1 else ()
    begin, end = _span(comparison)
    is_priced = bool(prices) and end - begin <= LONGEST_PRICED_S
    return _timeline(
        comparison,
        curves,
        name="power",
        title="Power draw over time",
        y_label="power (kW)",
        facts=[f"{power.time_average() / 1000.0:.1f} kW on average" for power in powers],
        note=" Shaded: the price of a kilowatt-hour, on the right." if is_priced else "",
        behind=_price_backdrop(prices, end) if is_priced else None,
    )


def power_by_hour(comparison: Comparison) -> Figure:
    """Draw the mean power in each hour of the day over the price of that hour."""
    prices = comparison.schedules[0].cluster.site.power.price_per_kwh
    hours = np.arange(len(prices), dtype=np.float64) + 0.5
    curves: list[Curve] = [
        (hours, _mean_by_hour(power_timeline(schedule), len(prices)) / 1000.0)
        for schedule in comparison.schedules
    ]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        _draw_prices(axes, np.arange(len(prices) + 1.0), np.asarray(prices))
        draw_curves(axes, comparison, curves)
        axes.set_xlim(0, len(prices))
        axes.set_xticks(range(0, len(prices) + 1, 4))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("hour of the day")
        axes.set_ylabel("mean power (kW)")
        add_legend(canvas, comparison)

    cheapest = int(np.argmin(prices))
    facts = [f"{power[cheapest]:.1f} kW in the cheapest hour" for _, power in curves]
    return draw(
        "power-by-hour",
        title="Power by hour of the day",
        caption="Mean power in each hour of the day. Shaded: the price of a kilowatt-hour, on the"
        f" right.{drawn_from(comparison)}",
        alt=f"Mean power by hour of the day. {told(comparison, facts)}",
        height_in=3.7,
        paint=paint,
    )


def fragmentation_over_time(comparison: Comparison) -> Figure:
    """Draw how many idle GPUs no waiting job could use."""
    unusable = [fragmentation_timeline(schedule) for schedule in comparison.schedules]
    return _timeline(
        comparison,
        [resampled(steps) for steps in unusable],
        name="fragmentation",
        title="Fragmented GPUs over time",
        y_label="idle GPUs nobody can use",
        facts=[f"{steps.time_average():.1f} GPUs on average" for steps in unusable],
        note=" Idle GPUs count where no waiting job could use what is left of their node.",
    )


def over_time(comparison: Comparison) -> list[Figure]:
    """Return the curves over time that say something about this comparison."""
    cluster = comparison.schedules[0].cluster
    power = cluster.site.power
    figures = [queue_over_time(comparison), utilisation_over_time(comparison)]
    means = [row.metrics["fragmentation_gpus"].mean for row in comparison.rows]
    if any(mean > TELLING_SHARE * cluster.gpus for mean in means):
        figures.append(fragmentation_over_time(comparison))
    is_priced = len(set(power.price_per_kwh)) > 1
    if is_priced or not (isinf(power.cap_w) and isinf(power.sleep_after_s)):
        figures.append(power_over_time(comparison))
    begin, end = _span(comparison)
    if is_priced and end - begin > 2 * DAY_S:
        figures.append(power_by_hour(comparison))
    return figures


def _timeline(
    comparison: Comparison,
    curves: Sequence[Curve],
    *,
    name: str,
    title: str,
    y_label: str,
    facts: Sequence[str],
    top: float | None = None,
    note: str = "",
    behind: Backdrop | None = None,
) -> Figure:
    """Draw one value per scheduler over the time since the first submission."""
    begin, end = _span(comparison)
    unit = duration_unit([end - begin])

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        if behind is not None:
            behind(axes, unit, begin)
        scaled = [((times - begin) / unit.size, values) for times, values in curves]
        draw_curves(axes, comparison, scaled)
        axes.set_ylim(0, top)
        axes.locator_params(axis="y", integer=True)
        axes.set_xlabel(axis_label("time since the first submission", unit.symbol))
        axes.set_ylabel(y_label)
        add_legend(canvas, comparison)

    return draw(
        name,
        title=title,
        caption=f"Time averages over {CURVE_POINTS} equal spans of the run.{note}"
        f"{drawn_from(comparison)}",
        alt=f"{title}. {told(comparison, facts)}",
        height_in=3.7,
        paint=paint,
    )


def _span(comparison: Comparison) -> tuple[float, float]:
    """Return when the first submission was, and when the last schedule ended."""
    begin = comparison.schedules[0].horizon_s[0]
    return begin, max(schedule.horizon_s[1] for schedule in comparison.schedules)


def _away(schedule: Schedule) -> StepFunction | None:
    """Return the GPUs of nodes that were away over time; None if none ever was."""
    node, begin, end = outage_spans(schedule)
    if not len(node):
        return None
    return stacked(schedule, begin, end, schedule.cluster.node_gpus[node])


def _shaded_away(away: StepFunction, gpus: int) -> Backdrop:
    """Return what shades the share of GPUs that nobody could use, down from the top."""
    times, values = resampled(away)

    def shade(axes: Axes, unit: Unit, begin: float) -> None:
        there = 100.0 - values * 100.0 / gpus
        axes.fill_between(
            (times - begin) / unit.size, there, 100.0, color=INK, alpha=0.3, linewidth=0,
            step="mid",
        )  # fmt: skip

    return shade


def _price_backdrop(prices: Sequence[float], end: float) -> Backdrop:
    """Return what shades the price of every hour of the run, on an axis of its own."""

    def shade(axes: Axes, unit: Unit, begin: float) -> None:
        hours = np.arange(np.floor(begin / HOUR_S), np.ceil(end / HOUR_S) + 1)
        by_hour = np.asarray(prices)[hours[:-1].astype(np.int64) % len(prices)]
        edges = np.clip(hours * HOUR_S, begin, end)
        _draw_prices(axes, (edges - begin) / unit.size, by_hour)

    return shade


def _draw_prices(axes: Axes, edges: FloatArray, prices: FloatArray) -> None:
    """Shade prices as steps on an axis at the right, behind what `axes` shows."""
    right = axes.twinx()
    right.stairs(prices, edges, fill=True, color=INK, alpha=0.2, linewidth=0)
    right.set_ylim(min(0.0, float(prices.min())), float(prices.max()) * 1.6 or 1.0)
    right.set_ylabel("price per kWh")
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    axes.set_zorder(right.get_zorder() + 1)
    axes.patch.set_visible(False)


def _mean_by_hour(steps: StepFunction, hours: int) -> FloatArray:
    """Return the mean value in each hour of the day over the horizon; NaN in hours never met."""
    begin, end = float(steps.edges_s[0]), float(steps.edges_s[-1])
    marks = np.arange(np.floor(begin / HOUR_S), np.ceil(end / HOUR_S) + 1)
    edges = np.clip(marks * HOUR_S, begin, end)
    area = np.concatenate(([0.0], np.cumsum(steps.values * np.diff(steps.edges_s))))
    inside = np.diff(np.interp(edges, steps.edges_s, area))
    hour = marks[:-1].astype(np.int64) % hours
    total = np.bincount(hour, inside, minlength=hours)
    span_s = np.bincount(hour, np.diff(edges), minlength=hours)
    return np.where(span_s > 0, total / np.maximum(span_s, 1e-9), np.nan)


def resampled(steps: StepFunction) -> Curve:
    """Return the middle of equal spans of time, and the average in each."""
    edges, averages = steps.resample(CURVE_POINTS)
    return (edges[:-1] + edges[1:]) / 2.0, averages


def told(comparison: Comparison, facts: Sequence[str]) -> str:
    """Say one fact about every scheduler, for those who cannot see the picture."""
    names = (plain(row.scheduler) for row in comparison.rows)
    pairs = zip(names, facts, strict=True)
    return "; ".join(f"{name}: {fact}" for name, fact in pairs) + "."


def drawn_from(comparison: Comparison) -> str:
    """Say that curves show one workload of several, where they do."""
    name = plain(comparison.schedules[0].workload.name)
    return f" Drawn from {name}." if name != plain(comparison.workload) else ""


def axis_label(title: str, unit: str) -> str:
    """Return what stands along an axis."""
    return f"{title} ({unit})" if unit else title
