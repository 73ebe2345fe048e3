"""Rows of text from a comparison or from one schedule's summary, whatever they are written to.

This is the one place that decides which columns a table has, in which units and with how many
digits. A table also carries its records: the same numbers, and more, unrounded for programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isinf, isnan
from typing import Literal, NamedTuple

from yardmaster.experiments.comparison import Comparison, ComparisonRow, Estimate
from yardmaster.metrics.catalogue import METRICS, metric
from yardmaster.model.schedule import Schedule
from yardmaster.report.legend import INFORMATION_MARKS, legend
from yardmaster.report.values import (
    PERCENT,
    SECONDS,
    Unit,
    decimals,
    duration_unit,
    interval,
    metric_title,
    metric_unit,
    number,
    plain,
)
from yardmaster.report.verdict import clearly_better, clearly_worse

Align = Literal["left", "right"]
Tone = Literal["", "better", "worse", "strong"]
Record = dict[str, float | str | bool | None]

_METRIC_COLUMNS = (
    ("mean_jct_s", 3),
    ("p95_jct_s", 6),
    ("mean_wait_s", 7),
    ("mean_bounded_slowdown", 8),
    ("utilisation", 9),
    ("max_queue", 10),
)
"""Metrics shown beside the objective, and how soon each is left out of a narrow table."""
_SHOWN_IF_ANY = (
    ("unfinished", 0), ("failed", 0), ("unplaceable", 0), ("not_submitted", 0), ("preemptions", 1),
    ("migrations", 1), ("resizes", 1), ("restarts", 12), ("wasted_gpu_h", 11),
)  # fmt: skip
"""Metrics that are news as soon as one scheduler has any."""
_SHOWN_IF_KNOWN = (("quota_violation_h", 1), ("min_tenant_share", 11), ("carbon_kg", 12))
"""Metrics that only clusters with quotas, or with figures for CO₂, have."""
_SHOWN_BELOW_ONE = (("goodput", 2), ("availability", 12))
"""Shares that are news where they are not the whole."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title and the unit of all its numbers."""

    title: str
    unit: str = ""
    align: Align = "right"
    importance: int = 0
    """0 is always shown; of the others, the largest is the first to go where space is short."""

    @property
    def header(self) -> str:
        """Title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


class Cell(NamedTuple):
    """One field: its text, and how it is meant."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Text in rows and columns, with the legend that explains it.

    Attributes:
        title: what the table shows.
        columns: the columns, left to right.
        rows: one cell per column.
        legend: sentences that explain marks and columns.
        notes: what the reader must know about the data.
        facts: what holds for the whole table, for programs.
        records: one flat record per row or for the whole, in base units and unrounded.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    legend: tuple[str, ...]
    notes: tuple[str, ...]
    facts: Mapping[str, object]
    records: tuple[Record, ...]


def comparison_table(comparison: Comparison) -> Table:
    """Return the comparison with one row per scheduler, best first."""
    parts = [
        _text_column(
            Column("", align="left"), ["★" if row.is_winner else "" for row in comparison.rows]
        ),
        _scheduler_column(comparison),
        _text_column(
            Column("", align="left"),
            [INFORMATION_MARKS.get(row.information, "?") for row in comparison.rows],
        ),
        _objective_column(comparison),
        _difference_column(comparison),
        *_gap_columns(comparison),
        *_metric_columns(comparison),
    ]
    columns, cells = zip(*parts, strict=True)
    return Table(
        title=f"{plain(comparison.workload)} on {plain(comparison.cluster)}",
        columns=columns,
        rows=tuple(zip(*cells, strict=True)),
        legend=legend(comparison),
        notes=tuple(plain(note) for note in comparison.notes),
        facts={
            "workload": plain(comparison.workload),
            "cluster": plain(comparison.cluster),
            "objective": comparison.objective,
            "baseline": plain(comparison.baseline),
            "units": plain(comparison.units),
            "notes": [plain(note) for note in comparison.notes],
        },
        records=tuple(_record(row) for row in comparison.rows),
    )


def summary_table(schedule: Schedule, summary: Mapping[str, float]) -> Table:
    """Return one schedule's metrics, as `metrics.summary.summarise` gives them, one per row."""
    duration = _common_duration(summary)
    known = [item.name for item in METRICS if not isnan(summary.get(item.name, float("nan")))]
    unknown = [metric_title(name) for name in summary if name not in known]
    workload, cluster = plain(schedule.workload.name), plain(schedule.cluster.name)
    return Table(
        title=f"{plain(schedule.scheduler)}: {workload} on {cluster}",
        columns=(Column("metric", align="left"), Column("value"), Column("unit", align="left")),
        rows=tuple(_summary_row(name, summary[name], duration) for name in known),
        legend=(f"Without a value here: {', '.join(unknown)}.",) if unknown else (),
        notes=tuple(plain(note) for note in schedule.workload.notes + schedule.notes),
        facts={"workload": workload, "cluster": cluster, "engine": schedule.engine},
        records=({"scheduler": plain(schedule.scheduler), **_numbers(summary)},),
    )


Part = tuple[Column, list[Cell]]


def telling_metrics(means: Callable[[str], Sequence[float]]) -> list[tuple[str, int]]:
    """Return the metrics beyond the usual ones that say something here, with their importance.

    Args:
        means: returns the mean of a metric in every row; NaN where it has none.
    """
    any_there = [item for item in _SHOWN_IF_ANY if any(mean > 0 for mean in means(item[0]))]
    known = [item for item in _SHOWN_IF_KNOWN if any(map(isfinite, means(item[0])))]
    partial = [item for item in _SHOWN_BELOW_ONE if any(mean < 1 for mean in means(item[0]))]
    return [*any_there, *known, *partial]


