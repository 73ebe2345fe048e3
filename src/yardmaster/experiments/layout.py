"""Putting running jobs back onto an empty cluster, each on the nodes it holds.

A simulation begins with an empty cluster. So that the one that goes on from a snapshot finds jobs
where they are, they are let in one by one just before, node after node, and every node is filled up
before the next: then there is only one place for each. Gangs over several nodes are let in as
several jobs that end together, and what fills up a node ends just before now.

That is exact for placements that fill nodes one after the other and disciplines that never stop a
job. Elsewhere, and where nobody knows who runs where, running jobs are let in whole, the largest
first, which leaves the fewest holes: they then run on other nodes than they really do, though of
the same GPU type where that is known and one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yardmaster.experiments.snapshot import Snapshot
from yardmaster.model.columns import FloatArray, IntArray, Labels
from yardmaster.schedulers.language import Scheduler

SPAN_S = 1.0
"""Jobs are put back within the first half of so many seconds before now."""
_BY_TIGHTNESS = frozenset({"PACK", "FASTEST"})
_BY_NUMBER = frozenset({"FIRST", "TIER"})
_NEVER_STOP = frozenset({"STRICT", "SKIP", "COMMIT", "EASY", "CONSERVATIVE"})
FILLER = -1


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What is let in before now, in this order.

    Attributes:
        row: (n,) row of the running job, or `FILLER`.
        gpus: (n,) GPUs of this part of it.
        share: (n,) this part of the whole job.
        types: (n,) GPU types it may be put on; missing: those it asked for.
        at_s: (n,) when it is let in.
        node: (n,) the node it must land on; −1 if that does not matter.
        is_exact: whether every job is put where it is.
    """

    row: IntArray
    gpus: IntArray
    share: FloatArray
    types: Labels
    at_s: FloatArray
    node: IntArray
    is_exact: bool

    def __len__(self) -> int:
        return len(self.row)


def layout_of(snapshot: Snapshot, scheduler: Scheduler) -> Layout:
    """Return how the running jobs of a snapshot are put back."""
    tight = scheduler.placement.name in _BY_TIGHTNESS
    fills_up = tight or scheduler.placement.name in _BY_NUMBER
    is_single = not len(snapshot.running) or len(snapshot.holdings) > 0
    if fills_up and is_single and scheduler.discipline.name in _NEVER_STOP and _is_whole(snapshot):
        return _exact(snapshot, tight=tight)
    return _by_size(snapshot)


def _is_whole(snapshot: Snapshot) -> bool:
    """Whether no GPU is held by two jobs."""
    held = np.bincount(
        snapshot.holdings[:, 1], snapshot.holdings[:, 2], minlength=snapshot.cluster.nodes
    )
    whole = snapshot.jobs.milli_gpu[snapshot.running] == 1000
    return bool(whole.all()) and bool((held <= snapshot.cluster.node_gpus).all())


def _exact(snapshot: Snapshot, *, tight: bool) -> Layout:
    """Fill node after node: the smallest first if placement looks for the tightest."""
    cluster = snapshot.cluster
    numbers = np.arange(cluster.nodes)
    turn = np.empty(cluster.nodes, dtype=np.int64)
    turn[np.lexsort((numbers, cluster.node_gpus)) if tight else numbers] = numbers
    row, node, gpus = snapshot.holdings.T
    free = cluster.node_gpus - np.bincount(node, gpus, minlength=cluster.nodes).astype(np.int64)
    idle = np.flatnonzero(free > 0)
    row = np.concatenate([row, np.full(len(idle), FILLER)])
    node = np.concatenate([node, idle])
    gpus = np.concatenate([gpus, free[idle]])
    order = np.lexsort((row == FILLER, turn[node]))
    row, node, gpus = row[order], node[order], gpus[order]
    whole = np.where(row == FILLER, gpus, snapshot.jobs.gpus[row])
    types = Labels(
        cluster.node_type[node].astype(np.int32), tuple(kind.name for kind in cluster.gpu_types)
    )
    return Layout(row, gpus, gpus / whole, types, _times(snapshot, len(row)), node, is_exact=True)


def _by_size(snapshot: Snapshot) -> Layout:
    """Let running jobs in whole, the largest first."""
    row = snapshot.running
    gpus, types = snapshot.jobs.gpus[row], np.full(len(row), -1, dtype=np.int32)
    if len(snapshot.holdings):
        gpus, types = _held(snapshot)
    order = np.argsort(-gpus, kind="stable")
    row, gpus = row[order], gpus[order]
    names = tuple(kind.name for kind in snapshot.cluster.gpu_types)
    anywhere = np.full(len(row), -1, dtype=np.int64)
    return Layout(
        row, gpus, gpus / snapshot.jobs.gpus[row], Labels(types[order], names),
        _times(snapshot, len(row)), anywhere, is_exact=False,
    )  # fmt: skip


def _held(snapshot: Snapshot) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Return how many GPUs each running job holds, and their type; −1 if of several types."""
    place = np.searchsorted(snapshot.running, snapshot.holdings[:, 0])
    kind = snapshot.cluster.node_type[snapshot.holdings[:, 1]]
    least = np.full(len(snapshot.running), len(snapshot.cluster.gpu_types), dtype=np.int64)
    most = np.full(len(snapshot.running), -1, dtype=np.int64)
    np.minimum.at(least, place, kind)
    np.maximum.at(most, place, kind)
    gpus = np.bincount(place, snapshot.holdings[:, 2], minlength=len(least)).astype(np.int64)
    return gpus, np.where(least == most, most, -1).astype(np.int32)


def _times(snapshot: Snapshot, count: int) -> FloatArray:
    step_s = SPAN_S / 2 / max(count, 1)
    return np.asarray(snapshot.now_s - SPAN_S + step_s * np.arange(count), dtype=np.float64)
