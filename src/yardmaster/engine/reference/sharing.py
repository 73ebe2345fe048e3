"""The SimPy reference: which GPU a job gets that asks for part of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from yardmaster.engine.reference.dice import dice
from yardmaster.engine.reference.floor import Floor
from yardmaster.engine.reference.fragmentation import increase_by_part
from yardmaster.engine.reference.placements import Placer, packed
from yardmaster.engine.reference.rules import WHOLE_MILLI, Gang
from yardmaster.engine.state import Placement


@dataclass(frozen=True, slots=True)
class Option:
    """One GPU that could take the job."""

    gpu: int
    node: int
    is_shared: bool
    """Whether others are on it already."""
    free_milli: int


def options(floor: Floor, gang: Gang) -> list[Option]:
    """Return the shared GPUs with room, and one fresh GPU of every node that has any."""
    found = []
    for node in gang.nodes:
        shared = [gpu for gpu in floor.room.sharers if floor.rules.gpu_node[gpu] == node]
        found += [
            Option(gpu, node, is_shared=True, free_milli=rest)
            for gpu in shared
            if (rest := _room_on(floor, gang, gpu, node))
        ]
        if floor.room.usable_on(gang, node) >= 1:
            fresh = floor.free_on(node)[0]
            found.append(Option(fresh, node, is_shared=False, free_milli=WHOLE_MILLI))
    return sorted(found, key=lambda option: option.gpu)


def _room_on(floor: Floor, gang: Gang, gpu: int, node: int) -> int:
    """Return the free thousandths of a shared GPU if the job fits beside those on it, else 0."""
    rules, room = floor.rules, floor.room
    rest = floor.rest_milli(node)[gpu - rules.node_first_gpu[node]]
    taken_mib = sum(sharer.gpu_mib for sharer in room.sharers[gpu].values())
    type_mib = int(rules.conditions.type_mib[rules.node_type[node]])
    fits = (
        rest >= rules.take_milli(gang, node)
        and type_mib - taken_mib >= gang.gpu_mib
        and room.cpu_milli[node] >= gang.cpu_milli
        and room.host_mib[node] >= gang.host_mib
    )
    return rest if fits else 0


def choose_gpu(floor: Floor, placer: Placer, gang: Gang) -> Option | None:
    """Choose a GPU by the scheduler's placement; None if no GPU can take the job."""
    found = options(floor, gang)
    choose = _CHOICES.get(placer.placement, _fullest)
    return choose(floor, placer, gang, found) if found else None


def _lowest(_floor: Floor, _placer: Placer, _gang: Gang, found: list[Option]) -> Option:
    """The lowest-numbered GPU."""
    return found[0]


def _any(_floor: Floor, placer: Placer, gang: Gang, found: list[Option]) -> Option:
    """The GPU that the dice name."""
    return found[dice(placer.seed, gang.row, 0) % len(found)]


def _least_fragmenting(floor: Floor, _placer: Placer, gang: Gang, found: list[Option]) -> Option:
    """The GPU after which least is useless to the jobs expected; ties to the lowest number."""
    return min(found, key=lambda option: increase_by_part(floor, gang, option.gpu))


def _fullest(floor: Floor, placer: Placer, gang: Gang, found: list[Option]) -> Option:
    """The shared GPU with the least room; only if there is none, a fresh one."""
    shared = [option for option in found if option.is_shared]
    if shared:
        return min(shared, key=lambda option: option.free_milli)
    (node,) = placer.plan(gang, floor.room.usable(gang))
    return _fresh_on(node, found)


def _emptiest(floor: Floor, placer: Placer, gang: Gang, found: list[Option]) -> Option:
    """A fresh GPU; only if there is none, the shared one with the most room."""
    if any(not option.is_shared for option in found):
        (node,) = placer.plan(gang, floor.room.usable(gang))
        return _fresh_on(node, found)
    return max(found, key=lambda option: option.free_milli)


def _best_node(floor: Floor, placer: Placer, gang: Gang, found: list[Option]) -> Option:
    """As tightly as possible, but only on nodes of the best score."""
    scores = {option.node: placer.score(gang, option.node, 1) for option in found}
    best = [option for option in found if scores[option.node] == min(scores.values())]
    shared = [option for option in best if option.is_shared]
    if shared:
        return min(shared, key=lambda option: option.free_milli)
    nodes = {option.node for option in best}
    usable = [count if node in nodes else 0 for node, count in enumerate(floor.room.usable(gang))]
    (node,) = packed(gang, usable)
    return _fresh_on(node, best)


def _fresh_on(node: int, found: list[Option]) -> Option:
    """Return the option of a fresh GPU on this node."""
    return next(option for option in found if option.node == node and not option.is_shared)


_CHOICES: dict[Placement, Callable[[Floor, Placer, Gang, list[Option]], Option]] = {
    Placement.FIRST: _lowest,
    Placement.RANDOM: _any,
    Placement.SPREAD: _emptiest,
    Placement.FGD: _least_fragmenting,
    Placement.FASTEST: _best_node,
    Placement.POWER: _best_node,
}
"""How each placement chooses; all others take the fullest GPU."""
