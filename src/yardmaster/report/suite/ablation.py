"""What the parts of a learned scheduler are worth: each variant against the whole.

An experiment with a column `variant` is an ablation: `full` is the scheduler with all its parts,
every other variant lacks one. Variants are compared on the same regimes and jobs. Where there is a
column `training_seed`, trainings are the units of the intervals, else seeds of the jobs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.metrics.statistics import Interval, paired_difference
from yardmaster.model.workload import FloatArray
from yardmaster.report.suite.estimates import relative_difference
from yardmaster.report.suite.looks import ink, name_rows
from yardmaster.report.suite.measures import better, title
from yardmaster.report.suite.sketches import WIDE_IN, Sketch
from yardmaster.report.suite.words import counted
from yardmaster.report.values import PERCENT, number, plain

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WHOLE = "full"
MEASURES = ("mean_jct_s", "mean_bounded_slowdown", "jain_jobs", "max_queue", "queue_exploded")
"""Completion time, slowdown, fairness and the stability of the queue."""
GAPS = ("oracle_gap_mean_jct_s", "oracle_gap_p95_jct_s", "oracle_gap_mixed_cost")
"""Distances to the best fixed scheduler in hindsight, for tables."""
SHARES = ("queue_exploded", *GAPS)
"""Of these the difference counts, in percentage points: a share of 0 cannot change relatively."""
_WORSE, _BETTER, _UNCLEAR = "#D55E00", "#0072B2", "#8A8A8A"


@dataclass(frozen=True, slots=True)
class Ablation:
    """The numbers of every variant, unit by unit.

    Attributes:
        whole: name of the variant that lacks nothing.
        variants: all others.
        unit_name: what the units are.
        values: (variant, measure) → (units,) means over everything else.
    """

    whole: str
    variants: tuple[str, ...]
    unit_name: str
    values: dict[tuple[str, str], FloatArray]

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(next(iter(self.values.values())))

    @property
    def measures(self) -> list[str]:
        """All numbers there are."""
        return [measure for variant, measure in self.values if variant == self.whole]

    def change(self, variant: str, measure: str) -> Interval:
        """Return the relative change of a number when a variant takes the whole's place.

        Of shares and gaps it is the plain difference.
        """
        mine, whole = self.values[variant, measure], self.values[self.whole, measure]
        if measure in SHARES:
            return paired_difference(mine, whole).absolute
        return relative_difference(mine, whole)


def ablation(table: pl.DataFrame, measures: Sequence[str] = (*MEASURES, *GAPS)) -> Ablation | None:
    """Return the ablation in a table of results; None if it is none."""
    if "variant" not in table.columns:
        return None
    found = [name for name in table["variant"].unique(maintain_order=True) if name is not None]
    if WHOLE not in found or len(found) < 2:
        return None
    unit = "training_seed" if "training_seed" in table.columns else "seed"
    shared = _shared(table, found, unit)
    return Ablation(
        WHOLE,
        tuple(name for name in found if name != WHOLE),
        "training" if unit == "training_seed" else "paired seed",
        {
            (variant, measure): _units(
                table.filter(table["variant"] == variant), unit, shared, measure
            )
            for variant in found
            for measure in measures
            if measure in table.columns
        },
    )


def _shared(table: pl.DataFrame, variants: Sequence[str], unit: str) -> list[int]:
    """Return the units that every variant has, so that differences are paired."""
    sets = [set(table.filter(table["variant"] == each)[unit].to_list()) for each in variants]
    return sorted(set.intersection(*sets) - {None})


def _units(rows: pl.DataFrame, unit: str, shared: Sequence[int], measure: str) -> FloatArray:
    """Return (units,) the mean of a number over all runs of each unit."""
    kept, values = rows[unit].to_numpy(), rows[measure].to_numpy()
    return np.array([values[kept == each].mean() for each in shared])


def ablation_bars(found: Ablation, measures: Sequence[str] = MEASURES) -> Sketch:
    """Draw the change of every number when a part is left out, one panel per number."""
    names = [plain(variant) for variant in found.variants]

    def paint(canvas: Canvas) -> None:
        fields = canvas.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for field, measure in zip(fields, measures, strict=True):
            changes = [found.change(variant, measure) for variant in found.variants]
            _paint(field, changes, higher=better(measure) == "higher")
            field.set_title(title(measure), fontsize=10, color=ink())
            field.set_xlabel("difference (pp)" if measure in SHARES else "change (%)")
            name_rows(field, names)

    first = measures[0]
    told = ", ".join(
        f"{name} {number(found.change(variant, first).mean, 1, PERCENT, signed=True)} %"
        for name, variant in zip(names, found.variants, strict=True)
    )
    return Sketch(
        name="ablation",
        title="What each part is worth",
        caption=f"Change when a part is left out, lines 95 % intervals over"
        f" {counted(found.units, found.unit_name)}. Orange is clearly worse than with all parts,"
        " blue clearly better, grey neither.",
        alt=f"Change of {title(first)} without a part: {told}.",
        height_in=1.2 + 0.34 * len(names),
        width_in=WIDE_IN,
        paint=paint,
    )


def _paint(axes: Axes, changes: Sequence[Interval], *, higher: bool) -> None:
    for height, each in enumerate(changes):
        is_clear = each.low > 0 or each.high < 0
        is_worse = (each.mean < 0) if higher else (each.mean > 0)
        colour = (_WORSE if is_worse else _BETTER) if is_clear else _UNCLEAR
        size = PERCENT.size
        axes.barh([height], [each.mean / size], color=colour, height=0.6, alpha=0.8)
        if np.isfinite(each.low):
            axes.plot([each.low / size, each.high / size], [height, height], color=ink(),
                      linewidth=1.2, marker="|", markersize=6)  # fmt: skip
    axes.axvline(0.0, color=ink(), linewidth=0.9)
    axes.margins(x=0.08)
