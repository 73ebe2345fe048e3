"""How schedulers look in figures: colour, dash, marker and name, the same in all of a report.

Series differ by colour, dash and marker, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.experiments.comparison import Comparison, ComparisonRow, Estimate
from yardmaster.model.workload import FloatArray
from yardmaster.report.drawing import INK
from yardmaster.report.values import cut_inside, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Curve = tuple[FloatArray, FloatArray]
MOST_HIGHLIGHTED = 4
"""Schedulers drawn in colour besides the baseline; the eye cannot follow more lines than this."""
LONGEST_LABEL = 26
LONGEST_IN_TWO_COLUMNS = 30
WIDEST_WHISKER = 1.6
"""Intervals are cut off, with an arrow, at so many times the longest bar."""
SHORTEST_S = 1.0
"""Left end of logarithmic axes: shorter completion times are drawn here."""
_TIME_TICKS = (
    (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (36_000, "10 h"),
    (86_400, "1 d"), (864_000, "10 d"), (8_640_000, "100 d"), (86_400_000, "1000 d"),
)  # fmt: skip
_MORE_TIME_TICKS = (
    (2, "2 s"), (5, "5 s"), (20, "20 s"), (30, "30 s"), (120, "2 min"), (300, "5 min"),
    (1_200, "20 min"), (1_800, "30 min"), (7_200, "2 h"), (18_000, "5 h"), (172_800, "2 d"),
    (432_000, "5 d"), (1_728_000, "20 d"), (4_320_000, "50 d"),
)  # fmt: skip
FEWEST_TICKS = 4
LINE_WIDTH = 1.7
_PAGE_MARKERS = {
    "o": "circle", "s": "square", "^": "triangle", "D": "diamond", "v": "downwards", "X": "cross",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """How one scheduler is drawn, in every figure of a report."""

    colour: str
    dash: tuple[float, ...]
    """Lengths of strokes and gaps, empty for an unbroken line."""
    marker: str
    highlighted: bool

    def for_page(self) -> dict[str, str]:
        """Return the look as the charts of the page that can be explored take it."""
        dash = " ".join(f"{LINE_WIDTH * length:g}" for length in self.dash)
        return {"colour": self.colour, "dash": dash, "marker": _PAGE_MARKERS[self.marker]}


# Okabe and Ito's colour-blind-safe palette without its black and yellow, which vanish on one of
# the two backgrounds.
_LOOKS = (
    Look("#0072B2", (), "o", highlighted=True),
    Look("#D55E00", (5, 1.5), "s", highlighted=True),
    Look("#009E73", (2, 1.5), "^", highlighted=True),
    Look("#CC79A7", (6, 1.5, 1.5, 1.5), "D", highlighted=True),
    Look("#E69F00", (8, 2), "v", highlighted=True),
)
_BASELINE = Look("#808080", (), "X", highlighted=True)
_REST = Look("#9a9a9a", (), "", highlighted=False)


def looks(comparison: Comparison) -> tuple[Look, ...]:
    """Return one look per row: a few in colour, the rest in thin grey.

    In colour are the baseline, the best of each information class (the best that knows durations
    and the best that does not are different questions), and then the best of the rest.
    """
    rows = comparison.rows
    classes = [row.information for row in rows]
    first_of_class = [place for place, name in enumerate(classes) if classes.index(name) == place]
    chosen = dict.fromkeys([*first_of_class, *range(len(rows))])
    names = [place for place in chosen if rows[place].scheduler != comparison.baseline]
    coloured = sorted(names[:MOST_HIGHLIGHTED])
    found = dict(zip(coloured, _LOOKS, strict=False))
    return tuple(
        _BASELINE if row.scheduler == comparison.baseline else found.get(place, _REST)
        for place, row in enumerate(rows)
    )


def series_name(comparison: Comparison, row: ComparisonRow) -> str:
    """Return a scheduler's name, short enough for a figure, and say if it is the baseline."""
    name = cut_inside(plain(row.scheduler), LONGEST_LABEL)
    return f"{name} (baseline)" if row.scheduler == comparison.baseline else name


def whisker_words(estimates: Sequence[Estimate]) -> str:
    """Say what the whiskers of bars are, and that some are cut; empty if there are none."""
    if all(np.isnan(each.low) for each in estimates):
        return ""
    limit = WIDEST_WHISKER * max((e.mean for e in estimates if np.isfinite(e.mean)), default=0.0)
    cut = any(each.high > limit for each in estimates)
    return ", whiskers 95 % intervals" + (" (arrows: longer than drawn)" if cut else "")


