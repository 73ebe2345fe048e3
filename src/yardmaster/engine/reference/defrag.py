"""The SimPy reference: `defrag`, which moves running jobs to make one large hole of small ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from yardmaster.engine.reference.easy import reservation
from yardmaster.engine.reference.floor import Room
from yardmaster.engine.reference.preemption import untried
from yardmaster.engine.reference.progress import Run
from yardmaster.engine.reference.rules import Gang
from yardmaster.engine.reference.yard import Place, Yard
from yardmaster.model.schedule import Cause


@dataclass(slots=True)
class Moves:
    """Jobs to be moved away from a node, and where each of them goes."""

    node: int
    total_gpu_s: float = 0.0
    """What the moves cost together."""
    to: list[tuple[int, int]] = field(default_factory=list)
    """(row, node) in the order of moving."""


def defrag(yard: Yard) -> None:
    """Start every job that fits, or for which moving others pays."""
    tried: set[int] = set()
    while (row := yard.first(untried(yard, tried))) is not None:
        if not (yard.starts(row) or _starts_by_moving(yard, row)):
            tried.add(yard.gang(row).shape)


def _starts_by_moving(yard: Yard, row: int) -> bool:
    """Make room on the node where that costs least, if waiting would cost more."""
    gang = yard.gang(row)
    is_enough = sum(yard.room.usable(gang)) >= gang.gpus and yard.room.has_power_for(gang)
    if not gang.is_whole_on_one_node or not is_enough:
        return False
    found = [moves for node in gang.nodes if (moves := _moves(yard, gang, node)) is not None]
    if not found:
        return False
    best = min(found, key=lambda moves: (moves.total_gpu_s, moves.node))
    shadow_s, _ = reservation(yard, gang)
    if not gang.gpus * (shadow_s - yard.now_s) > best.total_gpu_s:
        return False
    for moved, node in best.to:
        size = yard.running[moved].size
        yard.stop(moved, Cause.MIGRATED)
        yard.start(moved, Place({node: size}))
    yard.start(row, Place({best.node: gang.gpus}))
    return True


def _moves(yard: Yard, gang: Gang, node: int) -> Moves | None:
    """Move the cheapest jobs away from a node until the gang fits there; None if it never does."""
    moves = Moves(node)
    room = yard.room.copy()  # the node as it empties, the others as they fill
    for cost, run in _movable(yard, node):
        if room.usable_on(gang, node) >= gang.gpus:
            break
        target = _destination(room, run.job.gang, node)
        if target is not None:
            room.take(run.job.gang, {target: run.size})
            room.release(run.holding)
            moves.to.append((run.row, target))
            moves.total_gpu_s += cost
    return moves if room.usable_on(gang, node) >= gang.gpus else None


def _movable(yard: Yard, node: int) -> list[tuple[float, Run]]:
    """Return the jobs on a node that can be moved, with what that costs, cheapest first."""
    pause_s = yard.conditions.save_s + yard.conditions.restore_s
    runs = [
        (run.size * pause_s, run.row, run)
        for run in yard.stoppable()
        if node in run.holding.plan
        and run.job.gang.is_whole_on_one_node
        and not run.job.gang.is_elastic
    ]
    return [(cost, run) for cost, _, run in sorted(runs)]


def _destination(room: Room, gang: Gang, away_from: int) -> int | None:
    """Return the tightest other node that holds the gang."""
    usable = room.usable(gang)
    nodes = [node for node in gang.nodes if node != away_from and usable[node] >= gang.gpus]
    return min(nodes, key=lambda node: usable[node], default=None)
