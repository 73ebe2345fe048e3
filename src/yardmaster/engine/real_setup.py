"""The tables of real clusters: speeds, shares, tenants, checkpoints, outages."""

from __future__ import annotations

import numpy as np

from yardmaster.engine import state as at
from yardmaster.engine.conditions import Conditions
from yardmaster.engine.layout import Filled, Tables
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import UNLIMITED, Shapes
from yardmaster.engine.state import FIELDS, NOTHING, Discipline
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import IntArray, Workload

FIRST_SEGMENTS_PER_JOB = 2
"""Room for segments to begin with, by job; the core asks for more when it needs it."""

REVIEWS = frozenset(
    {Discipline.PREEMPTIVE, Discipline.TIMESLICE, Discipline.ELASTIC, Discipline.DEFRAG}
)
"""Disciplines that look at running jobs again when a quantum has passed."""


def real_tables(
    workload: Workload, cluster: Cluster, shapes: Shapes, keys: OrderKeys, options: Options
) -> Tables:
    """Return the tables marked (real) in `engine.state`."""
    conditions = options.conditions
    assert conditions is not None  # noqa: S101  (the caller asks only then)
    running = options.most_running(len(workload), cluster.gpus)
    return (
        _arrival_tables(workload, keys)
        | _shape_tables(cluster, shapes, conditions)
        | _node_tables(cluster, shapes, conditions)
        | _sharing_tables(len(workload), cluster, conditions)
        | _tenant_tables(conditions)
        | _outage_tables(conditions)
        | _progress_tables(workload, options)
        | _choice_tables(len(workload), cluster.nodes, running)
        | _segment_tables(*rooms(workload, cluster))
    )


def rooms(workload: Workload, cluster: Cluster) -> tuple[int, int]:
    """Return for how many segments and holdings there is room to begin with."""
    segments = FIRST_SEGMENTS_PER_JOB * len(workload) + 64
    return segments, segments + 4 * cluster.gpus


def _arrival_tables(workload: Workload, keys: OrderKeys) -> Tables:
    if keys.release_s is None:
        return {at.ARRIVAL: workload.submit_s, at.ARRIVAL_JOB: np.arange(len(workload))}
    arrival = np.maximum(workload.submit_s, keys.release_s)
    return {at.ARRIVAL: arrival, at.ARRIVAL_JOB: np.argsort(arrival, kind="stable")}


def _shape_tables(cluster: Cluster, shapes: Shapes, conditions: Conditions) -> Tables:
    count = len(shapes.gpus)
    needs = _needs(shapes, conditions)
    kinds = int(needs.max(initial=0)) + 1
    tenants = max(len(conditions.guaranteed_gpus), 1)
    return {
        at.SHAPE_MILLI: conditions.milli,
        at.SHAPE_GPU_MIB: conditions.gpu_mib,
        at.SHAPE_CPU: conditions.cpu_milli,
        at.SHAPE_MIB: conditions.host_mib,
        at.SHAPE_TENANT: conditions.tenant,
        at.SHAPE_WATTS: conditions.watts,
        at.SHAPE_KIND: conditions.kind,
        at.SHAPE_LEAST: conditions.least_gpus,
        at.SHAPE_MOST: conditions.most_gpus,
        at.SHAPE_MIN_NODES: least_nodes(cluster, shapes),
        at.SHAPE_EXAMPLE: shapes.example,
        at.SHAPE_ROOM: needs,
        at.ROOM_VERSION: Filled(NOTHING, kinds),
        at.ROOM_FITS: Filled(0, kinds),
        at.ROOM_ROUND: Filled(NOTHING, kinds),
        at.ROOM_BESIDE: Filled(0, kinds),
        at.ROOM_FAILED: Filled(NOTHING, kinds * tenants),
        at.ROOM_FAILED_KEY: Filled(0.0, kinds * tenants),
        at.SHAPE_PLANNED: Filled(NOTHING, count),
        at.WAITING_SHAPE: Filled(NOTHING, count),
        at.WAITING_AT: Filled(NOTHING, count),
        at.SHAPE_SPEED: Filled(0.0, count),
        at.POPULARITY: conditions.popularity,
        at.SPEED: conditions.speed.ravel(),
        at.NODE_FACTOR: conditions.node_factor,
        at.RACK_FACTOR: conditions.rack_factor,
        at.SCALE: conditions.scale.ravel(),
        at.PAIR: conditions.pair.ravel(),
    }


