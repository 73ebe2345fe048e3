"""An honest comparison: the same jobs under every scheduler, paired, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

from yardmaster.model.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % bootstrap interval; low and high are NaN where there is none."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One scheduler's line in the table."""

    scheduler: str
    information: str
    """`clairvoyant`, `estimate-based` or `blind`."""
    metrics: dict[str, Estimate]
    """Every metric of `metrics.summary.METRICS`, over the paired units."""
    difference: Estimate
    """Objective minus the baseline's, as a fraction of the baseline's mean; which sign is better is
    for the objective's metric to say."""
    hindsight_gap: float
    """Objective above the best scheduler of each workload, as a fraction (0 = always the best)."""
    bound_gap: float
    """Objective above a proven lower bound, as a fraction; NaN where no bound is known."""
    is_winner: bool
    """Best, and its paired interval against every other scheduler excludes zero."""


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation of the comparison: its summary and the fingerprint of its schedule."""

    scheduler: str
    workload: str
    summary: dict[str, float]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole table, best first, and one schedule per scheduler to draw from."""

    workload: str
    cluster: str
    objective: str
    """Name of the metric the rows are ranked by."""
    baseline: str
    units: str
    """What was paired: `8 seeds` or `20 blocks of one trace`."""
    rows: tuple[ComparisonRow, ...]
    schedules: tuple[Schedule, ...]
    """The first workload's schedules, in the order of `rows`."""
    notes: tuple[str, ...]
    runs: tuple[Run, ...] = ()
    """Every simulation behind the table."""
