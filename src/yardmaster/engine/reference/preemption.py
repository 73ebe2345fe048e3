"""The SimPy reference: `preemptive` and `timeslice`, where running jobs make room for others.

The two differ only in the key that says who may stop whom: under `timeslice` it is the number of
turns a job has had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from yardmaster.engine.reference.floor import Room
from yardmaster.engine.reference.progress import Run
from yardmaster.engine.reference.rules import Gang
from yardmaster.engine.reference.yard import Yard
from yardmaster.engine.state import Discipline
from yardmaster.model.schedule import Cause


def preemptive(yard: Yard) -> None:
    """Start jobs in order, stopping others for them where that is possible and allowed."""
    tried: set[int] = set()
    while (row := yard.first(untried(yard, tried))) is not None:
        if yard.starts(row):
            continue
        victims = find_victims(yard, row)
        if victims is None:
            tried.add(yard.gang(row).shape)
            continue
        for victim in sorted(victims):
            yard.stop(victim, Cause.PREEMPTED)
        if not yard.starts(row):
            raise AssertionError("the victims were chosen so that the job fits")


def untried(yard: Yard, tried: set[int]) -> list[int]:
    """Return the waiting jobs whose kind of request has not been turned down in this pass."""
    return [row for row in yard.waiting if yard.gang(row).shape not in tried]


def find_victims(yard: Yard, row: int) -> list[int] | None:
    """Return the jobs to stop so that this one fits; None if stopping cannot help it."""
    costed = sorted((_cost(yard, run), run.row, run) for run in yard.stoppable())
    lost: Counter[int] = Counter()
    by_cost = [(cost, run) for cost, _, run in costed if _may_stop(yard, row, run, lost)]
    gang = yard.gang(row)
    if gang.stays_on_one_node:
        return _victims_on_one_node(yard, gang, by_cost)
    return _victims_anywhere(yard, gang, [run for _, run in by_cost])


def _may_stop(yard: Yard, row: int, run: Run, lost: Counter[int]) -> bool:
    """Whether a job may stop another: by its key, or to get back what its tenant has lent.

    `lost` counts by tenant the GPUs of those it may stop; nobody is left with less than its tenant
    is guaranteed, except where a job that reaches into the guarantee is reclaimed.
    """
    key, other_key = yard.key(row), yard.key(run.row)
    takes_turns = yard.discipline == Discipline.TIMESLICE
    may = other_key > key or (takes_turns and other_key == key)
    gang, other = yard.gang(row), run.job.gang
    if yard.tenants.guaranteed and gang.tenant != other.tenant:
        beyond = yard.tenants.borrowed_gpus(other) - lost[other.tenant]
        may = (may and beyond >= run.size) or (yard.class_of(row) == 0 and beyond > 0)
    if may:
        lost[other.tenant] += run.size
    return may


def _cost(yard: Yard, run: Run) -> float:
    """GPU-seconds lost by stopping a job: work since its last checkpoint, and restoring it."""
    conditions = yard.conditions
    lost_s = 0.0
    if not conditions.saves_on_preemption:
        save_s = run.new_save_s(yard.now_s, conditions.every_s)
        lost_s = run.unsaved_s(yard.now_s, run.last_save_s if save_s is None else save_s)
    return run.size * (lost_s + conditions.restore_s)


def _victims_on_one_node(
    yard: Yard, gang: Gang, by_cost: list[tuple[float, Run]]
) -> list[int] | None:
    """Empty the node where that costs least, as far as needed."""
    found: list[tuple[float, int, list[int]]] = []
    for node in gang.nodes:
        room, total, victims = yard.room.copy(), 0.0, []
        for cost, run in by_cost:
            if _fits_on(room, gang, node):
                break
            if node in run.holding.plan:
                room.release(run.holding, only=node)
                total += cost
                victims.append(run.row)
        if _fits_on(room, gang, node):
            found.append((total, node, victims))
    return min(found)[2] if found else None


def _fits_on(room: Room, gang: Gang, node: int) -> bool:
    return room.usable_on(gang, node) >= gang.gpus and room.has_power_for(gang)


def _victims_anywhere(yard: Yard, gang: Gang, by_cost: list[Run]) -> list[int] | None:
    """Stop the cheapest jobs until the gang fits; then spare those that need not stop."""
    victims: list[Run] = []
    for run in by_cost:
        victims.append(run)
        if _room_without(yard, victims).fits(gang):
            break
    else:
        return None
    for run in reversed(list(victims)):
        others = [victim for victim in victims if victim is not run]
        if _room_without(yard, others).fits(gang):
            victims = others
    return [run.row for run in victims]


def _room_without(yard: Yard, victims: Iterable[Run]) -> Room:
    """Return what would be free without these jobs."""
    room = yard.room.copy()
    for run in victims:
        room.release(run.holding)
    return room
