"""How numbers, intervals and names are written, the same way in every table, figure and sentence.

All durations of one table share one unit and all numbers of one column one precision, so that a
column can be read from top to bottom; the unit stands in the header, never in the cell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, isfinite, isnan, log10
from statistics import median

from yardmaster.metrics.catalogue import metric

MISSING = "–"
"""Written where there is no number."""
MOST_DECIMALS = 3
SIGNIFICANT_DIGITS = 3
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit to write numbers in, and how many base units (seconds, fractions) make one."""

    symbol: str
    size: float = 1.0


PLAIN = Unit("")
PERCENT = Unit("%", 0.01)
SECONDS = Unit("s")
_DURATIONS = ((120.0, SECONDS), (7_200.0, Unit("min", 60.0)), (259_200.0, Unit("h", 3_600.0)))
_DAYS = Unit("d", 86_400.0)
_TITLES = {
    "carbon_kg": "CO₂",
    "energy_kwh": "energy",
    "flops_utilisation": "FLOPS utilisation",
    "fragmentation_gpus": "fragmented GPUs",
    "free_partial_gpus": "free GPUs on used nodes",
    "jain_slowdown": "Jain index of slowdown",
    "mean_age_unfinished_s": "mean age of unfinished jobs",
    "mean_queued_s": "mean time queued",
    "min_tenant_share": "least tenant share",
    "peak_power_w": "peak power",
    "quota_violation_h": "quota violated",
    "wasted_gpu_h": "wasted work",
    "worst_tenant_slowdown": "worst tenant's slowdown",
}
_UNITS = {"fraction": PERCENT, "W": Unit("kW", 1000.0)}
_WITHOUT_SYMBOL = ("count", "currency", "0 or 1", "0…1", "GPUs")


def metric_title(name: str) -> str:
    """Return a metric's name in words: `p95_jct_s` is `p95 JCT`."""
    words = name.removesuffix("_s").replace("_", " ").replace("jct", "JCT")
    return _TITLES.get(name, words)


def metric_unit(name: str, duration: Unit = SECONDS) -> Unit:
    """Return the unit to write a metric in; durations are written in `duration`."""
    base = metric(name).unit
    if base == "s":
        return duration
    if base in _UNITS:
        return _UNITS[base]
    return PLAIN if base in _WITHOUT_SYMBOL else Unit(base)


def duration_unit(seconds: Iterable[float]) -> Unit:
    """Choose the unit in which a typical one of these durations reads best (s, min, h or d)."""
    typical = _typical(seconds)
    return next((unit for below, unit in _DURATIONS if typical < below), _DAYS)


def decimals(values: Iterable[float], unit: Unit = PLAIN) -> int:
    """Choose how many decimals give a typical one of these values three significant digits.

    Whole numbers get none.
    """
    scaled = [value / unit.size for value in values]
    typical = _typical(scaled)
    if all(value == round(value) for value in scaled if isfinite(value)):
        return 0
    return min(max(SIGNIFICANT_DIGITS - 1 - floor(log10(typical)), 0), MOST_DECIMALS)


def number(value: float, places: int, unit: Unit = PLAIN, *, signed: bool = False) -> str:
    """Write one number in `unit`, with a true minus sign and `–` where there is none.

    Args:
        value: the number in base units (seconds, fractions).
        places: decimals to write.
        unit: the unit to write it in.
        signed: write a plus sign too, for differences.
    """
    if isnan(value):
        return MISSING
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    scaled = round(value / unit.size, places) + 0.0  # adding 0.0 turns −0.0 into 0.0
    text = f"{scaled:+.{places}f}" if signed and scaled else f"{scaled:.{places}f}"
    return text.replace("-", "−")


def interval(
    low: float, high: float, places: int, unit: Unit = PLAIN, *, signed: bool = False
) -> str:
    """Write a 95 % interval as `[low, high]`; empty where there is none."""
    if isnan(low) or isnan(high):
        return ""
    ends = (number(end, places, unit, signed=signed) for end in (low, high))
    return f"[{', '.join(ends)}]"


def plain(text: object) -> str:
    """Return a name on one line, every character that would not print replaced.

    Names come from files and command lines. A terminal, an SVG and a spreadsheet each have control
    characters that would do more than be shown.
    """
    return "".join(mark if mark.isprintable() else _UNPRINTABLE for mark in str(text))


def sentence(text: str) -> str:
    """Return `text` with its first letter large and all others as they are."""
    return text[:1].upper() + text[1:]


def shortened(text: str, length: int) -> str:
    """Return `text` cut to at most `length` characters, the cut shown by an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def cut_inside(text: str, length: int) -> str:
    """Return `text` cut in its middle to at most `length` characters.

    For names of schedulers: `mine.py:area+easy` and `mine.py:area+skip` differ at their ends.
    """
    if len(text) <= length:
        return text
    end = -(-(length - 1) * 3 // 5)
    return f"{text[: length - 1 - end]}…{text[len(text) - end :]}"


def _typical(values: Iterable[float]) -> float:
    """Return the median size of the finite values that are not zero, or 0."""
    sizes = [abs(value) for value in values if isfinite(value) and value != 0]
    return median(sizes) if sizes else 0.0
