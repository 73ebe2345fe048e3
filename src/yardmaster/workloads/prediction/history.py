"""Predictions without a model: what the user asked for, and how the latest like jobs ran."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Labels
from yardmaster.workloads.prediction.past import LEAST_S, Past, means, medians

COLD_START_S = 3600.0
"""Predicted for a job without a requested time before anything has ended."""

LATEST = 5
"""`history` looks at so many like jobs. On the earlier halves of KTH-SP2, SDSC-BLUE, Venus and
Philly the median of 3 to 5 missed least where there are users, of more where there are none."""

REQUESTED, NOTHING = "requested time", "nothing"
ALL = "all jobs"
"""Names of what a prediction rests on, shared by several methods."""

Properties = tuple[IntArray | FloatArray | Labels, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Run times predicted at submission.

    Attributes:
        run_s: (jobs,) seconds, at least 1 and at most the requested time where there is one.
        basis: (jobs,) what each rests on, such as "user and GPUs".
        own: names of `basis` that the method is meant to rest on; the others are makeshifts.
    """

    run_s: FloatArray
    basis: Labels
    own: tuple[str, ...]

    @property
    def is_cold(self) -> BoolArray:
        """Whether the method had to make do without what it is meant to rest on, (jobs,)."""
        warm = [code for code, name in enumerate(self.basis.names) if name in self.own]
        return ~np.isin(self.basis.codes, warm)

    def shares(self) -> dict[str, float]:
        """Return the share of the jobs by what their prediction rests on."""
        counts = np.bincount(self.basis.codes, minlength=len(self.basis.names))
        return {
            name: float(count) / len(self.run_s)
            for name, count in zip(self.basis.names, counts, strict=True)
        }


def first_known(
    past: Past, choices: Sequence[tuple[str, FloatArray]], *, own: int = 1
) -> Prediction:
    """Predict each job by the first choice that has a number for it, and one hour at last.

    Args:
        past: what was known when.
        choices: what a prediction may rest on and the predicted seconds (NaN: unknown), best first.
        own: how many of the choices, the first ones, are what the method is meant to rest on.
    """
    run_s = np.full(len(past), np.nan)
    basis = np.full(len(past), len(choices), dtype=np.int32)
    for place, (_, choice_s) in enumerate(choices):
        taken = np.isnan(run_s) & ~np.isnan(choice_s)
        run_s[taken], basis[taken] = choice_s[taken], place
    run_s[np.isnan(run_s)] = COLD_START_S
    names = (*(name for name, _ in choices), NOTHING)
    return Prediction(within_request(past, run_s), Labels(basis, names), names[:own])


def within_request(past: Past, run_s: FloatArray) -> FloatArray:
    """Cut predictions to the requested time: beyond it jobs are killed, or nearly so."""
    return np.fmax(np.fmin(run_s, past.requested_s), LEAST_S)


def user(past: Past) -> Prediction:
    """Take the requested time; jobs without one get the median of all that has ended."""
    return first_known(past, [(REQUESTED, past.requested_s), (ALL, _running_median(past))])


def mean(past: Past) -> Prediction:
    """Take the mean run time of all jobs that have ended."""
    total_s = np.concatenate(([0.0], np.cumsum(past.run_s[past.by_end])))[past.known]
    mean_s = np.where(past.known > 0, total_s / np.maximum(past.known, 1), np.nan)
    return first_known(past, [(ALL, mean_s), (REQUESTED, past.requested_s)])


def median(past: Past) -> Prediction:
    """Take the median run time of all jobs that have ended."""
    return first_known(past, [(ALL, _running_median(past)), (REQUESTED, past.requested_s)])


def last_two(past: Past) -> Prediction:
    """Take the mean of the last two jobs of the same user that have ended (or of the only one)."""
    everyone = np.arange(len(past))
    latest = past.alike(past.workload.user).latest(past.run_s, 2, everyone)
    choices = [("user", means(latest)), (REQUESTED, past.requested_s)]
    return first_known(past, [*choices, (ALL, _running_median(past))])


def history(past: Past, *, latest: int = LATEST) -> Prediction:
    """Take the median of the latest jobs that are most alike, however few these are.

    Alike are jobs of the same user with the same GPUs and requested time; else of the user with the
    same GPUs; else of the user; else of the tenant with the same GPUs; else with the same GPUs;
    else all.
    """
    jobs = past.workload
    alike: list[tuple[str, Properties]] = [
        ("user and GPUs", (jobs.user, past.size)),
        ("user", (jobs.user,)),
        ("tenant and GPUs", (jobs.tenant, past.size)),
        ("GPUs", (past.size,)),
        (ALL, ()),
    ]
    same_request_s = _recent_median(past, (jobs.user, past.size, past.requested_s), latest)
    same_request_s = np.where(np.isnan(past.requested_s), np.nan, same_request_s)
    choices = [
        ("user, GPUs and requested time", same_request_s),
        *((name, _recent_median(past, properties, latest)) for name, properties in alike),
        (REQUESTED, past.requested_s),
    ]
    return first_known(past, choices, own=3)


def _recent_median(past: Past, properties: Properties, latest: int) -> FloatArray:
    return medians(past.alike(*properties).latest(past.run_s, latest, np.arange(len(past))))


def _running_median(past: Past) -> FloatArray:
    """Return the median run time of all that had ended at each submission, NaN if nothing had."""
    shorter: list[float] = []  # the shorter half, negated: the longest of them on top
    longer: list[float] = []  # the longer half, at most one job less
    after = [float("nan")]
    for run_s in past.run_s[past.by_end].tolist():
        heapq.heappush(longer, -heapq.heappushpop(shorter, -run_s))
        if len(longer) > len(shorter):
            heapq.heappush(shorter, -heapq.heappop(longer))
        is_odd = len(shorter) > len(longer)
        after.append(-shorter[0] if is_odd else (longer[0] - shorter[0]) / 2.0)
    return np.array(after)[past.known]
