"""What figures and tables of an experiment say in words."""

from __future__ import annotations

from collections.abc import Sequence

from yardmaster.metrics.statistics import Interval
from yardmaster.report.suite.looks import short_names
from yardmaster.report.suite.runs import Runs
from yardmaster.report.values import Unit, decimals, number, plain


def counted(count: int, thing: str) -> str:
    """Write a number of things."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def family_words(runs: Runs) -> str:
    """Say which regimes are meant."""
    regimes = {scenario.regime for scenario in runs.scenarios}
    return f"{counted(len(regimes), 'regime')} of {plain(runs.family)}"


def interval_words(runs: Runs) -> str:
    """Say what the whiskers are; empty where there are none."""
    seeds = len(runs.seeds)
    return f", lines their 95 % intervals over {seeds} paired seeds" if seeds > 1 else ""


def listed(schedulers: Sequence[str], values: Sequence[float], unit: Unit) -> str:
    """Name schedulers with a value each."""
    places = decimals(values, unit)
    symbol = f" {unit.symbol}" if unit.symbol else ""
    return ", ".join(
        f"{name} {number(value, places, unit)}{symbol}"
        for name, value in zip(short_names(schedulers), values, strict=True)
    )


def means_in_words(
    runs: Runs, estimates: Sequence[Interval], unit: Unit, order: Sequence[int] | None = None
) -> str:
    """Name the schedulers with their means, in this order."""
    rows = range(len(runs.schedulers)) if order is None else order
    return listed(
        [runs.schedulers[row] for row in rows], [estimates[row].mean for row in rows], unit
    )
