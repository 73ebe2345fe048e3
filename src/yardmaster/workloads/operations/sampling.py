"""Workloads drawn from a workload: what each way keeps, and what it breaks.

`thinned` keeps when people submit, what their jobs are like and who submits what; it breaks the
load and the bursts, which both shrink.

`resampled_blocks` keeps hours, weekdays, bursts, jobs submitted together and, on average, the load;
it breaks trends from block to block, and dates.

`resampled_jobs` keeps every arrival, and what a job is like with all its columns together; it
breaks who submits when, and runs of similar jobs.

All are seeded: equal arguments give equal workloads. None of the results happened, so recorded
waits are forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import COLUMN_NAMES, FloatArray, IntArray, Labels, Workload
from yardmaster.workloads.arguments import finite_number, whole_number
from yardmaster.workloads.clock import DAY_S, WEEK_S, Moment, covered, length_s

LAST_BLOCK_TOLERANCE = 0.05
"""A last block counts as complete when all but this share of its length is there."""
MOST_DRAWN_JOBS = 100_000_000


def thinned(
    workload: Workload, *, seed: int, share: float | None = None, jobs: int | None = None
) -> Workload:
    """Keep jobs at random: each with probability `share`, or exactly `jobs` of them.

    Submit times stay, so days and weeks keep their shape, and the load falls by the share that is
    left out. Bursts shrink with it: hourly counts come nearer to a Poisson process.

    Args:
        workload: the jobs to choose from.
        seed: seed of the choice, at least 0.
        share: probability to be kept, above 0, at most 1.
        jobs: how many to keep, every choice of so many jobs equally likely.

    Raises:
        InvalidWorkloadError: if not exactly one of `share` and `jobs` is given, one of them makes
            no sense, or no job is left.
    """
    dice = _dice(seed)
    if (share is None) == (jobs is None):
        raise InvalidWorkloadError("Thinning needs either a share of the jobs or their number.")
    if jobs is not None:
        jobs = whole_number("jobs", jobs, smallest=1, largest=len(workload))
        rows = np.sort(dice.choice(len(workload), size=jobs, replace=False))
        how = "a random choice"
    else:
        share = finite_number("share", share, above=0, largest=1)
        rows = np.flatnonzero(dice.random(len(workload)) < share)
        how = f"each with probability {share:g}"
    if not len(rows):
        raise InvalidWorkloadError(
            f"No job is left: {len(workload):,} jobs, {how}. Take a larger share."
        )
    note = f"sample: thinned to {len(rows):,} of {len(workload):,} jobs, {how}, seed {seed}"
    return _forgetful(workload.select(rows), note)


def resampled_blocks(
    workload: Workload, *, seed: int, length: Moment | None = None, block: Moment = WEEK_S
) -> Workload:
    """Draw whole blocks of time with replacement and put them one after the other.

    The time from the first submission on is cut into blocks; an incomplete last one is not used.
    Each block of the result is a random one of those that begin at the same hour of the week, and
    stays whole: its jobs keep their hour, weekday and neighbours. Blocks of weeks keep all that
    happens within a week; blocks of a day keep days only, but can be drawn from a shorter trace.

    Args:
        workload: the jobs to draw from.
        seed: seed of the draws, at least 0.
        length: how long the result is (`4w`); by default as long as the complete blocks.
        block: length of a block: whole weeks, or a part of a week such as a day (`1w`, `1d`).

    Raises:
        InvalidWorkloadError: if an argument makes no sense, or the workload is shorter than what
            blocks of this length can be drawn from.
    """
    dice, block_s = _dice(seed), _block_s(block)
    first_s = float(workload.submit_s[0])
    sources = _complete_blocks(workload, block_s)
    length_in_s = sources * block_s if length is None else length_s(length, what="length")
    if length_in_s <= 0:
        raise InvalidWorkloadError(f"length must be more than nothing, got {length!r}.")
    drawn = _drawn_blocks(dice, sources, int(np.ceil(length_in_s / block_s)), block_s)
    borders = np.searchsorted(workload.submit_s, first_s + np.arange(sources + 1) * block_s)
    counts = np.diff(borders)[drawn]
    if counts.sum() > MOST_DRAWN_JOBS:
        raise InvalidWorkloadError(f"length is too long: {counts.sum():,} jobs would be drawn.")
    rows = np.repeat(borders[drawn] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    place = np.repeat(np.arange(len(drawn)), counts)
    submit_s = workload.submit_s[rows] + (place - np.repeat(drawn, counts)) * block_s
    inside = submit_s < first_s + length_in_s
    if not inside.any():
        raise InvalidWorkloadError(f"No job is left: {covered(workload)}; take a longer sample.")
    rows, place, submit_s = rows[inside], place[inside], submit_s[inside]
    drawn_jobs = _resubmitted(workload, rows, submit_s, _copies(workload, rows, place))
    note = (
        f"sample: {len(drawn)} blocks of {block_s / DAY_S:g} d drawn from {sources} with"
        f" replacement, {len(rows):,} jobs, seed {seed}; weekdays and hours are true, dates are not"
    )
    return _forgetful(drawn_jobs, note)


def resampled_jobs(workload: Workload, *, seed: int) -> Workload:
    """Give every arrival a job drawn from all jobs with replacement.

    Submit times stay. What is submitted at each is an independent draw of a whole row: size, run
    time, user, deadline (at the same distance) and all else go together.

    Raises:
        InvalidWorkloadError: if the seed makes no sense.
    """
    rows = _dice(seed).integers(0, len(workload), len(workload))
    drawn = _resubmitted(workload, rows, workload.submit_s, np.arange(len(workload)))
    note = f"sample: {len(rows):,} jobs drawn with replacement for the same arrivals, seed {seed}"
    return _forgetful(drawn, note)


def _dice(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(whole_number("seed", seed, smallest=0)))


def _block_s(block: Moment) -> float:
    block_s = length_s(block, what="block")
    if block_s <= 0 or (block_s % WEEK_S and WEEK_S % block_s):
        raise InvalidWorkloadError(
            f"block must be whole weeks or an even part of a week, such as 1w, 1d or 12h; got"
            f" {block!r}."
        )
    return block_s


def _complete_blocks(workload: Workload, block_s: float) -> int:
    """Return how many blocks there are; complain if some hour of the week is in none."""
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    blocks = int(np.floor(span_s / block_s + LAST_BLOCK_TOLERANCE))
    needed = max(1, round(WEEK_S / block_s))
    if blocks < needed:
        words = f"{needed} of them, a whole week," if needed > 1 else "one of them"
        raise InvalidWorkloadError(
            f"Blocks of {block_s / DAY_S:g} d need {words} to draw from, but"
            f" {covered(workload)}, {span_s / DAY_S:.2f} d. Take shorter blocks or a longer"
            " workload."
        )
    return blocks


def _drawn_blocks(dice: np.random.Generator, sources: int, wanted: int, block_s: float) -> IntArray:
    """Draw a source block for each block of the result, of the same part of the week."""
    phases = max(1, round(WEEK_S / block_s))
    if wanted > MOST_DRAWN_JOBS:
        raise InvalidWorkloadError(f"length is too long: {wanted:,} blocks would be drawn.")
    phase = np.arange(wanted) % phases
    choices = (sources - phase + phases - 1) // phases
    return np.asarray(phase + phases * dice.integers(0, choices), dtype=np.int64)


def _copies(workload: Workload, rows: IntArray, place: IntArray) -> npt.NDArray[np.str_]:
    """Return ids that say which job in which block of the result: `17@3`."""
    pairs = zip(workload.id[rows].tolist(), place.tolist(), strict=True)
    return np.array([f"{name}@{number}" for name, number in pairs], dtype=np.str_)


def _resubmitted(
    workload: Workload, rows: IntArray, submit_s: FloatArray, ids: npt.NDArray[Any]
) -> Workload:
    """Return copies of rows submitted at other times, deadlines at the same distance."""
    columns: dict[str, Any] = {}
    for key in COLUMN_NAMES:
        value = getattr(workload, key)
        columns[key] = value.take(rows) if isinstance(value, Labels) else value[rows]
    columns["deadline_s"] = columns["deadline_s"] + (submit_s - columns["submit_s"])
    columns |= {"id": ids, "submit_s": submit_s}
    return Workload.of(name=workload.name, notes=workload.notes, begins=workload.begins, **columns)


def _forgetful(workload: Workload, note: str) -> Workload:
    """Add the note, and forget recorded waits: among other jobs, nobody waited so."""
    if not np.isnan(workload.recorded_wait_s).all():
        workload = workload.with_columns(recorded_wait_s=None)
        note += "; recorded waits were dropped"
    return workload.renamed(workload.name, note)
