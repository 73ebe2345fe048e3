"""The SimPy reference: what is free on every node, and who holds which GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from yardmaster.engine.reference.rules import WHOLE_MILLI, Gang, Plan, Rules


@dataclass(frozen=True, slots=True)
class Holding:
    """The GPUs of one running job."""

    gang: Gang
    plan: Plan
    gpus: list[int]
    is_shared: bool
    """Whether other fractional jobs may join it on its GPU."""


@dataclass(slots=True)
class Room:
    """What could be given to a job: now, at some later moment, or beside a reservation."""

    gpus: list[int]
    """(nodes,) GPUs that nobody holds, not even in part; none on a node that is away."""
    cpu_milli: list[int]
    host_mib: list[int]
    watts: int
    """Watts left under the cap."""
    sharers: dict[int, dict[int, Gang]]
    """Fractional jobs on every shared GPU, by row."""

    def copy(self) -> Room:
        """Return the same room, to try something in."""
        sharers = {gpu: dict(gangs) for gpu, gangs in self.sharers.items()}
        return Room(list(self.gpus), list(self.cpu_milli), list(self.host_mib), self.watts, sharers)

    def beside(self, extra: Room) -> Room:
        """Return what is here and in `extra` as well, node by node."""
        return Room(
            [min(pair) for pair in zip(self.gpus, extra.gpus, strict=True)],
            [min(pair) for pair in zip(self.cpu_milli, extra.cpu_milli, strict=True)],
            [min(pair) for pair in zip(self.host_mib, extra.host_mib, strict=True)],
            min(self.watts, extra.watts),
            {},
        )

    def usable(self, gang: Gang) -> list[int]:
        """Whole GPUs that such a job could use on each node, with the cores and memory it needs."""
        counts = [0] * len(self.gpus)
        for node in gang.nodes:
            counts[node] = self.usable_on(gang, node)
        return counts

    def usable_on(self, gang: Gang, node: int) -> int:
        """The same for one node whose type the job accepts."""
        count = self.gpus[node]
        if gang.cpu_milli:
            count = min(count, self.cpu_milli[node] // gang.cpu_milli)
        if gang.host_mib:
            count = min(count, self.host_mib[node] // gang.host_mib)
        return count

    def has_power_for(self, gang: Gang) -> bool:
        """Whether the gang's watts stay within the cap."""
        return gang.watts <= self.watts

    def fits(self, gang: Gang) -> bool:
        """Whether the gang fits on whole GPUs, with its watts."""
        return self.has_power_for(gang) and gang.fits(self.usable(gang))

    def take(self, gang: Gang, plan: Plan) -> None:
        """Take whole GPUs, and what goes with them."""
        self.watts -= gang.watts
        for node, gpus in plan.items():
            self.gpus[node] -= gpus
            self.take_host(gang, node, gpus)

    def take_host(self, gang: Gang, node: int, gpus: int) -> None:
        """Take the cores and memory that go with so many GPUs; give them back if negative."""
        self.cpu_milli[node] -= gpus * gang.cpu_milli
        self.host_mib[node] -= gpus * gang.host_mib

    def release(self, holding: Holding, only: int | None = None) -> None:
        """Give back what a job holds (on one node only); a shared GPU when its last one goes."""
        self.watts += holding.gang.watts
        for node, gpus in holding.plan.items():
            if only is None or node == only:
                self.take_host(holding.gang, node, -gpus)
                self.gpus[node] += self._vacated(holding) if holding.is_shared else gpus

    def _vacated(self, holding: Holding) -> int:
        """Let a sharer go; return 1 if its GPU is free then."""
        (gpu,) = holding.gpus
        del self.sharers[gpu][holding.gang.row]
        if self.sharers[gpu]:
            return 0
        del self.sharers[gpu]
        return 1


class Floor:
    """The machines as they are now."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        conditions = rules.conditions
        self.room = Room(
            list(rules.node_gpus),
            conditions.node_cpu_milli.tolist(),
            conditions.node_mib.tolist(),
            int(conditions.cap_watts),
            {},
        )
        self.free_gpus = set(range(sum(rules.node_gpus)))
        self.away: set[int] = set()
        """Nodes that are down."""

    def free_on(self, node: int) -> list[int]:
        """Return the free GPUs of a node, ascending."""
        return [gpu for gpu in self._gpus_of(node) if gpu in self.free_gpus]

    def _gpus_of(self, node: int) -> range:
        first = self.rules.node_first_gpu[node]
        return range(first, first + self.rules.node_gpus[node])

    def is_idle(self, node: int) -> bool:
        """Whether nothing runs on the node."""
        return self.room.gpus[node] == self.rules.node_gpus[node]

    def rest_milli(self, node: int) -> list[int]:
        """Return the free thousandths of every GPU of the node."""
        return [self._rest_of(gpu, node) for gpu in self._gpus_of(node)]

    def _rest_of(self, gpu: int, node: int) -> int:
        if gpu in self.free_gpus:
            return WHOLE_MILLI
        if gpu in self.room.sharers:
            gangs = self.room.sharers[gpu].values()
            return WHOLE_MILLI - sum(self.rules.take_milli(gang, node) for gang in gangs)
        return 0

    def take(self, gang: Gang, plan: Plan) -> Holding:
        """Take the lowest-numbered free GPUs of the planned nodes."""
        gpus = [gpu for node, wanted in plan.items() for gpu in self.free_on(node)[:wanted]]
        self.free_gpus.difference_update(gpus)
        self.room.take(gang, plan)
        is_shared = all(self.rules.take_milli(gang, node) < WHOLE_MILLI for node in plan)
        if is_shared:
            self.room.sharers[gpus[0]] = {gang.row: gang}
        return Holding(gang, plan, gpus, is_shared)

    def join(self, gang: Gang, gpu: int) -> Holding:
        """Take part of a GPU that others share."""
        node = self.rules.gpu_node[gpu]
        self.room.watts -= gang.watts
        self.room.take_host(gang, node, 1)
        self.room.sharers[gpu][gang.row] = gang
        return Holding(gang, {node: 1}, [gpu], is_shared=True)

    def give_back(self, holding: Holding) -> None:
        """Give back all that a job holds."""
        self.room.release(holding)
        self.free_gpus.update(gpu for gpu in holding.gpus if gpu not in self.room.sharers)

    def lose(self, node: int) -> None:
        """Take an empty node away."""
        self.away.add(node)
        self.room.gpus[node] = 0
        self.free_gpus.difference_update(self._gpus_of(node))

    def regain(self, node: int) -> None:
        """Bring a node back, wholly free."""
        self.away.remove(node)
        self.room.gpus[node] = self.rules.node_gpus[node]
        self.free_gpus.update(self._gpus_of(node))
