"""The pictures of a workload: when jobs come, how large and how long they are, and whose.

Figures that have nothing to show are left out. Each is SVG, and PNG on white for slides.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from yardmaster.model.workload import FloatArray, Workload
from yardmaster.report.drawing import Figure, draw
from yardmaster.report.series import SHORTEST_S, time_ticks
from yardmaster.report.values import PERCENT, number, plain
from yardmaster.report.workload_tables import WEEKDAYS, duration
from yardmaster.workloads.clock import DAY_S, HOUR_S, WEEK_S, beginning
from yardmaster.workloads.description.demand import bins_s, mean_demand
from yardmaster.workloads.description.owners import concentration
from yardmaster.workloads.description.shapes import SIZE_CLASSES, class_numbers
from yardmaster.workloads.description.summary import Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PNG_DOTS_PER_INCH = 160
MOST_BINS = 450
"""Bars over time: about one per pixel of the page; with more, hours become days and days weeks."""
CURVE_POINTS = 240
_STEPS = ((HOUR_S, "hour"), (DAY_S, "day"), (WEEK_S, "week"), (10 * WEEK_S, "ten weeks"))
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#808080"
_CLASS_LOOKS: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("#808080", (1.5, 1.5)), ("#56B4E9", ()), ("#0072B2", (6, 1.5)), ("#009E73", ()),
    ("#E69F00", (6, 1.5)), ("#D55E00", ()), ("#CC79A7", (6, 1.5)), ("#9467BD", (2, 1.5)),
)  # fmt: skip
"""Colour and dash of each class of `SIZE_CLASSES`."""


class Picture(NamedTuple):
    """A figure, and the same as PNG on a white ground."""

    figure: Figure
    png: bytes


def workload_pictures(workload: Workload, about: Description) -> tuple[Picture, ...]:
    """Return every picture that the workload has something to show in.

    Args:
        workload: the jobs.
        about: what `describe` says of them.
    """
    found = [
        _rhythm(about),
        _arrivals_over_time(workload),
        _demand_over_time(workload, about),
        _sizes(about),
        _durations(workload, about),
        _owners(about),
    ]
    return tuple(picture for picture in found if picture is not None)


def _picture(name: str, paint: Callable[[Canvas], None], **words: Any) -> Picture:
    """Let `paint` draw once, and keep it in both formats."""
    out = io.BytesIO()

    def paint_and_keep(canvas: Canvas) -> None:
        paint(canvas)
        canvas.savefig(out, format="png", dpi=PNG_DOTS_PER_INCH, facecolor="white")

    return Picture(draw(name, paint=paint_and_keep, **words), out.getvalue())


def _rhythm(about: Description) -> Picture | None:
    """Draw the jobs per hour in every hour of the week as a field of squares."""
    rates = about.arrivals.rates()
    if np.isnan(rates).mean() > 0.5:
        return None  # three days have no week
    top = float(np.nanmax(rates))

    def paint(canvas: Canvas) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        axes = canvas.add_subplot()
        cells = [(day, hour) for day in range(7) for hour in range(24)]
        squares = [Rectangle((hour + 0.04, day - 0.46), 0.92, 0.92) for day, hour in cells]
        shade = np.nan_to_num(rates).ravel() / (top or 1.0)
        axes.add_collection(PatchCollection(squares, facecolors=_shades(shade), linewidths=0))
        axes.set_xlim(0, 24)
        axes.set_ylim(6.5, -0.5)
        axes.set_xticks(range(0, 25, 3))
        axes.set_yticks(range(7), WEEKDAYS)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("hour of the day")

    day, hour = np.unravel_index(int(np.nanargmax(rates)), rates.shape)
    busiest = f"{WEEKDAYS[day]} {hour:02d}:00 with {number(top, 1)} jobs per hour"
    clock = "" if about.arrivals.is_dated else " Second 0 is taken for a Monday's midnight."
    return _picture(
        "rhythm",
        paint,
        title="When jobs are submitted",
        caption=f"Jobs per hour; the strongest square is {busiest}.{clock}",
        alt=f"Jobs per hour by weekday and hour of the day; busiest: {busiest}.",
        height_in=2.9,
    )


def _shades(values: FloatArray) -> FloatArray:
    """Return the same blue in every strength: it reads on white and on black."""
    from matplotlib.colors import to_rgb

    colours = np.tile([*to_rgb(_BLUE), 1.0], (len(values), 1))
    colours[:, 3] = 0.05 + 0.95 * values
    return np.asarray(colours, dtype=np.float64)


def _arrivals_over_time(workload: Workload) -> Picture | None:
    """Draw the jobs submitted in every hour, day or week."""
    found = time_bins(workload)
    if found is None:
        return None
    edges_s, unit = found
    jobs = np.histogram(workload.submit_s, edges_s)[0].astype(np.float64)

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        _stairs(axes, workload, edges_s, jobs)
        axes.set_ylabel(f"jobs per {unit}")

    most, typical = f"{jobs.max():,.0f}", f"{np.median(jobs):,.0f}"
    return _picture(
        "arrivals",
        paint,
        title="Jobs submitted over time",
        caption=f"Jobs submitted in every {unit}: {typical} in the median, at most {most}.",
        alt=f"Jobs per {unit}: median {typical}, largest {most}.",
        height_in=2.9,
    )


def _demand_over_time(workload: Workload, about: Description) -> Picture | None:
    """Draw the GPUs that jobs ask for over time, against those there are."""
    found = time_bins(workload)
    if found is None:
        return None
    edges_s, unit = found
    gpus, load = mean_demand(workload, edges_s), about.demand.load
    words = f"Mean per {unit} of the GPUs that would be busy if no job ever waited"

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        _stairs(axes, workload, edges_s, gpus)
        if load is not None:
            label = f"{load.gpus:,} GPUs of {plain(load.cluster)}"
            dashes = (0, (5, 1.5))
            axes.axhline(load.gpus, color=_ORANGE, linewidth=1.6, linestyle=dashes, label=label)
            axes.set_ylim(0, 1.3 * max(float(gpus.max()), float(load.gpus)))
            axes.legend(loc="upper right")
        axes.set_ylabel("GPUs asked for")

    above = ""
    if load is not None:
        short = int(np.count_nonzero(gpus > load.gpus))
        above = f" More than there are in {short:,} of {len(gpus):,} {unit}s."
    return _picture(
        "demand",
        paint,
        title="Demand over time",
        caption=f"{words}.{above}",
        alt=f"{words}: {np.mean(gpus):,.0f} on average, at most {gpus.max():,.0f}.{above}",
        height_in=2.9,
    )


def _sizes(about: Description) -> Picture:
    """Draw each class of sizes: its share of the jobs, and of the GPU time."""
    classes = about.size_classes
    names = [each.name.replace("-", "–") for each in classes]
    series = (
        ("jobs", _BLUE, [each.jobs_share * 100 for each in classes]),
        ("GPU time", _ORANGE, [each.gpu_time_share * 100 for each in classes]),
    )

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        for place, (label, colour, values) in enumerate(series):
            at = np.arange(len(values)) + (place - 0.5) * 0.4
            bars = axes.bar(at, np.nan_to_num(values), 0.38, color=colour, alpha=0.85, label=label)
            axes.bar_label(
                bars, [_whole_percent(value) for value in values], padding=2, fontsize=8.5
            )
        axes.set_xticks(range(len(names)), names)
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="x", length=0)
        axes.margins(y=0.25)  # the legend stands above bars of 100 %
        axes.set_xlabel("GPUs of a job")
        axes.set_ylabel("share (%)")
        axes.legend(loc="upper right", ncols=2, handlelength=1.2)

    told = "; ".join(
        f"{name} GPUs {jobs:.0f} % of jobs, {work:.0f} % of GPU time"
        for name, jobs, work in zip(names, series[0][2], series[1][2], strict=True)
    )
    return _picture(
        "sizes",
        paint,
        title="Sizes, in jobs and in GPU time",
        caption="Share of each size in the jobs (left) and in the GPU time (right).",
        alt=f"{told}.",
        height_in=3.3,
    )


def _whole_percent(value: float) -> str:
    return "<1" if 0 < value < 0.5 else number(value, 0)


def _durations(workload: Workload, about: Description) -> Picture:
    """Draw which share of the jobs of each class ends within a time."""
    curves = list(_duration_curves(workload))

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        for name, (colour, dash), times, percent in curves:
            axes.plot(times, percent, color=colour, linewidth=1.7, label=name,
                      linestyle=(0, dash) if dash else "-")  # fmt: skip
        time_ticks(axes)
        axes.set_ylim(0, 101)
        axes.set_xlabel("run time")
        axes.set_ylabel("jobs that run at most so long (%)")
        canvas.legend(loc="outside lower center", ncols=4, title="GPUs", columnspacing=1.4)

    told = "; ".join(
        f"{each.name} GPUs median {duration(each.duration_s.quantiles['p50'])}"
        for each in about.size_classes
    )
    cut = about.censoring.shared_duration
    step = f" The step at {duration(cut.duration_s)} is a limit or a cut." if cut else ""
    return _picture(
        "durations",
        paint,
        title="Run times by size",
        caption=f"Share of the jobs of each size that run at most so long.{step}",
        alt=f"Cumulative distribution of run times. {told}.",
        height_in=3.7,
    )


def _duration_curves(
    workload: Workload,
) -> Iterator[tuple[str, tuple[str, tuple[float, ...]], FloatArray, FloatArray]]:
    classes = class_numbers(workload)
    for place, (name, _) in enumerate(SIZE_CLASSES):
        times = np.sort(np.maximum(workload.duration_s[classes == place], SHORTEST_S))
        if len(times):
            ranks = np.unique(np.linspace(0, len(times) - 1, CURVE_POINTS).round().astype(np.int64))
            percent = (ranks + 1) * 100.0 / len(times)
            yield name.replace("-", "–"), _CLASS_LOOKS[place], times[ranks], percent


def _owners(about: Description) -> Picture | None:
    """Draw how much of jobs and GPU time the largest share of the users and tenants has."""
    curves = []
    for what, marker in (("users", ""), ("tenants", "o")):
        groups = [group for group in getattr(about, what).groups if group.name is not None]
        for key, words, colour in (
            ("gpu_time_share", "GPU time", _ORANGE),
            ("jobs_share", "jobs", _BLUE),
        ):
            passed = concentration([getattr(group, key) for group in groups]) * 100.0
            if len(passed) > 1:
                curves.append((f"{words} of {what}", colour, marker, passed))
    if not curves:
        return None

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.plot([0, 100], [0, 100], color=_GREY, linewidth=0.9, linestyle=(0, (2, 2)))
        for label, colour, marker, passed in curves:
            percent = np.linspace(0, 100, len(passed) + 1)
            axes.plot(percent, [0.0, *passed], color=colour, linewidth=1.7, label=label,
                      linestyle=(0, (5, 1.5)) if marker else "-", marker=marker,
                      markersize=3.5, markevery=max(1, len(passed) // 12))  # fmt: skip
        axes.set_xlim(0, 100.5)
        axes.set_ylim(0, 101)
        axes.set_xlabel("largest users or tenants (%)")
        axes.set_ylabel("have so much (%)")
        canvas.legend(loc="outside lower center", ncols=2, columnspacing=1.6)

    told = "; ".join(
        f"{what}: the largest tenth have {number(owners.largest_tenth_share, 0, PERCENT)} %"
        for what, owners in (("users", about.users), ("tenants", about.tenants))
        if owners.count > 1
    )
    return _picture(
        "owners",
        paint,
        title="How much the largest users have",
        caption="Share of jobs and GPU time of the largest users and tenants; on the dotted line"
        " all would have the same.",
        alt=f"GPU time of {told}.",
        height_in=3.7,
    )


def time_bins(workload: Workload) -> tuple[FloatArray, str] | None:
    """Return borders of hours, days or weeks, as many as can be drawn, and what they are."""
    for step_s, name in _STEPS:
        edges_s = bins_s(workload, step_s)
        if edges_s is not None and 3 <= len(edges_s) <= MOST_BINS:
            return edges_s, name
    return None


def _stairs(axes: Axes, workload: Workload, edges_s: FloatArray, values: FloatArray) -> None:
    """Draw steps over time: dates where they are known, days since second 0 elsewhere."""
    begins = beginning(workload)
    if begins is None:
        span_s = float(edges_s[-1] - edges_s[0])
        unit_s, unit = (HOUR_S, "hours") if span_s <= 4 * DAY_S else (DAY_S, "days")
        places: Any = edges_s / unit_s
        axes.set_xlabel(f"{unit} since second 0")
    else:
        import matplotlib as mpl

        mpl.rcParams["date.converter"] = "concise"  # until the drawing is done
        starts = [begins + timedelta(seconds=edge) for edge in edges_s.tolist()]
        places = np.array(starts, dtype="datetime64[s]")
    axes.stairs(values, places, fill=True, color=_BLUE, alpha=0.3, linewidth=0)
    axes.stairs(values, places, color=_BLUE, linewidth=1.1)
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(bottom=0)
