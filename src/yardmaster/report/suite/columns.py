"""Columns of the tables: estimates with intervals, and plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from yardmaster.metrics.statistics import Interval, excludes_zero
from yardmaster.report.tables import Cell, Column, Record, Table, Tone
from yardmaster.report.values import PERCENT, PLAIN, Unit, decimals, interval, number, plain

Part = tuple[Column, list[Cell]]


def text_column(title: str, texts: Sequence[str], tones: Sequence[Tone] = ()) -> Part:
    """Return a column of names."""
    kinds = tones or [""] * len(texts)
    cells = [Cell(plain(text), tone) for text, tone in zip(texts, kinds, strict=True)]
    return Column(title, align="left"), cells


def number_column(
    title: str, values: Sequence[float], unit: Unit = PLAIN, importance: int = 0
) -> Part:
    """Return a column of plain numbers, all with the same digits."""
    places = decimals(values, unit)
    if unit is PERCENT:
        places = min(places, 1)
    cells = [Cell(number(value, places, unit)) for value in values]
    return Column(title, unit.symbol, importance=importance), cells


def estimate_column(
    title: str, estimates: Sequence[Interval], unit: Unit = PLAIN, importance: int = 0
) -> Part:
    """Return a column of estimates with their intervals."""
    places = decimals((end for each in estimates for end in (each.mean, each.low)), unit)
    cells = [Cell(estimate_text(each, places, unit)) for each in estimates]
    return Column(title, unit.symbol, importance=importance), cells


def change_column(
    title: str, estimates: Sequence[Interval | None], importance: int = 0, *, none: str = ""
) -> Part:
    """Return a column of relative changes in percent; less is better, and clear ones have a tone.

    Args:
        title: its title.
        estimates: the changes; None has no number.
        importance: how soon the column is left out where space is short.
        none: what stands where there is no number.
    """
    cells = []
    for each in estimates:
        if each is None:
            cells.append(Cell(none))
            continue
        places = 2 if abs(each.mean) < 0.00995 else 1
        tone: Tone = ""
        if excludes_zero(each):
            tone = "worse" if each.mean > 0 else "better"
        cells.append(Cell(estimate_text(each, places, PERCENT, signed=True), tone))
    return Column(title, PERCENT.symbol, importance=importance), cells


def estimate_text(each: Interval, places: int, unit: Unit, *, signed: bool = False) -> str:
    """Write an estimate with its interval."""
    is_point = each.low == each.high
    ends = "" if is_point else interval(each.low, each.high, places, unit, signed=signed)
    return f"{number(each.mean, places, unit, signed=signed)} {ends}".rstrip()


def record_of(estimates: Mapping[str, Interval | float]) -> Record:
    """Return estimates for programs: three numbers each, None where there is none."""
    record: Record = {}
    for name, each in estimates.items():
        if isinstance(each, Interval):
            ends = {name: each.mean, f"{name}_low": each.low, f"{name}_high": each.high}
        else:
            ends = {name: each}
        record |= {key: float(value) if isfinite(value) else None for key, value in ends.items()}
    return record


def table(
    title: str,
    parts: Sequence[Part],
    records: Sequence[Record],
    legend: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of these columns."""
    columns, cells = zip(*parts, strict=True)
    rows = tuple(zip(*cells, strict=True))
    return Table(title, columns, rows, tuple(legend), tuple(notes), {}, tuple(records))
