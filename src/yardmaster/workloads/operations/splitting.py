"""Training, validation and test parts: a workload cut at moments, the past before the future."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.names import unknown
from yardmaster.workloads.arguments import finite_number
from yardmaster.workloads.clock import Moment, covered, in_words, length_s, second_of

PART_NAMES = {2: ("train", "test"), 3: ("train", "validation", "test")}
"""What the parts are called; more than three are numbered."""
DEFAULT_FRACTIONS = (0.6, 0.2, 0.2)


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a workload, by name, earliest first.

    Attributes:
        parts: name → jobs, on the clock of the whole; no two parts share a job.
        dropped: jobs in the gaps between parts, which belong to none.
    """

    parts: dict[str, Workload]
    dropped: int


def split(
    workload: Workload,
    *,
    fractions: Sequence[float] = DEFAULT_FRACTIONS,
    by: Literal["time", "jobs"] = "time",
    at: Sequence[Moment] = (),
    gap: Moment = 0.0,
) -> Split:
    """Cut a workload by submit time into parts that follow each other.

    Borders are moments: jobs submitted in the same second are always in the same part. A job that
    is submitted before a border may still run after it, so what is learnt from it would not have
    been known there. A gap keeps most such jobs out: jobs submitted less than `gap` before a border
    belong to no part. The notes count those that run past the border all the same.

    Args:
        workload: the jobs to share out.
        fractions: share of each part, adding up to 1; two (train, test) or three, or more.
        by: whether these are shares of the time from first to last submission, or of the jobs.
        at: borders as moments (see `workloads.clock`), in place of fractions.
        gap: length of time before each border of which no part gets the jobs.

    Raises:
        InvalidWorkloadError: if an argument makes no sense, or a part would be empty.
    """
    if by not in {"time", "jobs"}:
        raise unknown("way to share out", by, ("time", "jobs"))
    gap_s = length_s(gap, what="gap")
    borders = _given(workload, at) if at else _shared_out(workload, _checked(fractions), by)
    names = PART_NAMES.get(len(borders) + 1) or tuple(
        f"part-{number}" for number in range(1, len(borders) + 2)
    )
    begins = np.concatenate(([-np.inf], borders))
    ends = np.concatenate((borders, [np.inf]))
    parts = {
        name: _part(workload, name, float(begin), float(end), gap_s)
        for name, begin, end in zip(names, begins, ends, strict=True)
    }
    return Split(parts, len(workload) - sum(len(part) for part in parts.values()))


def _checked(fractions: Sequence[float]) -> FloatArray:
    if len(fractions) < 2:
        raise InvalidWorkloadError("fractions must name at least two parts, such as 0.8,0.2.")
    shares = [finite_number("a fraction", share, above=0, largest=1) for share in fractions]
    if not np.isclose(sum(shares), 1.0):
        raise InvalidWorkloadError(f"fractions must add up to 1, got {sum(shares):g}.")
    return np.asarray(shares, dtype=np.float64)


def _given(workload: Workload, at: Sequence[Moment]) -> FloatArray:
    borders = np.array([second_of(workload, moment) for moment in at])
    if np.any(np.diff(borders) <= 0):
        raise InvalidWorkloadError("Borders must follow each other, the earliest first.")
    return borders


def _shared_out(workload: Workload, shares: FloatArray, by: str) -> FloatArray:
    """Return the moments that give each part its share of the time or of the jobs."""
    passed, submit_s = np.cumsum(shares)[:-1], workload.submit_s
    if by == "time":
        return np.asarray(submit_s[0] + passed * (submit_s[-1] - submit_s[0]))
    rows = np.clip(np.round(passed * len(workload)).astype(np.int64), 0, len(workload) - 1)
    return np.asarray(submit_s[rows])


def _part(workload: Workload, name: str, begin_s: float, end_s: float, gap_s: float) -> Workload:
    """Return the jobs submitted in [begin, end − gap), with a note about those near the border."""
    until_s = end_s - gap_s
    rows = slice(*np.searchsorted(workload.submit_s, [begin_s, max(until_s, begin_s)]))
    if rows.start == rows.stop:
        raise InvalidWorkloadError(
            f"The {name} part would be empty: no job is submitted"
            f"{_bounds(workload, begin_s, until_s)}; {covered(workload)}."
        )
    part = workload.select(np.arange(rows.start, rows.stop))
    note = f"split: {name}, {len(part):,} of {len(workload):,} jobs"
    note += _bounds(workload, begin_s, until_s)
    late = np.count_nonzero(part.submit_s + part.duration_s > end_s)
    if late:
        note += f"; {late:,} of them would run past {in_words(workload, end_s)} if none waited"
    return part.renamed(f"{workload.name}-{name}", note)


def _bounds(workload: Workload, begin_s: float, until_s: float) -> str:
    begin = f" from {in_words(workload, begin_s)}" if np.isfinite(begin_s) else ""
    until = f" before {in_words(workload, until_s)}" if np.isfinite(until_s) else ""
    return begin + until
