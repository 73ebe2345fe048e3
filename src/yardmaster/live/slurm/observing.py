"""The present of a Slurm cluster as a `State`, with what is needed to change its order.

Times are seconds since 1970. What is read stays as it is: a job nobody may order (held, waiting for
another job or for a date, at a limit, with a priority that somebody wrote) is in the state as held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np

from yardmaster.errors import UnknownNameError
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.reading import NodeRow, PriorityRow, QueueRow
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.columns import BoolArray, IntArray, Labels
from yardmaster.model.gpus import GpuType, gpu_type, is_gpu_type, type_key

ORDERABLE = frozenset({"None", "Priority", "Resources"})
"""Reasons for which a job's place in the queue decides when it starts."""
NODES_AWAY = "Nodes required for job"
"""How the reason begins that a job of several partitions has for one it could not use."""
UNKNOWN_LIMIT_S = 86_400.0
"""What is believed of a job without a time limit."""
LIKE = "A100"
"""Type whose figures stand in for GPU types that are not in the catalogue."""

BY_PEOPLE = ("held by somebody", "somebody ")
"""How the reasons begin for which a job is in a person's hands."""
ELSEWHERE = "asks for GPUs these nodes do not have"

Believe = Callable[[Sequence[QueueRow]], Sequence[float]]
"""Tells the run time that is believed of each job, in seconds."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whose jobs may be ordered; an empty list allows all."""

    partitions: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()

    @property
    def admits_all(self) -> bool:
        """Whether everybody's jobs may be ordered."""
        return not (self.partitions or self.users or self.accounts)

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
        row_of: row of each job.
        rows: (jobs,) the queue's own line of each.
        nodes: the nodes, in the state's order.
        allowed: whose jobs may be ordered.
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
    rows: Sequence[QueueRow] = ()
    nodes: Sequence[NodeRow] = ()
    allowed: Allowed = field(default_factory=Allowed)

    def is_admitted(self, row: int) -> bool:
        """Whether a job, waiting or running, is on the list of jobs to order."""
        return self.allowed.admits(self.rows[row])


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
        reading.queue_rows(queue),
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
    table = _Table.of(sorted((row for row in rows if row.gpus > 0), key=_SUBMITTED))
    weights = _Weights.of(table, priorities)
    types = _known_types(table, nodes)
    why_held = _why_held(table, weights, types, allowed, is_ours)
    state = _state(table, nodes, now_s, (believe or _limits)(table.rows), types, why_held)
    priority = np.array(table.cells("priority"), dtype=np.int64)
    return Observation(
        state=state,
        priority=np.where(table.waits, priority, 0),
        site=weights.site,
        others=weights.others,
        accrue_s=np.array(table.cells("accrue_s"), dtype=np.float64),  # None becomes NaN
        is_weighed=weights.is_known,
        reason=tuple(
            reason if waits else ""
            for reason, waits in zip(table.cells("reason"), table.waits.tolist(), strict=True)
        ),
        why_held=why_held,
        without_gpus=len(rows) - len(table.rows),
        took_s=0.0 if began is None else time.perf_counter() - began,
        row_of=dict(zip(state.jobs.id.tolist(), range(len(table.rows)), strict=True)),
        rows=table.rows,
        nodes=nodes,
        allowed=allowed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Rows of the queue, first submitted first, and the same by columns: 5,000 cost little."""

    rows: Sequence[QueueRow]
    columns: Sequence[Sequence[Any]]
    waits: BoolArray

    @classmethod
    def of(cls, rows: Sequence[QueueRow]) -> _Table:
        columns = list(zip(*rows, strict=True)) or [()] * len(QueueRow._fields)
        states = columns[QueueRow._fields.index("state")]
        waits = np.array([state == reading.WAITING for state in states], dtype=np.bool_)
        return cls(rows, columns, waits)

    def cells(self, name: str) -> Sequence[Any]:
        """Return a column."""
        return self.columns[QueueRow._fields.index(name)]


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """What sprio says of each row of a table; zeros where it is silent, and of running jobs."""

    rows: Sequence[PriorityRow | None]
    is_known: BoolArray
    site: IntArray
    others: IntArray
    is_by_hand: BoolArray

    @classmethod
    def of(cls, table: _Table, priorities: Mapping[str, PriorityRow]) -> _Weights:
        rows = [
            priorities.get(job) if waits else None
            for job, waits in zip(table.cells("job"), table.waits.tolist(), strict=True)
        ]
        parts = list(zip(*(row or _NO_WEIGHT for row in rows), strict=True)) or [()] * 4
        priority, site, age, others = (np.array(part, dtype=np.int64) for part in parts)
        return cls(
            rows,
            is_known=np.array([row is not None for row in rows], dtype=np.bool_),
            site=site,
            others=others,
            is_by_hand=reading.is_set_by_hand(priority, site, age, others),
        )


_NO_WEIGHT = PriorityRow(0, 0, 0, 0)
_SUBMITTED = attrgetter("submit_s")


def _why_held(
    table: _Table,
    weights: _Weights,
    types: Sequence[str | None],
    allowed: Allowed,
    is_ours: Callable[[str, int], bool] | None,
) -> tuple[str, ...]:
    """Return why each waiting job must not be ordered; whose answer is plain is not asked about."""
    plain = {reason: reason in ORDERABLE for reason in set(table.cells("reason"))}
    asks = ~np.array([plain[reason] for reason in table.cells("reason")], dtype=np.bool_)
    asks |= ~weights.is_known | weights.is_by_hand
    asks |= np.array(table.cells("priority"), dtype=np.int64) == 0
    if is_ours is not None:
        asks |= weights.site != 0
    if not allowed.admits_all:
        asks[:] = True
    why = [""] * len(table.rows)
    for row in np.flatnonzero(asks & table.waits).tolist():
        why[row] = why_not(table.rows[row], weights.rows[row], allowed, is_ours)
    for row, known in enumerate(types) if None in types else ():
        if known is None and table.waits[row]:
            why[row] = why[row] or ELSEWHERE
    return tuple(why)


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
    if not waits_for_its_turn(row):
        return f"it does not wait for its turn ({row.reason})"
    if not allowed.admits(row):
        return "not on the list of jobs to order"
    if weight is None:
        return "Slurm has not weighed it yet"
    return ""


def waits_for_its_turn(row: QueueRow) -> bool:
    """Whether its place in the queue decides when it starts, in one of its partitions at least."""
    several = "," in row.partition and row.reason.startswith(NODES_AWAY)
    return row.reason in ORDERABLE or several


def _within(nodes: Sequence[NodeRow], allowed: Allowed) -> list[NodeRow]:
    wanted = set(allowed.partitions)
    return [node for node in nodes if not wanted or wanted & set(node.partitions)]


def _units(queue: Iterable[QueueRow]) -> list[QueueRow]:
    """Return running jobs as they are, and waiting ones as Slurm orders them.

    Waiting tasks of an array are one, with what one task asks for. Parts of a heterogeneous job
    are one, with all they ask for together. Their label still says that they are more than a job.
    """
    units: dict[str, QueueRow] = {}
    running = list[QueueRow]()
    for row in queue:
        if row.state != reading.WAITING:
            running.append(row)
            continue
        plain = row.label == row.job
        unit = row.label if plain else row.unit
        known = units.get(unit)
        if known is None:
            units[unit] = row if plain else row._replace(job=unit)
        elif "+" in row.label:
            units[unit] = known._replace(gpus=known.gpus + row.gpus, nodes=known.nodes + row.nodes)
    # The last task of an array runs under the array's number; a requeued one may wait again.
    apart = [row._replace(job=row.label) if row.job in units else row for row in running]
    return [*units.values(), *apart]


def _known_types(table: _Table, nodes: Sequence[NodeRow]) -> list[str | None]:
    """Return the GPU types each job accepts, of those that are here or in the catalogue.

    None if a job asks for types of which nobody knows anything: those of other nodes.
    """
    here = {type_key(_type(node.gpu_type).name) for node in nodes}
    known: dict[str, str | None] = {"": ""}
    for label in set(table.cells("gpu_types")) - {""}:
        names = [name for name in label.split("|") if type_key(name) in here or is_gpu_type(name)]
        known[label] = "|".join(names) or None
    return [known[label] for label in table.cells("gpu_types")]


def _limits(rows: Sequence[QueueRow]) -> list[float]:
    return [row.limit_s or UNKNOWN_LIMIT_S for row in rows]


def _state(  # noqa: PLR0917 - columns of one table
    table: _Table,
    nodes: Sequence[NodeRow],
    now_s: float,
    believed_s: Sequence[float],
    types: Sequence[str | None],
    why_held: Sequence[str],
) -> State:
    cluster = cluster_of(nodes)
    holdings = _holdings(table, nodes)
    used = np.array([node.used for node in nodes], dtype=np.int64)
    away = np.array([not node.takes_jobs for node in nodes], dtype=np.bool_)
    ours = np.bincount(holdings[:, 1], holdings[:, 2], minlength=len(nodes)).astype(np.int64)
    blocked = np.where(away, cluster.node_gpus - ours, np.maximum(used - ours, 0))
    begun_s = np.nan_to_num(np.array(table.cells("start_s"), dtype=np.float64), nan=now_s)
    gpus = np.array(table.cells("gpus"), dtype=np.int64)
    over = np.array(table.cells("nodes"), dtype=np.int64)
    believed = np.maximum(np.asarray(believed_s, dtype=np.float64), 1.0)
    columns: dict[str, Any] = {
        "id": np.array(table.cells("job"), dtype=np.str_),
        "submit_s": np.minimum(np.array(table.cells("submit_s"), dtype=np.float64), now_s),
        "duration_s": believed,
        "estimate_s": believed,
        "gpus": gpus,
        "max_gpus_per_node": np.where(over > 1, -(-gpus // np.maximum(over, 1)), 0),
        "gpu_types": Labels.of([known or "" for known in types]),
        "user": Labels.of(table.cells("user")),
        "tenant": Labels.of(table.cells("account")),
    }
    return State.of(
        time_s=now_s,
        columns=columns,
        since_s=np.where(table.waits, np.nan, np.minimum(begun_s, now_s)),
        cluster=cluster,
        is_held=np.array([bool(why) for why in why_held], dtype=np.bool_),
        holdings=holdings,
        blocked=np.maximum(blocked, 0),
        node_names=[node.name for node in nodes],
        name="slurm",
    )


def _holdings(table: _Table, nodes: Sequence[NodeRow]) -> IntArray:
    """Return who holds how many GPUs where; on several nodes as evenly as they go."""
    place = {node.name: number for number, node in enumerate(nodes)}
    held = []
    free = [node.gpus for node in nodes]
    for number in np.flatnonzero(~table.waits).tolist():
        row = table.rows[number]
        if row.state not in {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING"}:
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
