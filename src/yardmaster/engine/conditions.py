"""What a real cluster does to jobs, as numbers both engines read.

`Conditions` says how fast each request runs where, what it needs besides GPUs, who may hold how
much, what stopping a job costs and when nodes are away. `conditions_of` derives it from a workload
and a cluster; it is None when nothing of the kind applies, and the engines then do no more than
start jobs and end them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from yardmaster.engine.requests import (
    MIB_PER_GIB,
    UNLIMITED,
    Shapes,
    cpu_milli_per_gpu,
    gpu_mib,
    host_mib_per_gpu,
    node_cpu_milli,
    node_mib,
    shares_gpus,
    tells_kinds_apart,
    watts_at_most,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import GpuType, gpu_type, type_key
from yardmaster.model.site import Outage
from yardmaster.model.workload import FloatArray, IntArray, Workload


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """Everything about jobs and machines beyond "so many GPUs for so many seconds".

    Tables over shapes have one row per distinct request (see `engine.requests.Shapes`).
    """

    speed: FloatArray
    """(shapes, types) work done per second; 1 where durations were measured."""
    node_factor: FloatArray
    """(shapes,) factor on the speed when the gang spans nodes of one rack."""
    rack_factor: FloatArray
    """(shapes,) factor on the speed when the gang spans racks."""
    milli: IntArray
    """(shapes,) thousandths of its GPU; 1000 for whole GPUs."""
    gpu_mib: IntArray
    """(shapes,) device memory a fractional job takes of its GPU, MiB; 0 if unknown."""
    cpu_milli: IntArray
    """(shapes,) thousandths of a core needed with every GPU; 0 if unknown."""
    host_mib: IntArray
    """(shapes,) host memory needed with every GPU, MiB; 0 if unknown."""
    tenant: IntArray
    """(shapes,) index of the tenant."""
    watts: IntArray
    """(shapes,) watts above idle, on the hungriest GPU type the request allows."""
    kind: IntArray
    """(shapes,) index into `pair`."""
    least_gpus: IntArray
    """(shapes,) fewest GPUs; equal to the shape's GPUs if rigid."""
    most_gpus: IntArray
    """(shapes,) most GPUs; equal to the shape's GPUs if rigid."""
    scale: FloatArray
    """(shapes, largest most_gpus + 1) factor on the speed when running on so many GPUs."""
    pair: FloatArray
    """(kinds, kinds) speed of the first kind beside the second on one shared GPU, alone = 1."""
    node_cpu_milli: IntArray
    """(nodes,) thousandths of a core; UNLIMITED if unknown."""
    node_mib: IntArray
    """(nodes,) host memory, MiB; UNLIMITED if unknown."""
    node_sharing: IntArray
    """(nodes,) a `Sharing`."""
    type_mib: IntArray
    """(types,) device memory of one GPU, MiB."""
    type_watts: FloatArray
    """(types,) watts above idle of one busy GPU."""
    node_wake_w: FloatArray
    """(nodes,) watts of waking the node from idleness (its idle draw and overhead); 0 if the
    site's nodes never sleep."""
    guaranteed_gpus: IntArray
    """(tenants,)"""
    limit_gpus: IntArray
    """(tenants,) UNLIMITED if none."""
    popularity: IntArray
    """(shapes,) jobs of the workload with this request: what `fgd` expects to come."""
    cap_watts: int = UNLIMITED
    every_s: float = math.inf
    save_s: float = 0.0
    restore_s: float = 0.0
    saves_on_preemption: bool = True
    quantum_s: float = 0.0
    retries: int = UNLIMITED
    outages: tuple[Outage, ...] = ()
    """In order of `down_s`."""
    levels_s: FloatArray = field(default_factory=lambda: np.zeros(0))
    """GPU-seconds at which a job sinks to the next queue (`las-2d`), ascending."""

    @property
    def efficiency(self) -> float:
        """Share of running time that is not spent saving."""
        return 1.0 if math.isinf(self.every_s) else (self.every_s - self.save_s) / self.every_s


