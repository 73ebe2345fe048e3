"""Starting a job and ending it: the only two places where GPUs change hands."""

from __future__ import annotations

from yardmaster.engine.compilation import hot_kernel
from yardmaster.engine.core.heap import push, remove
from yardmaster.engine.core.nodes import hold, release
from yardmaster.engine.core.queue import dequeue, remember_run_time
from yardmaster.engine.state import (
    DURATION,
    END,
    EXPECTED,
    EXPECTED_END,
    EXPECTED_HEAP,
    EXPECTED_HEAP_AT,
    HEAP,
    HEAP_AT,
    JOB_SEGMENT,
    NOW,
    RECORDS,
    REPLAN,
    RUNNING,
    SEGMENT_END,
    SEGMENT_JOB,
    SEGMENT_RECORD,
    SEGMENT_START,
    SEGMENTS,
    TRUE_ENDS,
    Ints,
    Reals,
)


@hot_kernel
def start(ints: Ints, reals: Reals, job: int) -> None:
    """Start a waiting job now on the nodes of the current plan."""
    dequeue(ints, reals, job)
    segment = ints[SEGMENTS]
    ints[ints[JOB_SEGMENT] + job] = segment
    ints[ints[SEGMENT_JOB] + segment] = job
    reals[ints[SEGMENT_START] + segment] = reals[NOW]
    hold(ints, job)
    ints[ints[SEGMENT_RECORD] + segment + 1] = ints[RECORDS]
    ints[SEGMENTS] = segment + 1
    reals[ints[END] + job] = reals[NOW] + reals[ints[DURATION] + job]
    push(ints, reals, ints[HEAP], ints[HEAP_AT], ints[END], ints[RUNNING], job)
    if ints[TRUE_ENDS] == 0:
        reals[ints[EXPECTED_END] + job] = reals[NOW] + reals[ints[EXPECTED] + job]
        push(
            ints,
            reals,
            ints[EXPECTED_HEAP],
            ints[EXPECTED_HEAP_AT],
            ints[EXPECTED_END],
            ints[RUNNING],
            job,
        )
    ints[RUNNING] += 1


@hot_kernel
def finish(ints: Ints, reals: Reals, job: int) -> None:
    """End a running job now and free its GPUs."""
    size = ints[RUNNING]
    remove(ints, reals, ints[HEAP], ints[HEAP_AT], ints[END], size, job)
    if ints[TRUE_ENDS] == 0:
        remove(
            ints,
            reals,
            ints[EXPECTED_HEAP],
            ints[EXPECTED_HEAP_AT],
            ints[EXPECTED_END],
            size,
            job,
        )
        if reals[ints[EXPECTED_END] + job] != reals[NOW]:
            ints[REPLAN] = 1  # promises were made for another moment
    ints[RUNNING] = size - 1
    segment = ints[ints[JOB_SEGMENT] + job]
    reals[ints[SEGMENT_END] + segment] = reals[NOW]
    release(ints, job)
    remember_run_time(ints, reals, job, reals[NOW] - reals[ints[SEGMENT_START] + segment])
