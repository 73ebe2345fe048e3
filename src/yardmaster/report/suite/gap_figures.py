"""How far schedulers stay behind the best fixed one, chosen for every run in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.metrics.statistics import Interval
from yardmaster.model.workload import FloatArray
from yardmaster.report.drawing import WIDTH_IN
from yardmaster.report.suite.estimates import gaps, mean_gaps
from yardmaster.report.suite.looks import Looks, ink, name_rows, short_names
from yardmaster.report.suite.measures import title
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.sketches import WIDE_IN, Sketch
from yardmaster.report.suite.words import family_words, interval_words, means_in_words
from yardmaster.report.values import PERCENT, number, plain, sentence, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BEHIND, AHEAD = "#D55E00", "#0072B2"
"""Colours of runs worse and better than the best fixed scheduler."""
PALEST, DEEPEST = 0.03, 0.62
"""How opaque the colours of a map are: text in the colour of the page's ink is read on all."""
SMALLEST_GAP = 0.01
"""Gaps are coloured on a logarithmic scale from about this one on."""
MOST_REGIMES = 64


def gap_bars(runs: Runs, looks: Looks, objectives: Sequence[str]) -> Sketch:
    """Draw the mean gap of every scheduler, one panel per objective, the least on top."""
    found = {objective: mean_gaps(runs, objective) for objective in objectives}
    first = found[objectives[0]]
    order = sorted(
        range(len(runs.schedulers)), key=lambda row: (np.isnan(first[row].mean), first[row].mean)
    )
    names = short_names([runs.schedulers[row] for row in order])

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(1, len(objectives), sharey=True, squeeze=False)[0]
        for field, objective in zip(fields, objectives, strict=True):
            _paint_bars(field, runs, looks, [found[objective][row] for row in order], order)
            field.set_title(title(objective), fontsize=10, color=ink())
            field.set_xlabel("hindsight gap (%)")
            name_rows(field, names)

    told = "; ".join(
        f"{title(objective)}: {means_in_words(runs, found[objective], PERCENT, order)}"
        for objective in objectives
    )
    return Sketch(
        name=f"oracle-gap-{runs.family}",
        title="Distance to the best fixed scheduler in hindsight",
        caption="How much worse than the best fixed scheduler of the same run, bars are means over"
        f" {family_words(runs)}{interval_words(runs)}. Left of zero is better than every fixed"
        " scheduler.",
        alt=f"Mean hindsight gap. {told}.",
        height_in=1.1 + 0.3 * len(names),
        width_in=WIDE_IN if len(objectives) > 1 else WIDTH_IN,
        paint=paint,
    )


def _paint_bars(
    axes: Axes, runs: Runs, looks: Looks, estimates: Sequence[Interval], order: Sequence[int]
) -> None:
    size = PERCENT.size
    ends = [each.high if np.isfinite(each.high) else each.mean for each in estimates]
    for height, (each, row) in enumerate(zip(estimates, order, strict=True)):
        colour = looks[runs.schedulers[row]].colour
        axes.barh([height], [each.mean / size], color=colour, height=0.6, alpha=0.85)
        if np.isfinite(each.low):
            axes.plot([each.low / size, each.high / size], [height, height], color=ink(),
                      linewidth=1.2, marker="|", markersize=6)  # fmt: skip
        if np.isfinite(each.mean):
            places = 1 if abs(each.mean) < 0.1 else 0
            place = (max(ends[height], 0.0) / size, height)
            axes.annotate(number(each.mean, places, PERCENT), place, (5, 0),
                          textcoords="offset points", va="center", fontsize=9)  # fmt: skip
    axes.axvline(0.0, color=ink(), linewidth=0.8)
    axes.margins(x=0.14)


def gap_map(runs: Runs, objective: str) -> Sketch:
    """Draw the mean gap of every scheduler in every regime as a map of colours and numbers."""
    values: FloatArray = gaps(runs, objective).mean(axis=2)
    columns = sorted(
        range(len(values)), key=lambda row: (np.isnan(values[row].mean()), values[row].mean())
    )
    shown = values[columns].T[:MOST_REGIMES]
    regimes = [plain(scenario.regime) for scenario in runs.scenarios][:MOST_REGIMES]
    names = short_names([runs.schedulers[row] for row in columns])

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        edges = [np.arange(count + 1) - 0.5 for count in shown.T.shape]
        axes.pcolormesh(*edges, _colours(shown), edgecolors="none")
        for (height, place), value in np.ndenumerate(shown):
            axes.text(place, height, _short(value), ha="center", va="center", fontsize=8)
        axes.set_xticks(range(len(names)), names, rotation=38, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(regimes)), [shortened(name, 34) for name in regimes])
        axes.set_ylim(len(regimes) - 0.5, -0.5)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)

    more = len(runs.scenarios) - len(regimes)
    rest = f" The first {len(regimes)} of {len(runs.scenarios)} regimes." if more > 0 else ""
    best = [int(np.count_nonzero(values[row] <= np.nanmin(values, axis=0))) for row in columns]
    told = ", ".join(f"{name} in {count}" for name, count in zip(names, best, strict=True))
    return Sketch(
        name=f"oracle-gap-map-{objective.removesuffix('_s').replace('_', '-')}-{runs.family}",
        title=f"{sentence(title(objective))}: gap in every regime, in percent",
        caption="How much worse than the best fixed scheduler of the same run, mean over seeds;"
        f" blue is better than every fixed scheduler.{rest}",
        alt=f"Map of hindsight gaps. Regimes in which each scheduler is best: {told}.",
        height_in=1.15 + 0.19 * len(regimes),
        paint=paint,
    )


def _colours(values: FloatArray) -> FloatArray:
    """Return the colour of every gap, the more opaque the larger the gap."""
    from matplotlib.colors import to_rgb

    scale = np.log1p(np.abs(np.nan_to_num(values)) / SMALLEST_GAP)
    scale /= max(float(scale.max()), 1.0)
    colours = np.empty((*values.shape, 4))
    colours[..., :3] = np.where((values < 0)[..., None], to_rgb(AHEAD), to_rgb(BEHIND))
    colours[..., 3] = np.where(scale > 0, PALEST + (DEEPEST - PALEST) * scale, 0.0)
    return colours


def _short(value: float) -> str:
    """Write a gap in as few characters as tell it apart."""
    places = 1 if abs(value) < 0.0995 else 0
    text = number(value, places, PERCENT)
    return text if float(text.replace("−", "-").replace("–", "nan")) else "0"
