"""The pictures of replay fidelity: recorded and simulated waits and use, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.fidelity.distance import DAY_S, by_period
from yardmaster.experiments.fidelity.occupancy import Occupancy
from yardmaster.experiments.fidelity.study import Fidelity
from yardmaster.model.workload import FloatArray
from yardmaster.report.drawing import INK, Figure, draw
from yardmaster.report.fidelity_words import percent, span
from yardmaster.report.series import Curve, time_ticks
from yardmaster.report.timelines import CURVE_POINTS, axis_label
from yardmaster.report.values import duration_unit, plain, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

RECORDED, SIMULATED = "#0072B2", "#D55E00"
_DASHED = (0, (5, 1.5))
SHORTEST_S = 10.0
"""Shorter waits are drawn here on logarithmic axes: they make no difference to anybody."""
CELLS = 34
"""Cells per side of the picture of single jobs."""
SPANS = 120
"""Spans of time that use is averaged over; two curves of more points hide each other."""
LONGEST_NAME = 30
_TICKS = (
    (10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (86_400, "1 d"),
    (864_000, "10 d"), (8_640_000, "100 d"),
)  # fmt: skip


def fidelity_figures(found: Fidelity) -> tuple[Figure, ...]:
    """Return every figure, in the order of the page."""
    return (
        wait_distribution(found),
        job_by_job(found),
        waits_over_time(found),
        use_over_time(found),
    )


def wait_distribution(found: Fidelity) -> Figure:
    """Draw which share of the jobs had started within which time, recorded and simulated."""
    recorded_s, simulated_s = _waits(found)

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        _two_lines(axes, _cumulative(recorded_s), _cumulative(simulated_s), found)
        time_ticks(axes)
        axes.set_ylim(0, 101)
        axes.set_xlabel("wait")
        axes.set_ylabel("jobs started (%)")
        _legend(canvas, axes)

    medians = f"{span(float(np.median(recorded_s)))} and {span(float(np.median(simulated_s)))}"
    return draw(
        "wait-cdf",
        title="How long jobs waited",
        caption="Share of the jobs that had started within a time from submission, after the"
        " warm-up. Waits below 10 s are drawn at 10 s.",
        alt=f"Cumulative distribution of waits; medians recorded and simulated: {medians}.",
        height_in=4.5,
        paint=paint,
    )


def waits_over_time(found: Fidelity) -> Figure:
    """Draw the mean wait of the jobs submitted in each day or hour."""
    jobs, rows = found.workload, found.evidence.is_compared
    length_s = found.closest.distance.period_s
    means = by_period(
        jobs.submit_s[rows], found.evidence.recorded_s[rows], found.evidence.simulated_s[rows],
        length_s,
    )  # fmt: skip
    sides = (means.recorded_s, means.simulated_s)
    unit = duration_unit([float(max(each.max() for each in sides)) / 3.0])  # of a typical tick
    curves = [_stairs(means.begin_s, values / unit.size, length_s) for values in sides]
    period = "day" if length_s == DAY_S else "hour"

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        _time_axis(axes, found, curves)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"mean wait ({unit.symbol})")
        _legend(canvas, axes)

    correlation = found.closest.distance.period_correlation
    return draw(
        "waits-over-time",
        title=f"Mean wait by {period} of submission",
        caption=f"Mean wait of the jobs submitted in each {period}. Shaded: the warm-up.",
        alt=f"Mean waits of each {period}, recorded and simulated; correlation {correlation:.2f}.",
        height_in=3.4,
        paint=paint,
    )


def job_by_job(found: Fidelity) -> Figure:
    """Draw how many jobs have which recorded and which simulated wait."""
    recorded_s, simulated_s = (np.maximum(each, SHORTEST_S) for each in _waits(found))
    top = float(max(recorded_s.max(), simulated_s.max(), 100.0)) * 1.1
    borders = np.geomspace(SHORTEST_S, top, CELLS + 1)
    count, _, _ = np.histogram2d(recorded_s, simulated_s, bins=(borders, borders))
    near = found.closest.distance.within_factor_two

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        axes.set_yscale("log")
        _draw_cells(axes, borders, count)
        axes.plot([SHORTEST_S, top], [SHORTEST_S, top], color=INK, linewidth=1.0, linestyle=_DASHED)
        axes.set_xlim(SHORTEST_S, top)
        axes.set_ylim(SHORTEST_S, top)
        _square_ticks(axes, top)
        axes.set_aspect("equal")
        axes.set_xlabel("recorded wait")
        axes.set_ylabel("simulated wait")

    return draw(
        "job-by-job",
        title="Job by job",
        caption="The stronger the colour, the more jobs (logarithmic). On the dashed line both"
        " waits are the same. Waits below 10 s are drawn at 10 s.",
        alt=f"Recorded against simulated wait; {percent(near)} of the jobs within a factor of 2.",
        height_in=4.5,
        paint=paint,
    )


def use_over_time(found: Fidelity) -> Figure:
    """Draw the share of the GPUs in use over time, recorded and simulated."""
    submit_s = found.workload.submit_s
    begin_s, end_s = float(submit_s[0]), float(submit_s[-1])
    sides = (found.evidence.record, found.evidence.replay)
    curves = [_use(side, begin_s, end_s) for side in sides]
    recorded, simulated = found.utilisation(with_warm_up=True)
    drains = next(cause.periods_s for cause in found.causes if cause.name == "drains")

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        scale_s = _time_axis(axes, found, curves)
        for begin, end in drains:
            axes.axvspan((begin - begin_s) / scale_s, (end - begin_s) / scale_s, ymin=0.97,
                         color=INK, linewidth=0.6)  # fmt: skip
        axes.axhline(100.0, color=INK, linewidth=0.8)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("GPUs in use (%)")
        _legend(canvas, axes)

    marks = " Marks at the top: the machine stood still although jobs waited." if drains else ""
    return draw(
        "use-over-time",
        title="GPUs in use over time",
        caption=f"Averages over {SPANS} equal spans. Shaded: the warm-up.{marks}",
        alt=f"Utilisation over time: {percent(recorded)} recorded, {percent(simulated)} simulated.",
        height_in=3.4,
        paint=paint,
    )


def _waits(found: Fidelity) -> tuple[FloatArray, FloatArray]:
    """Return recorded and simulated waits of the jobs compared after the warm-up."""
    rows = found.evidence.counts
    return found.evidence.recorded_s[rows], found.evidence.simulated_s[rows]


def _cumulative(waits_s: FloatArray) -> Curve:
    times = np.sort(np.maximum(waits_s, SHORTEST_S))
    ranks = np.unique(np.linspace(0, len(times) - 1, CURVE_POINTS).round().astype(np.int64))
    return times[ranks], (ranks + 1) * 100.0 / len(times)


def _stairs(begin_s: FloatArray, values: FloatArray, length_s: float) -> Curve:
    """Return one step per period, with a gap where periods are missing in between."""
    is_followed = np.append(begin_s[1:] - begin_s[:-1] <= 1.5 * length_s, True)
    times = np.stack((begin_s, begin_s + length_s, begin_s + length_s), axis=1)
    steps = np.stack((values, values, np.where(is_followed, values, np.nan)), axis=1)
    return times.ravel(), steps.ravel()


def _use(side: Occupancy, begin_s: float, end_s: float) -> Curve:
    """Return the middle of equal spans of time, and the percentage of the GPUs in use."""
    edges = np.linspace(begin_s, end_s, SPANS + 1)
    held = np.concatenate(([0.0], np.cumsum(side.used * side.lasts_s)[:-1]))
    mean = np.diff(np.interp(edges, side.moments_s, held)) / np.diff(edges)
    return (edges[:-1] + edges[1:]) / 2.0, mean * 100.0 / side.gpus


def _two_lines(axes: Axes, recorded: Curve, simulated: Curve, found: Fidelity) -> None:
    name = shortened(plain(found.closest.scheduler), LONGEST_NAME)
    axes.plot(*recorded, color=RECORDED, linewidth=1.6, label="recorded")
    axes.plot(*simulated, color=SIMULATED, linewidth=1.4, linestyle=_DASHED, label=name)


def _time_axis(axes: Axes, found: Fidelity, curves: Sequence[Curve]) -> float:
    """Draw two curves over the time since the first submission; return the unit's seconds."""
    submit_s = found.workload.submit_s
    begin_s, span_s = float(submit_s[0]), float(np.ptp(submit_s))
    unit = duration_unit([span_s])
    (first, recorded), (second, simulated) = curves
    _two_lines(
        axes,
        ((first - begin_s) / unit.size, recorded),
        ((second - begin_s) / unit.size, simulated),
        found,
    )
    warm_up_s = found.evidence.warm_up_ends_s - begin_s
    if warm_up_s > 0:
        axes.axvspan(0.0, warm_up_s / unit.size, color=INK, alpha=0.15, linewidth=0)
    axes.set_xlim(0.0, span_s / unit.size)
    axes.set_xlabel(axis_label("time since the first submission", unit.symbol))
    return unit.size


def _draw_cells(axes: Axes, borders: FloatArray, count: FloatArray) -> None:
    """Shade every cell that holds jobs by the logarithm of their number."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    deepest = np.log1p(count.max())
    for x, y in np.argwhere(count > 0).tolist():
        place = (borders[x], borders[y])
        size = (borders[x + 1] - borders[x], borders[y + 1] - borders[y])
        alpha = 0.12 + 0.88 * float(np.log1p(count[x, y]) / deepest)
        axes.add_patch(Rectangle(place, *size, facecolor=to_rgba(RECORDED, alpha), linewidth=0))


def _square_ticks(axes: Axes, top: float) -> None:
    """Label both axes alike, with fewer times than there is room for in a wider figure."""
    ticks = [(seconds, name) for seconds, name in _TICKS if seconds <= top]
    for place in (axes.set_xticks, axes.set_yticks):
        place([seconds for seconds, _ in ticks], [name for _, name in ticks])
    axes.minorticks_off()


def _legend(canvas: Canvas, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    canvas.legend(handles=handles, labels=labels, loc="outside lower center", ncols=2)
