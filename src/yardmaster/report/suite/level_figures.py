"""How long jobs take and how busy GPUs are, for every scheduler, by intensity, shape and GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.report.drawing import WIDTH_IN
from yardmaster.report.series import Look, time_ticks
from yardmaster.report.suite.estimates import means, seed_means
from yardmaster.report.suite.looks import (
    Looks,
    add_legend,
    error_bars,
    ink,
    line_style,
    name_rows,
    plain_ticks,
    range_marks,
    short_names,
)
from yardmaster.report.suite.measures import axis, title, unit
from yardmaster.report.suite.runs import Label, Runs
from yardmaster.report.suite.sketches import WIDE_IN, Sketch
from yardmaster.report.suite.words import (
    counted,
    family_words,
    interval_words,
    listed,
    means_in_words,
)
from yardmaster.report.values import PERCENT, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = ("intensity", "load")
"""Labels by which figures are split into panels, the first that tells regimes apart."""
MOST_PANELS = 4
WIDEST_LINEAR = 12.0
"""Values that differ by more than this factor are drawn on a logarithmic axis."""
_SHAPES = "o^sDvP<>"
Mark = tuple[str, list[float]]
"""A marker, and where it stands for each scheduler."""


def panels(runs: Runs) -> list[tuple[str, Runs]]:
    """Return (title, runs) of each panel: by intensity where there are several, else all in one."""
    for label in PANELS:
        values = runs.values_of(label)
        if 1 < len(values) <= MOST_PANELS:
            return [(f"{label}: {value}", runs.having(label, value)) for value in values]
    return [("", runs)]


def ranked(runs: Runs, objective: str) -> list[int]:
    """Return the schedulers' rows, the least mean first."""
    averages = seed_means(runs, objective).mean(axis=1)
    return sorted(range(len(averages)), key=lambda row: (np.isnan(averages[row]), averages[row]))


def panel_width(count: int) -> float:
    """Return the width of a figure of so many panels, in inches."""
    return WIDE_IN if count > 1 else WIDTH_IN


def utilisation_by_gpus(runs: Runs, looks: Looks) -> Sketch | None:
    """Draw utilisation against the number of GPUs; None if regimes do not differ in it."""
    sizes = runs.values_of("gpus")
    if len(sizes) < 2 or not all(isinstance(size, int | float) for size in sizes):
        return None
    parts = panels(runs)
    spread = np.linspace(-0.12, 0.12, len(runs.schedulers))

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(1, len(parts), sharey=True, squeeze=False)[0]
        places = np.arange(len(sizes), dtype=float)
        for field, (name, part) in zip(fields, parts, strict=True):
            by_size = [means(part.having("gpus", size), "utilisation") for size in sizes]
            for row, scheduler in enumerate(part.schedulers):
                estimates = [each[row] for each in by_size]
                x = (places + spread[row]).tolist()
                error_bars(field, x, estimates, looks[scheduler], PERCENT.size)
            field.set_xticks(places, [f"{size:g}" for size in sizes])
            field.set_xlim(-0.35, len(sizes) - 0.65)
            field.set_xlabel("GPUs")
            field.set_title(name, fontsize=10, color=ink())
        fields[0].set_ylabel("utilisation (%)")
        low, high = fields[0].get_ylim()
        fields[0].set_ylim(max(low, 0.0), min(high, 101.0))
        add_legend(canvas, looks, runs.schedulers, 4 if len(parts) > 1 else 2)

    smallest, largest = (
        means(runs.having("gpus", size), "utilisation") for size in (sizes[0], sizes[-1])
    )
    return Sketch(
        name=f"utilisation-{runs.family}",
        title="Utilisation against the number of GPUs",
        caption=f"Means over {family_words(runs)}{interval_words(runs)}. Marks of schedulers stand"
        " beside each other for the same number of GPUs.",
        alt=f"Utilisation with {sizes[0]:g} GPUs: {means_in_words(runs, smallest, PERCENT)};"
        f" with {sizes[-1]:g}: {means_in_words(runs, largest, PERCENT)}.",
        height_in=3.6 if len(parts) > 1 else 3.9,
        width_in=panel_width(len(parts)),
        paint=paint,
    )


