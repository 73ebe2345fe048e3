"""The bars that replay must clear, and whether a benchmark cleared them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from yardmaster.experiments.measurements import (
    ALONE_NODES,
    HEAP_LOOP,
    INDEXED_HEAP_LOOP,
    LOADS,
    OURS,
    SIDE_BY_SIDE_NODES,
    SIMPY,
    Benchmark,
    Case,
    Row,
)

Verdict = Literal["PASS", "MISS", "OPEN"]

RATIO_AT_90 = {SIMPY: 40.0, HEAP_LOOP: 10.0, INDEXED_HEAP_LOOP: 10.0}
RATIO_IN_OVERLOAD = {SIMPY: 200.0, HEAP_LOOP: 200.0, INDEXED_HEAP_LOOP: 200.0}
MILLION_S = {"fifo+strict": 0.6, "sjf+strict": 0.6, "fifo+easy": 2.0}
MILLION_MIB = 600.0
PER_JOB_GROWTH = 1.5
DEEP_QUEUE = 3.0
FIRST_COMPILATION_S = 30.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what was promised, and what was measured.

    Attributes:
        claim: what is measured, in words.
        limit: the promise.
        measured: the measurement; NaN if this run did not take it.
        unit: `×`, `s` or `MiB`.
        is_floor: whether the measurement must be at least the limit, rather than at most.
        is_lower_bound: whether the true value may be higher, as the rival was stopped.
    """

    claim: str
    limit: float
    measured: float
    unit: str
    is_floor: bool = False
    is_lower_bound: bool = False

    @property
    def verdict(self) -> Verdict:
        """PASS or MISS; OPEN if this run cannot tell."""
        if math.isnan(self.measured):
            return "OPEN"
        if self.is_floor:
            missed: Verdict = "OPEN" if self.is_lower_bound else "MISS"
            return "PASS" if self.measured >= self.limit else missed
        return "PASS" if self.measured <= self.limit else "MISS"


def bars(benchmark: Benchmark) -> tuple[Bar, ...]:
    """Hold a benchmark against every bar."""
    return (
        *_ratios(benchmark, Case("fifo+strict", 10_000, 0.9, SIDE_BY_SIDE_NODES), RATIO_AT_90),
        *_ratios(benchmark, Case("fifo+skip", 100_000, 1.3, SIDE_BY_SIDE_NODES), RATIO_IN_OVERLOAD),
        *_million(benchmark),
        *_growth(benchmark),
        *_deep_queues(benchmark),
        _first_compilation(benchmark),
    )


def _ratios(benchmark: Benchmark, case: Case, limits: dict[str, float]) -> Iterator[Bar]:
    for contender, limit in limits.items():
        row = _row(benchmark, case, contender)
        yield Bar(
            claim=f"faster than {contender}: {case.text}",
            limit=limit,
            measured=row.ratio if row else math.nan,
            unit="×",
            is_floor=True,
            is_lower_bound=row is not None and row.timing.was_stopped,
        )


def _million(benchmark: Benchmark) -> Iterator[Bar]:
    for scheduler, limit in MILLION_S.items():
        case = Case(scheduler, 1_000_000, 0.9, ALONE_NODES)
        row = _row(benchmark, case, OURS)
        yield Bar(case.text, limit, row.timing.seconds if row else math.nan, "s")
    mib = [memory.mib for memory in benchmark.memory if memory.case.jobs == 1_000_000]
    yield Bar("peak memory, 1,000,000 jobs", MILLION_MIB, max(mib, default=math.nan), "MiB")


def _growth(benchmark: Benchmark) -> Iterator[Bar]:
    """Hold the scheduler that grows most against the bar, at each load."""
    for load in LOADS:
        found = [g for g in benchmark.growth if (g.load, g.larger) == (load, 1_000_000)]
        worst = max(found, key=lambda growth: growth.per_job_ratio, default=None)
        claim = f"time per job, 1,000,000 over 100,000 jobs, load {load:.0%}"
        yield Bar(
            claim=f"{claim} (worst: {worst.scheduler})" if worst else claim,
            limit=PER_JOB_GROWTH,
            measured=worst.per_job_ratio if worst else math.nan,
            unit="×",
        )


def _deep_queues(benchmark: Benchmark) -> Iterator[Bar]:
    for deep in benchmark.deep_queues:
        claim = f"time per job, {deep.waiting:,} waiting over a short queue: {deep.scheduler}"
        yield Bar(claim, DEEP_QUEUE, deep.ratio, "×")
    if not benchmark.deep_queues:
        yield Bar("time per job, 100,000 waiting over a short queue", DEEP_QUEUE, math.nan, "×")


def _first_compilation(benchmark: Benchmark) -> Bar:
    first = benchmark.first_compilation
    return Bar("first compilation", FIRST_COMPILATION_S, first.seconds if first else math.nan, "s")


def _row(benchmark: Benchmark, case: Case, contender: str) -> Row | None:
    """Return a contender's row, if the run has one."""
    return next(
        (row for row in benchmark.rows if (row.case, row.contender) == (case, contender)), None
    )