def objective_unit(comparison: Comparison) -> Unit:
    """Return the unit the comparison's objective is written in."""
    return metric_unit(comparison.objective, _durations_of(comparison))


def _text_column(column: Column, texts: Sequence[str]) -> Part:
    return column, [Cell(text) for text in texts]


def _scheduler_column(comparison: Comparison) -> Part:
    cells = [
        Cell(plain(row.scheduler), "strong" if row.is_winner else "") for row in comparison.rows
    ]
    return Column("scheduler", align="left"), cells


def _objective_column(comparison: Comparison) -> Part:
    unit = objective_unit(comparison)
    estimates = [_metric_of(row, comparison.objective) for row in comparison.rows]
    places = decimals((end for each in estimates for end in (each.mean, each.low)), unit)
    texts = [_estimate_text(estimate, places, unit) for estimate in estimates]
    return _text_column(Column(metric_title(comparison.objective), unit.symbol), texts)


def _difference_column(comparison: Comparison) -> Part:
    cells = []
    for row in comparison.rows:
        if row.scheduler == comparison.baseline:
            cells.append(Cell("baseline"))
            continue
        text = _estimate_text(row.difference, 1, PERCENT, signed=True)
        cells.append(Cell(text, _tone(comparison, row.difference)))
    return Column("Δ vs baseline", PERCENT.symbol), cells


def _tone(comparison: Comparison, difference: Estimate) -> Tone:
    if clearly_better(comparison, difference):
        return "better"
    return "worse" if clearly_worse(comparison, difference) else ""


def _gap_columns(comparison: Comparison) -> list[Part]:
    gaps: list[tuple[str, int, Callable[[ComparisonRow], float]]] = [
        ("hindsight gap", 4, lambda row: row.hindsight_gap),
        ("bound gap", 5, lambda row: row.bound_gap),
    ]
    parts = []
    for title, importance, read in gaps:
        values = [read(row) for row in comparison.rows]
        if any(isfinite(value) for value in values):
            column = Column(title, PERCENT.symbol, importance=importance)
            parts.append(_number_column(column, values, PERCENT))
    return parts


def _metric_columns(comparison: Comparison) -> list[Part]:
    duration = _durations_of(comparison)
    telling = telling_metrics(lambda name: [_metric_of(row, name).mean for row in comparison.rows])
    shown = (*_METRIC_COLUMNS, *telling, *_power_columns(comparison))
    wanted = [item for item in shown if item[0] != comparison.objective]
    parts = []
    for name, importance in wanted:
        values = [_metric_of(row, name).mean for row in comparison.rows]
        if any(isfinite(value) for value in values):
            unit = metric_unit(name, duration)
            column = Column(metric_title(name), unit.symbol, importance=importance)
            parts.append(_number_column(column, values, unit))
    return parts


def _power_columns(comparison: Comparison) -> list[tuple[str, int]]:
    """Return the metrics of electricity where the site has rules for it."""
    if not comparison.schedules:
        return []
    power = comparison.schedules[0].cluster.site.power
    columns = [("energy_cost", 1)] if power.price_per_kwh else []
    if not isinf(power.sleep_after_s):
        columns.append(("energy_kwh", 11))
    return columns if isinf(power.cap_w) else [*columns, ("peak_power_w", 2)]


def _number_column(column: Column, values: Sequence[float], unit: Unit) -> Part:
    places = decimals(values, unit)
    if unit is PERCENT:
        places = min(places, 1)
    return _text_column(column, [number(value, places, unit) for value in values])


def _estimate_text(estimate: Estimate, places: int, unit: Unit, *, signed: bool = False) -> str:
    mean = number(estimate.mean, places, unit, signed=signed)
    ends = interval(estimate.low, estimate.high, places, unit, signed=signed)
    return f"{mean} {ends}".rstrip()


def _metric_of(row: ComparisonRow, name: str) -> Estimate:
    nothing = float("nan")
    return row.metrics.get(name, Estimate(nothing, nothing, nothing))


def _durations_of(comparison: Comparison) -> Unit:
    """Return the unit of all durations: that in which the objective (else the JCT) reads best."""
    names = [comparison.objective, "mean_jct_s"]
    name = next(name for name in names if metric(name).unit == "s")
    return duration_unit(_metric_of(row, name).mean for row in comparison.rows)


def _common_duration(summary: Mapping[str, float]) -> Unit:
    return duration_unit([summary.get("mean_jct_s", 0.0)]) if summary else SECONDS


def _summary_row(name: str, value: float, duration: Unit) -> tuple[Cell, ...]:
    unit = metric_unit(name, duration)
    text = number(value, decimals([value], unit), unit)
    return Cell(metric_title(name)), Cell(text), Cell(unit.symbol)


def _record(row: ComparisonRow) -> Record:
    record: Record = {
        "scheduler": plain(row.scheduler),
        "information": row.information,
        "is_winner": row.is_winner,
    }
    for name, estimate in {**row.metrics, "difference": row.difference}.items():
        ends = {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        record |= _numbers(ends)
    gaps = {"hindsight_gap": row.hindsight_gap, "bound_gap": row.bound_gap}
    return record | _numbers(gaps)


def _numbers(values: Mapping[str, float]) -> Record:
    """Return plain floats, None where a value is unknown or infinite: JSON has no word for it."""
    return {key: float(value) if isfinite(value) else None for key, value in values.items()}
