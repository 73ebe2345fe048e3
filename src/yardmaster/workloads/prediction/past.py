"""What is known of run times at the moment a job is submitted: those of jobs that had ended.

Nothing else is looked at. In particular a job that is waiting or running tells nothing yet, not
even that it has run so long already: when jobs started is recorded in few traces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Labels, Workload

LEAST_S = 1.0
"""Shorter run times count as this many seconds: clocks of traces do not tell them apart."""

CENSORED = ("running", "censored")
"""Status of jobs that ran at least as long as the trace says; how long, nobody wrote down."""


def is_censored(workload: Workload) -> BoolArray:
    """Return the mask of the jobs whose true run time is at least the one in the table."""
    names = workload.status.names
    codes = [code for code, name in enumerate(names) if name.casefold() in CENSORED]
    return np.isin(workload.status.codes, codes)


def trace_ends_s(workload: Workload) -> FloatArray:
    """Return when each job ended in the trace, seconds on the workload's clock.

    Where the wait is not recorded, a job ends as if it had started at once: earlier than it can
    have been. A censored job "ends" when it had run as long as is known.
    """
    waited_s = np.nan_to_num(workload.recorded_wait_s, nan=0.0)
    return np.asarray(workload.submit_s + waited_s + workload.duration_s, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Jobs grouped by what they have in common, and whose end was known to whom.

    Attributes:
        rows: jobs that ended, group by group, in each group by end.
        first: (jobs,) place in `rows` where the group of each job begins.
        stop: (jobs,) place after the last of its group that had ended at the job's submission.
    """

    rows: IntArray
    first: IntArray
    stop: IntArray

    @property
    def count(self) -> IntArray:
        """How many of the job's group had ended when it was submitted, (jobs,)."""
        return self.stop - self.first

    def latest(self, values: FloatArray, many: int, jobs: IntArray) -> FloatArray:
        """Return a value of the `many` that ended last before each of `jobs` was submitted.

        Args:
            values: (all jobs,) the value of each job, known when it has ended.
            many: how many to return.
            jobs: rows of the jobs that ask.

        Returns:
            (len(jobs), many) values, the latest first, NaN where fewer had ended.
        """
        place = self.stop[jobs, None] - 1 - np.arange(many)
        there = place >= self.first[jobs, None]
        if not len(self.rows):
            return np.full(place.shape, np.nan)
        return np.where(there, values[self.rows[np.where(there, place, 0)]], np.nan)


@dataclass(frozen=True, eq=False)
class Past:
    """What is known when each job of a workload is submitted.

    Attributes:
        workload: the jobs.
        by_end: rows of the jobs that ended, in the order in which they did.
        known: (jobs,) how many of `by_end`, the first ones, had ended at the job's submission.
        source: where the ends come from, in words.
    """

    workload: Workload
    by_end: IntArray
    known: IntArray
    source: str

    @classmethod
    def of(cls, workload: Workload, ended_s: FloatArray | None = None) -> Past:
        """Find out who had ended when.

        A job that ends in the very second in which another is submitted has ended by then, as in
        simulations; but not if it was submitted in that second too.

        Args:
            workload: the jobs.
            ended_s: (jobs,) when each ended, NaN if never; by default as in the trace.

        Raises:
            InvalidWorkloadError: if `ended_s` is not one time per job, or before a submission.
        """
        if ended_s is None:
            ends_s, source = trace_ends_s(workload), _source(workload)
        else:
            ends_s, source = _checked_ends(workload, ended_s), "ends as in the schedule given"
        # A job that takes no time is known only after everyone submitted with it: nobody knows
        # the own run time.
        ends_s = np.maximum(ends_s, np.nextafter(workload.submit_s, np.inf))
        order = np.argsort(ends_s, kind="stable")
        by_end = order[np.isfinite(ends_s[order])]
        known = np.searchsorted(ends_s[by_end], workload.submit_s, side="right")
        return cls(workload, by_end, known.astype(np.int64), source)

    def __len__(self) -> int:
        return len(self.workload)

    @cached_property
    def run_s(self) -> FloatArray:
        """Run time of each job, to be looked at only once it has ended; (jobs,)."""
        return np.maximum(self.workload.duration_s, LEAST_S)

    @property
    def requested_s(self) -> FloatArray:
        """Run time that each job came with, NaN where none; known at submission."""
        return self.workload.estimate_s

    @cached_property
    def size(self) -> IntArray:
        """What each job asks for, in thousandths of GPUs; (jobs,)."""
        return self.workload.gpus * self.workload.milli_gpu

    def alike(self, *properties: IntArray | FloatArray | Labels) -> Alike:
        """Group jobs that agree in all `properties`; a job with a missing label is in no group."""
        group = _groups(len(self), properties)
        many = len(self.by_end) + 1
        of_ended = group[self.by_end]
        order = np.argsort(of_ended, kind="stable")  # by group, and in each by end
        keys = of_ended[order] * many + order
        first = np.searchsorted(keys, group * many, side="left")
        stop = np.searchsorted(keys, group * many + self.known, side="left")
        return Alike(self.by_end[order], first, np.where(group >= 0, stop, first))