def levels(runs: Runs, looks: Looks, name: str) -> Sketch:
    """Draw the mean of a number for every scheduler, and how it differs between shapes."""
    order = ranked(runs, name)
    groups = _shapes(runs)
    parts = panels(runs)
    names = short_names([runs.schedulers[row] for row in order])
    overall = means(runs, name)
    written_in = unit(name, (each.mean for each in overall))

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(1, len(parts), sharey=True, squeeze=False)[0]
        for field, (heading, part) in zip(fields, parts, strict=True):
            _paint_levels(field, part, looks, name, (order, _small_marks(part, name, groups)))
            field.set_xlabel(axis(name, unit(name, _typical(part, name))))
            field.set_title(heading, fontsize=10, color=ink())
            name_rows(field, names)
        if groups:
            _legend_of_shapes(canvas, [str(group) for group in groups])

    small = "a shape" if groups else "a regime"
    return Sketch(
        name=f"{name.removesuffix('_s').replace('_', '-')}-{runs.family}",
        title=f"{sentence(title(name))} of each scheduler",
        caption=f"Large marks are means over {family_words(runs)}{interval_words(runs)}; small"
        f" ones are the means of {small}. Every panel has its own scale.",
        alt=f"{sentence(title(name))}, best first:"
        f" {means_in_words(runs, overall, written_in, order)}.",
        height_in=1.35 + 0.3 * len(names),
        width_in=panel_width(len(parts)),
        paint=paint,
    )


def _typical(runs: Runs, name: str) -> list[float]:
    return [float(value) for value in seed_means(runs, name).mean(axis=1)]


def _paint_levels(
    axes: Axes, runs: Runs, looks: Looks, name: str, rows: tuple[Sequence[int], Sequence[Mark]]
) -> None:
    """Draw one row per scheduler: the order of the rows, and small marks beside the large one."""
    order, small = rows
    size = unit(name, _typical(runs, name)).size
    estimates = means(runs, name)
    for height, row in enumerate(order):
        look = looks[runs.schedulers[row]]
        for marker, values in small:
            axes.plot(
                [values[row] / size], [height], marker, color=look.colour, alpha=0.45,
                markersize=5.5, markeredgewidth=0, zorder=2,
            )  # fmt: skip
        range_marks(axes, [height], [estimates[row]], look, size)
    every = np.array([values for _, values in small]) / size
    known = every[np.isfinite(every) & (every > 0)]
    if len(known) and known.max() > WIDEST_LINEAR * known.min():
        axes.set_xscale("log")
        plain_ticks(axes)
    axes.margins(x=0.06)


def _shapes(runs: Runs) -> list[Label]:
    """Return the shapes to tell apart by marks; none if there are too many, or one only."""
    shapes = runs.values_of("shape")
    return shapes if 1 < len(shapes) <= len(_SHAPES) else []


def _small_marks(runs: Runs, name: str, shapes: Sequence[Label]) -> list[Mark]:
    """Return a mark for every shape, else for every regime: the mean of each scheduler there."""
    if shapes:
        parts = [
            (marker, runs.having("shape", each))
            for marker, each in zip(_SHAPES, shapes, strict=False)
        ]
        return [(marker, _typical(part, name)) for marker, part in parts if len(part)]
    values = runs.numbers[name].mean(axis=2)
    return [("o", values[:, place].tolist()) for place in range(values.shape[1])]


def _legend_of_shapes(canvas: Canvas, groups: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", marker=marker, color=ink(), alpha=0.6, markersize=5)
        for marker, _ in zip(_SHAPES, groups, strict=False)
    ]
    canvas.legend(handles=handles, labels=list(groups), loc="outside lower center", ncols=4)


