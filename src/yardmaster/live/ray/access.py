"""Talking to a Ray cluster: its nodes, our reservations, looks at a node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from yardmaster.experiments.ray_connection import connected
from yardmaster.live.ray.keeping import close_and_look
from yardmaster.live.ray.orders import PREFIX, Order
from yardmaster.live.ray.reservation import Reservation, hello

NAMESPACE = "yardmaster"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A living node of Ray with GPUs."""

    id: str
    name: str
    """As it was started with (`--node-name`), else its address, which others may share."""
    host: str
    gpus: int
    used: int
    """GPUs that are reserved, by whomever, as Ray's books say."""


class RayAccess:
    """A connection to a Ray cluster."""

    def __init__(self, address: str) -> None:
        """Connect.

        Raises:
            YardmasterError: if Ray is not installed, or there is no cluster.
        """
        self._ray = connected(address, needed_by="live ray", namespace=NAMESPACE)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._pinned: Any = NodeAffinitySchedulingStrategy
        self._reservation = self._ray.remote(Reservation)
        self._look = self._ray.remote(num_cpus=0, max_retries=0)(close_and_look)
        self._hello = self._ray.remote(num_cpus=0, max_retries=0)(hello)

    @property
    def errors(self) -> type[Exception]:
        """What is raised where a node, a worker or a task of Ray fails."""
        error: type[Exception] = self._ray.exceptions.RayError
        return error

    def nodes(self) -> list[SeenNode]:
        """Return the living nodes that have GPUs, by name."""
        from ray._private.state import available_resources_per_node

        free = available_resources_per_node()
        alive = [
            node
            for node in self._ray.nodes()
            if node["Alive"] and int(node["Resources"].get("GPU", 0)) > 0
        ]
        seen = []
        for node in alive:
            gpus = int(node["Resources"]["GPU"])
            left = float(free.get(node["NodeID"], {}).get("GPU", 0.0))
            seen.append(
                SeenNode(
                    id=node["NodeID"],
                    name=node["NodeName"] or node["NodeManagerAddress"],
                    host=node["NodeManagerHostname"],
                    gpus=gpus,
                    used=math.ceil(gpus - left - 1e-9),
                )
            )
        return sorted(seen, key=lambda node: (node.name, node.id))

    def reserve(self, order: Order, node_id: str) -> Any:
        """Reserve an attempt's GPUs on a node; asked again, return the same reservation."""
        return self._reservation.options(
            name=order.submission,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_gpus=order.gpus,
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=self._pinned(node_id, soft=False),
        ).remote()

    def find(self, submission: str) -> Any:
        """Return a reservation that exists, None if there is none."""
        try:
            return self._ray.get_actor(submission, namespace=NAMESPACE)
        except ValueError:
            return None

    def submissions(self, run: str) -> list[str]:
        """Return the names of a run's reservations."""
        from ray.util import list_named_actors

        names = [
            entry["name"]
            for entry in list_named_actors(all_namespaces=True)
            if entry["namespace"] == NAMESPACE
        ]
        return [name for name in names if name.startswith(f"{PREFIX}-{run}-")]

    def release(self, reservation: Any) -> None:
        """Let go of a reservation; what still runs under it is killed by its keeper."""
        self._ray.kill(reservation, no_restart=True)

    def look(self, order: Order, node_id: str) -> Any:
        """Close an attempt if it was never claimed, and see how it stands, from this node."""
        return self._look.options(scheduling_strategy=self._pinned(node_id, soft=False)).remote(
            order
        )

    def hello(self, node_id: str) -> Any:
        """Ask a node who it is."""
        return self._hello.options(scheduling_strategy=self._pinned(node_id, soft=False)).remote()

    def ready(self, tickets: list[Any], within_s: float) -> list[Any]:
        """Wait until one of some answers is there; return all that are."""
        if not tickets:
            return []
        done, _ = self._ray.wait(tickets, num_returns=1, timeout=within_s)
        if done and len(tickets) > 1:
            done, _ = self._ray.wait(tickets, num_returns=len(tickets), timeout=0)
        return list(done)

    def answer(self, ticket: Any) -> Any:
        """Return an answer that is there, or raise what became of it."""
        return self._ray.get(ticket, timeout=10.0)

    def close(self) -> None:
        """Leave the cluster; what runs there goes on."""
        self._ray.shutdown()
