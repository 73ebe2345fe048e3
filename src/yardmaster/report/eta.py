"""When jobs will start, as a table, a figure and a sentence."""

from __future__ import annotations

from math import isfinite, isinf
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.experiments.eta import Forecast
from yardmaster.experiments.snapshot import Snapshot
from yardmaster.report.drawing import Figure, draw
from yardmaster.report.series import SHORTEST_S, time_ticks
from yardmaster.report.tables import Cell, Column, Record, Table
from yardmaster.report.values import (
    PERCENT,
    Unit,
    decimals,
    duration_unit,
    number,
    plain,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

POINTS = (0.1, 0.5, 0.9)
WITHIN_S = (3_600.0, 14_400.0, 86_400.0)
MOST_JOBS_DRAWN = 30
_LEGEND = "p10, p50, p90: from now to the start; the 80 % interval is from p10 to p90."
_BLUE, _ORANGE = "#0072B2", "#D55E00"


def eta_table(forecast: Forecast, *, title: str) -> Table:
    """Return one row per job: when it starts, counted from now, and how likely soon."""
    low, middle, high = (forecast.quantile(point) for point in POINTS)
    unit = duration_unit([*middle.tolist(), *high.tolist()])
    waited_unit = duration_unit(forecast.waited_s.tolist())
    columns = [
        (Column("job", align="left"), [Cell(shortened(plain(name), 24)) for name in forecast.ids]),
        _column("GPUs", forecast.gpus.astype(np.float64), Unit(""), 5),
        _column("waited", forecast.waited_s, waited_unit, 6),
        _column("p10", low, unit, 0),
        _column("p50", middle, unit, 0),
        _column("p90", high, unit, 0),
    ]
    columns += [
        _column(f"within {seconds / 3600:g} h", forecast.within(seconds), PERCENT, rank)
        for rank, seconds in enumerate(WITHIN_S, start=1)
    ]
    heads, cells = zip(*columns, strict=True)
    return Table(
        title=plain(title),
        columns=heads,
        rows=tuple(zip(*cells, strict=True)),
        legend=(_LEGEND, f"From {forecast.wait_s.shape[1]} simulations."),
        notes=tuple(plain(note) for note in forecast.notes),
        facts={"now_s": forecast.now_s, "simulations": forecast.wait_s.shape[1]},
        records=tuple(_records(forecast)),
    )


def moment_title(moment: Snapshot) -> str:
    """Return what was asked of: jobs, machines, scheduler, and the queue at that moment."""
    return (
        f"{moment.jobs.name} on {moment.cluster.name}, {moment.scheduler}, at second"
        f" {moment.now_s:.0f}: {len(moment.running)} jobs run, {len(moment.queued)} wait"
    )


def headline(forecast: Forecast) -> str:
    """Return the answer for the first job in a sentence."""
    low, middle, high = (float(forecast.quantile(point)[0]) for point in POINTS)
    if high == 0.0:
        return f"Job {plain(forecast.ids[0])} starts at once."
    return (
        f"Job {plain(forecast.ids[0])} starts in about {_duration(middle)}; with 80 % probability"
        f" between {_duration(low)} and {_duration(high)} from now."
    )


def eta_figures(forecast: Forecast) -> tuple[Figure, ...]:
    """Return the distribution of one job's start, or the intervals of several jobs."""
    return (_distribution(forecast),) if len(forecast.ids) == 1 else (_intervals(forecast),)


def definitions() -> list[tuple[str, str]]:
    """Return what the numbers of the table mean."""
    return [
        ("p10, p50, p90", "The job starts earlier than this with 10, 50 and 90 % probability."),
        ("within 1 h", "Probability to start within an hour from now; likewise the others."),
        ("waited", "From submission to now."),
    ]  # fmt: skip


def _column(
    title: str, values: np.typing.NDArray[np.float64], unit: Unit, rank: int
) -> tuple[Column, list[Cell]]:
    places = 0 if unit is PERCENT else decimals(values.tolist(), unit)
    cells = [Cell(number(value, places, unit)) for value in values.tolist()]
    return Column(title, unit.symbol, importance=rank), cells


def _records(forecast: Forecast) -> list[Record]:
    """Return one record per job, in seconds; None beyond the last horizon."""
    points = {f"p{point * 100:.0f}_s": forecast.quantile(point) for point in POINTS}
    soon = {f"within_{seconds / 3600:g}h": forecast.within(seconds) for seconds in WITHIN_S}
    records: list[Record] = []
    for place, name in enumerate(forecast.ids):
        record: Record = {
            "job": plain(name),
            "gpus": float(forecast.gpus[place]),
            "waited_s": float(forecast.waited_s[place]),
        }
        for key, values in (points | soon).items():
            value = float(values[place])
            record[key] = value if isfinite(value) else None
        records.append(record)
    return records


def _distribution(forecast: Forecast) -> Figure:
    """Draw the probability to have started by a time, with the 80 % interval shaded."""
    waits = np.maximum(np.sort(forecast.wait_s[0]), SHORTEST_S)
    share = np.arange(1, len(waits) + 1) * 100.0 / len(waits)
    seen = np.isfinite(waits)
    low, middle, high = (max(float(forecast.quantile(p)[0]), SHORTEST_S) for p in POINTS)

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        if not isinf(high):
            axes.axvspan(low, high, color=_BLUE, alpha=0.12, linewidth=0)
        axes.step(waits[seen], share[seen], where="post", color=_BLUE, linewidth=1.8)
        _time_axis(axes, float(waits[seen].min()) if seen.any() else 1.0,
                   float(waits[seen].max()) if seen.any() else 10.0)  # fmt: skip
        if not isinf(middle):
            _label_median(axes, middle)
        axes.set_ylim(0, 101)
        axes.set_xlabel("from now")
        axes.set_ylabel("has started (%)")

    return draw(
        "start",
        title=f"When job {plain(forecast.ids[0])} will start",
        caption="Share of simulations in which the job has started; shaded is the 80 % interval.",
        alt=headline(forecast),
        height_in=3.3,
        paint=paint,
    )


def _intervals(forecast: Forecast) -> Figure:
    """Draw median and 80 % interval of the start of several jobs, in order of submission."""
    shown = slice(0, MOST_JOBS_DRAWN)
    low, middle, high = (
        np.maximum(forecast.quantile(point)[shown], SHORTEST_S) for point in POINTS
    )
    names = [
        f"{shortened(plain(name), 18)} ({gpus} {'GPU' if gpus == 1 else 'GPUs'})"
        for name, gpus in zip(forecast.ids[shown], forecast.gpus[shown].tolist(), strict=True)
    ]
    finite = np.concatenate([low, middle, high])
    finite = finite[np.isfinite(finite)]
    right = float(finite.max()) * 1.3 if len(finite) else 10.0

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        axes.set_xscale("log")
        for place in range(len(names)):
            ends = [min(low[place], right), min(high[place], right)]
            axes.plot(ends, [place, place], color=_BLUE, linewidth=3.2, alpha=0.45)
            if np.isfinite(middle[place]):
                axes.plot([middle[place]], [place], color=_BLUE, marker="o", markersize=5)
        _time_axis(axes, float(finite.min()) if len(finite) else 1.0, right)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("starts, from now")

    more = len(forecast.ids) - len(names)
    rest = f" The first {len(names)} of {len(forecast.ids)} jobs." if more else ""
    return draw(
        "starts",
        title="When waiting jobs will start",
        caption=f"Dots are medians, lines 80 % intervals, jobs in order of submission.{rest}",
        alt="; ".join(
            f"{name}: in about {_duration(float(at))}"
            for name, at in zip(names, middle, strict=True)
        ),
        height_in=1.0 + 0.24 * len(names),
        paint=paint,
    )


def _label_median(axes: Axes, middle: float) -> None:
    """Draw a line at the median, with its value on the side that has more room."""
    left, right = axes.get_xlim()
    is_right = middle > (left * right) ** 0.5
    axes.axvline(middle, color=_ORANGE, linewidth=1.3, linestyle=(0, (5, 1.5)))
    axes.annotate(f"p50: {_duration(middle)}", (middle, 93), (-5 if is_right else 5, 0),
                  ha="right" if is_right else "left", color=_ORANGE,
                  textcoords="offset points")  # fmt: skip


def _time_axis(axes: Axes, low: float, high: float) -> None:
    """Show at least a factor of ten, labelled in units people use."""
    middle = (low * high) ** 0.5
    axes.set_xlim(min(low * 0.8, middle / 3.2), max(high * 1.25, middle * 3.2))
    time_ticks(axes)


def _duration(seconds: float) -> str:
    """Write one duration with its unit."""
    if isinf(seconds):
        return "more than four weeks"
    unit = duration_unit([seconds])
    return f"{number(seconds, min(decimals([seconds], unit), 1), unit)} {unit.symbol}"