def completion_curves(runs: Runs, looks: Looks, quantiles: np.typing.NDArray[np.float32]) -> Sketch:
    """Draw which share of the jobs is complete within which time.

    Args:
        runs: the runs.
        looks: how schedulers look.
        quantiles: (rows of the table, quantiles) completion times of every run, seconds.
    """
    parts = panels(runs)
    medians = [
        float(np.median(_pooled(quantiles[runs.places[row]])))
        for row in range(len(runs.schedulers))
    ]

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(1, len(parts), sharex=True, sharey=True, squeeze=False)[0]
        fields[0].set_xscale("log")
        for field, (heading, part) in zip(fields, parts, strict=True):
            for row, scheduler in enumerate(part.schedulers):
                times = _pooled(quantiles[part.places[row]])
                _paint_curve(field, times, looks[scheduler], row)
            field.set_xlabel("job completion time")
            field.set_title(heading, fontsize=10, color=ink())
            field.minorticks_off()
        time_ticks(fields[0])
        fields[0].set_ylim(0, 100)
        fields[0].set_ylabel("jobs complete (%)")
        add_legend(canvas, looks, runs.schedulers, 4 if len(parts) > 1 else 2)

    written_in = unit("mean_jct_s", medians)
    return Sketch(
        name=f"jct-cdf-{runs.family}",
        title="How fast jobs are complete",
        caption=f"Share of the finished jobs of {family_words(runs)} and all seeds that are"
        " complete within a time from submission; every run counts the same. Higher and further"
        " left is better.",
        alt="Cumulative distribution of job completion times. Medians: "
        + listed(runs.schedulers, medians, written_in),
        height_in=3.8 if len(parts) > 1 else 4.2,
        width_in=panel_width(len(parts)),
        paint=paint,
    )


def _pooled(quantiles: np.typing.NDArray[np.float32]) -> FloatArray:
    """Return the completion times of several runs as of one, every run with the same weight."""
    times = quantiles.reshape(-1).astype(np.float64)
    known = np.sort(np.maximum(times[np.isfinite(times)], 1.0))
    return known if len(known) else np.array([np.nan])


def _paint_curve(axes: Axes, times: FloatArray, look: Look, row: int) -> None:
    """Draw the share of completion times up to each of them; marks stand apart between rows."""
    ranks = np.linspace(0, len(times) - 1, 240).round().astype(np.int64)
    share = (ranks + 0.5) * 100.0 / len(times)
    axes.plot(
        times[ranks], share, **line_style(look) | {"markersize": 4},
        markevery=(6 + 5 * row % 40, 40), alpha=0.9,
    )  # fmt: skip


def tail_latency(runs: Runs, looks: Looks) -> Sketch:
    """Draw median, 95th and 99th percentile of the completion time of every scheduler."""
    order = ranked(runs, "p95_jct_s")
    parts = panels(runs)
    names = short_names([runs.schedulers[row] for row in order])

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(1, len(parts), sharey=True, squeeze=False)[0]
        for field, (heading, part) in zip(fields, parts, strict=True):
            written_in = unit("p95_jct_s", _typical(part, "p95_jct_s"))
            _paint_tails(field, part, looks, order, written_in.size)
            field.set_xlabel(f"job completion time ({written_in.symbol})")
            field.set_title(heading, fontsize=10, color=ink())
            name_rows(field, names)
            field.margins(x=0.05)
            field.set_xlim(left=0)

    tails = means(runs, "p95_jct_s")
    return Sketch(
        name=f"tail-latency-{runs.family}",
        title="Tail of the completion time",
        caption="From left to right: median, 95th percentile (large mark) and 99th percentile of"
        f" the completion times of a run, means over {family_words(runs)} and"
        f" {counted(len(runs.seeds), 'seed')}.",
        alt="95th percentile of the completion time, best first: "
        + means_in_words(runs, tails, unit("p95_jct_s", (each.mean for each in tails)), order),
        height_in=1.1 + 0.3 * len(names),
        width_in=panel_width(len(parts)),
        paint=paint,
    )


def _paint_tails(axes: Axes, runs: Runs, looks: Looks, order: Sequence[int], size: float) -> None:
    low, middle, high = (
        seed_means(runs, name).mean(axis=1) / size
        for name in ("p50_jct_s", "p95_jct_s", "p99_jct_s")
    )
    for height, row in enumerate(order):
        look = looks[runs.schedulers[row]]
        ends = [low[row], high[row]]
        axes.plot(ends, [height, height], color=look.colour, linewidth=5, alpha=0.28, zorder=2,
                  solid_capstyle="butt")  # fmt: skip
        axes.plot(ends, [height, height], linestyle="", marker="|", color=look.colour,
                  markersize=10, markeredgewidth=1.8, zorder=3)  # fmt: skip
        axes.plot([middle[row]], [height], color=look.colour, marker=look.marker, markersize=6,
                  zorder=4)  # fmt: skip
