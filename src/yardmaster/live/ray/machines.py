"""The nodes of a Ray cluster over time: who is there, and how many GPUs we may use there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yardmaster.live.local.slots import PRETENDED, type_named
from yardmaster.live.ray.access import RayAccess, SeenNode
from yardmaster.live.ray.orders import own_version
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.columns import IntArray

ASK_EVERY_S = 30.0
"""How often a node that did not answer well is asked again who it is."""


@dataclass(slots=True, eq=False)
class Machine:
    """A node that we have seen; it keeps its place when it goes away and comes back."""

    name: str
    gpus: int
    host: str = ""
    id: str = ""
    """Ray's id of it now; empty while it is away."""
    used: int = 0
    is_known: bool = False
    """Whether it has said who it is, and has our version."""
    devices: list[dict[str, Any]] = field(default_factory=list)
    trouble: str = ""
    ticket: Any = field(default=None, repr=False)
    ask_again_s: float = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether jobs may be started there."""
        return bool(self.id) and self.is_known

    @property
    def type_name(self) -> str:
        """What kind of GPU it has."""
        return type_named(self.devices[0]["name"]).name if self.devices else PRETENDED

    def record(self) -> dict[str, Any]:
        """Return it as `live.json` holds it."""
        return {
            "name": self.name, "gpus": self.gpus, "gpu_type": self.type_name,
            "devices": self.devices,
        }  # fmt: skip


class Machines:
    """All nodes that were ever seen."""

    def __init__(self, access: RayAccess, before: Sequence[Mapping[str, Any]] = ()) -> None:
        """Know the nodes of an earlier runner's `live.json`; they are away until they are seen."""
        self._access = access
        self.all = [
            Machine(str(one["name"]), int(one["gpus"]), devices=list(one["devices"]))
            for one in before
        ]
        self._cluster: Cluster | None = None

    def look(self, now_s: float) -> list[str]:
        """See who is there now; return what is worth telling."""
        seen = self._access.nodes()
        ids = {node.id for node in seen}
        news = []
        for machine in self.all:
            if machine.id and machine.id not in ids:
                news.append(f"node {machine.name} is lost")
                self._forget(machine)
        for node in seen:
            machine = self._machine_of(node)
            if not machine.id:
                news.append(f"node {machine.name} is there, with {node.gpus} GPUs")
            self._refresh(machine, node, now_s, news)
        return news

    def _machine_of(self, node: SeenNode) -> Machine:
        """Return who a node is: one we know, one that is back under its name, or a new one."""
        for one in self.all:
            if one.id == node.id:
                return one
        namesakes = [one for one in self.all if one.name == node.name]
        if namesakes and not namesakes[0].id:
            return namesakes[0]
        name = f"{node.name}-{node.id[:8]}" if namesakes else node.name
        self.all.append(Machine(name, node.gpus))
        self._cluster = None
        return self.all[-1]

    def _forget(self, machine: Machine) -> None:
        machine.id, machine.used, machine.is_known, machine.ticket = "", 0, False, None
        machine.ask_again_s = 0.0

    def _refresh(self, machine: Machine, node: SeenNode, now_s: float, news: list[str]) -> None:
        machine.id, machine.host, machine.used = node.id, node.host, node.used
        if machine.gpus != node.gpus:
            machine.gpus, self._cluster = node.gpus, None
        if machine.is_known:
            return
        if machine.ticket is None:
            if now_s >= machine.ask_again_s:
                machine.ticket = self._access.hello(node.id)
            return
        if not self._access.ready([machine.ticket], 0.0):
            return
        ticket, machine.ticket = machine.ticket, None
        machine.ask_again_s = now_s + ASK_EVERY_S
        machine.trouble = self._understand(machine, ticket)
        if machine.trouble:
            news.append(machine.trouble)

    def _understand(self, machine: Machine, ticket: Any) -> str:
        """Note who a node is; return why it cannot be used, empty if it can."""
        try:
            told = self._access.answer(ticket)
        except self._access.errors as error:
            first = str(error).strip().splitlines()[-1:] or [type(error).__name__]
            return f"node {machine.name} cannot be used: {first[0].strip()}"
        if told["version"] != own_version():
            return (
                f"node {machine.name} cannot be used: it has Yardmaster {told['version']}, not"
                f" {own_version()}"
            )
        machine.is_known = True
        if machine.devices != told["devices"]:
            machine.devices, self._cluster = told["devices"], None
        return ""

    @property
    def tickets(self) -> list[Any]:
        """Answers that are waited for."""
        return [machine.ticket for machine in self.all if machine.ticket is not None]

    @property
    def cluster(self) -> Cluster:
        """The nodes as the simulator knows them."""
        if self._cluster is None:
            groups = [
                NodeGroup(
                    count=1,
                    gpu_type=type_named(one.devices[0]["name"] if one.devices else PRETENDED),
                    gpus=one.gpus,
                )
                for one in self.all
            ]
            self._cluster = from_groups(groups, name="ray")
        return self._cluster

    def number(self, name: str) -> int | None:
        """Return the place of a node, None if nobody has seen it."""
        return next((place for place, one in enumerate(self.all) if one.name == name), None)

    def named(self, name: str) -> Machine | None:
        """Return the node of this name, None if nobody has seen it."""
        return next((one for one in self.all if one.name == name), None)

    @property
    def is_settled(self) -> bool:
        """Whether all living nodes have said who they are, or that they cannot be used."""
        return all(one.is_known or bool(one.trouble) for one in self.all if one.id)

    def records(self) -> list[dict[str, Any]]:
        """Return them as `live.json` holds them."""
        return [one.record() for one in self.all]

    def on_host(self, host: str, name: str) -> Machine | None:
        """Return a living node on a host, this very one if it lives; None if there is none."""
        there = [one for one in self.all if one.id and one.host == host]
        return min(there, key=lambda one: one.name != name, default=None)

    def blocked(self, ours: IntArray, kept: IntArray) -> IntArray:
        """Return (nodes,) GPUs that nobody may use: of nodes away, of others, and held back.

        Args:
            ours: (nodes,) GPUs of our reservations, held back or not.
            kept: (nodes,) those held back: their jobs are over.
        """
        gpus = np.array([one.gpus for one in self.all], dtype=np.int64)
        used = np.array([one.used for one in self.all], dtype=np.int64)
        usable = np.array([one.is_usable for one in self.all], dtype=np.bool_)
        others = np.maximum(used - ours, 0) + kept
        return np.where(usable, np.minimum(others, gpus), gpus)
