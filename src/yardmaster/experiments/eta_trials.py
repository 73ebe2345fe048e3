"""Predictions made at moments of a schedule that is known to its end, and what came true.

Each prediction sees the schedule up to its moment only. Beside it stands the naive one: how long
like jobs waited in the past.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.eta import predict
from yardmaster.experiments.snapshot import Snapshot, rows_at, snapshot_of, waiting_at
from yardmaster.model.columns import BoolArray, FloatArray, IntArray
from yardmaster.model.schedule import Schedule

LONGEST_WAIT_S = 28 * 86_400.0
"""Longer waits, and starts beyond the last horizon, count as this."""
LEAST_ALIKE = 10
"""Fewer past waits of jobs of one size say too little about 10 and 90 % points."""


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """Predictions in the order they were made, and what came true.

    Attributes:
        now_s: (trials,) when each was made, ascending.
        gpus: (trials,) GPUs of the job.
        wait_s: (trials, simulations) predicted waits.
        naive_s: (trials, 2) 10 and 90 % points of past waits of like jobs.
        actual_s: (trials,) how long the job did wait; infinite if it never starts.
    """

    now_s: FloatArray
    gpus: IntArray
    wait_s: FloatArray
    naive_s: FloatArray
    actual_s: FloatArray

    def __len__(self) -> int:
        return len(self.now_s)

    def select(self, chosen: BoolArray) -> Trials:
        """Return some of the trials."""
        return Trials(
            self.now_s[chosen], self.gpus[chosen], self.wait_s[chosen], self.naive_s[chosen],
            self.actual_s[chosen],
        )  # fmt: skip

    @property
    def interval_s(self) -> FloatArray:
        """(trials, 2) simulated 10 and 90 % points."""
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
) -> Trials:
    """Predict the start of a random waiting job at random moments of a schedule.

    One job a moment: jobs that wait together start together, and would count as many surprises
    where there was one.

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
    rows: list[tuple[float, int, FloatArray, FloatArray, float]] = []
    for number, now_s in enumerate(moments):
        if report is not None:
            report(number, len(moments))
        snapshot = snapshot_of(schedule, now_s)
        start_s = schedule.start_s[rows_at(schedule, now_s)]
        # Preempted jobs wait too, but for another start: only first starts are asked for.
        row = int(rng.choice(np.flatnonzero(~(start_s <= now_s))))
        forecast = predict(snapshot, np.array([row]), simulations=simulations, seed=seed + number)
        actual_s = float(np.nan_to_num(start_s[row], nan=np.inf)) - now_s
        naive = np.asarray(naive_interval(snapshot, start_s, row))
        rows.append((now_s, int(forecast.gpus[0]), forecast.wait_s[0], naive, actual_s))
    now, gpus, waits, naives, actual = zip(*rows, strict=True)
    return Trials(
        np.array(now), np.array(gpus), np.stack(waits), np.stack(naives), np.array(actual)
    )


def naive_interval(snapshot: Snapshot, start_s: FloatArray, row: int) -> tuple[float, float]:
    """Return the 10 and 90 % points of past waits of jobs of the same size.

    Only waits longer than the job has waited already count, less that; those of all sizes where
    too few of its own did.

    Args:
        snapshot: the moment.
        start_s: (jobs of the snapshot,) first starts; those after now are not looked at.
        row: row of the waiting job.
    """
    now_s, jobs = snapshot.now_s, snapshot.jobs
    waits_s = np.where(start_s <= now_s, start_s - jobs.submit_s, np.nan)
    left_s = waits_s - (now_s - jobs.submit_s[row])
    alike = left_s[(jobs.gpus == jobs.gpus[row]) & (left_s > 0)]
    if len(alike) < LEAST_ALIKE:
        alike = left_s[left_s > 0]
    if not len(alike):
        return 0.0, LONGEST_WAIT_S
    low, high = np.quantile(alike, [0.1, 0.9])
    return float(low), float(high)


def _moments(
    schedule: Schedule, begin_s: float, end_s: float, count: int, rng: np.random.Generator
) -> list[float]:
    """Return random moments, ascending, at which somebody waits for a first start."""
    drawn = np.round(rng.uniform(begin_s, end_s, 200 * count))
    met = drawn[waiting_at(schedule, drawn) > 0]
    if len(met) < count:
        raise YardmasterError(
            f"Hardly anybody waits from second {begin_s:g} to {end_s:g}: nothing to learn from."
        )
    return sorted(met[:count].tolist())
