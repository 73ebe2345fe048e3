"""A correction of predicted starts, learnt from earlier predictions and what came true.

Simulations know their own uncertainty only: that their run times and arrivals are drawn from the
past. What they do not know (a deadline week, a user's habit) shows when earlier predictions are
held against what happened. A correction moves the 10, 50 and 90 % points by what would have been
right for the earlier ones (conformal quantile regression, each point for itself), measured in the
spread of each prediction on a logarithmic scale: wide predictions are moved further than narrow
ones.

Three things keep it honest. Only what was known at the moment of asking is used: an earlier job
that still waits counts as waiting longer than so far (leaving it out would leave out the long
waits). One more prediction than there were is reckoned with, the one asked for. And since the
future is not the past over again, the shares of misses that are aimed at follow what came true:
each start that fell outside its interval widens the next ones a little, each that fell inside
narrows them less (adaptive conformal inference; outcomes count when they become known).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.eta import Forecast
from yardmaster.experiments.eta_trials import LONGEST_WAIT_S, Trials, try_out
from yardmaster.experiments.run_time_model import Survival
from yardmaster.model.columns import BoolArray, FloatArray
from yardmaster.model.schedule import Schedule

COVERAGE = 0.8
"""Share of starts that must lie between the 10 and the 90 % point."""
POINTS = (0.1, 0.5, 0.9)
MISSED = (1.0 - COVERAGE) / 2
"""Share of starts that should fall below, and above, the interval."""
SOFTENING_S = 60.0
"""Waits are compared as logarithms of wait + this: a second more or less does not matter."""
LEAST_SPREAD = 0.25
"""Added to the spread of a prediction, so that one that is sure can still be wrong."""
LEAST_PREDICTIONS = 20
"""Fewer earlier predictions say too little about 10 and 90 % points."""
STEP = 0.01
"""How far one outcome moves the share of misses aimed at."""
LEAST_AIM, MOST_AIM = 0.02, 0.4
"""The share of misses aimed at stays between these. Outcomes come late and many at once: without
bounds, one surge would widen intervals long after it is over."""


@dataclass(frozen=True, slots=True)
class Correction:
    """How far predicted points are moved, in spreads of the prediction."""

    shifts: tuple[float, float, float]
    """Of the 10, 50 and 90 % points."""
    predictions: int
    """Earlier predictions it was learnt from."""

    def moved(self, points: FloatArray) -> FloatArray:
        """Return (predictions, 3) soft points, moved and still in order."""
        moved = points + np.asarray(self.shifts) * _spread(points)[:, None]
        return np.maximum.accumulate(moved, axis=1)

    def applied(self, forecast: Forecast) -> Forecast:
        """Return the forecast with every simulated wait moved as its nearest points are."""
        soft = _soft(forecast.wait_s)
        points = _points(soft)
        shift = self.moved(points) - points
        # By rank, since points may coincide; outside of them like the outermost.
        order = np.argsort(soft, axis=1, kind="stable")
        rank = (np.arange(soft.shape[1]) + 1) / soft.shape[1]
        by_rank = np.stack([np.interp(rank, POINTS, row) for row in shift])
        waits = np.take_along_axis(soft, order, axis=1) + by_rank
        moved = np.empty_like(soft)
        np.put_along_axis(moved, order, np.maximum.accumulate(waits, axis=1), axis=1)
        wait_s = _hard(moved)
        wait_s[(wait_s >= LONGEST_WAIT_S) & np.isinf(forecast.wait_s)] = np.inf
        # Who finds room at once does so for sure.
        wait_s[forecast.wait_s == 0.0] = 0.0
        note = f"corrected by {self.predictions} earlier predictions"
        return replace(forecast, wait_s=wait_s, notes=(*forecast.notes, note))


def fit_correction(
    forecasts: FloatArray,
    waited_s: FloatArray,
    has_started: BoolArray,
    *,
    below: float = MISSED,
    above: float = MISSED,
) -> Correction:
    """Learn from earlier predictions and what came true.

    Args:
        forecasts: (predictions, simulations) simulated waits.
        waited_s: (predictions,) how long the jobs have waited since.
        has_started: (predictions,) whether they have started; otherwise they wait longer than that.
        below: share of starts to let fall below the interval.
        above: share of starts to let fall above the interval.

    Raises:
        YardmasterError: if there are too few predictions.
    """
    if len(waited_s) < LEAST_PREDICTIONS:
        raise YardmasterError(
            f"A correction needs at least {LEAST_PREDICTIONS} earlier predictions,"
            f" got {len(waited_s)}."
        )
    return _fitted(_points(_soft(forecasts)), _soft(waited_s), has_started, (below, above))


def _fitted(
    points: FloatArray, waited: FloatArray, has_started: BoolArray, aim: tuple[float, float]
) -> Correction:
    missed = (waited[:, None] - points) / _spread(points)[:, None]
    # The one asked for is one more, and might lie beyond all others on either side.
    low = _quantile(np.append(missed[:, 0], -np.inf), np.append(has_started, True), aim[0])
    middle = _quantile(missed[:, 1], has_started, 0.5)
    high = _quantile(np.append(missed[:, 2], np.inf), np.append(has_started, False), 1.0 - aim[1])
    return Correction((low, middle, high), len(waited))


def _quantile(values: FloatArray, is_known: BoolArray, share: float) -> float:
    """Return the value that a share does not exceed, where some values are only known to be larger.

    Where that lies outside of all that is known: the least value, or one beyond the largest.
    """
    finite = values[np.isfinite(values)]
    known = Survival.of(values, is_known)
    reached = np.flatnonzero(known.share <= 1.0 - share + 1e-12)
    if not len(reached):
        return float(finite.max()) + 1.0
    return float(max(known.ends[reached[0]], finite.min()))


def in_turn(trials: Trials) -> FloatArray:
    """Return (trials, 2) the interval of each prediction, corrected by those made before it.

    NaN where too few came before to learn from.
    """
    points = _points(_soft(trials.wait_s))
    interval_s = np.full((len(trials), 2), np.nan)
    for number, now_s in enumerate(trials.now_s.tolist()):
        if np.count_nonzero(trials.now_s < now_s) >= LEAST_PREDICTIONS:
            correction = correction_at(trials, interval_s, now_s)
            moved = correction.moved(points[number : number + 1])
            interval_s[number] = _hard(moved[0, [0, 2]])
    return interval_s


def correction_at(trials: Trials, interval_s: FloatArray, now_s: float) -> Correction:
    """Learn from the predictions before a moment, with what was known at that moment.

    Args:
        trials: predictions; those made at the moment and after it are not looked at.
        interval_s: (trials, 2) the corrected intervals of those before, see `in_turn`.
        now_s: the moment.

    Raises:
        YardmasterError: if too few predictions were made before.
    """
    before = trials.now_s < now_s
    since_s = now_s - trials.now_s[before]
    actual_s = trials.actual_s[before]
    below, above = _aim(actual_s, interval_s[before], since_s)
    return fit_correction(
        trials.wait_s[before],
        np.minimum(actual_s, since_s),
        actual_s <= since_s,
        below=below,
        above=above,
    )


def _aim(actual_s: FloatArray, interval_s: FloatArray, since_s: FloatArray) -> tuple[float, float]:
    """Return the shares of misses to aim at below and above, from the outcomes known by now.

    Whether a start is too early is known at the latest when the interval begins; whether it is
    too late, at the latest when the interval ends.
    """
    low_s, high_s = interval_s.T
    return (
        _adapted(actual_s < low_s, np.minimum(actual_s, low_s) - since_s),
        _adapted(actual_s > high_s, np.minimum(actual_s, high_s) - since_s),
    )


def _adapted(has_missed: BoolArray, known_s: FloatArray) -> float:
    """Return the share of misses to aim at after some hits and misses.

    Args:
        has_missed: (predictions,) whether the start missed this side of its interval.
        known_s: (predictions,) when that was known, in seconds from now; NaN without interval.
    """
    share = MISSED
    order = np.argsort(known_s, kind="stable")
    for missed in has_missed[order[known_s[order] <= 0.0]].tolist():
        share = min(max(share + STEP * (MISSED - missed), LEAST_AIM), MOST_AIM)
    return share


def calibrate(
    schedule: Schedule,
    now_s: float,
    *,
    trials: int = 60,
    simulations: int = 30,
    seed: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> Correction:
    """Learn a correction from predictions made in the later half of the time before now.

    The first half is left to them as their own past. Nothing after `now_s` is used.

    Raises:
        YardmasterError: if hardly anybody waited in that time.
    """
    first_s = float(schedule.workload.submit_s[0])
    made = try_out(
        schedule, (first_s + now_s) / 2, now_s, trials=trials, simulations=simulations, seed=seed,
        report=report,
    )  # fmt: skip
    return correction_at(made, in_turn(made), now_s)


def _soft(wait_s: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.minimum(wait_s, LONGEST_WAIT_S) + SOFTENING_S), dtype=np.float64)


def _hard(soft: FloatArray) -> FloatArray:
    waits = np.exp(np.minimum(soft, np.log(LONGEST_WAIT_S + SOFTENING_S))) - SOFTENING_S
    return np.asarray(np.maximum(waits, 0.0), dtype=np.float64)


def _points(soft: FloatArray) -> FloatArray:
    """Return (predictions, 3) the 10, 50 and 90 % points."""
    return np.quantile(soft, POINTS, axis=1, method="inverted_cdf").T


def _spread(points: FloatArray) -> FloatArray:
    return np.asarray((points[:, 2] - points[:, 0]) / 2 + LEAST_SPREAD, dtype=np.float64)