def _needs(shapes: Shapes, conditions: Conditions) -> IntArray:
    """Number the shapes by what they need of nodes: kinds and tenants make no difference there."""
    columns = (
        shapes.gpus, shapes.cap, shapes.types, shapes.single, conditions.milli, conditions.gpu_mib,
        conditions.cpu_milli, conditions.host_mib, conditions.watts,
    )  # fmt: skip
    _, number = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return number.reshape(-1).astype(np.int64)


def least_nodes(cluster: Cluster, shapes: Shapes) -> IntArray:
    """Return the fewest nodes that could hold each gang on the empty cluster."""
    counts = np.ones(len(shapes.gpus), dtype=np.int64)
    for shape in np.flatnonzero(shapes.gpus > shapes.cap):
        allowed = (shapes.types[shape] >> cluster.node_type) & 1
        rooms_here = np.minimum(cluster.node_gpus * allowed, shapes.cap[shape])
        filled = np.cumsum(np.sort(rooms_here)[::-1])
        counts[shape] = int(np.searchsorted(filled, shapes.gpus[shape])) + 1
    return counts


def _node_tables(cluster: Cluster, shapes: Shapes, conditions: Conditions) -> Tables:
    nodes = cluster.nodes
    return {
        at.NODE_GPUS: cluster.node_gpus,
        at.NODE_CPU: conditions.node_cpu_milli,
        at.NODE_MIB: conditions.node_mib,
        at.NODE_RACK: cluster.node_rack,
        at.NODE_SHARING: conditions.node_sharing,
        at.NODE_DOWN: Filled(0, nodes),
        at.NODE_JOBS: Filled(0, nodes),
        at.NODE_DONE: Filled(0, nodes),
        at.NODE_COST: Filled(0.0, nodes),
        at.EXTRA_CPU: Filled(0, nodes),
        at.EXTRA_MIB: Filled(0, nodes),
        at.TYPE_BINDS: _binding_types(cluster, shapes, conditions),
        at.TYPE_MIB: conditions.type_mib,
        at.TYPE_WATTS: conditions.type_watts,
        at.WAKE_W: conditions.node_wake_w,
    }


def _binding_types(cluster: Cluster, shapes: Shapes, conditions: Conditions) -> IntArray:
    """Return for each GPU type whether cores or memory of its nodes can run out before GPUs do.

    They cannot if even the hungriest job leaves every other GPU of the node its share; jobs that
    share a GPU may together need more than one GPU's share.
    """
    binds = np.zeros(len(cluster.gpu_types), dtype=np.int64)
    for kind in range(len(binds)):
        allowed = (shapes.types >> kind) & 1 == 1
        nodes = cluster.node_type == kind
        gpus = cluster.node_gpus[nodes]
        cpu = int(conditions.cpu_milli[allowed].max(initial=0)) * gpus
        mib = int(conditions.host_mib[allowed].max(initial=0)) * gpus
        binds[kind] = bool(
            conditions.node_sharing[nodes].any()
            or (cpu > conditions.node_cpu_milli[nodes]).any()
            or (mib > conditions.node_mib[nodes]).any()
        )
    return binds


def _sharing_tables(jobs: int, cluster: Cluster, conditions: Conditions) -> Tables:
    # Whether a job shares its GPU is asked of every job, the rest only where GPUs are shared.
    gpus = cluster.gpus if conditions.node_sharing.any() else 0
    tables: Tables = {at.SHARED_GPU: Filled(NOTHING, jobs)}
    tables[at.SHARER_NEXT] = Filled(NOTHING, jobs if gpus else 0)
    for name in (at.GPU_MILLI, at.GPU_MIB, at.GPU_SHARERS, at.GPU_STAYING):
        tables[name] = Filled(0, gpus)
    for name in (at.SHARER, at.SHARED_LIST, at.SHARED_AT):
        tables[name] = Filled(NOTHING, gpus)
    return tables


def _tenant_tables(conditions: Conditions) -> Tables:
    tenants = len(conditions.guaranteed_gpus)
    return {
        at.TENANT_USED: Filled(0, tenants),
        at.TENANT_CPU: Filled(0, tenants),
        at.TENANT_MIB: Filled(0, tenants),
        at.TENANT_TAKEN: Filled(0, tenants),
        at.GUARANTEED: conditions.guaranteed_gpus,
        at.LIMIT: conditions.limit_gpus,
        at.USAGE: Filled(0.0, tenants),
    }


