"""The SimPy reference: how much of a node is free and yet of no use to the jobs that are expected.

Expected are the jobs of the whole workload: each distinct request counts as often as it occurs.
"""

from __future__ import annotations

from dataclasses import dataclass

from yardmaster.engine.reference.floor import Floor
from yardmaster.engine.reference.rules import WHOLE_MILLI, Gang, Rules


@dataclass(slots=True)
class Remains:
    """What is left of one node: thousandths of every GPU, cores and memory."""

    rest_milli: list[int]
    cpu_milli: int
    host_mib: int

    def whole_gpus_for(self, gang: Gang) -> int:
        """Whole GPUs that a job of this kind could use."""
        count = self.rest_milli.count(WHOLE_MILLI)
        if gang.cpu_milli:
            count = min(count, self.cpu_milli // gang.cpu_milli)
        if gang.host_mib:
            count = min(count, self.host_mib // gang.host_mib)
        return count

    def has_host_for(self, gang: Gang) -> bool:
        """Whether there are cores and memory for a job on one GPU."""
        return self.cpu_milli >= gang.cpu_milli and self.host_mib >= gang.host_mib


def increase_by_whole(floor: Floor, gang: Gang, node: int, gpus: int) -> int:
    """Change of the node's fragmentation if the gang takes so many whole GPUs of it."""
    after = _remains(floor, node)
    for _ in range(min(gpus, after.rest_milli.count(WHOLE_MILLI))):
        after.rest_milli[after.rest_milli.index(WHOLE_MILLI)] = 0
    return _increase(floor, gang, node, gpus, after)


def increase_by_part(floor: Floor, gang: Gang, gpu: int) -> int:
    """Change of the node's fragmentation if a fractional job goes to this GPU."""
    node = floor.rules.gpu_node[gpu]
    after = _remains(floor, node)
    after.rest_milli[gpu - floor.rules.node_first_gpu[node]] -= floor.rules.take_milli(gang, node)
    return _increase(floor, gang, node, 1, after)


def _increase(floor: Floor, gang: Gang, node: int, gpus: int, after: Remains) -> int:
    after.cpu_milli -= gpus * gang.cpu_milli
    after.host_mib -= gpus * gang.host_mib
    now = _remains(floor, node)
    return fragmentation(floor.rules, node, after) - fragmentation(floor.rules, node, now)


def _remains(floor: Floor, node: int) -> Remains:
    room = floor.room
    return Remains(floor.rest_milli(node), room.cpu_milli[node], room.host_mib[node])


def fragmentation(rules: Rules, node: int, remains: Remains) -> int:
    """Free thousandths that each request cannot use, times how often it is made."""
    popularity: list[int] = rules.conditions.popularity.tolist()
    return sum(
        count * _useless_milli(rules, node, remains, gang)
        for gang, count in zip(rules.gangs, popularity, strict=True)
    )


def _useless_milli(rules: Rules, node: int, remains: Remains, gang: Gang) -> int:
    """Free thousandths of the node that one request cannot use."""
    need_milli = rules.take_milli(gang, node)
    if node not in gang.nodes or not _could_start(remains, gang, need_milli):
        return sum(remains.rest_milli)
    return sum(rest for rest in remains.rest_milli if rest < need_milli)


def _could_start(remains: Remains, gang: Gang, need_milli: int) -> bool:
    """Whether the request, or one member of a gang that spans nodes, fits on what remains."""
    if gang.is_fractional:
        has_gpu = any(rest >= need_milli for rest in remains.rest_milli)
        return has_gpu and remains.has_host_for(gang)
    needed = min(gang.gpus, gang.cap) if gang.stays_on_one_node else 1
    return remains.whole_gpus_for(gang) >= needed
