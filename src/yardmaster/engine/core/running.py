"""Starting a job, ending it and stopping it: the only places where GPUs change hands."""

from __future__ import annotations

from yardmaster.engine.compilation import REAL_CLUSTERS, hot_kernel, kernel, spliced_kernel
from yardmaster.engine.core.heap import push, remove
from yardmaster.engine.core.nodes import hold, release
from yardmaster.engine.core.progress import (
    begin_progress,
    change_speed_of_sharers,
    enter_heaps,
    expected_left,
    last_save,
    leave_heaps,
    settle,
    speed_of_plan,
)
from yardmaster.engine.core.queue import dequeue, enqueue, remember_run_time
from yardmaster.engine.core.room import is_fraction
from yardmaster.engine.core.sharing import hold_part, release_part
from yardmaster.engine.state import (
    BASE_SPEED,
    DISCIPLINE,
    DURATION,
    END,
    EXPECTED,
    EXPECTED_END,
    EXPECTED_HEAP,
    EXPECTED_HEAP_AT,
    FIELDS,
    GPU_NODE,
    HEAP,
    HEAP_AT,
    HELD,
    HELD_COUNT,
    HELD_NEXT,
    HELD_S,
    IS_REAL,
    JOB_SEGMENT,
    JOB_SHAPE,
    LAST_SAVE,
    LEFT,
    NODE_CPU,
    NODE_JOBS,
    NODE_MIB,
    NODE_SHARING,
    NOTHING,
    NOW,
    ORIGIN,
    OVERHEAD,
    PLAN,
    PLAN_GPUS,
    PLAN_NODE,
    PROGRESS,
    RECORDS,
    REPLAN,
    RESTORE_S,
    ROUNDS,
    RUNNING,
    SAVE_S,
    SAVED,
    SAVES_ON_PREEMPTION,
    SEGMENT_CAUSE,
    SEGMENT_END,
    SEGMENT_JOB,
    SEGMENT_RECORD,
    SEGMENT_START,
    SEGMENT_WASTED,
    SEGMENTS,
    SHAPE_CPU,
    SHAPE_MIB,
    SHAPE_TENANT,
    SHAPE_WATTS,
    SHARED_GPU,
    SIZE,
    TENANT_CPU,
    TENANT_MIB,
    TENANT_USED,
    TENANTS,
    TRUE_ENDS,
    UPDATED,
    VALUE,
    VERSION,
    WATTS_USED,
    Discipline,
    Ints,
    Reals,
)
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Sharing


@hot_kernel
def start(ints: Ints, reals: Reals, job: int) -> None:
    """Start a waiting job now on the nodes of the current plan."""
    dequeue(ints, reals, job)
    segment = ints[SEGMENTS]
    ints[ints[JOB_SEGMENT] + job] = segment
    ints[ints[SEGMENT_JOB] + segment] = job
    reals[ints[SEGMENT_START] + segment] = reals[NOW]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        _start_really(ints, reals, job)
    else:
        hold(ints, job)
        _set_going(ints, reals, job)
    ints[ints[SEGMENT_RECORD] + segment + 1] = ints[RECORDS]
    ints[SEGMENTS] = segment + 1


@hot_kernel
def _set_going(ints: Ints, reals: Reals, job: int) -> None:
    """Enter a job among the running ones; it ends after its duration."""
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


@spliced_kernel
def _start_really(ints: Ints, reals: Reals, job: int) -> None:
    shape = ints[ints[JOB_SHAPE] + job]
    shares = is_fraction(ints, shape)
    shares &= ints[ints[NODE_SHARING] + ints[ints[PLAN_NODE]]] != Sharing.NONE
    size = 0
    for index in range(ints[PLAN]):
        size += ints[ints[PLAN_GPUS] + index]
    if shares:
        hold_part(ints, job)
    else:
        hold(ints, job)
    ints[ints[SIZE] + job] = size
    ints[ints[ROUNDS] + job] += 1
    _book(ints, job, 1)
    reals[ints[BASE_SPEED] + FIELDS * job] = speed_of_plan(ints, reals, shape)
    begin_progress(ints, reals, job, reals[ints[OVERHEAD] + FIELDS * job])
    enter_heaps(ints, reals, job)
    if shares:
        change_speed_of_sharers(ints, reals, ints[ints[SHARED_GPU] + job], job)
    if ints[DISCIPLINE] == Discipline.CONSERVATIVE and (
        reals[ints[PROGRESS] + FIELDS * job] != 1.0 or reals[ints[OVERHEAD] + FIELDS * job] != 0.0
    ):
        ints[REPLAN] = 1  # promises were made for its run time at the reference speed


