"""The standings of an experiment as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from yardmaster.experiments.suite.standings import SHOWN, Standings, standings
from yardmaster.report.legend import INFORMATION_MARKS
from yardmaster.report.tables import Cell, Column, Record, Table
from yardmaster.report.values import PERCENT, decimals, interval, metric_title, number, plain

if TYPE_CHECKING:
    import polars as pl

_TITLES = {
    "mean_jct_s": "mean JCT",
    "p95_jct_s": "p95 JCT",
    "mean_bounded_slowdown": "slowdown",
    "sla": "SLA",
    "max_queue": "max queue",
    "queue_exploded": "exploded",
    "jain_jobs": "Jain",
}
_UNITS = {"mean_jct_s": "s", "p95_jct_s": "s", "sla": "%", "queue_exploded": "%"}
_LEGEND = (
    (
        "Means over all runs. SLA: jobs that met their deadline; exploded: runs whose queue passed"
        " 200 jobs and did not drain; Jain: Jain's index over the jobs' slowdowns."
    ),
    (
        "gap: distance to the best fixed scheduler of each run in hindsight, with its 95 % interval"
        " over paired seeds; below 0 is better than every fixed scheduler."
    ),
)


def standings_tables(table: pl.DataFrame, objectives: Sequence[str]) -> Iterator[Table]:
    """Yield a table for each family of regimes, and one for all that were perturbed."""
    for each in standings(table, objectives):
        yield _table(each, objectives)


def _table(found: Standings, objectives: Sequence[str]) -> Table:
    columns = [
        Column("scheduler", align="left"),
        Column("", align="left"),
        *(
            Column(_TITLES[name], _UNITS.get(name, ""), importance=place)
            for place, name in enumerate(SHOWN)
        ),
    ]
    cells = [
        [Cell(plain(row.scheduler)) for row in found.rows],
        [Cell(INFORMATION_MARKS.get(row.information, "?")) for row in found.rows],
        *(_numbers(found, name) for name in SHOWN),
    ]
    for place, objective in enumerate(objectives):
        # The first objective's gap matters most, those of others less than any mean.
        importance = len(SHOWN) + place if place else 0
        columns.append(Column(f"gap {metric_title(objective)}", "%", importance=importance))
        cells.append(_gaps(found, objective))
    return Table(
        title=f"{found.title}, {found.seeds} seeds, {found.runs:,} runs",
        columns=tuple(columns),
        rows=tuple(zip(*cells, strict=True)),
        legend=_LEGEND,
        notes=(),
        facts={"title": found.title, "runs": found.runs, "seeds": found.seeds},
        records=tuple(_records(found)),
    )


def _numbers(found: Standings, name: str) -> list[Cell]:
    values = [row.means[name] for row in found.rows]
    unit = PERCENT if _UNITS.get(name) == "%" else None
    if unit is not None:
        return [Cell(number(value, 1, unit)) for value in values]
    return [Cell(number(value, decimals(values))) for value in values]


def _gaps(found: Standings, objective: str) -> list[Cell]:
    gaps = [row.gaps[objective] for row in found.rows]
    places = decimals([gap.mean for gap in gaps], PERCENT)
    texts = [
        f"{number(gap.mean, places, PERCENT)} {interval(gap.low, gap.high, places, PERCENT)}"
        for gap in gaps
    ]
    return [Cell(text.strip()) for text in texts]


def _records(found: Standings) -> Iterator[Record]:
    for row in found.rows:
        record: Record = {"scheduler": row.scheduler, "information": row.information}
        record |= row.means
        for objective, gap in row.gaps.items():
            record |= {
                f"oracle_gap_{objective}": gap.mean,
                f"oracle_gap_{objective}_low": gap.low,
                f"oracle_gap_{objective}_high": gap.high,
            }
        yield record