def conditions_of(
    workload: Workload,
    cluster: Cluster,
    shapes: Shapes,
    *,
    is_needed: bool = False,
    by_tenant: bool = False,
    seed: int = 0,
    levels_s: FloatArray | None = None,
) -> Conditions | None:
    """Derive what this cluster does to these jobs.

    Args:
        workload: the jobs.
        cluster: the machines and the rules of their site.
        shapes: the distinct requests.
        is_needed: whether the scheduler stops, scores or shares, so that it needs the numbers even
            where nothing is out of the ordinary.
        by_tenant: whether the order asks what tenants hold; quotas do so anyway.
        seed: seed of drawn failures.
        levels_s: GPU-seconds at which a job sinks to the next queue.

    Returns:
        The conditions; None if they would change nothing and nobody needs them.
    """
    site, rows = cluster.site, shapes.example
    speed = _speeds(workload, cluster, shapes)
    node_factor, rack_factor = _distance_factors(workload, cluster, shapes)
    least, most, scale = _sizes(workload, shapes)
    kind, pair = _pairs(workload, cluster, shapes)
    guaranteed, limit, tenant = _tenants(workload, cluster, shapes)
    if not (by_tenant or site.quotas):  # the shapes do not tell them apart
        guaranteed, limit, tenant = guaranteed[:0], limit[:0], np.zeros_like(tenant)
    outages = _outages(workload, cluster, seed)
    cpu = cpu_milli_per_gpu(workload, cluster, rows)
    mib = host_mib_per_gpu(workload, cluster, rows)
    checkpoints = site.checkpoints
    is_special = bool(
        (speed != 1.0).any()
        or (node_factor != 1.0).any()
        or (rack_factor != 1.0).any()
        or shares_gpus(workload, cluster)
        or cpu.any()
        or mib.any()
        or site.quotas
        or outages
        or math.isfinite(site.power.cap_w)
        or math.isfinite(checkpoints.every_s)
    )
    if not is_needed and not is_special:
        return None
    watts = np.array([one.busy_w - one.idle_w for one in cluster.gpu_types], dtype=np.float64)
    return Conditions(
        speed=speed,
        node_factor=node_factor,
        rack_factor=rack_factor,
        milli=workload.milli_gpu[rows],
        gpu_mib=gpu_mib(workload.gpu_memory_gib[rows]),
        cpu_milli=cpu,
        host_mib=mib,
        tenant=tenant,
        watts=watts_at_most(workload, cluster, rows, shapes.types),
        kind=kind,
        least_gpus=least,
        most_gpus=most,
        scale=scale,
        pair=pair,
        node_cpu_milli=node_cpu_milli(cluster),
        node_mib=node_mib(cluster),
        node_sharing=cluster.node_sharing,
        type_mib=np.array(
            [one.memory_gib * MIB_PER_GIB for one in cluster.gpu_types], dtype=np.int64
        ),
        type_watts=watts,
        node_wake_w=_wake_watts(cluster),
        guaranteed_gpus=guaranteed,
        limit_gpus=limit,
        popularity=np.bincount(shapes.of_job[shapes.of_job >= 0], minlength=len(rows)),
        cap_watts=UNLIMITED if math.isinf(site.power.cap_w) else int(site.power.cap_w),
        every_s=checkpoints.every_s,
        save_s=checkpoints.save_s,
        restore_s=checkpoints.restore_s,
        saves_on_preemption=checkpoints.on_preemption,
        quantum_s=site.quantum_s,
        retries=UNLIMITED if site.failures.retries is None else site.failures.retries,
        outages=outages,
        levels_s=np.zeros(0) if levels_s is None else levels_s,
    )


def _kinds_at(workload: Workload, rows: IntArray) -> list[str | None]:
    names = [*workload.kind.names, None]
    return [names[code] for code in workload.kind.codes[rows].tolist()]


def reference_gpu(cluster: Cluster) -> GpuType:
    """Return the GPU type on which durations were measured, unless a job says otherwise."""
    named = cluster.site.reference_gpu
    if named:
        own = {type_key(one.name): one for one in cluster.gpu_types}
        return own.get(type_key(named)) or gpu_type(named)
    counts = np.bincount(cluster.node_type, weights=cluster.node_gpus)
    return cluster.gpu_types[int(np.argmax(counts))]


def _speeds(workload: Workload, cluster: Cluster, shapes: Shapes) -> FloatArray:
    """Return (shapes, types): how fast each request runs, 1 where its duration was measured."""
    if not tells_kinds_apart(workload, cluster):
        return np.ones((len(shapes.gpus), len(cluster.gpu_types)))
    from yardmaster.model.speeds import speed

    own = {type_key(one.name): one for one in cluster.gpu_types}
    labels = [*workload.gpu_types.names, None]
    usual = reference_gpu(cluster)
    references = [
        usual
        if label is None
        else own.get(type_key(label.split("|")[0])) or gpu_type(label.split("|")[0].strip())
        for label in (labels[code] for code in workload.gpu_types.codes[shapes.example].tolist())
    ]
    kinds = _kinds_at(workload, shapes.example)
    pairs = list(zip(kinds, references, strict=True))
    rows = {
        pair: [speed(pair[0], one, pair[1]) for one in cluster.gpu_types]
        for pair in dict.fromkeys(pairs)
    }
    return np.array([rows[pair] for pair in pairs]).reshape(len(pairs), len(cluster.gpu_types))


