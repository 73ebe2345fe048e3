"""Which schedulers make sense on which cluster: what does not is refused with a reason."""

from __future__ import annotations

import math

from yardmaster.engine.conditions import Conditions
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import UNLIMITED
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.schedulers.language import Scheduler

STOPPING = frozenset({Discipline.PREEMPTIVE, Discipline.TIMESLICE})
_KEEPS_KEYS = frozenset(
    {
        OrderKind.FIXED,
        OrderKind.HISTORY,
        OrderKind.REMAINING,
        OrderKind.ATTAINED,
        OrderKind.SHARE,
        OrderKind.USAGE,
    }
)
_GROWS_BY_RUNNING = frozenset({OrderKind.ATTAINED, OrderKind.SHARE, OrderKind.USAGE})
"""Keys by which who runs falls behind who waits, so that the two stop each other in turn."""
_SOLVABLE = frozenset({OrderKind.FIXED, OrderKind.HISTORY, OrderKind.AGEING, OrderKind.REMAINING})


def objection(scheduler: Scheduler, keys: OrderKeys, conditions: Conditions | None) -> str:
    """Return why a scheduler cannot run here, with what to do instead; empty if it can."""
    reasons = [_objection_to_keys(scheduler, keys)]
    if conditions is not None:
        reasons.append(_objection_to_features(scheduler, conditions))
        reasons.append(_standstill(scheduler, keys, conditions))
    return next(filter(None, reasons), "")


def _objection_to_keys(scheduler: Scheduler, keys: OrderKeys) -> str:
    """Object to orders that do not go with the discipline or the placement."""
    name = scheduler.discipline.name.lower()
    is_stopping = scheduler.discipline in STOPPING
    if is_stopping and (keys.kind not in _KEEPS_KEYS or keys.rekey is not None):
        return (
            f"{name} stops running jobs by their keys, and those of {scheduler.order.name!r} change"
            " while jobs wait; use an order such as srpt, las, las-2d, edf or static-priority"
        )
    if scheduler.discipline is Discipline.TIMESLICE and scheduler.order.name != "fifo":
        return "timeslice takes turns in order of submission; write fifo+timeslice"
    if scheduler.solves and scheduler.discipline is not Discipline.SKIP:
        return f"milp decides whole passes and goes with skip, not with {name}"
    if scheduler.solves and keys.kind not in _SOLVABLE:
        return f"milp cannot follow {scheduler.order.name!r}, whose keys depend on each start"
    return ""


def _objection_to_features(scheduler: Scheduler, conditions: Conditions) -> str:
    """Object to what the discipline or the placement cannot reckon with."""
    if scheduler.discipline is Discipline.CONSERVATIVE and (beyond := _features(conditions)):
        return f"conservative promises GPUs alone, and here there are {beyond}; use easy"
    if scheduler.solves and (beyond := _features(conditions, hosts=False, outages=False)):
        return f"milp does not know of {beyond}; use another placement"
    return ""


def _features(conditions: Conditions, *, hosts: bool = True, outages: bool = True) -> str:
    """Name what goes beyond whole GPUs."""
    found = []
    if conditions.node_sharing.any() and (conditions.milli < 1000).any():
        found.append("shared GPUs")
    if hosts and (conditions.cpu_milli.any() or conditions.host_mib.any()):
        found.append("cores and host memory to share out")
    if (conditions.guaranteed_gpus > 0).any() or (conditions.limit_gpus < UNLIMITED).any():
        found.append("quotas")
    if conditions.cap_watts < UNLIMITED:
        found.append("a power cap")
    if outages and conditions.outages:
        found.append("node failures")
    return ", ".join(found)


def _standstill(scheduler: Scheduler, keys: OrderKeys, conditions: Conditions) -> str:
    """Object to jobs that would be stopped again before they get anywhere."""
    takes_turns = scheduler.discipline is Discipline.TIMESLICE or (
        scheduler.discipline is Discipline.PREEMPTIVE and keys.kind in _GROWS_BY_RUNNING
    )
    # Without a quantum nobody is stopped but when jobs come and go, which ends by itself.
    if not takes_turns or conditions.quantum_s == 0:
        return ""
    lost_s = conditions.save_s + conditions.restore_s
    if not conditions.saves_on_preemption:
        lost_s = conditions.restore_s + conditions.every_s
    if math.isinf(lost_s) or lost_s >= conditions.quantum_s:
        return (
            f"a turn of quantum_s = {conditions.quantum_s:g} s would be lost to restoring and"
            f" saving ({lost_s:g} s), and no job would ever finish; set quantum_s higher"
        )
    return ""
