"""Replay fidelity as tables, and as a record for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from yardmaster.experiments.fidelity.distance import DAY_S, Distance
from yardmaster.experiments.fidelity.evidence import Cause
from yardmaster.experiments.fidelity.study import Candidate, Fidelity
from yardmaster.report.fidelity_words import (
    caution,
    headline,
    sentence_of,
    span,
)
from yardmaster.report.tables import Cell, Column, Record, Table
from yardmaster.report.values import (
    PERCENT,
    PLAIN,
    Unit,
    decimals,
    duration_unit,
    number,
    plain,
)

Part = tuple[Column, list[Cell]]

_SIDED = {
    "mean_s": "mean wait",
    "median_s": "median wait",
    "p95_s": "p95 wait",
    "bounded_slowdown": "mean bounded slowdown",
}
"""What `Waits` holds, in words."""
_DISTANCES = {
    "mean_difference_s": ("mean difference", PLAIN),
    "mean_apart_s": ("mean |difference|", PLAIN),
    "median_apart_s": ("median |difference|", PLAIN),
    "within_minute": ("within 1 min", PERCENT),
    "within_ten_minutes": ("within 10 min", PERCENT),
    "within_factor_two": ("within factor 2", PERCENT),
    "rank_correlation": ("rank correlation", PLAIN),
    "period_correlation": ("correlation by {}", PLAIN),
    "period_ratio": ("ratio by {}", PLAIN),
    "recorded_longer": ("longer in the record", PERCENT),
    "cancelled": ("cancels out within the {}", PERCENT),
}
"""What `Distance` holds, in words, and its unit where it is no duration."""


def ranking_table(found: Fidelity) -> Table:
    """Return the record and, below it, every scheduler, the closest first."""
    distances = [each.distance for each in found.candidates]
    recorded = distances[0].recorded
    unit = duration_unit([recorded.mean_s or distances[0].simulated.mean_s])
    waits = [recorded, *(each.simulated for each in distances)]
    parts = [
        *_names(found),
        _numbers("apart", [float("nan"), *(each.apart for each in distances)], PERCENT, 0),
        _numbers("mean wait", [each.mean_s for each in waits], unit, 0),
        _numbers("Δ mean", [float("nan"), *(each.mean_difference_s for each in distances)], unit, 2,
                 signed=True),
        _numbers("median wait", [each.median_s for each in waits], unit, 6),
        _numbers("p95 wait", [each.p95_s for each in waits], unit, 4),
        _of("within 1 min", [each.within_minute for each in distances], 9),
        _of("within 10 min", [each.within_ten_minutes for each in distances], 8),
        _of("within factor 2", [each.within_factor_two for each in distances], 7),
        _of("rank corr.", [each.rank_correlation for each in distances], 1, PLAIN),
    ]  # fmt: skip
    if found.is_guess:
        early, late = zip(*(each.halves for each in found.candidates), strict=True)
        parts += [_of("apart, 1st half", early, 5), _of("apart, 2nd half", late, 3)]
    columns, cells = zip(*parts, strict=True)
    return Table(
        title=title(found),
        columns=columns,
        rows=tuple(zip(*cells, strict=True)),
        legend=_legend(found),
        notes=(),
        facts={},
        records=tuple(_record(each) for each in found.candidates),
    )


def title(found: Fidelity) -> str:
    """Return what was compared."""
    return (
        f"{plain(found.workload.name)} on {plain(found.cluster.name)}: simulated and recorded waits"
    )


def sides_table(found: Fidelity) -> Table:
    """Return what both sides come to, after the warm-up and over all jobs."""
    closest = found.closest
    both = (closest.distance, closest.with_warm_up)
    used = (found.utilisation(), found.utilisation(with_warm_up=True))
    rows = []
    for key, words in _SIDED.items():
        values = [getattr(side, key) for each in both for side in (each.recorded, each.simulated)]
        unit = duration_unit([max(values)]) if key.endswith("_s") else PLAIN
        rows.append(_row(words, values, unit))
    rows.append(_row("utilisation", [*used[0], *used[1]], PERCENT))
    warm_up_s = found.evidence.warm_up_ends_s - float(found.workload.submit_s[0])
    return _plain_table(
        f"Both sides under {plain(closest.scheduler)}",
        ("recorded", "simulated", "recorded, all jobs", "simulated, all jobs"),
        rows,
        legend=(f"Without the warm-up, the first {span(warm_up_s)}, and over all jobs.",),
    )


def distance_table(found: Fidelity) -> Table:
    """Return how far the closest scheduler is from the record, without and with the warm-up."""
    both = (found.closest.distance, found.closest.with_warm_up)
    period = _period(found)
    rows = []
    for key, (words, unit) in _DISTANCES.items():
        values = [float(getattr(each, key)) for each in both]
        size = duration_unit([max(map(abs, values))]) if key.endswith("_s") else unit
        rows.append(_row(words.format(period), values, size, signed=key == "mean_difference_s"))
    return _plain_table(
        "Job by job",
        ("after warm-up", "all jobs"),
        rows,
        notes=tuple(plain(note) for note in (*found.notes, *found.workload.notes)),
    )


def _plain_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Cell, ...]],
    *,
    legend: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Table:
    """Return a table of measures, one per row with a unit of its own."""
    heads = (Column("measure", align="left"), *map(Column, columns), Column("unit", align="left"))
    return Table(title, heads, tuple(rows), legend, notes, facts={}, records=())


def fidelity_record(found: Fidelity) -> dict[str, Any]:
    """Return everything that was measured, in base units, ready for JSON."""
    closest = found.closest
    recorded, simulated = found.utilisation()
    return {
        "workload": plain(found.workload.name),
        "cluster": plain(found.cluster.name),
        "gpus": found.cluster.gpus,
        "closest": plain(closest.scheduler),
        "is_guess": found.is_guess,
        "headline": headline(found),
        "caution": caution(found),
        "warm_up_ends_s": found.evidence.warm_up_ends_s,
        "recorded_utilisation": recorded,
        "simulated_utilisation": simulated,
        "chosen_on_first_half": plain(found.chosen_early.scheduler),
        "its_second_half_apart": found.chosen_early.halves[1],
        "rows": [_record(each) for each in found.candidates],
        "with_warm_up": _flat(closest.with_warm_up),
        "causes": [_cause_record(cause, found) for cause in found.causes],
        "notes": [plain(note) for note in (*found.notes, *found.workload.notes)],
    }


def definitions(found: Fidelity) -> list[tuple[str, str]]:
    """Return what the measures mean."""
    period = _period(found)
    meanings = {
        "apart": "Mean of |simulated − recorded| wait over the mean recorded wait. 0 % is exact;"
        " 100 % is as far as if one had said that nobody waits.",
        "Δ mean": "Mean simulated wait minus mean recorded wait.",
        "within factor 2": "Jobs whose waits differ by a factor of at most 2; waits below a minute"
        " count as a minute.",
        "rank corr.": "Spearman's rank correlation of the two waits over jobs.",
        "1st, 2nd half": "The same for the earlier and the later half of the jobs.",
        f"correlation, ratio by {period}": "Correlation, and median of simulated / recorded, of the"
        f" mean waits of the jobs submitted in each {period}.",
        "longer in the record": "Share of the differences that is waiting the record has and the"
        " simulation has not.",
        f"cancels out within the {period}": "Share of the differences that vanishes when waits are"
        f" averaged over each {period}: right about the waits, wrong about who waits.",
        "may explain up to": "Of all differences, the seconds that jobs waited longer in the record"
        " while the cause was at work. Delays of later jobs are not counted, and causes overlap.",
    }
    return list(meanings.items())


def _names(found: Fidelity) -> list[Part]:
    names = [Cell(plain(each.scheduler)) for each in found.candidates]
    column = (Column("scheduler", align="left"), [Cell("recorded", "strong"), *names])
    if not found.is_guess:
        return [column]
    marks = ["", "★", *("" for _ in found.candidates[1:])]
    return [(Column("", align="left"), [Cell(mark) for mark in marks]), column]


def _of(title: str, values: Sequence[float], importance: int, unit: Unit = PERCENT) -> Part:
    """Return a column that the record itself has no value in."""
    return _numbers(title, [float("nan"), *values], unit, importance)


def _numbers(
    title: str, values: Sequence[float], unit: Unit, importance: int, *, signed: bool = False
) -> Part:
    places = 0 if unit is PERCENT else min(decimals(values, unit), 2)
    cells = [Cell(number(value, places, unit, signed=signed)) for value in values]
    return Column(title, unit.symbol, importance=importance), cells


def _legend(found: Fidelity) -> tuple[str, ...]:
    jobs = found.closest.distance.jobs
    apart = (
        f"Over {jobs:,} jobs after the warm-up. apart: mean |simulated − recorded| over the mean"
        " recorded wait; 100 % is as far as if one had said that nobody waits."
    )
    if not found.is_guess:
        return (apart,)
    return apart, "★ closest. Halves: of the jobs, in order of submission."


def _row(
    name: str, values: Sequence[float], unit: Unit, *, signed: bool = False
) -> tuple[Cell, ...]:
    places = 0 if unit is PERCENT else min(decimals(values, unit), 2)
    texts = (number(value, places, unit, signed=signed) for value in values)
    return (Cell(name), *map(Cell, texts), Cell(unit.symbol))


def _period(found: Fidelity) -> str:
    return "day" if found.closest.distance.period_s == DAY_S else "hour"


def _record(candidate: Candidate) -> Record:
    halves = zip(("first_half_apart", "second_half_apart"), candidate.halves, strict=True)
    return (
        {"scheduler": plain(candidate.scheduler)}
        | _flat(candidate.distance)
        | {name: value if isfinite(value) else None for name, value in halves}
    )


def _flat(distance: Distance) -> Record:
    """Return every measure under a name of its own; None where there is none."""
    flat: Record = {}
    for name, value in asdict(distance).items():
        if isinstance(value, dict):
            flat |= {f"{name}_{key}": each for key, each in value.items()}
        else:
            flat[name] = value if isfinite(value) else None
    return flat | {"apart": distance.apart if isfinite(distance.apart) else None}


def _cause_record(cause: Cause, found: Fidelity) -> dict[str, Any]:
    return {
        "name": cause.name,
        "is_found": cause.is_found,
        "share": cause.share,
        "sentence": sentence_of(cause, found) if cause.is_found else "",
        "numbers": dict(cause.numbers),
        "periods_s": [list(each) for each in cause.periods_s],
        "owners": [owner._asdict() for owner in cause.owners],
    }
