"""What disturbances and changes do to schedulers, as pictures."""

from __future__ import annotations

from math import ceil, pi
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.report.drawing import WIDTH_IN
from yardmaster.report.suite.looks import (
    Looks,
    add_legend,
    error_bars,
    handles,
    ink,
    line_style,
    name_rows,
    range_marks,
    short_names,
)
from yardmaster.report.suite.measures import title, unit
from yardmaster.report.suite.recovery import recoveries
from yardmaster.report.suite.robustness import Robustness
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.sketches import WIDE_IN, Sketch
from yardmaster.report.suite.words import counted, family_words, interval_words, listed
from yardmaster.report.values import PERCENT, number, sentence
from yardmaster.workloads.regimes import PERTURBATIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.projections.polar import PolarAxes

FINEST = 0.01
"""Changes up to about this size are drawn to scale, larger ones ever closer together."""
_RINGS = (-0.5, -0.1, -0.02, 0.0, 0.02, 0.1, 0.5, 2.0, 10.0, 50.0)
COLUMNS = 3
MOST_STARS = 3
"""Stars side by side at most: beside more of them their words would overlap."""
FEWEST_RAYS = 3


def radar(found: Robustness, looks: Looks) -> Sketch | None:
    """Draw the change under every perturbation as a star, one panel per objective.

    None of less than three perturbations: a star needs as many rays.
    """
    kinds = list(found.perturbations)
    if len(kinds) < FEWEST_RAYS:
        return None

    count = len(found.objectives)
    rows = -(-count // MOST_STARS)
    columns = -(-count // rows)

    def paint(canvas: Canvas) -> None:
        polar = {"projection": "polar"}
        fields = canvas.subplots(rows, columns, squeeze=False, subplot_kw=polar).ravel()
        for spare in fields[count:]:
            spare.set_visible(False)
        for field, objective in zip(fields, found.objectives, strict=False):
            _paint_star(field, found, looks, objective)
            field.set_title(title(objective), fontsize=10, color=ink(), pad=14)
        add_legend(canvas, looks, found.runs.schedulers, 4)

    first = found.objectives[0]
    told = "; ".join(f"{kind}: {_changes(found, kind, first)}" for kind in kinds)
    return Sketch(
        name=f"robustness-radar-{found.runs.family}",
        title="What each perturbation costs",
        caption="Change against the same regimes undisturbed, mean over severities, regimes and"
        f" {counted(len(found.runs.seeds), 'seed')}. Further out is worse; the dark ring is no"
        " change, and rings stand closer the further out they are.",
        alt=f"Relative change of {title(first)}. {told}.",
        height_in=0.9 + 3.0 * rows,
        width_in=WIDE_IN if count > 1 else WIDTH_IN,
        paint=paint,
    )


def _changes(found: Robustness, kind: str, objective: str) -> str:
    names = found.runs.schedulers
    return listed(names, [found.overall[kind, name].change[objective].mean for name in names],
                  PERCENT)  # fmt: skip


def _paint_star(
    axes: PolarAxes,
    found: Robustness,
    looks: Looks,
    objective: str,
) -> None:
    names, kinds = found.runs.schedulers, list(found.perturbations)
    angles = [2 * pi * place / len(kinds) for place in range(len(kinds))]
    values = np.array(
        [[found.overall[kind, name].change[objective].mean for kind in kinds] for name in names]
    )
    radii = _radius(values)
    for name, row in zip(names, radii, strict=True):
        style = line_style(looks[name]) | {"markersize": 4}
        axes.plot([*angles, angles[0]], [*row, row[0]], **style, alpha=0.9)
    low, high = float(np.nanmin(radii)), float(np.nanmax(radii))
    rings = [ring for ring in _RINGS if low - 0.9 < _radius(ring) < high + 0.6]
    floor = min(low, 0.0) - 0.7
    axes.set_ylim(floor, max(high, float(_radius(0.02))) + 0.25)
    axes.set_theta_offset(pi / 2)
    axes.set_theta_direction(-1)
    axes.set_yticks([float(_radius(ring)) for ring in rings], [""] * len(rings))
    axes.set_xticks(angles, [kind.replace("-", "\n", 1) for kind in kinds])
    axes.tick_params(axis="x", pad=9)
    # Between the first two spokes, where the labels of the rings hide no mark.
    for ring in rings:
        axes.text(pi / len(kinds), float(_radius(ring)), f"{number(ring, 0, PERCENT)} %",
                  fontsize=7.5, ha="center", va="center")  # fmt: skip
    around = np.linspace(0, 2 * pi, 120)
    axes.plot(around, np.zeros(120), color=ink(), linewidth=1.3, zorder=1)
    axes.spines["polar"].set_visible(False)


def _radius(change: np.typing.ArrayLike) -> np.typing.NDArray[np.float64]:
    """Return how far from no change a change is drawn."""
    values = np.asarray(change, dtype=np.float64)
    return np.sign(values) * np.log1p(np.abs(values) / FINEST)


def by_severity(found: Robustness, looks: Looks, objective: str) -> Sketch:
    """Draw the change against the severity, one panel per perturbation."""
    kinds = list(found.perturbations)
    rows = ceil(len(kinds) / COLUMNS)
    columns = min(COLUMNS, len(kinds))

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(rows, columns, squeeze=False).ravel()
        spare = fields[len(kinds) :]
        for field in spare:
            field.set_axis_off()
        for field, kind in zip(fields, kinds, strict=False):
            _paint_severities(field, found, looks, kind, objective)
        for field in fields[: len(kinds) : columns]:
            field.set_ylabel(f"Δ {title(objective)} (%)")
        names = found.runs.schedulers
        if len(spare):
            spare[0].legend(handles=handles(looks, names), labels=short_names(names), loc="center")
        else:
            add_legend(canvas, looks, names, 4)

    told = "; ".join(f"{kind}: {_changes(found, kind, objective)}" for kind in kinds)
    return Sketch(
        name=f"robustness-{objective.removesuffix('_s').replace('_', '-')}-{found.runs.family}",
        title=f"{sentence(title(objective))} as disturbances grow",
        caption="Change against the same regimes undisturbed, means over"
        f" {family_words(found.runs)}{interval_words(found.runs)}. Every panel has its own scale.",
        alt=f"Relative change of {title(objective)}, mean over severities. {told}.",
        height_in=0.4 + 2.6 * rows,
        width_in=WIDE_IN if columns > 1 else WIDTH_IN,
        paint=paint,
    )


def _paint_severities(
    axes: Axes, found: Robustness, looks: Looks, kind: str, objective: str
) -> None:
    severities = found.perturbations[kind]
    names = found.runs.schedulers
    spread = np.linspace(-0.12, 0.12, len(names)) if len(names) > 1 else np.zeros(1)
    places = np.arange(len(severities), dtype=float)
    for name, shift in zip(names, spread, strict=True):
        estimates = [
            found.scenarios[kind, severity, name].change[objective] for severity in severities
        ]
        error_bars(axes, (places + shift).tolist(), estimates, looks[name], PERCENT.size)
    axes.axhline(0.0, color=ink(), linewidth=1.0, zorder=1)
    axes.set_xticks(places, [f"{severity:g}" for severity in severities])
    axes.set_xlim(-0.4, len(severities) - 0.6)
    axes.set_title(kind, fontsize=10, color=ink())
    if kind in PERTURBATIONS:
        axes.set_xlabel(PERTURBATIONS[kind].unit, fontsize=9)


def recovery(runs: Runs, looks: Looks) -> Sketch | None:
    """Draw how long the queue takes to recover from changes; None if nothing changes."""
    found = recoveries(runs)
    if not found:
        return None
    order = sorted(range(len(found)), key=lambda row: _last(found[row].mean_s.mean))
    names = short_names([found[row].scheduler for row in order])
    written_in = unit("recovery_s", (each.mean_s.mean for each in found))

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        for height, row in enumerate(order):
            one = found[row]
            look = looks[one.scheduler]
            regimes = np.array(one.by_regime_s) / written_in.size
            axes.plot(regimes, np.full(len(regimes), height), "o", color=look.colour, alpha=0.35,
                      markersize=4, markeredgewidth=0)  # fmt: skip
            range_marks(axes, [height], [one.mean_s], look, written_in.size)
            axes.annotate(
                f"{number(one.recovered, 0, PERCENT)} %", (1.0, height), (6, 0),
                xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
            )  # fmt: skip
        name_rows(axes, names)
        axes.margins(x=0.05)
        axes.set_xlabel(f"time until the queue is half its maximum ({written_in.symbol})")
        axes.annotate("recovered", (1.0, 1.0), (6, 6), xycoords="axes fraction",
                      textcoords="offset points", fontsize=9)  # fmt: skip

    told = listed([found[row].scheduler for row in order],
                  [found[row].mean_s.mean for row in order], written_in)  # fmt: skip
    return Sketch(
        name=f"recovery-{runs.family}",
        title="How fast the queue recovers from a change",
        caption=f"Large marks are means over {family_words(runs)}{interval_words(runs)}; small ones"
        " are regimes. Runs whose queue never halved have no time; the share of the others stands"
        " at the right.",
        alt=f"Mean time to recover: {told}.",
        height_in=1.2 + 0.3 * len(names),
        paint=paint,
    )


def _last(value: float) -> float:
    return float("inf") if np.isnan(value) else value
