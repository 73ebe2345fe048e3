"""The present of a Slurm cluster as a `State`, with what is needed to change its order.

Times are seconds since 1970. What is read stays as it is: a job nobody may order (held, waiting for
another job or for a date, at a limit, with a priority that somebody wrote) is in the state as held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yardmaster.errors import UnknownNameError
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.reading import NodeRow, PriorityRow, QueueRow
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.columns import BoolArray, IntArray, Labels
from yardmaster.model.gpus import GpuType, gpu_type, type_key

ORDERABLE = frozenset({"None", "Priority", "Resources"})
"""Reasons for which a job's place in the queue decides when it starts."""
NODES_AWAY = "Nodes required for job"
"""How the reason begins that a job of several partitions has for one it could not use."""
UNKNOWN_LIMIT_S = 86_400.0
"""What is believed of a job without a time limit."""
LIKE = "A100"
"""Type whose figures stand in for GPU types that are not in the catalogue."""

ELSEWHERE = "asks for GPUs these nodes do not have"

Believe = Callable[[Sequence[QueueRow]], Sequence[float]]
"""Tells the run time that is believed of each job, in seconds."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whose jobs may be ordered; an empty list allows all."""

    partitions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()

    def admits(self, row: QueueRow) -> bool:
        """Whether this job may be ordered."""
        return (
            (not self.partitions or set(row.partition.split(",")) <= set(self.partitions))
            and (not self.users or row.user in self.users)
            and (not self.accounts or row.account in self.accounts)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """A moment of a Slurm cluster.

    Attributes:
        state: who waits and runs, with GPUs; ids are what `scontrol` takes.
        priority: (jobs,) priority that stands; 0 for running jobs.
        site: (jobs,) SiteFactor; 0 where sprio is silent.
        others: (jobs,) points of everything but age and site.
        accrue_s: (jobs,) since when a job's age counts; NaN if it does not.
        is_weighed: (jobs,) whether sprio knows the job.
        reason: (jobs,) Slurm's word for why it waits; "" for running jobs.
        why_held: (jobs,) why it must not be ordered; "" if it may.
        without_gpus: jobs that were left out because they use no GPU.
        took_s: seconds the reading took.
    """

    state: State
    priority: IntArray
    site: IntArray
    others: IntArray
    accrue_s: np.ndarray[Any, np.dtype[np.float64]]
    is_weighed: BoolArray
    reason: tuple[str, ...]
    why_held: tuple[str, ...]
    without_gpus: int
    took_s: float = 0.0
    row_of: Mapping[str, int] = field(default_factory=dict)


def observe(
    slurm: Slurm,
    allowed: Allowed,
    *,
    believe: Believe | None = None,
    is_ours: Callable[[str, int], bool] | None = None,
) -> Observation:
    """Read the queue, the nodes and the priorities, at the same time.

    Args:
        slurm: the programs.
        allowed: whose jobs may be ordered.
        believe: run time believed of each job in seconds; the time limits if not given.
        is_ours: whether a job's factor is one we gave; all are if not given.

    Raises:
        SlurmError: if Slurm does not answer, or not as expected.
    """
    began = time.perf_counter()
    now_s = time.time()
    queue, nodes, priorities = slurm.read_all(
        reading.queue_command(), reading.nodes_command(), reading.priorities_command()
    )
    return observation(
        list(reading.queue_rows(queue)),
        reading.node_rows(nodes),
        reading.priority_rows(priorities),
        now_s=max(now_s, time.time()),
        allowed=allowed,
        believe=believe,
        is_ours=is_ours,
        began=began,
    )


def observation(
    queue: Sequence[QueueRow],
    nodes: Sequence[NodeRow],
    priorities: Mapping[str, PriorityRow],
    *,
    now_s: float,
    allowed: Allowed,
    believe: Believe | None = None,
    is_ours: Callable[[str, int], bool] | None = None,
    began: float | None = None,
) -> Observation:
    """Put together what was read; see `observe`."""
    nodes = _within(nodes, allowed)
    if not nodes:
        raise SlurmError("No node of these partitions has GPUs; there is nothing to schedule.")
    rows = _units(queue)
    with_gpus = [row for row in rows if row.gpus > 0]
    with_gpus.sort(key=lambda row: row.submit_s)
    waits = [row.waits for row in with_gpus]
    weights = [priorities.get(row.job) if row.waits else None for row in with_gpus]
    types = _known_types(with_gpus, nodes)
    why_held = tuple(
        (why_not(row, weight, allowed, is_ours) or (ELSEWHERE if known is None else ""))
        if row.waits
        else ""
        for row, weight, known in zip(with_gpus, weights, types, strict=True)
    )
    believed_s = (believe or _limits)(with_gpus)
    is_held = np.array([bool(why) for why in why_held])
    state = _state(with_gpus, nodes, now_s, believed_s, types, is_held)
    return Observation(
        state=state,
        priority=np.array(
            [row.priority if wait else 0 for row, wait in zip(with_gpus, waits, strict=True)],
            dtype=np.int64,
        ),
        site=np.array([weight.site if weight else 0 for weight in weights], dtype=np.int64),
        others=np.array([weight.others if weight else 0 for weight in weights], dtype=np.int64),
        accrue_s=np.array(
            [np.nan if row.accrue_s is None else row.accrue_s for row in with_gpus], dtype=float
        ),
        is_weighed=np.array([weight is not None for weight in weights], dtype=np.bool_),
        reason=tuple(row.reason if row.waits else "" for row in with_gpus),
        why_held=why_held,
        without_gpus=len(rows) - len(with_gpus),
        took_s=0.0 if began is None else time.perf_counter() - began,
        row_of={str(job): row for row, job in enumerate(state.jobs.id.tolist())},
    )


def why_not(  # noqa: PLR0911 - one reason a line
    row: QueueRow,
    weight: PriorityRow | None,
    allowed: Allowed,
    is_ours: Callable[[str, int], bool] | None = None,
) -> str:
    """Return why a waiting job must not be ordered; "" if it may."""
    if row.priority == 0:
        return f"held by somebody ({row.reason})"
    if weight is not None and weight.is_set_by_hand:
        return "somebody set its priority by hand"
    if weight is not None and is_ours is not None and not is_ours(row.job, weight.site):
        return f"somebody gave it a SiteFactor of {weight.site}"
    several = "," in row.partition and row.reason.startswith(NODES_AWAY)
    if row.reason not in ORDERABLE and not several:
        return f"it does not wait for its turn ({row.reason})"
    if not allowed.admits(row):
        return "not on the list of jobs to order"
    if weight is None:
        return "Slurm has not weighed it yet"
    return ""


def _within(nodes: Sequence[NodeRow], allowed: Allowed) -> list[NodeRow]:
    wanted = set(allowed.partitions)
    return [node for node in nodes if not wanted or wanted & set(node.partitions)]


def _units(queue: Iterable[QueueRow]) -> list[QueueRow]:
    """Return running jobs as they are, and waiting ones as Slurm orders them.

    Waiting tasks of an array are one, with what one task asks for. Parts of a heterogeneous job
    are one, with all they ask for together.
    """
    units: dict[str, QueueRow] = {}
    running = list[QueueRow]()
    for row in queue:
        if not row.waits:
            running.append(row)
            continue
        unit = row.unit
        known = units.get(unit)
        if known is None:
            plain = row.label == row.job
            units[unit] = row if plain else row._replace(job=unit, label=unit)
        elif "+" in row.label:
            units[unit] = known._replace(gpus=known.gpus + row.gpus, nodes=known.nodes + row.nodes)
    return [*units.values(), *running]


def _known_types(rows: Sequence[QueueRow], nodes: Sequence[NodeRow]) -> list[str | None]:
    """Return the GPU types each job accepts, of those that are here or in the catalogue.

    None if a job asks for types of which nobody knows anything: those of other nodes.
    """
    here = {type_key(_type(node.gpu_type).name) for node in nodes}
    known: dict[str, str | None] = {"": ""}
    for label in {row.gpu_types for row in rows} - {""}:
        names = [name for name in label.split("|") if type_key(name) in here or _is_known(name)]
        known[label] = "|".join(names) or None
    return [known[row.gpu_types] for row in rows]


def _is_known(name: str) -> bool:
    try:
        gpu_type(name)
    except UnknownNameError:
        return False
    return True


def _limits(rows: Sequence[QueueRow]) -> list[float]:
    return [row.limit_s or UNKNOWN_LIMIT_S for row in rows]


def _state(  # noqa: PLR0917 - columns of one table
    rows: Sequence[QueueRow],
    nodes: Sequence[NodeRow],
    now_s: float,
    believed_s: Sequence[float],
    types: Sequence[str | None],
    is_held: BoolArray,
) -> State:
    cluster = cluster_of(nodes)
    place = {node.name: number for number, node in enumerate(nodes)}
    holdings = _holdings(rows, nodes, place)
    used = np.array([node.used for node in nodes], dtype=np.int64)
    away = np.array([not node.takes_jobs for node in nodes], dtype=np.bool_)
    ours = np.bincount(holdings[:, 1], holdings[:, 2], minlength=len(nodes)).astype(np.int64)
    blocked = np.where(away, cluster.node_gpus - ours, np.maximum(used - ours, 0))
    since_s = [np.nan if row.waits else min(row.start_s or now_s, now_s) for row in rows]
    per_node = [-(-row.gpus // row.nodes) if row.nodes > 1 else 0 for row in rows]
    believed = np.maximum(np.asarray(believed_s, dtype=np.float64), 1.0)
    columns: dict[str, Any] = {
        "id": np.array([row.job for row in rows], dtype=np.str_),
        "submit_s": np.array([min(row.submit_s, now_s) for row in rows], dtype=np.float64),
        "duration_s": believed,
        "estimate_s": believed,
        "gpus": np.array([row.gpus for row in rows], dtype=np.int64),
        "max_gpus_per_node": np.array(per_node, dtype=np.int64),
        "gpu_types": Labels.of([known or "" for known in types]),
        "user": Labels.of([row.user for row in rows]),
        "tenant": Labels.of([row.account for row in rows]),
    }
    return State.of(
        time_s=now_s,
        columns=columns,
        since_s=np.array(since_s, dtype=np.float64),
        cluster=cluster,
        is_held=is_held,
        holdings=holdings,
        blocked=np.maximum(blocked, 0),
        node_names=[node.name for node in nodes],
        name="slurm",
    )


def _holdings(
    rows: Sequence[QueueRow], nodes: Sequence[NodeRow], place: Mapping[str, int]
) -> IntArray:
    """Return who holds how many GPUs where; on several nodes as evenly as they go."""
    held = []
    free = [node.gpus for node in nodes]
    for number, row in enumerate(rows):
        if row.waits or row.state not in {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING"}:
            continue
        names = [place[name] for name in reading.expanded(row.node_list) if name in place]
        for turn, node in enumerate(names):
            share = row.gpus * (turn + 1) // len(names) - row.gpus * turn // len(names)
            share = min(share, free[node])
            if share > 0:
                free[node] -= share
                held.append((number, node, share))
    return np.array(held, dtype=np.int64).reshape(-1, 3)


def cluster_of(nodes: Sequence[NodeRow], name: str = "slurm") -> Cluster:
    """Return the machines; a GPU type that the catalogue lacks keeps its name."""
    groups = [NodeGroup(1, _type(node.gpu_type), node.gpus) for node in nodes]
    return from_groups(groups, name=name)


def _type(name: str) -> GpuType:
    try:
        return gpu_type(name)
    except UnknownNameError:
        return replace(gpu_type(LIKE), name=name or "gpu", source="")
