"""One scheduling pass: which waiting jobs start at this instant, under each discipline."""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel, spliced_kernel
from yardmaster.engine.core.conservative import conservative_pass
from yardmaster.engine.core.elastic import elastic_pass
from yardmaster.engine.core.migration import defrag_pass
from yardmaster.engine.core.placement import plan_placement
from yardmaster.engine.core.preemption import preemptive_pass
from yardmaster.engine.core.queue import (
    admit_all,
    next_fitting,
    next_job,
    waiting_shape,
    waiting_shapes,
)
from yardmaster.engine.core.reservation import (
    anything_fits,
    limit_backfill,
    plan_beside,
    reserve,
    until_shadow,
)
from yardmaster.engine.core.room import fits
from yardmaster.engine.core.running import start
from yardmaster.engine.core.tenants import HELD_BACK, class_of
from yardmaster.engine.state import (
    COMMITTED,
    DISCIPLINE,
    FREE_GPUS,
    HAS_SHARING,
    IS_REAL,
    JOB_SHAPE,
    NOTHING,
    PASSES,
    QUEUED,
    SHAPE_LIMIT,
    SHAPE_QUEUED,
    VALUE,
    Discipline,
    Ints,
    Reals,
    Status,
)


@spliced_kernel
def schedule(ints: Ints, reals: Reals) -> int:
    """Start every job that the discipline starts now; return why the core stopped."""
    ints[PASSES] += 1
    discipline = ints[DISCIPLINE]
    if discipline == Discipline.CONSERVATIVE:
        return conservative_pass(ints, reals)
    if REAL_CLUSTERS and discipline > Discipline.CONSERVATIVE:
        _schedule_really(ints, reals, discipline)
    elif discipline == Discipline.COMMIT:
        _start_committed(
            ints, reals
        )  # even with nothing free: the choice is made when it can be made
    elif _has_room(ints) and ints[QUEUED] > 0:
        if discipline == Discipline.SKIP:
            _start_all_that_fit(ints, reals)
        else:
            blocked = _start_in_order(ints, reals)
            if (
                discipline == Discipline.EASY
                and blocked != NOTHING
                and _has_room(ints)
                and anything_fits(ints)
            ):
                _backfill(ints, reals, blocked)
    return Status.PASS_DUE


@spliced_kernel
def _schedule_really(ints: Ints, reals: Reals, discipline: int) -> None:
    """Call the disciplines that stop, move or resize running jobs."""
    if discipline == Discipline.ELASTIC:
        elastic_pass(ints, reals)
    elif discipline == Discipline.DEFRAG:
        defrag_pass(ints, reals)
    else:
        preemptive_pass(ints, reals)


@hot_kernel
def _has_room(ints: Ints) -> bool:
    """Whether anything can start: a GPU is free, or some may be shared."""
    return ints[FREE_GPUS] > 0 or ints[HAS_SHARING] == 1


@spliced_kernel
def _start_in_order(ints: Ints, reals: Reals) -> int:
    """Start jobs in order until one does not fit; return that one, or NOTHING."""
    if ints[DISCIPLINE] == Discipline.EASY:
        admit_all(ints, reals)  # backfilling has set limits; under `strict` nobody does
    job = next_job(ints, reals)
    while job != NOTHING and plan_placement(ints, reals, job):
        start(ints, reals, job)
        job = next_job(ints, reals)
    return job


@spliced_kernel
def _start_all_that_fit(ints: Ints, reals: Reals) -> None:
    """Start jobs in order, passing over those that do not fit.

    GPUs only become scarcer during a pass, so a shape that does not fit once is out until the end.
    """
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        job = next_fitting(ints, reals)
        while job != NOTHING:
            plan_placement(ints, reals, job)
            start(ints, reals, job)
            job = next_fitting(ints, reals)
        return
    admit_all(ints, reals)
    while _has_room(ints):
        for index in range(waiting_shapes(ints)):
            shape = waiting_shape(ints, index)
            if reals[ints[SHAPE_LIMIT] + shape] > 0.0 and (
                ints[ints[SHAPE_QUEUED] + shape] == 0 or not fits(ints, shape)
            ):
                reals[ints[SHAPE_LIMIT] + shape] = -1.0
        job = next_job(ints, reals)
        if job == NOTHING:
            return
        plan_placement(ints, reals, job)
        start(ints, reals, job)


@spliced_kernel
def _start_committed(ints: Ints, reals: Reals) -> None:
    """Start the chosen job when it fits, then choose again; a choice is never taken back."""
    while True:
        job = ints[COMMITTED]
        if REAL_CLUSTERS and job != NOTHING and _is_held_back(ints, job):
            job = NOTHING  # it blocks nobody
        if job == NOTHING:
            job = next_job(ints, reals)
            ints[COMMITTED] = job
        if job == NOTHING or not plan_placement(ints, reals, job):
            return
        start(ints, reals, job)
        ints[COMMITTED] = NOTHING


@kernel
def _is_held_back(ints: Ints, job: int) -> bool:
    """Whether a job's tenant is at its limit."""
    return ints[IS_REAL] == 1 and class_of(ints, ints[ints[JOB_SHAPE] + job]) == HELD_BACK


@spliced_kernel
def _backfill(ints: Ints, reals: Reals, blocked: int) -> None:
    """Start jobs behind the blocked one that cannot delay its reservation."""
    shadow = reserve(ints, reals, blocked)
    while _has_room(ints) and limit_backfill(ints, reals, shadow):
        job = next_job(ints, reals)
        if job == NOTHING:
            return
        shape = ints[ints[JOB_SHAPE] + job]
        if reals[ints[VALUE] + job] <= until_shadow(ints, reals, shape, shadow):
            plan_placement(ints, reals, job)
        else:
            plan_beside(ints, reals, job)
        start(ints, reals, job)
