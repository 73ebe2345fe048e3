"""The SimPy reference: `elastic`, where jobs shrink for others that wait and grow when none do."""

from __future__ import annotations

from dataclasses import replace

from yardmaster.engine.reference.preemption import untried
from yardmaster.engine.reference.progress import Run
from yardmaster.engine.reference.rules import Gang, Plan
from yardmaster.engine.reference.yard import Place, Yard
from yardmaster.model.schedule import Cause


def elastic(yard: Yard) -> None:
    """Start jobs in order at a size that fits, shrinking others if need be; then let jobs grow."""
    tried: set[int] = set()
    while (row := yard.first(untried(yard, tried))) is not None:
        if not (_starts_at_some_size(yard, row) or _starts_by_shrinking(yard, row)):
            tried.add(yard.gang(row).shape)
    for run in yard.stoppable():
        if run.job.gang.is_elastic:
            _grow(yard, run)


def _starts_at_some_size(yard: Yard, row: int) -> bool:
    """Start the job on as many GPUs as fit, up to those it asks for; say whether it did."""
    gang = yard.gang(row)
    if not gang.is_elastic:
        return yard.starts(row)
    most = min(gang.gpus, yard.tenants.spare_gpus(gang))
    for size in range(most, gang.least - 1, -1):
        smaller = replace(gang, gpus=size)
        if yard.room.fits(smaller):
            yard.start(row, Place(yard.planned(smaller, yard.room)))
            return True
    return False


def _starts_by_shrinking(yard: Yard, row: int) -> bool:
    """Start the job on the node where the fewest GPUs must be given back for it."""
    gang = yard.gang(row)
    if not gang.is_whole_on_one_node or not yard.room.has_power_for(gang):
        return False
    wanted = gang.least if gang.is_elastic else gang.gpus
    found = [
        (sum(gifts.values()), node, gifts)
        for node in gang.nodes
        if (gifts := _gifts(yard, gang, node, wanted)) is not None
    ]
    if not found:
        return False
    _, node, gifts = min(found, key=lambda offer: offer[:2])
    for giver, gpus in gifts.items():
        _resize(yard, yard.running[giver], yard.running[giver].size - gpus)
    yard.start(row, Place({node: wanted}))
    return True


def _gifts(yard: Yard, gang: Gang, node: int, wanted: int) -> Plan | None:
    """Return the GPUs that each job on a node would give back, by row in order of giving."""
    room = yard.room.copy()
    gifts: dict[int, int] = {}
    givers = [
        run
        for run in yard.stoppable()
        if run.job.gang.is_elastic and node in run.holding.plan and run.size > run.job.gang.least
    ]
    for run in sorted(givers, key=lambda run: (-(run.size - run.job.gang.least), run.row)):
        for _ in range(run.size - run.job.gang.least):
            if room.usable_on(gang, node) >= wanted:
                break
            room.gpus[node] += 1
            room.take_host(run.job.gang, node, -1)
            gifts[run.row] = gifts.get(run.row, 0) + 1
    return gifts if room.usable_on(gang, node) >= wanted else None


def _grow(yard: Yard, run: Run) -> None:
    """Let a job use what is free on its node, if it ends earlier for it."""
    gang, conditions = run.job.gang, yard.conditions
    (node,) = run.holding.plan
    size = min(gang.most, run.size + yard.room.usable_on(gang, node))
    size = min(size, run.size + yard.tenants.spare_gpus(gang))
    if size <= run.size:
        return
    left_s = run.job.expected_left_s(run.left_at(yard.now_s))
    new_rate = yard.rules.rate(gang, {node: size})
    if left_s / run.rate > (conditions.save_s + conditions.restore_s) + left_s / new_rate:
        _resize(yard, run, size)


def _resize(yard: Yard, run: Run, size: int) -> None:
    """Stop a job and start it again at once, on the same node with another number of GPUs."""
    (node,) = run.holding.plan
    yard.stop(run.row, Cause.RESIZED)
    yard.start(run.row, Place({node: size}))
