"""What came of a contest between policies and schedulers: means, paired differences, verdicts.

Every number carries its 95 % interval over *units*. A unit is an episode; but windows of a trace
that overlap are no independent evidence, and form one unit together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from yardmaster.experiments.players import How
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER, Scores
from yardmaster.metrics.statistics import Interval, bootstrap_mean, excludes_zero
from yardmaster.model.workload import FloatArray, IntArray

Verdict = Literal["better", "worse", "no difference", "too few units", "not comparable"]

MEANS_OVER_FINISHED = ("jct_s", "wait_s", "bounded_slowdown", "slowdown")
"""Metrics that flatter whoever leaves long jobs unfinished."""

LEAST_UNITS = 5
"""Below this, intervals are guesses about spread: they reach to waits below zero."""

ROUNDING = 1e-9
"""Relative difference below which two numbers are the same, computed differently."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What one player made of the episodes."""

    name: str
    how: How
    information: str
    """clairvoyant, estimate-based or blind."""
    scores: Mapping[str, Scores]
    """By set, by metric: one number per episode."""

    @property
    def is_policy(self) -> bool:
        """Whether it was trained."""
        return self.how == "policy"

    def left_jobs(self, split: str) -> bool:
        """Whether it left jobs unfinished in a set."""
        return bool(np.any(self.scores[split]["unfinished"] > 0))


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Policies and schedulers on the same episodes."""

    task: str
    """What was played, in words."""
    metric: str
    """What players are judged by."""
    episodes: int
    """Of each set."""
    units: Mapping[str, IntArray]
    """By set: which unit each episode belongs to, numbered from 0."""
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    """What the reader must know."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The sets played."""
        return tuple(self.units)

    @property
    def policies(self) -> tuple[Entry, ...]:
        """Those who were trained."""
        return tuple(entry for entry in self.entries if entry.is_policy)

    def ranked(self, split: str) -> list[Entry]:
        """Return the players, best first; those without a number last."""
        sign = -1.0 if HIGHER_IS_BETTER[self.metric] else 1.0

        def place(entry: Entry) -> tuple[bool, float]:
            mean = self.mean(entry, split).mean
            return math.isnan(mean), sign * mean

        return sorted(self.entries, key=place)

    def mean(self, entry: Entry, split: str, metric: str | None = None) -> Interval:
        """Return a player's mean of a metric over units, with its interval if they are enough."""
        return _interval(self._per_unit(entry, split, metric or self.metric))

    def units_in(self, split: str) -> int:
        """Return how many units the intervals of a set are over."""
        return int(self.units[split].max()) + 1

    def difference(self, policy: Entry, other: Entry, split: str) -> Interval:
        """Return how much more of the metric a policy has than another player, paired by unit.

        There is no interval for means over finished jobs where one of them left jobs unfinished,
        and none over fewer than `LEAST_UNITS` units, unless they are equal in all of them.
        """
        mine, theirs = (self._per_unit(entry, split, self.metric) for entry in (policy, other))
        found = _interval(gap(mine, theirs))
        leaves_jobs = policy.left_jobs(split) or other.left_jobs(split)
        if leaves_jobs and self.metric in MEANS_OVER_FINISHED:
            return Interval(found.mean, math.nan, math.nan)
        return found

    def verdict(self, policy: Entry, other: Entry, split: str) -> Verdict:
        """Say whether a policy is better or worse than another player."""
        return self._verdict(self.difference(policy, other, split), policy, other, split)

    def _verdict(self, found: Interval, policy: Entry, other: Entry, split: str) -> Verdict:
        verdict = verdict_of(found, self.metric)
        leaves_jobs = policy.left_jobs(split) or other.left_jobs(split)
        is_judged = not (leaves_jobs and self.metric in MEANS_OVER_FINISHED)
        has_numbers = not math.isnan(found.mean) and is_judged
        is_short = self.units_in(split) < LEAST_UNITS
        return (
            "too few units" if verdict == "not comparable" and has_numbers and is_short else verdict
        )

    def _per_unit(self, entry: Entry, split: str, metric: str) -> FloatArray:
        return by_unit(entry.scores[split][metric], self.units[split])

    def records(self, split: str) -> list[dict[str, Any]]:
        """Return every player's results on a set as plain values, best first."""
        return [self._record(entry, split) for entry in self.ranked(split)]

    def _record(self, entry: Entry, split: str) -> dict[str, Any]:
        row: dict[str, Any] = {
            "set": split,
            "player": entry.name,
            "how": entry.how,
            "information": entry.information,
        }
        for name in HIGHER_IS_BETTER:
            row |= _plain(name, self.mean(entry, split, name))
        for policy in self.policies:
            if policy is not entry:
                found = self.difference(policy, entry, split)
                row |= _plain(f"difference of {policy.name}", found)
                row[f"verdict on {policy.name}"] = self._verdict(found, policy, entry, split)
        return row


def verdict_of(difference: Interval, metric: str) -> Verdict:
    """Say what a difference (first minus second) means for the first."""
    if math.isnan(difference.low) or math.isnan(difference.high):
        return "not comparable"
    if not excludes_zero(difference):
        return "no difference"
    return "better" if (difference.mean > 0) == HIGHER_IS_BETTER[metric] else "worse"


def _interval(per_unit: FloatArray) -> Interval:
    """Return the mean over units; its interval only over enough of them, or where all are 0."""
    found = bootstrap_mean(per_unit)
    if len(per_unit) >= LEAST_UNITS or (len(per_unit) > 1 and not per_unit.any()):
        return found
    return Interval(found.mean, math.nan, math.nan)


def gap(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return values − others; 0 where they differ by no more than sums in another order do."""
    difference = values - others
    return np.where(np.abs(difference) <= ROUNDING * np.abs(others), 0.0, difference)


def by_unit(values: FloatArray, units: IntArray) -> FloatArray:
    """Return the mean of every unit, in order of their numbers; (…, units) from (…, episodes)."""
    members = units[None, :] == np.arange(int(units.max()) + 1)[:, None]
    return np.asarray(values @ (members / members.sum(axis=1, keepdims=True)).T)


def _plain(name: str, interval: Interval) -> dict[str, float | None]:
    ends = {name: interval.mean, f"{name} low": interval.low, f"{name} high": interval.high}
    return {key: value if math.isfinite(value) else None for key, value in ends.items()}
