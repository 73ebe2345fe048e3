"""The pictures of capacity questions: bars of changes, and curves over the number of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.whatif_rows import WhatIf, WhatIfRow
from yardmaster.report.drawing import Figure, draw
from yardmaster.report.series import Look, draw_bars, whisker_words
from yardmaster.report.values import (
    Unit,
    decimals,
    duration_unit,
    metric_title,
    metric_unit,
    number,
    plain,
    sentence,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#808080"
_BAR_HEIGHT_IN = 0.3
LONGEST_CHANGE = 36
_BARRED = ("baseline", "change")
_TODAY = Look(_GREY, (), "X", highlighted=True)
_CHANGED = Look(_BLUE, (), "o", highlighted=True)


def whatif_figures(found: WhatIf) -> tuple[Figure, ...]:
    """Return bars of the changes, and a curve of the sweep or the search."""
    figures = []
    if any(row.role == "change" for row in found.rows):
        figures.append(_bars(found, [row for row in found.rows if row.role in _BARRED]))
    swept = [row for row in found.rows if row.role == "sweep"]
    if len(swept) > 1:
        figures.append(_curve(found, swept, "sweep", found.axis))
    searched = [row for row in found.rows if row.role == "search"]
    if searched:
        rows = [found.rows[0], *searched]
        figures.append(_curve(found, rows, "search", "more nodes than today"))
    return tuple(figures)


def _bars(found: WhatIf, rows: Sequence[WhatIfRow]) -> Figure:
    """Draw the objective under every change as bars, the cluster as it is on top."""
    name = found.objective
    estimates = [row.metrics[name] for row in rows]
    unit = metric_unit(name, duration_unit(each.mean for each in estimates))
    places = decimals([each.mean for each in estimates], unit)
    texts = [number(each.mean, places, unit) for each in estimates]
    labels = [shortened(plain(row.change), LONGEST_CHANGE) for row in rows]
    axis = f"{metric_title(name)} ({unit.symbol})" if unit.symbol else metric_title(name)

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        colours = [_TODAY if row.role == "baseline" else _CHANGED for row in rows]
        draw_bars(axes, colours, estimates, texts, size=unit.size)
        axes.set_yticks(range(len(labels)), labels)
        axes.set_xlabel(axis)

    told = ", ".join(f"{label} {text}" for label, text in zip(labels, texts, strict=True))
    return draw(
        "changes",
        title=f"{sentence(metric_title(name))} under every change",
        caption=f"Bars are means{whisker_words(estimates)} over {found.units}.",
        alt=f"{axis}: {told}.",
        height_in=max(0.9 + _BAR_HEIGHT_IN * len(rows), 2.0),
        paint=paint,
    )


def _curve(found: WhatIf, rows: Iterable[WhatIfRow], name: str, axis: str) -> Figure:
    """Draw the objective over what is swept, with a band of 95 % intervals."""
    ordered = sorted(rows, key=lambda row: 0.0 if isnan(row.amount) else row.amount)
    objective = found.target.split(" ")[0] if name == "search" else found.objective
    estimates = [row.metrics[objective] for row in ordered]
    unit = metric_unit(objective, duration_unit(each.mean for each in estimates))
    x = np.array([0.0 if isnan(row.amount) else row.amount for row in ordered])
    y, low, high = (
        np.array([getattr(each, end) for each in estimates]) / unit.size
        for end in ("mean", "low", "high")
    )
    title = metric_title(objective)

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.fill_between(x, low, high, color=_BLUE, alpha=0.15, linewidth=0)
        axes.plot(x, y, color=_BLUE, marker="o", markersize=4.5, linewidth=1.7)
        today = 1.0 if "load" in axis else 0.0
        axes.axvline(today, color=_GREY, linewidth=1.0, linestyle=(0, (5, 2)))
        axes.annotate("today", (today, 1.0), (4, -10), xycoords=("data", "axes fraction"),
                      textcoords="offset points", color=_GREY)  # fmt: skip
        if name == "search":
            _mark_answer(axes, found, ordered, unit)
        axes.set_ylim(bottom=0)
        axes.margins(x=0.03)
        axes.set_xlabel(axis)
        axes.set_ylabel(f"{title} ({unit.symbol})" if unit.symbol else title)

    told = ", ".join(
        f"{amount:g}: {number(each.mean, decimals([each.mean], unit), unit)}"
        for amount, each in zip(x, estimates, strict=True)
    )
    return draw(
        name,
        title=f"{sentence(title)} against {axis}",
        caption=f"Points are means over {found.units}, the band their 95 % intervals.",
        alt=f"{title} ({unit.symbol}) by {axis}: {told}.",
        height_in=3.4,
        paint=paint,
    )


def _mark_answer(axes: Axes, found: WhatIf, rows: Sequence[WhatIfRow], unit: Unit) -> None:
    """Draw the target as a line and the answer as a star."""
    goal = float(found.target.split(" ")[2]) / unit.size
    axes.axhline(goal, color=_ORANGE, linewidth=1.2, linestyle=(0, (2, 1.5)))
    axes.annotate("target", (1.0, goal), (-4, 4), xycoords=("axes fraction", "data"),
                  textcoords="offset points", ha="right", color=_ORANGE)  # fmt: skip
    for row in rows:
        if row.is_answer:
            value = row.metrics[found.target.split(" ")[0]].mean / unit.size
            axes.plot([row.amount], [value], marker="*", markersize=13, color=_ORANGE)
