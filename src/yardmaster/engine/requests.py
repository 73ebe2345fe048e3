"""What each job asks of the cluster, reduced to a few distinct shapes."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import gpu_type, type_key
from yardmaster.model.workload import IntArray, Workload


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The distinct requests of a workload on a cluster.

    A gang stays within one node if some allowed node could ever hold it (and the job does not
    limit its GPUs per node below that); otherwise it spans as many nodes as it needs.
    """

    of_job: IntArray
    """(jobs,) shape of each job; −1 if the empty cluster could never hold it."""
    gpus: IntArray
    cap: IntArray
    """(shapes,) most GPUs of the gang on one node."""
    types: IntArray
    """(shapes,) bit set of allowed GPU types."""
    single: IntArray
    """(shapes,) 1 if the gang must stay within one node."""


_known: WeakKeyDictionary[Workload, WeakKeyDictionary[Cluster, Shapes]] = WeakKeyDictionary()
"""Shapes found before: a comparison runs many schedulers on the same jobs and machines."""


def shapes_of(workload: Workload, cluster: Cluster) -> Shapes:
    """Find the distinct requests and which of them can never be placed.

    Raises:
        UnknownNameError: if a job names a GPU type that no catalogue or cluster knows.
    """
    by_cluster = _known.setdefault(workload, WeakKeyDictionary())
    if cluster not in by_cluster:
        by_cluster[cluster] = _find_shapes(workload, cluster)
    return by_cluster[cluster]


def _find_shapes(workload: Workload, cluster: Cluster) -> Shapes:
    type_sets = _type_sets(workload, cluster)
    most = int(cluster.node_gpus.max())
    wanted_cap = np.minimum(
        np.where(workload.max_gpus_per_node == 0, most, workload.max_gpus_per_node), most
    )
    type_code = workload.gpu_types.codes.astype(np.int64) + 1
    sets = len(type_sets)
    # Requests beyond the whole cluster are all equally impossible; folding them keeps codes small.
    gpus = np.minimum(workload.gpus, cluster.gpus + 1)
    code = (gpus * (most + 1) + wanted_cap) * sets + type_code
    distinct, of_job = _distinct(code)
    first = {"gpus": distinct // sets // (most + 1), "cap": distinct // sets % (most + 1)}
    masks = np.asarray([type_sets[index] for index in distinct % sets], dtype=np.int64)
    allowed = (masks[:, None] >> cluster.node_type[None, :]) & 1
    biggest = np.max(allowed * cluster.node_gpus[None, :], axis=1, initial=0)
    cap = np.minimum(first["cap"], biggest)
    room = np.sum(allowed * np.minimum(cluster.node_gpus[None, :], cap[:, None]), axis=1)
    possible = room >= first["gpus"]
    number = np.where(possible, np.cumsum(possible) - 1, -1)
    single = (first["gpus"] <= cap).astype(np.int64)
    return Shapes(
        number[of_job], first["gpus"][possible], cap[possible], masks[possible], single[possible]
    )


def _type_sets(workload: Workload, cluster: Cluster) -> list[int]:
    """Return the bit set of allowed types per label code + 1; code −1 (missing) allows all."""
    here = {type_key(kind.name): 1 << index for index, kind in enumerate(cluster.gpu_types)}
    sets = [(1 << len(cluster.gpu_types)) - 1]
    for label in workload.gpu_types.names:
        bits = 0
        for name in label.split("|"):
            if type_key(name) not in here:
                gpu_type(name.strip())  # a type the cluster lacks is fine, a misspelt one is not
            bits |= here.get(type_key(name), 0)
        sets.append(bits)
    return sets


def _distinct(code: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct codes ascending and the index of each row's code among them."""
    largest = int(code.max())
    if largest > 50_000_000:
        distinct, index = np.unique(code, return_inverse=True)
        return distinct, index.astype(np.int64)
    present = np.zeros(largest + 1, dtype=bool)
    present[code] = True
    distinct = np.flatnonzero(present)
    position = np.zeros(largest + 1, dtype=np.int64)
    position[distinct] = np.arange(len(distinct))
    return distinct, position[code]
