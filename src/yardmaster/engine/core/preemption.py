"""Running jobs that make room: `preemptive` and `timeslice`.

Victims are those whose stopping destroys the fewest GPU-seconds: time since the last checkpoint,
plus restoring, times the gang. A gang within one node frees the node where that sum is least; a
gang across nodes takes the cheapest victims anywhere, and lets go those it turns out not to need.
"""

from __future__ import annotations

import math

from yardmaster.engine.compilation import kernel, spliced_kernel
from yardmaster.engine.core.heap import push, remove
from yardmaster.engine.core.outages import is_on
from yardmaster.engine.core.placement import plan_placement
from yardmaster.engine.core.progress import expected_left, work_left
from yardmaster.engine.core.queue import (
    admit_all,
    attained_key,
    key_now,
    next_job,
)
from yardmaster.engine.core.release import (
    begin_room,
    change_room,
    first_holding,
    holding_on_next_node,
    room_beside,
    usable_extra,
)
from yardmaster.engine.core.room import fits
from yardmaster.engine.core.running import lost_s, requeue, start
from yardmaster.engine.core.tenants import (
    WITHIN_GUARANTEE,
    class_of,
    orders_by_tenant,
    tenant_key,
)
from yardmaster.engine.state import (
    AVAILABLE,
    CAP_WATTS,
    CHOSEN,
    COST,
    DISCIPLINE,
    GPU_NODE,
    GUARANTEED,
    HEAP,
    HELD_S,
    JOB_SEGMENT,
    JOB_SHAPE,
    NODE_COST,
    NODE_DONE,
    NODES,
    NOTHING,
    NOW,
    OFFSET,
    ORDER,
    PASSES,
    QUANTUM_S,
    RESTORE_S,
    ROOM_FAILED,
    ROOM_FAILED_KEY,
    ROUNDS,
    RUNNING,
    SAVES_ON_PREEMPTION,
    SEGMENT_START,
    SHAPE_CAP,
    SHAPE_GPUS,
    SHAPE_LIMIT,
    SHAPE_ROOM,
    SHAPE_SINGLE,
    SHAPE_TENANT,
    SHAPE_WATTS,
    SIZE,
    TENANT_TAKEN,
    TENANT_USED,
    TENANTS,
    VERSION,
    VICTIM,
    VICTIM_AT,
    WATTS_USED,
    Discipline,
    Ints,
    OrderKind,
    Reals,
)
from yardmaster.model.schedule import Cause


@spliced_kernel
def preemptive_pass(ints: Ints, reals: Reals) -> None:
    """Start waiting jobs in order, at the expense of running ones that stand behind them."""
    admit_all(ints, reals)
    worst = math.inf  # no running job's key is higher; looked up when first needed
    while True:
        job = next_job(ints, reals)
        if job == NOTHING:
            return
        shape = ints[ints[JOB_SHAPE] + job]
        if not fits(ints, shape):
            if worst == math.inf:
                worst = _worst_key(ints, reals)
            if not _make_room(ints, reals, job, worst):
                reals[ints[SHAPE_LIMIT] + shape] = -1.0
                continue
        plan_placement(ints, reals, job)
        start(ints, reals, job)


@kernel
def key_of_running(ints: Ints, reals: Reals, job: int) -> float:
    """Return the key a running job has now."""
    if ints[DISCIPLINE] == Discipline.TIMESLICE:
        return float(ints[ints[ROUNDS] + job])
    order = ints[ORDER]
    if order == OrderKind.REMAINING:
        return expected_left(ints, reals, job, work_left(ints, reals, job, reals[NOW]))
    if order == OrderKind.ATTAINED:
        began = reals[ints[SEGMENT_START] + ints[ints[JOB_SEGMENT] + job]]
        return attained_key(ints, reals, job, reals[ints[HELD_S] + job] + (reals[NOW] - began))
    if orders_by_tenant(ints):
        return tenant_key(ints, reals, ints[ints[JOB_SHAPE] + job])
    return reals[ints[OFFSET] + job]


@kernel
def _stands_before(ints: Ints, key: float, other: float) -> bool:
    """Whether a waiting job with this key may stop a running one; taking turns, equals may too."""
    return key < other or (key == other and ints[DISCIPLINE] == Discipline.TIMESLICE)


@kernel
def _worst_key(ints: Ints, reals: Reals) -> float:
    worst = -math.inf
    for place in range(ints[RUNNING]):
        job = ints[ints[HEAP] + place]
        if may_be_stopped(ints, reals, job):
            worst = max(worst, key_of_running(ints, reals, job))
    return worst


@kernel
def may_be_stopped(ints: Ints, reals: Reals, job: int) -> bool:
    """Whether a running job has had its quantum, and did not start this very instant."""
    began = reals[ints[SEGMENT_START] + ints[ints[JOB_SEGMENT] + job]]
    return began < reals[NOW] and reals[NOW] - began >= reals[QUANTUM_S]


