"""Who started before whom: starts out of the order of submission.

A start *passes* an earlier job if that job goes on waiting for a minute or more. Backfilling passes
jobs too, but never one that asks for no more GPUs and no more time: had there been room for the
later job, the earlier one would have been let in first. Starts that pass such a job show that
something other than the order of submission was at work.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from yardmaster.experiments.fidelity.evidence import Cause, Evidence
from yardmaster.model.workload import BoolArray, FloatArray

MOST_STARTS = 5_000
"""Starts looked at, evenly spaced over the trace where there are more."""
PATIENCE_S = 60.0
"""Who starts so soon after another was not passed, only counted in another second."""
NOTABLE_PASSING = 0.05
NOTABLE_JUMPS = 0.02
"""Shares of all starts by which record and simulation must differ."""


class Passing(NamedTuple):
    """How often starts pass earlier jobs, as shares of all starts looked at."""

    starts: int
    passes: float
    """They pass any job submitted before."""
    jumps: float
    """They pass one that asks for no more GPUs and no more time."""
    own_jumps: float
    """They pass such a job of the same user."""


def passing(evidence: Evidence, side: Literal["recorded", "simulated"]) -> Passing:
    """Count how often starts pass earlier jobs, in the record or in the simulation."""
    jobs = evidence.workload
    waits_s = evidence.recorded_s if side == "recorded" else evidence.simulated_s
    start_s = np.where(np.isfinite(waits_s), jobs.submit_s + waits_s, -np.inf)
    run_s = np.where(np.isnan(jobs.estimate_s), jobs.duration_s, jobs.estimate_s)
    rows = np.flatnonzero(evidence.counts)
    if len(rows) > MOST_STARTS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_STARTS).astype(np.int64)]
    seen = np.zeros((len(rows), 3), dtype=np.bool_)
    # Rows are in order of submission: all before the first that still waits have started.
    latest_s = np.maximum.accumulate(start_s)
    first = np.searchsorted(latest_s, start_s[rows] + PATIENCE_S, side="right")
    last = np.searchsorted(jobs.submit_s, jobs.submit_s[rows], side="left")
    for place, row in enumerate(rows.tolist()):
        earlier = slice(int(first[place]), int(last[place]))
        if earlier.start < earlier.stop:
            seen[place] = _passed(evidence, start_s, run_s, row, earlier)
    shares = seen.mean(axis=0) if len(rows) else np.zeros(3)
    return Passing(len(rows), *(float(share) for share in shares))


def _passed(
    evidence: Evidence, start_s: FloatArray, run_s: FloatArray, row: int, earlier: slice
) -> tuple[bool, bool, bool]:
    """Tell whether one start passes any job, one that asks for no more, and one of its own user."""
    jobs, wants = evidence.workload, evidence.record.wants
    waits: BoolArray = start_s[earlier] > start_s[row] + PATIENCE_S
    asks_no_more = (
        waits
        & (wants[earlier] <= wants[row])
        & (run_s[earlier] <= run_s[row])
        & (jobs.gpu_types.codes[earlier] == jobs.gpu_types.codes[row])
    )
    user = jobs.user.codes[earlier]
    is_own = asks_no_more & (user == jobs.user.codes[row]) & (user >= 0)
    return bool(waits.any()), bool(asks_no_more.any()), bool(is_own.any())


def order(recorded: Passing, simulated: Passing) -> Cause:
    """Look for an order that is not the scheduler's: priorities, or a stricter queue."""
    difference = recorded.passes - simulated.passes
    jumps = recorded.jumps - simulated.jumps
    return Cause(
        "order",
        is_found=abs(difference) >= NOTABLE_PASSING or jumps >= NOTABLE_JUMPS,
        numbers={
            "starts": float(recorded.starts),
            "passing_share": recorded.passes,
            "simulated_passing_share": simulated.passes,
            "jumping_share": recorded.jumps,
            "simulated_jumping_share": simulated.jumps,
        },
    )


def held(recorded: Passing, simulated: Passing) -> Cause:
    """Look for jobs passed by their own user's later ones: held back, or waiting for others."""
    return Cause(
        "held",
        is_found=recorded.own_jumps - simulated.own_jumps >= NOTABLE_JUMPS,
        numbers={
            "own_jumping_share": recorded.own_jumps,
            "simulated_own_jumping_share": simulated.own_jumps,
        },
    )
