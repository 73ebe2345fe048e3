"""The numbers of a run that the report shows: what they are called and how they are written."""

from __future__ import annotations

from collections.abc import Iterable

from yardmaster.experiments.suite.measuring import MIXED, MIXED_MEANING, MORE_MEASURES
from yardmaster.metrics.catalogue import METRIC_NAMES, Better, metric
from yardmaster.report.values import (
    PERCENT,
    PLAIN,
    SECONDS,
    Unit,
    duration_unit,
    metric_title,
    metric_unit,
)

OBJECTIVES = ("mean_jct_s", "p95_jct_s", "mean_bounded_slowdown")
"""What schedulers are judged by; lower is better in all of them."""
_TITLES = {
    "choice_entropy": "entropy of choices",
    "jain_jct": "Jain index of JCT",
    "jain_jobs": "Jain index of jobs",
    "mixed_cost": "mixed cost",
    "queue_exploded": "explosions",
    "recovery_s": "recovery",
    "sla": "SLA met",
    "thermal_sd_c": "sd of temperature",
    "unrecovered": "not recovered",
    "utilisation_sd": "sd of utilisation",
}
_SHARES = ("sla", "queue_exploded", "utilisation_sd")
"""Written in percent."""
_HIGHER = ("sla", "jain_jobs", "jain_jct")
_NEITHER = ("decisions", "switches", "choice_entropy")


def title(name: str) -> str:
    """Return what a number is called."""
    return _TITLES.get(name, metric_title(name))


def unit(name: str, values: Iterable[float] = ()) -> Unit:
    """Return the unit to write a number in; durations like `values` decide between s, min, h, d."""
    if name in _SHARES:
        return PERCENT
    is_duration = metric(name).unit == "s" if name in METRIC_NAMES else name.endswith("_s")
    if is_duration:
        known = list(values)
        return duration_unit(known) if known else SECONDS
    return metric_unit(name) if name in METRIC_NAMES else PLAIN


def axis(name: str, written_in: Unit) -> str:
    """Return the label of an axis: title and unit."""
    return f"{title(name)} ({written_in.symbol})" if written_in.symbol else title(name)


def better(name: str) -> Better:
    """Return which way is better."""
    if name in METRIC_NAMES:
        return metric(name).better
    if name in _NEITHER:
        return "neither"
    return "higher" if name in _HIGHER else "lower"


def definition(name: str) -> str:
    """Return what a number means."""
    if name == "queue_exploded":
        return f"Share of the runs: {metric(name).definition}"
    if name == MIXED:
        return MIXED_MEANING
    return metric(name).definition if name in METRIC_NAMES else MORE_MEASURES.get(name, "")
