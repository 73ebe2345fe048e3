"""How much electricity the schedule used, what it cost and what it emitted.

Power is constant between events and prices are constant within an hour, so all three are exact
integrals. Hour 0 begins at second 0 of the workload's clock, and curves repeat every day.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from yardmaster.metrics.power import power_timeline
from yardmaster.metrics.timeline import StepFunction
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray

JOULES_PER_KWH = 3.6e6
HOUR_S = 3600.0

PRICE_PER_KWH = 0.15
"""Price of a kilowatt-hour where the site names none, in the currency the reader thinks in."""


def energy_kwh(schedule: Schedule, *, power: StepFunction | None = None) -> float:
    """Return the kilowatt-hours of GPUs and nodes over the horizon.

    Here as below, pass `power` where the schedule's `power_timeline` is at hand already.
    """
    edges, watts = power_timeline(schedule) if power is None else power
    return float(watts @ np.diff(edges)) / JOULES_PER_KWH


def energy_cost(
    schedule: Schedule,
    *,
    price_per_kwh: float | None = None,
    power: StepFunction | None = None,
) -> float:
    """Return the price of that energy: at `price_per_kwh`, else at the site's prices of the day."""
    prices = schedule.cluster.site.power.price_per_kwh or (PRICE_PER_KWH,)
    if price_per_kwh is not None:
        prices = (price_per_kwh,)
    return _weighted_kwh(schedule, prices, power)


def carbon_kg(schedule: Schedule, *, power: StepFunction | None = None) -> float:
    """Return the kilograms of CO₂ of that energy; NaN where the site gives no figures."""
    grams = schedule.cluster.site.power.carbon_g_per_kwh
    return _weighted_kwh(schedule, grams, power) / 1000.0 if grams else float("nan")


def _weighted_kwh(
    schedule: Schedule, by_hour: Sequence[float], power: StepFunction | None
) -> float:
    """Return the sum over all kilowatt-hours of the figure of the hour they were drawn in."""
    if len(by_hour) == 1:
        return energy_kwh(schedule, power=power) * by_hour[0]
    edges, watts = power_timeline(schedule) if power is None else power
    return float(watts @ np.diff(_integral(by_hour, edges))) / JOULES_PER_KWH


def _integral(by_hour: Sequence[float], times_s: FloatArray) -> FloatArray:
    """Return the integral from second 0 to each time of hourly figures that repeat for ever."""
    figures = np.asarray(by_hour, dtype=np.float64)
    before = np.concatenate(([0.0], np.cumsum(figures))) * HOUR_S
    hours = np.floor(times_s / HOUR_S)
    rounds, hour = np.divmod(hours.astype(np.int64), len(figures))
    within_s = times_s - hours * HOUR_S
    return np.asarray(rounds * before[-1] + before[hour] + within_s * figures[hour])