def means(latest: FloatArray) -> FloatArray:
    """Return the mean of each row of what `Alike.latest` returns, NaN where it is empty."""
    count = np.count_nonzero(~np.isnan(latest), axis=1)
    total = np.where(np.isnan(latest), 0.0, latest).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def medians(latest: FloatArray) -> FloatArray:
    """Return the median of each row of what `Alike.latest` returns, NaN where it is empty."""
    count = np.count_nonzero(~np.isnan(latest), axis=1)
    in_order = np.sort(latest, axis=1)  # NaN last
    row = np.arange(len(latest))
    lower = in_order[row, np.maximum(count - 1, 0) // 2]
    upper = in_order[row, count // 2]  # the same one if they are odd
    return np.asarray((lower + upper) / 2.0, dtype=np.float64)


def _groups(length: int, properties: tuple[IntArray | FloatArray | Labels, ...]) -> IntArray:
    """Number the distinct combinations; −1 where a label is missing."""
    group = np.zeros(length, dtype=np.int64)
    missing = np.zeros(length, dtype=np.bool_)
    for values in properties:
        if isinstance(values, Labels):
            missing |= values.codes < 0
        plain = values.codes if isinstance(values, Labels) else values
        _, code = np.unique(plain, return_inverse=True)
        _, group = np.unique(group * (int(code.max()) + 1) + code, return_inverse=True)
    return np.where(missing, -1, group).astype(np.int64)


def _source(workload: Workload) -> str:
    recorded = int(np.count_nonzero(~np.isnan(workload.recorded_wait_s)))
    at_once = "ends as if started at once, earlier than can have been"
    if recorded == 0:
        return f"no waits are recorded: {at_once}"
    if recorded == len(workload):
        return "ends by recorded waits"
    return f"ends by recorded waits; {len(workload) - recorded} jobs without one: {at_once}"


def _checked_ends(workload: Workload, ended_s: FloatArray) -> FloatArray:
    ends_s = np.asarray(ended_s, dtype=np.float64)
    if ends_s.shape != (len(workload),):
        raise InvalidWorkloadError(
            f"{workload.name}: ended_s must hold one time for each of the {len(workload)} jobs,"
            f" got shape {ends_s.shape}."
        )
    early = np.flatnonzero(ends_s < workload.submit_s)
    if len(early):
        row = early[0]
        raise InvalidWorkloadError(
            f"{workload.name}: row {row} (id {workload.id[row]}) is submitted at"
            f" {workload.submit_s[row]:g} s and cannot have ended at {ends_s[row]:g} s"
            f" ({len(early)} such in all)."
        )
    return np.where(np.isnan(ends_s), np.inf, ends_s)
