"""What each job asks of the cluster, reduced to a few distinct shapes."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import gpu_type, type_key
from yardmaster.model.site import Sharing
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Labels, Workload

UNLIMITED = 1 << 50
"""An amount that nobody uses up: cores of a node whose cores are unknown, quotas without limit."""

MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The distinct requests of a workload on a cluster.

    A gang stays within one node if some allowed node could ever hold it (and the job does not
    limit its GPUs per node below that, and the site does not split gangs); otherwise it spans as
    many nodes as it needs.
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
    example: IntArray
    """(shapes,) row of the first job with this request."""


_known: WeakKeyDictionary[Workload, WeakKeyDictionary[Cluster, dict[bool, Shapes]]] = (
    WeakKeyDictionary()
)
"""Shapes found before: a comparison runs many schedulers on the same jobs and machines."""


def shapes_of(workload: Workload, cluster: Cluster, *, by_tenant: bool = False) -> Shapes:
    """Find the distinct requests and which of them can never be placed.

    Tenants tell requests apart if the site has quotas, or if the order asks for it (`by_tenant`).

    Raises:
        UnknownNameError: if a job names a GPU type that no catalogue or cluster knows.
    """
    by_tenant = by_tenant or bool(cluster.site.quotas)
    found = _known.setdefault(workload, WeakKeyDictionary()).setdefault(cluster, {})
    if by_tenant not in found:
        found[by_tenant] = _find_shapes(workload, cluster, by_tenant=by_tenant)
    return found[by_tenant]


def _find_shapes(workload: Workload, cluster: Cluster, *, by_tenant: bool) -> Shapes:
    masks = type_masks(workload, cluster)
    most = int(cluster.node_gpus.max())
    wanted_cap = np.minimum(
        np.where(workload.max_gpus_per_node == 0, most, workload.max_gpus_per_node), most
    )
    # Requests beyond the whole cluster are all equally impossible; folding them keeps codes small.
    gpus = np.minimum(workload.gpus, cluster.gpus + 1)
    type_number, _ = _numbered(masks)
    columns = [wanted_cap, type_number, *_told_apart(workload, cluster, by_tenant=by_tenant)]
    code = gpus
    for column in columns:
        code, _ = _numbered(code * (int(column.max()) + 1) + column)
    of_job, example = _numbered(code)
    masks, wanted_cap, gpus = masks[example], wanted_cap[example], workload.gpus[example]
    room = room_on_empty(workload, cluster, example, masks)
    biggest = np.max(room, axis=1, initial=0)
    cap = np.minimum(wanted_cap, biggest)
    total = np.sum(np.minimum(room, cap[:, None]), axis=1)
    possible = (total >= gpus) & ~_is_out_of_bounds(workload, cluster, example, masks)
    number = np.where(possible, np.cumsum(possible) - 1, -1)
    single = (gpus <= cap) & ((gpus == 1) | (not cluster.site.splits_gangs))
    return Shapes(
        number[of_job],
        gpus[possible],
        cap[possible],
        masks[possible],
        single[possible].astype(np.int64),
        example[possible],
    )


def room_on_empty(
    workload: Workload, cluster: Cluster, rows: IntArray, masks: IntArray
) -> IntArray:
    """Return (rows, nodes): GPUs of each empty node that each of these jobs could use."""
    room = ((masks[:, None] >> cluster.node_type[None, :]) & 1) * cluster.node_gpus[None, :]
    for needed, there in (
        (cpu_milli_per_gpu(workload, cluster, rows), node_cpu_milli(cluster)),
        (host_mib_per_gpu(workload, cluster, rows), node_mib(cluster)),
    ):
        if needed.any():
            fitting = there[None, :] // np.maximum(needed, 1)[:, None]
            room = np.where(needed[:, None] > 0, np.minimum(room, fitting), room)
    return np.asarray(room, dtype=np.int64)


def _is_out_of_bounds(
    workload: Workload, cluster: Cluster, rows: IntArray, masks: IntArray
) -> BoolArray:
    """Whether jobs ask for more than their tenant's limit or the power cap ever allows."""
    too_hungry = watts_at_most(workload, cluster, rows, masks) > cluster.site.power.cap_w
    return np.asarray(is_over_limit(workload, cluster, rows) | too_hungry)


def is_over_limit(workload: Workload, cluster: Cluster, rows: IntArray) -> BoolArray:
    """Whether each of these jobs asks for more GPUs than its tenant may ever hold."""
    limits = {quota.tenant: quota.limit_gpus for quota in cluster.site.quotas}
    of_code = [limits.get(name) for name in workload.tenant.names] + [None]
    most = np.array([UNLIMITED if limit is None else limit for limit in of_code], dtype=np.int64)
    return np.asarray(workload.gpus[rows] > most[workload.tenant.codes[rows]])


def watts_at_most(
    workload: Workload, cluster: Cluster, rows: IntArray, masks: IntArray
) -> IntArray:
    """Return the watts above idle that each job draws on the hungriest GPU type it allows."""
    hungry = np.array([kind.busy_w - kind.idle_w for kind in cluster.gpu_types])
    allowed = (masks[:, None] >> np.arange(len(hungry))[None, :]) & 1
    per_gpu = np.max(allowed * hungry[None, :], axis=1, initial=0.0)
    share = workload.gpus[rows] * (workload.milli_gpu[rows] / 1000.0)
    return np.asarray(np.ceil(per_gpu * share), dtype=np.int64)


