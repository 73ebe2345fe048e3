"""Statistics of published traces: how large, how long and how bursty their jobs are."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from yardmaster.model.workload import FloatArray, IntArray
from yardmaster.names import unknown
from yardmaster.workloads.arrivals import Season, rate_cv2


@dataclass(frozen=True, slots=True, eq=False)
class SizeClass:
    """Run times of the jobs with `smallest` to `largest` GPUs.

    Attributes:
        name: the class as written in the statistics, such as `4-7` or `33+`.
        smallest: fewest GPUs of a job in the class.
        largest: most GPUs of a job in the class; None where there is no limit.
        quantiles_s: run times in seconds at the calibration's probabilities.
    """

    name: str
    smallest: int
    largest: int | None
    quantiles_s: FloatArray

    def holds(self, gpus: IntArray | FloatArray) -> Any:
        """Return the mask of the jobs that belong to the class."""
        at_least = gpus >= self.smallest
        return at_least if self.largest is None else at_least & (gpus <= self.largest)


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """What the generator knows of one published trace.

    Attributes:
        source: the trace, its authors and its licence.
        caveat: what the statistics do not show, "" if nothing.
        jobs_per_h: submissions per hour, over the whole trace.
        sizes: GPUs per job, ascending; below 1 a part of a GPU.
        shares: share of the jobs with each size, summing to 1.
        probabilities: where the run-time quantiles are given.
        classes: run times by size class.
        season: submissions by hour and weekday, and their burstiness.
    """

    source: str
    caveat: str
    jobs_per_h: float
    sizes: FloatArray
    shares: FloatArray
    probabilities: FloatArray
    classes: tuple[SizeClass, ...]
    season: Season

    def durations(self, gpus: IntArray, position: FloatArray) -> FloatArray:
        """Return run times in seconds at `position` (0…1) of each job's size class.

        See `between_quantiles`. Jobs larger than all classes run as long as the largest. Run times
        are whole seconds, at least 1.
        """
        largest = max(each.largest or np.inf for each in self.classes)
        known = np.minimum(gpus, largest)
        seconds = np.empty(len(gpus), dtype=np.float64)
        for size_class in self.classes:
            members = size_class.holds(known)
            seconds[members] = between_quantiles(
                self.probabilities, size_class.quantiles_s, position[members]
            )
        return np.maximum(1.0, np.round(seconds))


def between_quantiles(
    probabilities: FloatArray, quantiles: FloatArray, position: FloatArray
) -> FloatArray:
    """Return the values at `position` (0…1) of a law that is known at some probabilities.

    Between two known quantiles the logarithm of the value is linear in the probability; at both
    ends the outermost piece is continued.
    """
    at, logarithm = _continued(probabilities, np.log(quantiles))
    return np.exp(np.interp(position, at, logarithm))


def _continued(at: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Add the ends 0 and 1 to a piecewise linear function by continuing its outer pieces."""
    low = value[0] - at[0] * (value[1] - value[0]) / (at[1] - at[0])
    high = value[-1] + (1.0 - at[-1]) * (value[-1] - value[-2]) / (at[-1] - at[-2])
    return np.concatenate(([0.0], at, [1.0])), np.concatenate(([low], value, [high]))


def calibration_names() -> tuple[str, ...]:
    """Return the traces whose statistics are known, by the presets that imitate them."""
    return tuple(_tables())


@cache
def calibration(name: str) -> Calibration:
    """Return the statistics of the trace behind a preset such as `venus-like`.

    Raises:
        UnknownNameError: if there are no statistics under this name.
    """
    tables = _tables()
    if name not in tables:
        raise unknown("calibration", name, tables)
    table = tables[name]
    shares = np.asarray(table["gpu_shares"], dtype=np.float64)
    return Calibration(
        source=table["source"],
        caveat=table["caveat"],
        jobs_per_h=table["hourly_mean"],
        sizes=np.asarray(table["gpu_sizes"], dtype=np.float64),
        shares=shares / shares.sum(),
        probabilities=np.asarray(table["probabilities"], dtype=np.float64),
        classes=tuple(_size_class(key, value) for key, value in table["duration_s"].items()),
        season=Season(
            hour_weights=np.asarray(table.get("hour_weights", [1.0] * 24), dtype=np.float64),
            weekday_weights=np.asarray(table.get("weekday_weights", [1.0] * 7), dtype=np.float64),
            rate_cv2=rate_cv2(table["hourly_mean"], table["hourly_dispersion"]),
        ),
    )


@cache
def _tables() -> dict[str, Any]:
    text = files("yardmaster.workloads").joinpath("data", "calibration.toml").read_text("utf-8")
    return tomllib.loads(text)


def _size_class(name: str, quantiles_s: list[float]) -> SizeClass:
    first, _, last = name.rstrip("+").partition("-")
    largest = None if name.endswith("+") else int(last or first)
    return SizeClass(name, int(first), largest, np.asarray(quantiles_s, dtype=np.float64))