@kernel
def _book(ints: Ints, job: int, sign: int) -> None:
    """Charge a job's node and tenant for what it holds, or give it back (sign −1)."""
    shape = ints[ints[JOB_SHAPE] + job]
    cpu, mib = sign * ints[ints[SHAPE_CPU] + shape], sign * ints[ints[SHAPE_MIB] + shape]
    size = ints[ints[SIZE] + job]
    ints[VERSION] += 1
    ints[WATTS_USED] += sign * ints[ints[SHAPE_WATTS] + shape]
    if ints[TENANTS] > 0:
        tenant = ints[ints[SHAPE_TENANT] + shape]
        ints[ints[TENANT_USED] + tenant] += sign * size
        ints[ints[TENANT_CPU] + tenant] += size * cpu
        ints[ints[TENANT_MIB] + tenant] += size * mib
    gpu = ints[ints[SHARED_GPU] + job]
    if gpu != NOTHING:
        _book_on_node(ints, ints[ints[GPU_NODE] + gpu], sign, cpu, mib)
        return
    holding = ints[ints[HELD] + job]
    while holding != NOTHING:
        gpus = ints[ints[HELD_COUNT] + holding]
        _book_on_node(ints, ints[ints[GPU_NODE] + holding], sign, gpus * cpu, gpus * mib)
        holding = ints[ints[HELD_NEXT] + holding]


@kernel
def _book_on_node(ints: Ints, node: int, sign: int, cpu: int, mib: int) -> None:
    ints[ints[NODE_JOBS] + node] += sign
    ints[ints[NODE_CPU] + node] -= cpu
    ints[ints[NODE_MIB] + node] -= mib


@hot_kernel
def finish(ints: Ints, reals: Reals, job: int) -> None:
    """End a running job now and free its GPUs."""
    if ints[TRUE_ENDS] == 0 and reals[ints[EXPECTED_END] + job] != reals[NOW]:
        ints[REPLAN] = 1  # promises were made for another moment
    segment = ints[ints[JOB_SEGMENT] + job]
    reals[ints[SEGMENT_END] + segment] = reals[NOW]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        _finish_really(ints, reals, job, segment)
    else:
        _take_out(ints, reals, job)
        release(ints, job)
    run_time = reals[NOW] - reals[ints[SEGMENT_START] + segment]
    if REAL_CLUSTERS and ints[IS_REAL] == 1:
        run_time += reals[ints[HELD_S] + job]
    remember_run_time(ints, reals, job, run_time)


@hot_kernel
def _take_out(ints: Ints, reals: Reals, job: int) -> None:
    """Take a job out of the running ones."""
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
    ints[RUNNING] = size - 1


@spliced_kernel
def _finish_really(ints: Ints, reals: Reals, job: int, segment: int) -> None:
    ints[ints[SEGMENT_CAUSE] + segment] = Cause.FINISHED.value
    reals[ints[SEGMENT_WASTED] + segment] = reals[ints[OVERHEAD] + FIELDS * job]
    leave_heaps(ints, reals, job)
    _give_back(ints, reals, job)


@kernel
def _give_back(ints: Ints, reals: Reals, job: int) -> None:
    """Free what a job holds; those who shared its GPU go on at another speed."""
    _book(ints, job, -1)
    gpu = ints[ints[SHARED_GPU] + job]
    if gpu == NOTHING:
        release(ints, job)
    else:
        release_part(ints, job)
        change_speed_of_sharers(ints, reals, gpu, NOTHING)


@kernel
def stop(ints: Ints, reals: Reals, job: int, cause: int) -> None:
    """Stop a running job before its end; it keeps what it saves now, or what it saved before.

    A failing node leaves no time to save, and neither does preemption on some sites.
    """
    leave_heaps(ints, reals, job)
    settle(ints, reals, job)
    now = reals[NOW]
    segment = ints[ints[JOB_SEGMENT] + job]
    began = reals[ints[SEGMENT_START] + segment]
    wasted = min(reals[ints[OVERHEAD] + FIELDS * job], now - began)
    overhead = reals[RESTORE_S]
    is_killed = cause == Cause.NODE_FAILED or (
        cause == Cause.PREEMPTED and ints[SAVES_ON_PREEMPTION] == 0
    )
    if not is_killed:
        reals[ints[SAVED] + FIELDS * job] = reals[ints[LEFT] + FIELDS * job]
        overhead = reals[SAVE_S] + reals[RESTORE_S]
    else:
        wasted += lost_s(ints, reals, job)
        reals[ints[LEFT] + FIELDS * job] = reals[ints[SAVED] + FIELDS * job]
    left = reals[ints[LEFT] + FIELDS * job]
    is_untouched = left == reals[ints[DURATION] + job]
    reals[ints[OVERHEAD] + FIELDS * job] = 0.0 if is_untouched else overhead
    reals[ints[VALUE] + job] = expected_left(ints, reals, job, left) + reals[RESTORE_S]
    reals[ints[HELD_S] + job] += now - began
    reals[ints[SEGMENT_END] + segment] = now
    reals[ints[SEGMENT_WASTED] + segment] = wasted
    ints[ints[SEGMENT_CAUSE] + segment] = cause
    _give_back(ints, reals, job)


@kernel
def lost_s(ints: Ints, reals: Reals, job: int) -> float:
    """Return the seconds of progress a running job would lose if it were killed now."""
    origin = reals[ints[ORIGIN] + FIELDS * job]
    saved_at = last_save(ints, reals, job, reals[NOW])
    if saved_at <= max(reals[ints[UPDATED] + FIELDS * job], origin):
        saved_at = reals[ints[LAST_SAVE] + FIELDS * job]  # what was booked when it was settled
    return max(reals[NOW] - max(saved_at, origin), 0.0)


@kernel
def requeue(ints: Ints, reals: Reals, job: int, cause: int) -> None:
    """Stop a running job before its end and let it wait again."""
    stop(ints, reals, job, cause)
    enqueue(ints, reals, job)
