"""Whether predicted starts come true, and a correction learnt from earlier predictions.

Simulations know their own uncertainty only: that their run times and arrivals are drawn from the
past. What they do not know (a deadline week, a user's habit) shows when earlier predictions are
held against what happened. A correction moves the 10, 50 and 90 % points by what would have been
right for the earlier ones (conformal quantile regression, each point for itself), measured in the
spread of each prediction on a logarithmic scale: wide predictions are moved further than narrow
ones.

Only the past is used: predictions made before a border, and starts that had happened by then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.eta import Forecast, predict
from yardmaster.experiments.snapshot import Snapshot, snapshot_of, waiting_at
from yardmaster.model.columns import BoolArray, FloatArray, IntArray
from yardmaster.model.schedule import Outcome, Schedule

COVERAGE = 0.8
"""Share of starts that must lie between the 10 and the 90 % point."""
POINTS = (0.1, 0.5, 0.9)
SOFTENING_S = 60.0
"""Waits are compared as logarithms of wait + this: a second more or less does not matter."""
LEAST_SPREAD = 0.25
"""Added to the spread of a prediction, so that one that is sure can still be wrong."""
LEAST_PREDICTIONS = 20
"""Fewer earlier predictions say too little about 10 and 90 % points."""
LONGEST_WAIT_S = 28 * 86_400.0
"""Longer waits, and starts beyond the last horizon, count as this."""


@dataclass(frozen=True, slots=True)
class Correction:
    """How far predicted points are moved, in spreads of the prediction."""

    shifts: tuple[float, float, float]
    """Of the 10, 50 and 90 % points."""
    predictions: int
    """Earlier predictions it was learnt from."""

    def applied(self, forecast: Forecast) -> Forecast:
        """Return the forecast with every simulated wait moved as its nearest points are."""
        soft = _soft(forecast.wait_s)
        points = _points(soft)
        moved = points + np.asarray(self.shifts) * _spread(points)[:, None]
        moved = np.maximum.accumulate(moved, axis=1)
        # Between the points in proportion, outside like the outermost point.
        shift = np.stack([
            np.interp(values, *_strictly_rising(at, by - at))
            for values, at, by in zip(soft, points, moved, strict=True)
        ])  # fmt: skip
        waits = np.maximum(np.exp(soft + shift) - SOFTENING_S, 0.0)
        note = f"corrected by {self.predictions} earlier predictions"
        return replace(
            forecast,
            # Who starts at once does so for sure; who is beyond the last horizon stays there.
            wait_s=np.where(
                np.isinf(forecast.wait_s) | (forecast.wait_s == 0.0), forecast.wait_s, waits
            ),
            notes=(*forecast.notes, note),
        )


def fit_correction(forecasts: FloatArray, actual_s: FloatArray) -> Correction:
    """Learn from earlier predictions and what came true.

    Args:
        forecasts: (predictions, simulations) simulated waits.
        actual_s: (predictions,) how long the jobs did wait.

    Raises:
        YardmasterError: if there are too few predictions.
    """
    count = len(actual_s)
    if count < LEAST_PREDICTIONS:
        raise YardmasterError(
            f"A correction needs at least {LEAST_PREDICTIONS} earlier predictions, got {count}."
        )
    points = _points(_soft(forecasts))
    missed = (_soft(actual_s)[:, None] - points) / _spread(points)[:, None]
    # One more than there are: the next one is as likely to fall into any gap.
    low = _order_statistic(missed[:, 0], math.floor(POINTS[0] * (count + 1)))
    high = _order_statistic(missed[:, 2], math.ceil(POINTS[2] * (count + 1)))
    return Correction((low, float(np.median(missed[:, 1])), high), count)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Predictions for jobs of a schedule, and what came true.

    Attributes:
        now_s: (trials,) when each was made.
        gpus: (trials,) GPUs of the job.
        wait_s: (trials, simulations) predicted waits.
        naive_s: (trials, 2) 10 and 90 % points of past waits of like jobs.
        actual_s: (trials,) how long the job did wait; infinite if it never starts.
    """

    now_s: FloatArray
    gpus: FloatArray
    wait_s: FloatArray
    naive_s: FloatArray
    actual_s: FloatArray

    def select(self, chosen: BoolArray) -> Trial:
        """Return some of the trials."""
        return Trial(
            self.now_s[chosen], self.gpus[chosen], self.wait_s[chosen], self.naive_s[chosen],
            self.actual_s[chosen],
        )  # fmt: skip

    def known_at(self, border_s: float) -> Trial:
        """Return the trials before a border, with what was known of their outcome by then."""
        before = self.select(self.now_s < border_s)
        return replace(before, actual_s=np.minimum(before.actual_s, border_s - before.now_s))

    def corrected(self, correction: Correction) -> Trial:
        """Return the same trials with corrected predictions."""
        count = len(self.now_s)
        forecast = Forecast(
            0.0, ("",) * count, self.gpus.astype(np.int64), np.zeros(count), self.wait_s
        )
        return replace(self, wait_s=correction.applied(forecast).wait_s)

    @property
    def interval_s(self) -> FloatArray:
        """(trials, 2) predicted 10 and 90 % points."""
        waits = np.minimum(self.wait_s, LONGEST_WAIT_S)
        return np.quantile(waits, [0.1, 0.9], axis=1, method="inverted_cdf").T