def _told_apart(workload: Workload, cluster: Cluster, *, by_tenant: bool) -> list[IntArray]:
    """Return the columns, besides GPUs, that make requests different on this cluster."""
    columns = []
    if tells_kinds_apart(workload, cluster):
        columns.append(workload.kind.codes.astype(np.int64) + 1)
        # Durations were measured on the first type a job names.
        columns.append(workload.gpu_types.codes.astype(np.int64) + 1)
    if shares_gpus(workload, cluster):
        columns += [workload.milli_gpu, _numbered(gpu_mib(workload.gpu_memory_gib))[0]]
    elif not np.isinf(cluster.site.power.cap_w):
        columns.append(workload.milli_gpu)
    everybody = np.arange(len(workload))
    for column in (
        cpu_milli_per_gpu(workload, cluster, everybody),
        host_mib_per_gpu(workload, cluster, everybody),
    ):
        if column.any():
            columns.append(_numbered(column)[0])
    if by_tenant:
        columns.append(workload.tenant.codes.astype(np.int64) + 1)
    if workload.min_gpus.any() or workload.max_gpus.any():
        columns += [workload.min_gpus, workload.max_gpus]
    return columns


def tells_kinds_apart(workload: Workload, cluster: Cluster) -> bool:
    """Whether a job's kind can matter to its speed on this cluster."""
    if cluster.site.equal_speeds:
        return False
    is_elastic = bool(workload.min_gpus.any() or workload.max_gpus.any())
    is_spread = cluster.site.splits_gangs or int(cluster.node_rack.max()) > 0
    has_kinds = bool((workload.kind.codes >= 0).any())
    return len(cluster.gpu_types) > 1 or (
        has_kinds and (is_elastic or is_spread or shares_gpus(workload, cluster))
    )


def shares_gpus(workload: Workload, cluster: Cluster) -> bool:
    """Whether there are fractional jobs and GPUs to share."""
    has_parts = bool((workload.milli_gpu < 1000).any())
    return has_parts and bool((cluster.node_sharing != Sharing.NONE).any())


def gpu_mib(memory_gib: FloatArray) -> IntArray:
    """Return the device memory jobs need on a GPU in MiB; 0 if unknown."""
    return _whole(memory_gib * MIB_PER_GIB)


def cpu_milli_per_gpu(workload: Workload, cluster: Cluster, rows: IntArray) -> IntArray:
    """Return the thousandths of a core these jobs need with every GPU; 0 if nobody counts them."""
    if np.isnan(cluster.node_cpus).all():
        return np.zeros(len(rows), dtype=np.int64)
    return _whole(workload.cpus[rows] * 1000.0 / workload.gpus[rows])


def host_mib_per_gpu(workload: Workload, cluster: Cluster, rows: IntArray) -> IntArray:
    """Return the host memory these jobs need with every GPU, MiB; 0 if nobody counts it."""
    if np.isnan(cluster.node_memory_gib).all():
        return np.zeros(len(rows), dtype=np.int64)
    return _whole(workload.memory_gib[rows] * MIB_PER_GIB / workload.gpus[rows])


def _whole(amount: FloatArray) -> IntArray:
    return np.ceil(np.nan_to_num(amount, nan=0.0)).astype(np.int64)


def node_cpu_milli(cluster: Cluster) -> IntArray:
    """Return the thousandths of a core of each node; UNLIMITED if unknown."""
    return _known_or_unlimited(cluster.node_cpus * 1000.0)


def node_mib(cluster: Cluster) -> IntArray:
    """Return the host memory of each node, MiB; UNLIMITED if unknown."""
    return _known_or_unlimited(cluster.node_memory_gib * MIB_PER_GIB)


def _known_or_unlimited(amount: FloatArray) -> IntArray:
    return np.where(np.isnan(amount), UNLIMITED, np.nan_to_num(amount)).astype(np.int64)


def type_masks(workload: Workload, cluster: Cluster) -> IntArray:
    """Return the bit set of GPU types each job may run on: named by it, with enough memory."""
    sets = np.array(type_sets(workload.gpu_types, cluster), dtype=np.int64)
    masks = sets[workload.gpu_types.codes.astype(np.int64) + 1]
    if np.isnan(workload.gpu_memory_gib).all():
        return masks
    memory = np.array([kind.memory_gib for kind in cluster.gpu_types])
    needed = np.nan_to_num(workload.gpu_memory_gib, nan=0.0)
    large_enough = (memory[None, :] >= needed[:, None]) << np.arange(len(memory))[None, :]
    return np.asarray(masks & large_enough.sum(axis=1), dtype=np.int64)


def type_sets(labels: Labels, cluster: Cluster) -> list[int]:
    """Return the bit set of allowed types per label code + 1; code −1 (missing) allows all."""
    here = {type_key(kind.name): 1 << index for index, kind in enumerate(cluster.gpu_types)}
    sets = [(1 << len(cluster.gpu_types)) - 1]
    for label in labels.names:
        bits = 0
        for name in label.split("|"):
            if type_key(name) not in here:
                gpu_type(name.strip())  # a type the cluster lacks is fine, a misspelt one is not
            bits |= here.get(type_key(name), 0)
        sets.append(bits)
    return sets


def _numbered(code: IntArray) -> tuple[IntArray, IntArray]:
    """Number the distinct codes ascending; return each row's number and each code's first row."""
    largest = int(code.max())
    if largest > 50_000_000:
        _, first, index = np.unique(code, return_index=True, return_inverse=True)
        return index.astype(np.int64), first.astype(np.int64)
    first_row = np.full(largest + 1, -1, dtype=np.int64)
    first_row[code[::-1]] = np.arange(len(code) - 1, -1, -1)
    distinct = np.flatnonzero(first_row >= 0)
    position = np.zeros(largest + 1, dtype=np.int64)
    position[distinct] = np.arange(len(distinct))
    return position[code], first_row[distinct]
