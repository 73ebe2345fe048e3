"""How long jobs run: any law of `distributions`, in seconds, or as long as those of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from yardmaster.model.workload import IntArray
from yardmaster.workloads.calibration import calibration, calibration_names
from yardmaster.workloads.recipes.distributions import DISTRIBUTIONS, Distribution, Draw
from yardmaster.workloads.recipes.parameters import Part, catalogue, choice

SHORTEST_S = 1e-6
"""Every job takes some time, even where times are not whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedDurations(Part):
    """As long as jobs of this size run in a published trace."""

    process: ClassVar[str] = "calibrated"
    trace: str = choice("the trace, by the preset that imitates it", calibration_names())

    def draw(self, rng: np.random.Generator, gpus: IntArray) -> Draw:
        """Draw a position within the size class of each job, and look its run time up."""
        position = rng.random(len(gpus))
        return Draw(calibration(self.trace).durations(gpus, position), position)

    def remarks(self) -> tuple[str, ...]:
        """Name the trace and what is not known of it."""
        stats = calibration(self.trace)
        return (f"calibrated to {stats.source}", *((stats.caveat,) if stats.caveat else ()))


Durations = Distribution | CalibratedDurations
"""A process that run times are drawn from."""

DURATIONS = catalogue("process of durations", *DISTRIBUTIONS, CalibratedDurations)


def follow_sizes(durations: Durations) -> bool:
    """Whether the sizes must be known before the run times can be drawn."""
    return isinstance(durations, CalibratedDurations)


def draw_durations(
    durations: Durations,
    rng: np.random.Generator,
    gpus: IntArray,
    *,
    whole_seconds: bool,
) -> Draw:
    """Draw run times in seconds: whole ones, at least 1, or else any that is not 0.

    Args:
        durations: the process.
        rng: source of randomness.
        gpus: GPUs of each job, which only matter where `follow_sizes`.
        whole_seconds: whether run times are rounded.
    """
    if isinstance(durations, Distribution):
        seconds, rank = durations.draw(rng, len(gpus))
    else:
        seconds, rank = durations.draw(rng, gpus)
    rounded = np.maximum(1.0, np.round(seconds))
    return Draw(rounded if whole_seconds else np.maximum(SHORTEST_S, seconds), rank)