def try_out(
    schedule: Schedule,
    begin_s: float,
    end_s: float,
    *,
    trials: int,
    simulations: int,
    seed: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> Trial:
    """Predict the start of a random waiting job at random moments of a schedule.

    Args:
        schedule: what really happened; each prediction sees it only up to its moment.
        begin_s: earliest moment.
        end_s: latest moment.
        trials: how many moments.
        simulations: simulations behind each prediction.
        seed: seed of moments and draws.
        report: told how many predictions are made.

    Raises:
        YardmasterError: if hardly anybody waits in that span.
    """
    rng = np.random.default_rng([seed, 2])
    moments = _moments(schedule, begin_s, end_s, trials, rng)
    rows: list[tuple[float, float, FloatArray, FloatArray, float]] = []
    for number, now_s in enumerate(moments):
        if report is not None:
            report(number, len(moments))
        snapshot = snapshot_of(schedule, now_s)
        row = int(rng.choice(snapshot.queued))
        forecast = predict(snapshot, np.array([row]), simulations=simulations, seed=seed + number)
        start_s = schedule.start_s[_row_in(schedule, snapshot, row)]
        actual_s = float(np.nan_to_num(start_s, nan=np.inf)) - now_s
        naive = np.asarray(naive_interval(schedule, snapshot, row))
        rows.append((now_s, float(forecast.gpus[0]), forecast.wait_s[0], naive, actual_s))
    now, gpus, waits, naives, actual = zip(*rows, strict=True)
    return Trial(np.array(now), np.array(gpus), np.stack(waits), np.stack(naives), np.array(actual))


def calibrate(
    schedule: Schedule,
    now_s: float,
    *,
    trials: int = 60,
    simulations: int = 50,
    seed: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> Correction:
    """Learn a correction from predictions made in the later half of the time before now.

    The first half is left to them as their own past. Nothing after `now_s` is used: starts that
    have not happened by then count as happening at `now_s`.

    Raises:
        YardmasterError: if hardly anybody waited in that time.
    """
    first_s = float(schedule.workload.submit_s[0])
    trial = try_out(
        schedule, (first_s + now_s) / 2, now_s, trials=trials, simulations=simulations, seed=seed,
        report=report,
    ).known_at(now_s)  # fmt: skip
    return fit_correction(trial.wait_s, trial.actual_s)


def naive_interval(schedule: Schedule, snapshot: Snapshot, row: int) -> tuple[float, float]:
    """Return the 10 and 90 % points of past waits of jobs of the same size.

    Only waits longer than the job has waited already count, less that; those of all sizes where
    fewer than ten of its own did.
    """
    now_s, jobs = snapshot.now_s, snapshot.jobs
    start_s = schedule.start_s[_rows_of(schedule, now_s)]
    waits_s = np.where(start_s <= now_s, start_s - jobs.submit_s, np.nan)
    left_s = waits_s - (now_s - jobs.submit_s[row])
    alike = left_s[(jobs.gpus == jobs.gpus[row]) & (left_s > 0)]
    if len(alike) < 10:
        alike = left_s[left_s > 0]
    if not len(alike):
        return 0.0, LONGEST_WAIT_S
    low, high = np.quantile(alike, [0.1, 0.9])
    return float(low), float(high)


def _moments(
    schedule: Schedule, begin_s: float, end_s: float, count: int, rng: np.random.Generator
) -> list[float]:
    """Return random moments, ascending, at which somebody waits."""
    drawn = np.round(rng.uniform(begin_s, end_s, 200 * count))
    met = drawn[waiting_at(schedule, drawn) > 0]
    # Preempted jobs wait too, but for another start: only first starts are asked for.
    if len(met) < count:
        raise YardmasterError(
            f"Hardly anybody waits from second {begin_s:g} to {end_s:g}: nothing to learn from."
        )
    return sorted(met[:count].tolist())


def _rows_of(schedule: Schedule, now_s: float) -> IntArray:
    """Return the rows of the schedule that a snapshot at that moment has, in its order."""
    there = schedule.workload.submit_s <= now_s
    return np.flatnonzero(there & (schedule.outcome != Outcome.UNPLACEABLE))


def _row_in(schedule: Schedule, snapshot: Snapshot, row: int) -> int:
    return int(_rows_of(schedule, snapshot.now_s)[row])


def _soft(wait_s: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.minimum(wait_s, LONGEST_WAIT_S) + SOFTENING_S), dtype=np.float64)


def _points(soft: FloatArray) -> FloatArray:
    """Return (predictions, 3) the 10, 50 and 90 % points."""
    return np.quantile(soft, POINTS, axis=1, method="inverted_cdf").T


def _spread(points: FloatArray) -> FloatArray:
    return np.asarray((points[:, 2] - points[:, 0]) / 2 + LEAST_SPREAD, dtype=np.float64)


def _order_statistic(values: FloatArray, rank: int) -> float:
    """Return the value of that rank, counted from 1; the outermost where there is none."""
    return float(np.sort(values)[min(max(rank, 1), len(values)) - 1])


def _strictly_rising(at: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points and shifts without points that coincide; of those the last counts."""
    keep = np.append(np.diff(at) > 0, True)
    return at[keep], shift[keep]