@spliced_kernel
def _make_room(ints: Ints, reals: Reals, job: int, worst: float) -> bool:
    """Stop the cheapest running jobs that make room for this one; False if none would."""
    shape = ints[ints[JOB_SHAPE] + job]
    key = key_now(ints, reals, job)
    reclaims = _can_reclaim(ints, shape)
    # What belongs to a tenant changes with every start, so the bound holds for other keys only.
    if not reclaims and not _stands_before(ints, key, worst) and not orders_by_tenant(ints):
        return False
    if _has_failed(ints, reals, shape, key):
        return False
    count = _list_victims(ints, reals, shape, key, reclaims)
    chosen = 0
    if count > 0:
        begin_room(ints, reals)
        if ints[ints[SHAPE_SINGLE] + shape] == 1:
            chosen = _choose_on_one_node(ints, reals, shape, count)
        else:
            chosen = _choose_anywhere(ints, shape, count)
    if chosen == 0:
        _remember_failure(ints, reals, shape, key)
        return False
    _sort_chosen(ints, chosen)
    for place in range(chosen):
        requeue(ints, reals, ints[ints[CHOSEN] + place], Cause.PREEMPTED.value)
    return True


@kernel
def _can_reclaim(ints: Ints, shape: int) -> bool:
    """Whether a job of this shape is within its guarantee, and somebody else beyond theirs."""
    if ints[TENANTS] == 0 or class_of(ints, shape) != WITHIN_GUARANTEE:
        return False
    for tenant in range(ints[TENANTS]):
        if tenant != ints[ints[SHAPE_TENANT] + shape] and (
            ints[ints[TENANT_USED] + tenant] > ints[ints[GUARANTEED] + tenant]
        ):
            return True
    return False


@kernel
def _failure_place(ints: Ints, shape: int) -> int:
    tenant = ints[ints[SHAPE_TENANT] + shape] if ints[TENANTS] > 0 else 0
    return ints[ints[SHAPE_ROOM] + shape] * max(ints[TENANTS], 1) + tenant


@kernel
def _stamp(ints: Ints) -> int:
    """Return a number that stays the same until a job starts or stops, or the pass is over."""
    return (ints[PASSES] << 32) + ints[VERSION]


@kernel
def _has_failed(ints: Ints, reals: Reals, shape: int, key: float) -> bool:
    """Whether the same needs were in vain for a job of the same tenant that stood no further back.

    Nothing has started or stopped since in this pass, so there are no more victims now. Where
    tenants are guaranteed something, fewer rivals for it may mean other victims: then only an
    equal key tells.
    """
    place = _failure_place(ints, shape)
    failed_key = reals[ints[ROOM_FAILED_KEY] + place]
    return ints[ints[ROOM_FAILED] + place] == _stamp(ints) and (
        failed_key == key or (failed_key < key and ints[TENANTS] == 0)
    )


@kernel
def _remember_failure(ints: Ints, reals: Reals, shape: int, key: float) -> None:
    place = _failure_place(ints, shape)
    ints[ints[ROOM_FAILED] + place] = _stamp(ints)
    reals[ints[ROOM_FAILED_KEY] + place] = key


@kernel
def _list_victims(ints: Ints, reals: Reals, shape: int, key: float, reclaims: bool) -> int:
    """List those who may be stopped for a job with this key, cheapest first, in VICTIM."""
    count = 0
    for place in range(ints[RUNNING]):
        other = ints[ints[HEAP] + place]
        if may_be_stopped(ints, reals, other) and (
            reclaims or _stands_before(ints, key, key_of_running(ints, reals, other))
        ):
            reals[ints[COST] + other] = _cost(ints, reals, other)
            push(ints, reals, ints[VICTIM], ints[VICTIM_AT], ints[COST], count, other)
            count += 1
    for tenant in range(ints[TENANTS]):
        ints[ints[TENANT_TAKEN] + tenant] = 0
    # Emptying the heap from the front brings them in order.
    listed = 0
    for place in range(count):
        other = ints[ints[VICTIM]]
        remove(ints, reals, ints[VICTIM], ints[VICTIM_AT], ints[COST], count - place, other)
        is_behind = _stands_before(ints, key, key_of_running(ints, reals, other))
        if _may_lose(ints, other, shape, is_behind, reclaims):
            ints[ints[CHOSEN] + listed] = other
            listed += 1
    for place in range(listed):
        ints[ints[VICTIM] + place] = ints[ints[CHOSEN] + place]
    return listed


@kernel
def _may_lose(ints: Ints, job: int, shape: int, is_behind: bool, reclaims: bool) -> bool:
    """Whether a running job's tenant may lose it to a job of `shape`, and if so, count it as lost.

    Tenants keep what they are guaranteed: from another tenant a job is taken by key only if that
    much is left without it, and to reclaim a guarantee only while the other holds more than its
    own.
    """
    if ints[TENANTS] == 0:
        return is_behind
    tenant = ints[ints[SHAPE_TENANT] + ints[ints[JOB_SHAPE] + job]]
    size, guaranteed = ints[ints[SIZE] + job], ints[ints[GUARANTEED] + tenant]
    held = ints[ints[TENANT_USED] + tenant] - ints[ints[TENANT_TAKEN] + tenant]
    may = is_behind
    if tenant != ints[ints[SHAPE_TENANT] + shape]:
        may = (is_behind and held - size >= guaranteed) or (reclaims and held > guaranteed)
    if may:
        ints[ints[TENANT_TAKEN] + tenant] += size
    return may


