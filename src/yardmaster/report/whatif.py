"""The answers to capacity questions as a table and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from yardmaster.experiments.comparison import Estimate
from yardmaster.experiments.whatif_rows import WhatIf, WhatIfRow
from yardmaster.metrics.catalogue import METRICS, metric
from yardmaster.report.tables import Cell, Column, Record, Table, Tone, telling_metrics
from yardmaster.report.values import (
    PERCENT,
    Unit,
    decimals,
    duration_unit,
    interval,
    metric_title,
    metric_unit,
    number,
    plain,
    sentence,
)

COLUMNS = (
    ("mean_jct_s", 1), ("mean_wait_s", 2), ("p95_wait_s", 3), ("utilisation", 4),
    ("energy_cost", 5),
)  # fmt: skip
"""Metrics shown, and how soon each is left out of a narrow table."""


def whatif_table(found: WhatIf) -> Table:
    """Return one row per change, the cluster as it is first."""
    shown = [(name, rank) for name, rank in COLUMNS if name != found.objective]
    telling = [
        item
        for item in telling_metrics(lambda name: [row.metrics[name].mean for row in found.rows])
        if item[0] != found.objective
    ]
    parts = [
        _names(found),
        _numbers(Column("GPUs"), [row.gpus for row in found.rows], Unit("")),
        _metric(found, found.objective, 0),
        _differences(found, found.objective, 0),
    ]
    for name, rank in (*shown, *telling):
        parts.append(_metric(found, name, rank))
        if name in {"mean_wait_s", "mean_jct_s"}:
            parts.append(_differences(found, name, rank + 5))
    columns, cells = zip(*parts, strict=True)
    return Table(
        title=f"What if: {plain(found.workload)} on {plain(found.cluster)}, {found.scheduler}",
        columns=columns,
        rows=tuple(zip(*cells, strict=True)),
        legend=_legend(found),
        notes=tuple(plain(note) for note in found.notes),
        facts={
            "workload": plain(found.workload),
            "cluster": plain(found.cluster),
            "scheduler": plain(found.scheduler),
            "information": found.information,
            "objective": found.objective,
            "units": found.units,
            "target": found.target,
            "answer": plain(found.answer),
        },
        records=tuple(_record(row) for row in found.rows),
    )


def headline(found: WhatIf) -> str:
    """Return the answer in a sentence or two."""
    if found.answer:
        return plain(found.answer)
    name, title = found.objective, metric_title(found.objective)
    base = found.rows[0].metrics[name].mean
    unit = metric_unit(name, duration_unit([base]))
    today = number(base, decimals([base], unit), unit)
    told = f"{sentence(title)} is {today} {unit.symbol}".rstrip() + " as it is."
    # A curve is there to be seen; the sentence is about what was named, if anything was.
    named = [row for row in found.rows if row.role == "change"]
    changes = named or [row for row in found.rows if row.role != "baseline"]
    lower = metric(name).better != "higher"
    best = min(changes, key=lambda row: _rank(row.metrics[name].mean, lower=lower))
    difference = best.differences[name]
    if isnan(difference.mean):
        return told
    ends = interval(difference.low, difference.high, 0, PERCENT, signed=True)
    change = f"{number(difference.mean, 0, PERCENT, signed=True)} % {ends}".rstrip()
    if difference.mean == 0.0:
        return f"{told} None of these changes makes a difference to it."
    if isnan(difference.low):
        clear = ", without an interval"
    else:
        clear = "" if _tone(name, difference) else ", not a clear difference"
    return f"{told} The best of these changes for it is “{plain(best.change)}”: {change}{clear}."


def definitions(found: WhatIf) -> list[tuple[str, str]]:
    """Return what the numbers of the table mean."""
    titles = {column.title for column in whatif_table(found).columns}
    told = [
        (metric_title(each.name), each.definition)
        for each in METRICS
        if metric_title(each.name) in titles
    ]
    return [
        *told,
        ("Δ", "Difference to the cluster as it is, on the same jobs, in percent of the latter."),
    ]


Part = tuple[Column, list[Cell]]


def _names(found: WhatIf) -> Part:
    cells = [
        Cell(plain(f"{row.change} ★" if row.is_answer else row.change),
             "strong" if row.is_answer else "")
        for row in found.rows
    ]  # fmt: skip
    return Column("change", align="left"), cells


def _metric(found: WhatIf, name: str, rank: int) -> Part:
    estimates = [row.metrics[name] for row in found.rows]
    unit = metric_unit(name, _durations(found))
    column = Column(metric_title(name), unit.symbol, importance=rank)
    return _numbers(column, [each.mean for each in estimates], unit)


def _numbers(column: Column, values: Sequence[float], unit: Unit) -> Part:
    places = decimals(values, unit)
    if unit is PERCENT:
        places = min(places, 1)
    return column, [Cell(number(value, places, unit)) for value in values]


def _differences(found: WhatIf, name: str, rank: int) -> Part:
    """Return how a metric differs from today's; clear differences are coloured."""
    cells = []
    for row in found.rows:
        each = row.differences[name]
        if row.role == "baseline":
            cells.append(Cell("today"))
            continue
        mean = number(each.mean, 1, PERCENT, signed=True)
        ends = interval(each.low, each.high, 1, PERCENT, signed=True)
        cells.append(Cell(f"{mean} {ends}".rstrip(), _tone(name, each)))
    return Column(f"Δ {metric_title(name)}", PERCENT.symbol, importance=rank), cells


def _tone(name: str, difference: Estimate) -> Tone:
    sign = -1.0 if metric(name).better == "higher" else 1.0
    low, high = sorted((sign * difference.low, sign * difference.high))
    if high < 0:
        return "better"
    return "worse" if low > 0 else ""


def _durations(found: WhatIf) -> Unit:
    name = found.objective if metric(found.objective).unit == "s" else "mean_jct_s"
    return duration_unit(row.metrics[name].mean for row in found.rows)


def _legend(found: WhatIf) -> tuple[str, ...]:
    shown = [row.differences[found.objective] for row in found.rows if row.role != "baseline"]
    has_intervals = any(not isnan(each.low) for each in shown)
    ends = f"; [low, high]: 95 % interval, paired over {found.units}" if has_intervals else ""
    first = (
        f"Each change alone, under {plain(found.scheduler)} ({found.information}). Δ: against the"
        f" cluster as it is{ends}."
    )
    return (first, f"★ {plain(found.answer)}") if found.answer else (first,)


def _record(row: WhatIfRow) -> Record:
    record: Record = {
        "change": plain(row.change),
        "role": row.role,
        "nodes": float(row.nodes),
        "gpus": float(row.gpus),
        "load": row.load,
        "amount": row.amount if isfinite(row.amount) else None,
        "is_answer": row.is_answer,
    }
    tables = (("", row.metrics), ("difference_", row.differences))
    for prefix, estimates in tables:
        for name, each in estimates.items():
            for end in ("mean", "low", "high"):
                value = getattr(each, end)
                key = f"{prefix}{name}" + ("" if end == "mean" else f"_{end}")
                record[key] = float(value) if isfinite(value) else None
    return record


def _rank(value: float, *, lower: bool) -> tuple[bool, float]:
    return isnan(value), value if lower else -value
