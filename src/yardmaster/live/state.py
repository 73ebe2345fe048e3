"""What an adapter sees of a real system at one moment: who waits, who runs where, which nodes.

All columns are NumPy arrays, so that 5,000 waiting jobs cost milliseconds. A `State` holds what an
operator knows and nothing else: the `duration_s` of its job table is the run time that is
*believed* (an estimate or a limit), and schedulers that read true run times in simulation read that
one here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import COLUMN_NAMES, BoolArray, FloatArray, IntArray, Labels
from yardmaster.model.workload import Workload

NO_HOLDINGS: IntArray = np.zeros((0, 3), dtype=np.int64)
OVERDUE_SHARE = 0.1
"""Who has run longer than was believed is believed to run this share of that time longer."""
SHORTEST_REST_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """One moment of a real system.

    Attributes:
        time_s: now, on the clock of the jobs' `submit_s` (any clock that goes by seconds).
        jobs: jobs that wait or run, by submit time; `id` is the system's own name of each,
            `duration_s` the run time that is believed.
        since_s: (jobs,) when the job started, NaN if it waits.
        is_held: (jobs,) waiting jobs that must not be started nor ordered (held by a person,
            dependency, begin time, back-off).
        holdings: (n, 3) row of a running job, node, GPUs it holds there; empty if nobody knows
            where jobs run.
        blocked: (nodes,) GPUs that nobody may use now: of nodes that are down or drained, or held
            by what is not in `jobs`.
        cluster: the machines.
        node_names: (nodes,) the system's own names.
    """

    time_s: float
    jobs: Workload
    since_s: FloatArray
    is_held: BoolArray
    holdings: IntArray
    blocked: IntArray
    cluster: Cluster
    node_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        *,
        time_s: float,
        columns: Mapping[str, Any],
        since_s: Sequence[float] | FloatArray,
        cluster: Cluster,
        is_held: Sequence[bool] | BoolArray | None = None,
        holdings: IntArray | None = None,
        blocked: IntArray | None = None,
        node_names: Sequence[str] = (),
        name: str = "live",
    ) -> State:
        """Build a state from columns in any order of rows; rows are sorted by submit time.

        Args:
            time_s: now.
            columns: columns of the job table (`model.columns`); `duration_s` is what is believed.
            since_s: when each job started, NaN for those that wait.
            cluster: the machines.
            is_held: who must not be touched; nobody by default.
            holdings: (row as given, node, GPUs) of running jobs.
            blocked: (nodes,) GPUs out of reach; none by default.
            node_names: names of the nodes; numbers by default.
            name: name for tables.

        Raises:
            InvalidWorkloadError: if the job table has mistakes.
            YardmasterError: if somebody started after now, or holds what does not exist.
        """
        submit_s = np.asarray(columns["submit_s"], dtype=np.float64)
        order = np.argsort(submit_s, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        held = np.zeros(len(order), dtype=np.bool_) if is_held is None else np.asarray(is_held)
        rows = (NO_HOLDINGS if holdings is None else np.asarray(holdings, dtype=np.int64)).copy()
        rows[:, 0] = place[rows[:, 0]]
        state = cls(
            time_s=float(time_s),
            jobs=Workload.of(name=name, **columns) if len(order) else nobody(name),
            since_s=np.asarray(since_s, dtype=np.float64)[order],
            is_held=held.astype(np.bool_)[order],
            holdings=rows,
            blocked=np.zeros(cluster.nodes, dtype=np.int64)
            if blocked is None
            else np.asarray(blocked, dtype=np.int64),
            cluster=cluster,
            node_names=tuple(node_names) or tuple(map(str, range(cluster.nodes))),
        )
        state.check()
        return state

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            YardmasterError: naming the first job or node that makes no sense.
        """
        late = np.flatnonzero(self.since_s > self.time_s)
        if len(late):
            raise YardmasterError(f"Job {self.jobs.id[late[0]]} started after now.")
        if len(self.holdings) and (
            self.holdings[:, 1].max() >= self.cluster.nodes or self.holdings.min() < 0
        ):
            raise YardmasterError("A running job holds GPUs of a node that does not exist.")

    @property
    def waiting(self) -> IntArray:
        """Rows of the jobs that wait, held ones too, first submitted first."""
        return np.flatnonzero(np.isnan(self.since_s))

    @property
    def orderable(self) -> IntArray:
        """Rows of the jobs that wait and may be started."""
        return np.flatnonzero(np.isnan(self.since_s) & ~self.is_held)

    @property
    def running(self) -> IntArray:
        """Rows of the jobs that run."""
        return np.flatnonzero(~np.isnan(self.since_s))

    @property
    def held_gpus(self) -> IntArray:
        """(nodes,) GPUs in use or out of reach."""
        held = np.bincount(
            self.holdings[:, 1], self.holdings[:, 2], minlength=self.cluster.nodes
        ).astype(np.int64)
        return np.asarray(np.minimum(held + self.blocked, self.cluster.node_gpus))

    @property
    def free_gpus(self) -> IntArray:
        """(nodes,) GPUs nobody uses."""
        return self.cluster.node_gpus - self.held_gpus

    def left_s(self) -> FloatArray:
        """(running,) seconds each running job is believed to have left, in order of `running`."""
        rows = self.running
        return believed_rest(self.jobs.duration_s[rows], self.time_s - self.since_s[rows])

    def digest(self) -> str:
        """Return a hash of everything but the time: equal situations, equal digests."""
        sha = hashlib.sha256()
        for column in COLUMN_NAMES:
            value = getattr(self.jobs, column)
            if isinstance(value, Labels):
                sha.update("\0".join(value.names).encode("utf-8", "surrogatepass"))
                value = value.codes
            sha.update(np.ascontiguousarray(value).tobytes())
        for table in (self.since_s, self.is_held, self.holdings, self.blocked):
            sha.update(np.ascontiguousarray(table).tobytes())
        sha.update("\0".join(self.node_names).encode("utf-8", "surrogatepass"))
        return sha.hexdigest()[:16]


def columns_of(jobs: Workload, rows: IntArray) -> dict[str, Any]:
    """Return all columns of some rows, copied; row −1 gives those of the last."""
    return {name: _take(getattr(jobs, name), rows) for name in COLUMN_NAMES}


def _take(column: Any, rows: IntArray) -> Any:
    return column.take(rows) if isinstance(column, Labels) else column[rows]


def selected(jobs: Workload, rows: IntArray) -> Workload:
    """Return some rows of a job table, even none, without checking them all over again."""
    return Workload(name=jobs.name, **columns_of(jobs, rows))


def nobody(name: str = "live") -> Workload:
    """Return a job table without jobs, which only a live system can have."""
    one = Workload.of(name=name, submit_s=[0.0], duration_s=[0.0])
    return selected(one, np.zeros(0, dtype=np.int64))


def believed_rest(believed_s: FloatArray, elapsed_s: FloatArray) -> FloatArray:
    """Return how long jobs are believed to run on, having run for `elapsed_s`.

    Who is overdue will not end this very second: it is given a tenth of what it has run.
    """
    rest_s = believed_s - elapsed_s
    overdue_s = np.maximum(OVERDUE_SHARE * elapsed_s, SHORTEST_REST_S)
    return np.where(rest_s > 0, rest_s, overdue_s)