@kernel
def _cost(ints: Ints, reals: Reals, job: int) -> float:
    """Return the GPU-seconds that stopping a running job destroys."""
    since = 0.0 if ints[SAVES_ON_PREEMPTION] == 1 else lost_s(ints, reals, job)
    return ints[ints[SIZE] + job] * (since + reals[RESTORE_S])


@kernel
def _choose_on_one_node(ints: Ints, reals: Reals, shape: int, count: int) -> int:
    """Choose the node where making room costs least; list its victims in CHOSEN, return how many.

    Victims come cheapest first, so one walk adds them to all their nodes at once; it ends when the
    next one alone costs more than the best node found.
    """
    lacking = ints[WATTS_USED] + ints[ints[SHAPE_WATTS] + shape] - ints[CAP_WATTS]
    for node in range(ints[NODES]):
        ints[ints[AVAILABLE] + node] = -lacking  # watts left once its victims have gone
        ints[ints[NODE_DONE] + node] = 0
        reals[ints[NODE_COST] + node] = 0.0
    best = NOTHING
    best_cost = math.inf
    last = NOTHING
    place = 0
    while place < count and reals[ints[COST] + ints[ints[VICTIM] + place]] <= best_cost:
        other = ints[ints[VICTIM] + place]
        change_room(ints, other, 1)
        holding = first_holding(ints, other)
        while holding != NOTHING:
            node = ints[ints[GPU_NODE] + holding]
            if _frees_enough(ints, reals, shape, node, other):
                cost = reals[ints[NODE_COST] + node]
                if cost < best_cost or (cost == best_cost and node < best):
                    best = node
                    best_cost = cost
                    last = place
            holding = holding_on_next_node(ints, other, holding)
        place += 1
    chosen = 0
    for place in range(last + 1):
        other = ints[ints[VICTIM] + place]
        if is_on(ints, other, best):
            ints[ints[CHOSEN] + chosen] = other
            chosen += 1
    return chosen


@kernel
def _frees_enough(ints: Ints, reals: Reals, shape: int, node: int, victim: int) -> bool:
    """Count a victim for one of its nodes; whether that node has room for the first time."""
    reals[ints[NODE_COST] + node] += reals[ints[COST] + victim]
    ints[ints[AVAILABLE] + node] += ints[ints[SHAPE_WATTS] + ints[ints[JOB_SHAPE] + victim]]
    if ints[ints[NODE_DONE] + node] == 1 or ints[ints[AVAILABLE] + node] < 0:
        return False
    if usable_extra(ints, shape, node) < ints[ints[SHAPE_GPUS] + shape]:
        return False
    ints[ints[NODE_DONE] + node] = 1
    return True


@kernel
def _move_room(ints: Ints, shape: int, job: int, sign: int) -> int:
    """Add a running job's holdings to EXTRA or take them back; return the change for `shape`."""
    single = ints[ints[SHAPE_SINGLE] + shape] == 1
    before = room_beside(ints, shape, job, single)
    change_room(ints, job, sign)
    return room_beside(ints, shape, job, single) - before


@kernel
def _choose_anywhere(ints: Ints, shape: int, count: int) -> int:
    """Choose the cheapest victims for a gang across nodes, in CHOSEN; return how many."""
    gpus, cap = ints[ints[SHAPE_GPUS] + shape], ints[ints[SHAPE_CAP] + shape]
    watts = ints[CAP_WATTS] - ints[WATTS_USED] - ints[ints[SHAPE_WATTS] + shape]
    room = 0
    for node in range(ints[NODES]):
        room += min(usable_extra(ints, shape, node), cap)
    taken = 0
    while taken < count and (room < gpus or watts < 0):
        other = ints[ints[VICTIM] + taken]
        room += _move_room(ints, shape, other, 1)
        watts += ints[ints[SHAPE_WATTS] + ints[ints[JOB_SHAPE] + other]]
        taken += 1
    if room < gpus or watts < 0:
        return 0
    chosen = 0
    for place in range(taken - 1, -1, -1):
        other = ints[ints[VICTIM] + place]
        freed = ints[ints[SHAPE_WATTS] + ints[ints[JOB_SHAPE] + other]]
        lost = _move_room(ints, shape, other, -1)
        if room + lost >= gpus and watts - freed >= 0:
            room += lost
            watts -= freed
        else:
            change_room(ints, other, 1)
            ints[ints[CHOSEN] + chosen] = other
            chosen += 1
    return chosen


@kernel
def _sort_chosen(ints: Ints, count: int) -> None:
    """Sort CHOSEN by row."""
    for place in range(1, count):
        job = ints[ints[CHOSEN] + place]
        spot = place
        while spot > 0 and ints[ints[CHOSEN] + spot - 1] > job:
            ints[ints[CHOSEN] + spot] = ints[ints[CHOSEN] + spot - 1]
            spot -= 1
        ints[ints[CHOSEN] + spot] = job
