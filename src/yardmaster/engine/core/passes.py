"""One scheduling pass: which waiting jobs start at this instant, under each discipline."""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel
from yardmaster.engine.core.conservative import conservative_pass
from yardmaster.engine.core.nodes import fits, plan_placement
from yardmaster.engine.core.queue import next_job
from yardmaster.engine.core.reservation import anything_fits, limit_backfill, plan_beside, reserve
from yardmaster.engine.core.running import start
from yardmaster.engine.state import (
    COMMITTED,
    DISCIPLINE,
    EXPECTED,
    FREE_GPUS,
    NOTHING,
    NOW,
    PASSES,
    QUEUED,
    SHAPE_LIMIT,
    SHAPE_QUEUED,
    SHAPES,
    Discipline,
    Ints,
    Reals,
    Status,
)


@kernel
def schedule(ints: Ints, reals: Reals) -> int:
    """Start every job that the discipline starts now; return why the core stopped."""
    ints[PASSES] += 1
    discipline = ints[DISCIPLINE]
    if discipline == Discipline.CONSERVATIVE:
        return conservative_pass(ints, reals)
    if discipline == Discipline.COMMIT:
        _start_committed(
            ints, reals
        )  # even with nothing free: the choice is made when it can be made
    elif ints[FREE_GPUS] > 0 and ints[QUEUED] > 0:
        if discipline == Discipline.SKIP:
            _start_all_that_fit(ints, reals)
        else:
            blocked = _start_in_order(ints, reals)
            if (
                discipline == Discipline.EASY
                and blocked != NOTHING
                and ints[FREE_GPUS] > 0
                and anything_fits(ints)
            ):
                _backfill(ints, reals, blocked)
    return Status.PASS_DUE


@kernel
def _admit_all(ints: Ints, reals: Reals) -> None:
    for shape in range(ints[SHAPES]):
        reals[ints[SHAPE_LIMIT] + shape] = math.inf


@kernel
def _start_in_order(ints: Ints, reals: Reals) -> int:
    """Start jobs in order until one does not fit; return that one, or NOTHING."""
    if ints[DISCIPLINE] == Discipline.EASY:
        _admit_all(ints, reals)  # backfilling has set limits; under `strict` nobody does
    job = next_job(ints, reals)
    while job != NOTHING and plan_placement(ints, job):
        start(ints, reals, job)
        job = next_job(ints, reals)
    return job


@kernel
def _start_all_that_fit(ints: Ints, reals: Reals) -> None:
    """Start jobs in order, passing over those that do not fit.

    GPUs only become scarcer during a pass, so a shape that does not fit once is out until the end.
    """
    _admit_all(ints, reals)
    while ints[FREE_GPUS] > 0:
        for shape in range(ints[SHAPES]):
            if reals[ints[SHAPE_LIMIT] + shape] > 0.0 and (
                ints[ints[SHAPE_QUEUED] + shape] == 0 or not fits(ints, shape)
            ):
                reals[ints[SHAPE_LIMIT] + shape] = -1.0
        job = next_job(ints, reals)
        if job == NOTHING:
            return
        plan_placement(ints, job)
        start(ints, reals, job)


@kernel
def _start_committed(ints: Ints, reals: Reals) -> None:
    """Start the chosen job when it fits, then choose again; a choice is never taken back."""
    while True:
        if ints[COMMITTED] == NOTHING:
            ints[COMMITTED] = next_job(ints, reals)
        job = ints[COMMITTED]
        if job == NOTHING or not plan_placement(ints, job):
            return
        start(ints, reals, job)
        ints[COMMITTED] = NOTHING


@kernel
def _backfill(ints: Ints, reals: Reals, blocked: int) -> None:
    """Start jobs behind the blocked one that cannot delay its reservation."""
    shadow = reserve(ints, reals, blocked)
    while ints[FREE_GPUS] > 0 and limit_backfill(ints, reals, shadow):
        job = next_job(ints, reals)
        if job == NOTHING:
            return
        if reals[ints[EXPECTED] + job] <= shadow - reals[NOW]:
            plan_placement(ints, job)
        else:
            plan_beside(ints, job)
        start(ints, reals, job)
