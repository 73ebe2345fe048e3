"""A benchmark for reading and for programs: tables for a terminal, records for JSON."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from yardmaster.experiments.benchmark_bars import Bar, bars
from yardmaster.experiments.measurements import (
    OURS,
    Benchmark,
    Case,
    DeepQueue,
    Growth,
    Memory,
    Row,
)

if TYPE_CHECKING:
    from rich.table import Table

VERDICT_STYLES = {"PASS": "green", "MISS": "bold red", "OPEN": "dim"}
LEGEND = (
    "Time: median of whole calls of simulate, with the core loaded; contenders took turns.",
    "CPU time: median of the same calls; well below the time, others kept the machine busy.",
    "Ratio: time divided by Yardmaster's on the same jobs; all start times were equal.",
    "> and ≥: the rival was stopped there, unchecked; its true time is longer.",
    "OPEN: this run cannot tell.",
)


def to_text(benchmark: Benchmark, *, width: int = 110, colour: bool = False) -> str:
    """Write all tables for a terminal of `width` characters."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if colour else None,
        force_terminal=colour,
        legacy_windows=False,
        highlight=False,
    )
    with console.capture() as capture:
        console.print(benchmark.machine)
        for table in _tables(benchmark):
            console.print()
            console.print(table)
        console.print()
        for line in LEGEND:
            console.print(line, style="dim")
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def to_record(benchmark: Benchmark) -> dict[str, Any]:
    """Return everything measured as plain numbers and text, ready for JSON."""
    return {
        "machine": benchmark.machine,
        "plan": asdict(benchmark.plan),
        "rows": [_row_record(row) for row in benchmark.rows],
        "growth": [asdict(growth) for growth in benchmark.growth],
        "deep_queues": [asdict(deep) | {"ratio": deep.ratio} for deep in benchmark.deep_queues],
        "memory": [asdict(memory.case) | {"mib": memory.mib} for memory in benchmark.memory],
        "first_compilation_s": (
            benchmark.first_compilation.seconds if benchmark.first_compilation else None
        ),
        "bars": [_bar_record(bar) for bar in bars(benchmark)],
    }


def _row_record(row: Row) -> dict[str, Any]:
    measured = {"ratio": row.ratio, "jobs_per_s": row.jobs_per_s}
    return asdict(row.case) | {"contender": row.contender} | asdict(row.timing) | measured


def _bar_record(bar: Bar) -> dict[str, Any]:
    measured = None if math.isnan(bar.measured) else bar.measured
    return asdict(bar) | {"measured": measured, "verdict": bar.verdict}


def _tables(benchmark: Benchmark) -> Iterator[Table]:
    yield _speed_table(benchmark.rows)
    if benchmark.growth:
        yield _growth_table(benchmark.growth)
    if benchmark.deep_queues:
        yield _deep_queue_table(benchmark.deep_queues)
    if benchmark.memory:
        yield _memory_table(benchmark.memory)
    yield _bar_table(bars(benchmark))


def _speed_table(rows: Sequence[Row]) -> Table:
    """Show contenders of one case below each other, a line between cases."""
    table = _table(
        "Speed",
        ("scheduler", "load", "nodes", "jobs", "contender", "time", "CPU time", "jobs/s", "ratio"),
        [],
    )
    before: Case | None = None
    for row in rows:
        if before is not None and row.case.jobs != before.jobs:
            table.add_section()
        mark = row.timing.was_stopped
        of_case = (
            row.case.scheduler,
            f"{row.case.load:.0%}",
            str(row.case.nodes),
            f"{row.case.jobs:,}",
        )
        table.add_row(
            *(of_case if row.case != before else ("", "", "", "")),
            row.contender,
            ("> " if mark else "") + seconds(row.timing.seconds),
            "" if mark else seconds(row.timing.cpu_s),
            ("< " if mark else "") + f"{row.jobs_per_s:,.0f}",
            ("≥ " if mark else "") + f"{row.ratio:,.1f}×" if row.contender != OURS else "",
        )
        before = row.case
    return table


def _growth_table(measured: Sequence[Growth]) -> Table:
    rows = [
        (
            growth.scheduler,
            f"{growth.load:.0%}",
            f"{growth.exponent:.3f}",
            f"{growth.per_job_ratio:.2f}× from {growth.smaller:,} to {growth.larger:,} jobs",
        )
        for growth in measured
    ]
    columns = ("scheduler", "load", "exponent", "time per job")
    return _table("Growth with the number of jobs", columns, rows)


def _deep_queue_table(measured: Sequence[DeepQueue]) -> Table:
    rows = [
        (
            deep.scheduler,
            f"{deep.waiting:,}",
            seconds(deep.deep_queue_s),
            seconds(deep.short_queue_s),
            f"{deep.ratio:.2f}×",
        )
        for deep in measured
    ]
    columns = ("scheduler", "waiting", "all jobs at once", "same jobs at 90%", "ratio")
    return _table("Deep queue", columns, rows)


def _memory_table(measured: Sequence[Memory]) -> Table:
    rows = [
        (f"{memory.case.jobs:,}", str(memory.case.nodes), f"{memory.mib:.0f}")
        for memory in measured
    ]
    return _table("Peak memory", ("jobs", "nodes", "whole process (MiB)"), rows)


def _bar_table(measured: Sequence[Bar]) -> Table:
    from rich.text import Text

    table = _table("Bars", ("bar", "limit", "measured", "verdict"), [])
    for bar in measured:
        number = "–" if math.isnan(bar.measured) else f"{bar.measured:,.2f} {bar.unit}"
        table.add_row(
            bar.claim,
            f"{'≥' if bar.is_floor else '≤'} {bar.limit:g} {bar.unit}",
            ("≥ " if bar.is_lower_bound else "") + number,
            Text(bar.verdict, style=VERDICT_STYLES[bar.verdict]),
        )
    return table


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number > 0)
    for row in rows:
        table.add_row(*row)
    return table


def seconds(value: float) -> str:
    """Write a time with three digits in the unit that suits it."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    if value < 1.0:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s"
