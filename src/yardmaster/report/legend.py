"""The sentences below a comparison: what its marks and columns mean, and what it cannot say."""

from __future__ import annotations

from math import isfinite, isnan

from yardmaster.experiments.comparison import Comparison
from yardmaster.report.values import metric_title, plain
from yardmaster.report.verdict import better_is_lower

INFORMATION_MARKS = {"clairvoyant": "◆", "estimate-based": "◇", "blind": ""}
_INFORMATION_LEGEND = {
    "clairvoyant": "◆ clairvoyant: reads true durations",
    "estimate-based": "◇ estimate-based: reads estimated durations",
    "blind": "no mark, blind: reads neither",
}


def legend(comparison: Comparison) -> tuple[str, ...]:
    """Return the legend of a comparison, one sentence or two per line."""
    has_winner = any(row.is_winner for row in comparison.rows)
    has_intervals = any(not isnan(row.difference.low) for row in comparison.rows)
    units, baseline = plain(comparison.units), plain(comparison.baseline)
    star = (
        "★ best: its paired 95 % interval against every other scheduler excludes zero."
        if has_winner
        else "No ★: no scheduler is clearly better than every other one."
    )
    present = {row.information for row in comparison.rows}
    marks = [text for name, text in _INFORMATION_LEGEND.items() if name in present]
    direction = "negative" if better_is_lower(comparison) else "positive"
    brackets = (
        f"[low, high]: 95 % interval, paired over {units}."
        if has_intervals
        else f"No intervals: {units} cannot show how much chance is in these numbers."
    )
    title = metric_title(comparison.objective)
    return (
        star,
        f"Δ: {title} against {baseline}, {direction} is better. {brackets}",
        *([f"{'; '.join(marks)}."] if marks else []),
        *_gap_legend(comparison),
    )


def _gap_legend(comparison: Comparison) -> list[str]:
    texts = []
    if any(isfinite(row.hindsight_gap) for row in comparison.rows):
        texts.append("Hindsight gap: distance to the best scheduler of each workload.")
    if any(isfinite(row.bound_gap) for row in comparison.rows):
        texts.append("Bound gap: distance to a proven bound that no scheduler can pass.")
    return [" ".join(texts)] if texts else []
