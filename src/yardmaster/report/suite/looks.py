"""How schedulers look in the figures of an experiment: all in colour, the same in each of them.

They differ by colour, dash and marker, never by colour alone. A scheduler's look depends on the
list of schedulers and on nothing else, so that figures of two runs can lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.experiments.suite.results import is_fixed
from yardmaster.metrics.statistics import Interval
from yardmaster.report.series import Look
from yardmaster.report.values import plain, shortened
from yardmaster.schedulers.language import BANDIT_PREFIX

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

LONGEST_NAME = 26
# Okabe and Ito's colour-blind-safe palette without its black and yellow, which vanish on one of
# the two backgrounds, and three colours of Paul Tol's that keep apart from them.
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#AA4499", "#8A8A8A",
    "#999933", "#9467BD",
)  # fmt: skip
_MARKERS = "os^DvPX*<>"
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.5), (2, 1.5), (6, 1.5, 1.5, 1.5), (9, 2))

Looks = Mapping[str, Look]


def looks_of(schedulers: Iterable[str]) -> dict[str, Look]:
    """Return a look for every scheduler; those that are not one fixed rule are highlighted."""
    names = sorted(set(schedulers))
    return {
        name: Look(
            _COLOURS[place % len(_COLOURS)],
            _DASHES[place % len(_DASHES)],
            _MARKERS[place % len(_MARKERS)],
            highlighted=not is_fixed(name),
        )
        for place, name in enumerate(names)
    }


def short_names(schedulers: Sequence[str]) -> list[str]:
    """Return names that fit a figure: files without their path, bandits without their menu."""
    shorter = [_without_path(name) for name in schedulers]
    if len(set(shorter)) < len(shorter):
        shorter = list(schedulers)
    return [shortened(plain(name), LONGEST_NAME) for name in shorter]


def _without_path(name: str) -> str:
    if name.startswith(BANDIT_PREFIX):
        return name.partition("=")[0]
    kind, colon, path = name.partition(":")
    if not colon or "/" not in path:
        return name
    folder, _, file = path.removesuffix(".npz").rpartition("/")
    return f"{kind}:{file if file != 'policy' else folder.rpartition('/')[2]}"


def line_style(look: Look) -> dict[str, Any]:
    """Return how the line of a scheduler is drawn."""
    return {
        "color": look.colour,
        "linestyle": (0, look.dash) if look.dash else "-",
        "linewidth": 2.4 if look.highlighted else 1.4,
        "marker": look.marker,
        "markersize": 6 if look.highlighted else 4.5,
    }


def error_bars(
    axes: Axes, x: Sequence[float], estimates: Sequence[Interval], look: Look, size: float = 1.0
) -> None:
    """Draw a line through estimates with their intervals, in units of `size`."""
    middle = np.array([each.mean for each in estimates]) / size
    ends = np.array([(each.low, each.high) for each in estimates]) / size
    errors = np.nan_to_num(np.abs(ends - middle[:, None]))
    axes.errorbar(
        x,
        middle,
        yerr=errors.T,
        **line_style(look),
        capsize=2,
        elinewidth=1.0,
        zorder=_height(look),
    )


def range_marks(
    axes: Axes, y: Sequence[float], estimates: Sequence[Interval], look: Look, size: float = 1.0
) -> None:
    """Draw estimates as marks with their intervals from left to right, in units of `size`."""
    for height, each in zip(y, estimates, strict=True):
        if np.isfinite(each.low):
            ends = [each.low / size, each.high / size]
            axes.plot(ends, [height, height], color=look.colour, linewidth=1.6, zorder=3)
        axes.plot(
            [each.mean / size], [height], color=look.colour, marker=look.marker, markersize=6,
            zorder=4,
        )  # fmt: skip


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a chart from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def plain_ticks(axes: Axes) -> None:
    """Label a logarithmic axis with 1, 2 and 5 of every power of ten, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def add_legend(canvas: Canvas, looks: Looks, schedulers: Sequence[str], columns: int) -> None:
    """Name the schedulers below the axes."""
    canvas.legend(
        handles=handles(looks, schedulers),
        labels=short_names(schedulers),
        loc="outside lower center",
        ncols=columns,
        labelspacing=0.35,
        columnspacing=1.6,
    )


def handles(looks: Looks, schedulers: Sequence[str]) -> list[Any]:
    """Return what stands for each scheduler in a legend."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], **line_style(looks[name])) for name in schedulers]


def ink() -> str:
    """Return the colour of text on the canvas that is being painted."""
    import matplotlib as mpl

    return str(mpl.rcParams["text.color"])


def _height(look: Look) -> float:
    return 4.0 if look.highlighted else 3.0
