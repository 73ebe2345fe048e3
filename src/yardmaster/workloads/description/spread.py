"""How numbers are spread: their mean, their variation and their quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.model.workload import FloatArray

QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""The quantiles that are told, interpolated linearly between the values."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Numbers summed up; NaN where there are none.

    Attributes:
        count: how many there are.
        mean: their mean.
        cv: standard deviation / mean.
        smallest: the smallest.
        largest: the largest.
        quantiles: `p50` and the like → value.
    """

    count: int
    mean: float
    cv: float
    smallest: float
    largest: float
    quantiles: dict[str, float]


def spread(values: FloatArray) -> Spread:
    """Sum up numbers, none of them NaN."""
    names = [f"p{100 * point:g}" for point in QUANTILES]
    if not len(values):
        nothing = float("nan")
        return Spread(0, nothing, nothing, nothing, nothing, dict.fromkeys(names, nothing))
    ordered = np.sort(values)
    mean = float(ordered.mean())
    return Spread(
        count=len(ordered),
        mean=mean,
        cv=share(float(ordered.std()), mean),
        smallest=float(ordered[0]),
        largest=float(ordered[-1]),
        quantiles=dict(zip(names, np.quantile(ordered, QUANTILES).tolist(), strict=True)),
    )


def share(part: float, whole: float) -> float:
    """Return part / whole; NaN of nothing."""
    return float(part / whole) if whole > 0 else float("nan")