def _outage_tables(conditions: Conditions) -> Tables:
    """Return failures and repairs in order: at one instant repairs first, each by node."""
    events = sorted(
        (second, is_failure, outage.node)
        for outage in conditions.outages
        for second, is_failure in ((outage.down_s, 1), (outage.up_s, 0))
    )
    seconds, kinds, nodes = zip(*events, strict=True) if events else ((), (), ())
    return {
        at.OUTAGE_TIME: np.array(seconds, dtype=np.float64),
        at.OUTAGE_IS_FAILURE: np.array(kinds, dtype=np.int64),
        at.OUTAGE_NODE: np.array(nodes, dtype=np.int64),
    }


PROGRESS_FIELDS = (
    at.LEFT, at.SAVED, at.UPDATED, at.ORIGIN, at.BASE_SPEED, at.PROGRESS, at.OVERHEAD, at.LAST_SAVE,
)  # fmt: skip
"""The numbers on a job's progress, in the order in which they stand side by side."""


def _progress_tables(workload: Workload, options: Options) -> Tables:
    jobs = len(workload)
    expected = workload.duration_s if options.expected_s is None else options.expected_s
    fields = np.zeros((jobs, FIELDS))
    for name in (at.LEFT, at.SAVED):
        fields[:, PROGRESS_FIELDS.index(name)] = workload.duration_s
    conditions = options.conditions
    return {
        PROGRESS_FIELDS[0]: fields.ravel(),
        at.VALUE: expected.astype(np.float64),
        at.SIZE: Filled(0, jobs),
        at.ROUNDS: Filled(0, jobs),
        at.FAILURES: Filled(0, jobs),
        at.COST: Filled(0.0, jobs),
        at.HELD_S: Filled(0.0, jobs),
        at.THRESHOLD: np.zeros(0) if conditions is None else conditions.levels_s,
    }


def _choice_tables(jobs: int, nodes: int, running: int) -> Tables:
    # One entry more than can be used: it says how many there are.
    return {
        at.VICTIM: Filled(0, running + 1),
        at.CHOSEN: Filled(0, running + 1),
        at.DESTINATION: Filled(0, max(running, nodes) + 1),
        at.VICTIM_AT: Filled(NOTHING, jobs),
    }


def _segment_tables(segments: int, records: int) -> Tables:
    return {
        at.SEGMENT_JOB: Filled(0, segments),
        at.SEGMENT_CAUSE: Filled(0, segments),
        at.SEGMENT_RECORD: Filled(0, segments + 1),
        at.RECORD: Filled(0, records),
        at.SEGMENT_START: Filled(0.0, segments),
        at.SEGMENT_END: Filled(np.nan, segments),
        at.SEGMENT_WASTED: Filled(0.0, segments),
    }


def real_numbers(
    workload: Workload, cluster: Cluster, keys: OrderKeys, options: Options
) -> dict[int, int]:
    """Return the settings marked (real) in the header of `ints`."""
    conditions = options.conditions
    assert conditions is not None  # noqa: S101  (the caller asks only then)
    segments, records = rooms(workload, cluster)
    is_reviewed = options.discipline in REVIEWS and conditions.quantum_s > 0
    return {
        at.IS_REAL: 1,
        at.IS_REVIEWED: is_reviewed,
        at.SEGMENT_ROOM: segments,
        at.RECORD_ROOM: records,
        at.TENANTS: len(conditions.guaranteed_gpus),
        at.OUTAGES: 2 * len(conditions.outages),
        at.CAP_WATTS: conditions.cap_watts,
        at.RETRIES: conditions.retries,
        at.SAVES_ON_PREEMPTION: conditions.saves_on_preemption,
        at.HAS_SHARING: bool(conditions.node_sharing.any()),
        at.IS_WEIGHTED: keys.weighted,
        at.THRESHOLDS: len(conditions.levels_s),
        at.KINDS: len(conditions.pair),
        at.SIZES: conditions.scale.shape[1],
        at.DECIDES: options.decide is not None,
        at.PLAN_SHARED: NOTHING,
    }


def real_settings(conditions: Conditions) -> dict[int, float]:
    """Return the settings of real clusters in the header of `reals`."""
    cpu, mib = conditions.node_cpu_milli, conditions.node_mib
    return {
        at.NEXT_REVIEW: np.inf,
        at.EVERY_S: conditions.every_s,
        at.SAVE_S: conditions.save_s,
        at.RESTORE_S: conditions.restore_s,
        at.QUANTUM_S: conditions.quantum_s,
        at.EFFICIENCY: conditions.efficiency,
        at.TOTAL_CPU: float(cpu[cpu < UNLIMITED].sum()),
        at.TOTAL_MIB: float(mib[mib < UNLIMITED].sum()),
    }