def draw_bars(
    axes: Axes,
    colours: Sequence[Look],
    estimates: Sequence[Estimate],
    texts: Sequence[str],
    *,
    size: float,
) -> None:
    """Draw estimates as bars from top to bottom with their intervals, in units of `size`."""
    means = np.array([each.mean for each in estimates]) / size
    ends = np.array([(each.low, each.high) for each in estimates]) / size
    rows = np.arange(len(means))
    # One whisker out of all proportion must not press the bars into the axis.
    limit = WIDEST_WHISKER * float(np.nanmax(means, initial=0.0))
    is_cut = ends[:, 1] > limit
    ends[:, 1] = np.where(is_cut, limit, ends[:, 1])
    axes.barh(rows, means, color=[look.colour for look in colours], height=0.62, alpha=0.85)
    if not np.isnan(ends).all():
        errors = np.nan_to_num(np.abs(ends - means[:, None]))
        axes.errorbar(means, rows, xerr=errors.T, fmt="none", ecolor=INK, capsize=3, lw=1.2)
        axes.plot(ends[is_cut, 1], rows[is_cut], linestyle="", marker=">", color=INK, markersize=5)
    for row, right in enumerate(np.fmax(means, ends[:, 1])):
        if np.isfinite(right):
            place = (float(right), row)
            axes.annotate(texts[row], place, (5, 0), textcoords="offset points", va="center")
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def draw_curves(axes: Axes, comparison: Comparison, curves: Sequence[Curve]) -> None:
    """Draw one line per scheduler, the best on top and those without a colour underneath."""
    drawn = list(zip(looks(comparison), curves, strict=True))
    for rank, (look, (x, y)) in enumerate(drawn):
        step = max(len(x) // 8, 1)
        axes.plot(
            x,
            y,
            **_line_style(look),
            markevery=(rank * step // max(len(drawn), 1), step),
            zorder=(3 if look.highlighted else 2) - rank / 100,
        )


def _line_style(look: Look) -> dict[str, Any]:
    return {
        "color": look.colour,
        "linestyle": (0, look.dash) if look.dash else "-",
        "linewidth": LINE_WIDTH if look.highlighted else 0.8,
        "alpha": 1.0 if look.highlighted else 0.55,
        "marker": look.marker,
        "markersize": 4.5,
    }


def draw_spread(axes: Axes, look: Look, jct: FloatArray, height: float) -> None:
    """Draw a marker at the median and a line to the 95th percentile."""
    finished = np.maximum(jct[~np.isnan(jct)], SHORTEST_S)
    if not len(finished):
        return
    median, high = np.percentile(finished, (50, 95))
    axes.plot([median, high], [height, height], color=look.colour, linewidth=1.6)
    axes.plot([median], [height], color=look.colour, marker=look.marker, markersize=5)
    axes.plot([high], [height], color=look.colour, marker="|", markersize=6)


def add_legend(canvas: Canvas, comparison: Comparison, *, with_rest: bool = True) -> None:
    """Name the highlighted schedulers below the axes, and all others in one entry."""
    from matplotlib.lines import Line2D

    drawn = list(zip(comparison.rows, looks(comparison), strict=True))
    named = [(row, look) for row, look in drawn if look.highlighted]
    labels = [series_name(comparison, row) for row, _ in named]
    handles = [Line2D([], [], **_line_style(look)) for _, look in named]
    rest = len(drawn) - len(named)
    if rest and with_rest:
        labels.append("the other one" if rest == 1 else f"{rest} others")
        handles.append(Line2D([], [], **_line_style(_REST)))
    canvas.legend(
        handles=handles,
        labels=labels,
        loc="outside lower center",
        ncols=2 if max(map(len, labels)) <= LONGEST_IN_TWO_COLUMNS else 1,
        labelspacing=0.35,
        columnspacing=1.6,
    )


def time_ticks(axes: Axes) -> None:
    """Label a logarithmic time axis in units people use."""
    low, high = axes.get_xlim()
    ticks = [tick for tick in _TIME_TICKS if low <= tick[0] <= high]
    if len(ticks) < FEWEST_TICKS:
        ticks += [tick for tick in _MORE_TIME_TICKS if low <= tick[0] <= high]
    axes.set_xticks([seconds for seconds, _ in ticks], [name for _, name in ticks])
    axes.minorticks_off()
