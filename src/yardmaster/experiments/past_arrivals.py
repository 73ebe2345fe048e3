"""Who will come next: the past again, at the same hour of the week."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from yardmaster.experiments.run_time_model import RunTimeModel
from yardmaster.experiments.snapshot import Snapshot
from yardmaster.model.columns import BoolArray, FloatArray, IntArray

HOUR_S, DAY_S, WEEK_S = 3600.0, 86_400.0, 604_800.0
RECENT_WEEKS = 4
"""Arrivals are drawn from so many weeks before now."""


@dataclass(frozen=True, slots=True, eq=False)
class PastArrivals:
    """Who came in the past, cut into periods of like hours, to be drawn from."""

    now_s: float
    period_s: float
    periods: tuple[IntArray, ...]
    """Rows submitted in each period before now, the latest first."""
    submit_s: FloatArray
    run_s: FloatArray
    """(jobs,) what each has run so far."""
    ended: BoolArray
    notes: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> PastArrivals:
        """Cut the past of a snapshot into periods."""
        period_s, count, note = _periods(snapshot.history_s)
        submit_s = snapshot.jobs.submit_s
        edges = np.searchsorted(
            submit_s, snapshot.now_s - period_s * np.arange(count + 1), side="right"
        )
        rows = [np.arange(edges[k + 1], edges[k]) for k in range(count)]
        return cls(
            snapshot.now_s, period_s, tuple(rows), submit_s, snapshot.jobs.duration_s,
            snapshot.ended, (note,) if note else (),
        )  # fmt: skip

    def arrivals(
        self, model: RunTimeModel, seed: list[int], horizon_s: float
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Draw who comes within the horizon: rows of the past, new submit times, run times.

        Equal seeds and a longer horizon give the same arrivals and more.
        """
        rows, at_s, run_s = [], [], []
        for step in range(math.ceil(horizon_s / self.period_s) if self.periods else 0):
            rng = np.random.default_rng([*seed, step])
            back = int(rng.integers(len(self.periods)))
            came = self.periods[back]
            again_s = self.submit_s[came] + (back + 1 + step) * self.period_s
            took_s = self.run_s[came].copy()
            open_ended = np.flatnonzero(~self.ended[came])
            took_s[open_ended] = model.draw(rng, came[open_ended], took_s[open_ended])
            soon = (again_s > self.now_s) & (again_s <= self.now_s + horizon_s)
            rows.append(came[soon])
            at_s.append(again_s[soon])
            run_s.append(took_s[soon])
        if not rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        return np.concatenate(rows), np.concatenate(at_s), np.concatenate(run_s)


def _periods(history_s: float) -> tuple[float, int, str]:
    """Return the length and number of past periods to draw arrivals from, and a remark."""
    if history_s >= 2 * WEEK_S:
        return WEEK_S, min(int(history_s // WEEK_S), RECENT_WEEKS), ""
    if history_s >= 2 * DAY_S:
        days = min(int(history_s // DAY_S), 7)
        return DAY_S, days, f"arrivals are drawn from the last {days} days: the past is short"
    if history_s >= HOUR_S:
        note = f"arrivals repeat the last {history_s / HOUR_S:.0f} hours: the past is short"
        return history_s, 1, note
    return HOUR_S, 0, "nobody else is expected to come: there is no past to draw arrivals from"