def _distance_factors(
    workload: Workload, cluster: Cluster, shapes: Shapes
) -> tuple[FloatArray, FloatArray]:
    """Return what spreading over nodes, and over racks, costs each request.

    Only distance that could be avoided costs: the duration of a gang larger than a node was
    measured across nodes. Jobs of which nothing is known but their duration are not slowed down.
    """
    node_factor, rack_factor = np.ones(len(shapes.gpus)), np.ones(len(shapes.gpus))
    if not tells_kinds_apart(workload, cluster):
        return node_factor, rack_factor
    from yardmaster.model.speeds import locality

    in_rack = np.bincount(cluster.node_rack, weights=cluster.node_gpus).max()
    for shape, kind in enumerate(_kinds_at(workload, shapes.example)):
        if kind is not None:
            costs = locality(kind)
            fits_node = shapes.gpus[shape] <= shapes.cap[shape]
            node_factor[shape] = costs.node if fits_node else 1.0
            rack_factor[shape] = costs.rack if shapes.gpus[shape] <= in_rack else 1.0
    return node_factor, rack_factor


def _sizes(workload: Workload, shapes: Shapes) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the fewest and most GPUs of each request, and the speed on every size between."""
    from yardmaster.model.speeds import scaling

    rows, gpus = shapes.example, shapes.gpus
    can_resize = (shapes.single == 1) & (workload.milli_gpu[rows] == 1000)
    least = np.where(can_resize & (workload.min_gpus[rows] > 0), workload.min_gpus[rows], gpus)
    most = np.where(can_resize & (workload.max_gpus[rows] > 0), workload.max_gpus[rows], gpus)
    most = np.minimum(most, np.maximum(shapes.cap, gpus))
    scale = np.ones((len(gpus), int(most.max(initial=1)) + 1))
    kinds = _kinds_at(workload, rows)
    for shape in np.flatnonzero(least < most):
        sizes = np.arange(scale.shape[1]) / gpus[shape]
        # Nine digits are the same on every machine, whatever its power function.
        scale[shape] = np.round(sizes ** scaling(kinds[shape]), 9)
    return least, most, scale


def _pairs(workload: Workload, cluster: Cluster, shapes: Shapes) -> tuple[IntArray, FloatArray]:
    """Return each request's kind and how kinds slow each other down on one GPU."""
    if not shares_gpus(workload, cluster) or cluster.site.equal_speeds:
        return np.zeros(len(shapes.gpus), dtype=np.int64), np.ones((1, 1))
    from yardmaster.model.speeds import colocation

    names = [*workload.kind.names, None]
    pair = np.array(
        [
            [1.0 if one is None or other is None else colocation(one, other) for other in names]
            for one in names
        ]
    )
    codes = workload.kind.codes[shapes.example].astype(np.int64)
    return np.where(codes < 0, len(names) - 1, codes), pair


def _tenants(
    workload: Workload, cluster: Cluster, shapes: Shapes
) -> tuple[IntArray, IntArray, IntArray]:
    """Return what each tenant is guaranteed and limited to, and each request's tenant.

    The last tenant stands for jobs without one. Who has no quota is guaranteed nothing.
    """
    quotas = {quota.tenant: quota for quota in cluster.site.quotas}
    guaranteed, limit = [], []
    for name in (*workload.tenant.names, None):
        quota = quotas.get(name) if name is not None else None
        guaranteed.append(0 if quota is None else quota.guaranteed_gpus)
        most = None if quota is None else quota.limit_gpus
        limit.append(UNLIMITED if most is None else most)
    codes = workload.tenant.codes[shapes.example].astype(np.int64)
    tenant = np.where(codes < 0, len(guaranteed) - 1, codes)
    return np.array(guaranteed, dtype=np.int64), np.array(limit, dtype=np.int64), tenant


def _wake_watts(cluster: Cluster) -> FloatArray:
    if math.isinf(cluster.site.power.sleep_after_s):
        return np.zeros(cluster.nodes)
    idle_w = np.array([one.idle_w for one in cluster.gpu_types], dtype=np.float64)
    return np.asarray(cluster.node_overhead_w + cluster.node_gpus * idle_w[cluster.node_type])


def _outages(workload: Workload, cluster: Cluster, seed: int) -> tuple[Outage, ...]:
    """Return the listed outages, or draw them: exponential times up and down, node by node.

    Failures are drawn for twice the time that the work would take on half of the cluster, which
    is later than any schedule worth looking at ends.
    """
    failures = cluster.site.failures
    if math.isinf(failures.mtbf_h):
        return failures.outages
    end_s = float(workload.submit_s[-1]) + 2.0 * float(workload.duration_s.max())
    end_s += 4.0 * workload.work_gpu_s / cluster.gpus
    outages = []
    for node in range(cluster.nodes):
        dice = np.random.default_rng([seed & 0xFFFFFFFF, node])
        clock_s = dice.exponential(failures.mtbf_h * 3600.0)
        while clock_s < end_s:
            up_s = clock_s + max(dice.exponential(failures.mttr_h * 3600.0), 1.0)
            outages.append(Outage(node, clock_s, up_s))
            clock_s = up_s + dice.exponential(failures.mtbf_h * 3600.0)
    return tuple(sorted(outages, key=lambda outage: (outage.down_s, outage.node)))
