"""Laying out the two arrays of one simulation, and reading them back."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from yardmaster.engine import compilation
from yardmaster.engine import state as at
from yardmaster.engine.compilation import Core
from yardmaster.engine.core.bits import WORD_BITS
from yardmaster.engine.core.queue import MOST_FLOORS
from yardmaster.engine.layout import Filled, Simulation, Tables
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.real_setup import (
    PROGRESS_FIELDS,
    real_numbers,
    real_settings,
    real_tables,
)
from yardmaster.engine.requests import Shapes
from yardmaster.engine.state import NOTHING, Discipline, OrderKind, QueueKind
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Workload

__all__ = ["Filled", "Options", "Simulation", "lay_out", "rank_of"]

FIRST_PROFILE_ROOM = 256
"""Steps of the conservative profile to begin with; the core asks for more when it needs them."""


def lay_out(
    workload: Workload,
    cluster: Cluster,
    shapes: Shapes,
    keys: OrderKeys,
    options: Options,
    *,
    core: Core | None = None,
) -> Simulation:
    """Build the state at the first instant: everything free, nobody submitted."""
    core = core or compilation.core(is_real=options.conditions is not None)
    queue = _queue_kind(keys, options)
    tables = _job_tables(workload, shapes, options)
    if queue is QueueKind.LIST:
        tables |= _list_tables(keys, len(workload))
    elif queue is QueueKind.HEAPS:
        tables |= _heap_tables(keys, shapes)
    else:
        tables |= _tree_tables(rank_of(keys.offset), shapes, core)
    tables |= _node_tables(cluster)
    tables |= _running_tables(len(workload), cluster.gpus, options)
    tables |= _record_tables(workload, shapes, options)
    if options.discipline == Discipline.CONSERVATIVE:
        tables |= _promise_tables(len(workload), cluster.nodes)
    if options.conditions is not None:
        tables |= real_tables(workload, cluster, shapes, keys, options)
    simulation = _joined(tables, options)
    numbers = _numbers(workload, cluster, shapes, keys, options)
    if options.conditions is not None:
        numbers |= real_numbers(workload, cluster, keys, options)
        for place, real in real_settings(options.conditions).items():
            simulation.reals[place] = real
    numbers[at.QUEUE_KIND] = queue
    if keys.kind is OrderKind.HISTORY:
        numbers[at.HISTORY_KEY] = int(simulation.ints[at.OFFSET])
    for place, value in numbers.items():
        simulation.ints[place] = value
    simulation.reals[at.CLIP_LOW], simulation.reals[at.CLIP_HIGH] = keys.clip_s
    return simulation


def _queue_kind(keys: OrderKeys, options: Options) -> QueueKind:
    """Choose how the waiting jobs are kept.

    Keys by tenant are the same for all jobs of a shape, and keys by progress do not change while a
    job waits, so heaps serve both; trees want a rank for life.
    """
    has_rank = keys.kind in {OrderKind.FIXED, OrderKind.SHARE, OrderKind.USAGE}
    keeps_key = has_rank or keys.kind in {OrderKind.REMAINING, OrderKind.ATTAINED}
    is_asked = keys.rekey is not None or options.decide is not None or options.lists_queue
    if is_asked or not keeps_key or options.discipline is Discipline.CONSERVATIVE:
        return QueueKind.LIST
    if options.discipline is Discipline.EASY:
        return QueueKind.TREES if has_rank else QueueKind.LIST
    return QueueKind.HEAPS


def _joined(tables: Tables, options: Options) -> Simulation:
    """Put all tables behind the headers and note where each begins."""
    ends = {False: at.HEADER, True: at.REALS_HEADER}
    begins: dict[int, int] = {}
    for name, table in tables.items():
        begins[name] = ends[_is_real(table)]
        ends[_is_real(table)] += _length(table)
    simulation = Simulation(
        np.zeros(ends[False], dtype=np.int64), np.zeros(ends[True], dtype=np.float64)
    )
    for name, table in tables.items():
        target = simulation.reals if _is_real(table) else simulation.ints
        if not isinstance(table, Filled):
            target[begins[name] : begins[name] + len(table)] = table
        elif table.value != 0:
            target[begins[name] : begins[name] + table.length] = table.value
    if options.expected_s is None:  # the scheduler expects the truth: one heap serves both
        begins[at.EXPECTED_END] = begins[at.END]
        begins[at.EXPECTED_HEAP] = begins[at.HEAP]
        begins[at.EXPECTED_HEAP_AT] = begins[at.HEAP_AT]
    if options.conditions is None:  # a job waits once: what it is expected to run never changes
        begins[at.VALUE] = begins[at.EXPECTED]
    else:
        for place, name in enumerate(PROGRESS_FIELDS):
            begins[name] = begins[PROGRESS_FIELDS[0]] + place
    for name, begin in begins.items():
        simulation.ints[name] = begin
    # Floors are addressed within the whole array, not within the table of trees.
    if at.TREE in begins:
        shapes = _length(tables[at.SHAPE_FLOORS])
        simulation.int_table(at.SHAPE_FLOORS, shapes)[:] += begins[at.TREE]
    return simulation


def _is_real(table: npt.NDArray[np.generic] | Filled) -> bool:
    return isinstance(table.value, float) if isinstance(table, Filled) else table.dtype.kind == "f"


def _length(table: npt.NDArray[np.generic] | Filled) -> int:
    return table.length if isinstance(table, Filled) else len(table)


def _job_tables(workload: Workload, shapes: Shapes, options: Options) -> Tables:
    expected = workload.duration_s if options.expected_s is None else options.expected_s
    return {
        at.SUBMIT: workload.submit_s,
        at.DURATION: workload.duration_s,
        at.EXPECTED: expected.astype(np.float64),
        at.JOB_SHAPE: shapes.of_job,
        at.SHAPE_GPUS: shapes.gpus,
        at.SHAPE_CAP: shapes.cap,
        at.SHAPE_TYPES: shapes.types,
        at.SHAPE_SINGLE: shapes.single,
        at.SHAPE_QUEUED: Filled(0, len(shapes.gpus)),
        at.SHAPE_LIMIT: Filled(np.inf, len(shapes.gpus)),
    }


def rank_of(key: FloatArray) -> IntArray:
    """Return each job's place under fixed keys; equal keys keep the order of submission."""
    if np.all(key[:-1] <= key[1:]):
        return np.arange(len(key))
    rank = np.empty(len(key), dtype=np.int64)
    rank[np.argsort(key, kind="stable")] = np.arange(len(key))
    return rank


def _list_tables(keys: OrderKeys, jobs: int) -> Tables:
    tables: Tables = {
        at.OFFSET: keys.offset,
        at.KEY: Filled(0.0, jobs),
        at.QUEUE: Filled(0, jobs),
        at.QUEUE_AT: Filled(NOTHING, jobs),
    }
    if keys.rate is not None and keys.since is not None:
        tables |= {at.RATE: keys.rate, at.SINCE: keys.since}
    if keys.group is not None:
        groups = int(keys.group.max()) + 1
        tables |= {
            at.GROUP: keys.group,
            at.HISTORY_S: Filled(0.0, groups + 1),
            at.HISTORY_JOBS: Filled(0, groups + 1),
        }
    return tables


def _heap_tables(keys: OrderKeys, shapes: Shapes) -> Tables:
    """Leave every shape room for a heap of all its jobs."""
    jobs = len(keys.offset)
    members = np.bincount(shapes.of_job[shapes.of_job >= 0], minlength=len(shapes.gpus))
    return {
        at.OFFSET: keys.offset,
        at.QUEUE: Filled(0, jobs),
        at.QUEUE_AT: Filled(NOTHING, jobs),
        at.SHAPE_FIRST_SLOT: np.cumsum(members) - members,
    }


def _tree_tables(rank: IntArray, shapes: Shapes, core: Core) -> Tables:
    """Number the jobs of each shape by rank and plant one tree per shape."""
    jobs = len(rank)
    by_rank = np.empty(jobs, dtype=np.int64)
    by_rank[rank] = np.arange(jobs)
    placeable = shapes.of_job[shapes.of_job >= 0]
    members = np.bincount(placeable, minlength=len(shapes.gpus))
    first_slot = np.cumsum(members) - members
    slot, slot_job = np.zeros(jobs, dtype=np.int64), np.zeros(jobs, dtype=np.int64)
    core.number_slots(by_rank, shapes.of_job, first_slot.copy(), slot, slot_job)
    # Slots count through all shapes; within its tree a job counts from its shape's first.
    slot -= np.append(first_slot, 0)[shapes.of_job]
    depth, floors, size = _floors(members)
    return {
        at.RANK: rank,
        at.SLOT: slot,
        at.SLOT_JOB: slot_job,
        at.TREE: Filled(np.inf, size),
        at.SHAPE_HEAD: Filled(NOTHING, len(members)),
        at.SHAPE_FIRST_SLOT: first_slot,
        at.SHAPE_DEPTH: depth,
        at.SHAPE_FLOORS: floors,
    }


def _floors(members: IntArray) -> tuple[IntArray, IntArray, int]:
    """Plan the floors of every shape's tree: their number, where each begins, and the total.

    Every floor is padded to a multiple of eight; the top one has exactly eight entries.
    """
    depth = np.zeros(len(members), dtype=np.int64)
    floors = np.zeros((len(members), MOST_FLOORS), dtype=np.int64)
    size = 0
    for shape, leaves in enumerate(members.tolist()):
        entries, floor_size = leaves, 0
        while floor_size != 8:
            floor_size = max(-(-entries // 8) * 8, 8)
            floors[shape, depth[shape]] = size
            size += floor_size
            depth[shape] += 1
            entries = floor_size // 8
    return depth, floors.ravel(), size


_known_nodes: WeakKeyDictionary[Cluster, Tables] = WeakKeyDictionary()
"""Tables of clusters laid out before; they are copied into every simulation."""


def _node_tables(cluster: Cluster) -> Tables:
    if cluster not in _known_nodes:
        _known_nodes[cluster] = _find_node_tables(cluster)
    return _known_nodes[cluster]


def _find_node_tables(cluster: Cluster) -> Tables:
    """Index every node as free, all at once."""
    nodes, types = cluster.nodes, len(cluster.gpu_types)
    free, kind = cluster.node_gpus, cluster.node_type
    levels = int(free.max()) + 1
    words = -(-free // WORD_BITS)
    first_word = np.cumsum(words) - words
    gpu_node, number = cluster.gpu_node, np.arange(nodes)
    place = np.arange(cluster.gpus) - cluster.node_first_gpu[gpu_node]
    level = kind * levels + free
    zeros = np.zeros(nodes, dtype=np.int64)
    return {
        at.GPU_NODE: gpu_node,
        at.HELD_NEXT: Filled(NOTHING, cluster.gpus),
        at.HELD_BITS: Filled(0, cluster.gpus),
        at.HELD_COUNT: Filled(0, cluster.gpus),
        at.BUCKET: Filled(0, levels),
        at.BUCKET_NEXT: zeros,
        at.GPU_BITS: _bit_sets(int(words.sum()), first_word[gpu_node], place),
        at.NODE_FREE: free,
        at.NODE_TYPE: kind,
        at.NODE_FIRST_GPU: cluster.node_first_gpu,
        at.NODE_WORD: first_word,
        at.LEVEL_NODES: _bit_sets(types * levels * _words(nodes), level * _words(nodes), number),
        at.LEVEL_COUNT: np.bincount(level, minlength=types * levels),
        at.LEVEL_MASK: _bit_sets(types * _words(levels), kind * _words(levels), free),
        at.AVAILABLE: zeros,
        at.EXTRA: zeros,
        at.PLAN_NODE: zeros,
        at.PLAN_GPUS: zeros,
    }


def _bit_sets(words: int, first_word: IntArray, member: IntArray) -> IntArray:
    """Return words of bits in which each member of the set that begins at first_word is set."""
    bits = np.zeros(words, dtype=np.int64)
    np.bitwise_or.at(bits, first_word + (member >> 5), np.int64(1) << (member & 31))
    return bits


def _words(members: int) -> int:
    return -(-members // WORD_BITS)


def _running_tables(jobs: int, gpus: int, options: Options) -> Tables:
    gpus = options.most_running(jobs, gpus)
    heap, heap_at = np.zeros(gpus, dtype=np.int64), Filled(NOTHING, jobs)
    tables: Tables = {
        at.END: Filled(0.0, jobs),
        at.HEAP: heap,
        at.HEAP_AT: heap_at,
        at.FRONTIER: Filled(0, gpus + 2),
        at.HELD: Filled(NOTHING, jobs),
    }
    if options.expected_s is not None:
        tables |= {
            at.EXPECTED_END: Filled(0.0, jobs),
            at.EXPECTED_HEAP: heap,
            at.EXPECTED_HEAP_AT: heap_at,
        }
    return tables


def _promise_tables(jobs: int, nodes: int) -> Tables:
    return {
        at.PROFILE_TIME: Filled(0.0, FIRST_PROFILE_ROOM),
        at.PROFILE_FREE: Filled(0, FIRST_PROFILE_ROOM * nodes),
        at.PROMISE: Filled(-1.0, jobs),
        at.PROMISE_AT: Filled(0, jobs),
        at.PROMISE_LENGTH: Filled(0, jobs),
        at.PROMISE_NODE: Filled(0, jobs + nodes),
        at.PROMISE_GPUS: Filled(0, jobs + nodes),
    }


def _record_tables(workload: Workload, shapes: Shapes, options: Options) -> Tables:
    jobs = len(workload)
    if options.conditions is not None:
        # Nobody knows how often jobs will be started: the core asks for more room when it needs it.
        return {at.JOB_SEGMENT: Filled(NOTHING, jobs)}
    # One record per word of GPU bits: a gang within a node needs as many as its node has words.
    words = np.minimum(-(-shapes.cap // WORD_BITS), shapes.gpus)
    per_shape = np.where(shapes.single == 1, words, shapes.gpus)
    records = int(per_shape[shapes.of_job[shapes.of_job >= 0]].sum()) if options.records_gpus else 0
    return {
        at.JOB_SEGMENT: Filled(NOTHING, jobs),
        at.SEGMENT_JOB: Filled(0, jobs),
        at.SEGMENT_START: Filled(0.0, jobs),
        at.SEGMENT_END: Filled(np.nan, jobs),
        at.SEGMENT_RECORD: Filled(0, jobs + 1),
        at.RECORD: Filled(0, records),
    }


def _numbers(
    workload: Workload, cluster: Cluster, shapes: Shapes, keys: OrderKeys, options: Options
) -> dict[int, int]:
    levels = int(cluster.node_gpus.max()) + 1
    return {
        at.FREE_GPUS: cluster.gpus,
        at.COMMITTED: NOTHING,
        at.REPLAN: 1,
        at.ORDER: keys.kind,
        at.DISCIPLINE: options.discipline,
        at.PLACEMENT: options.placement,
        at.SEED: options.seed & 0xFFFFFFFF,
        at.JOBS: len(workload),
        at.SHAPES: len(shapes.gpus),
        at.NODES: cluster.nodes,
        at.GPUS: cluster.gpus,
        at.TYPES: len(cluster.gpu_types),
        at.LEVELS: levels,
        at.NODE_WORDS: _words(cluster.nodes),
        at.LEVEL_WORDS: _words(levels),
        at.GROUPS: int(keys.group.max()) + 1 if keys.group is not None else 0,
        at.TRUE_ENDS: options.expected_s is None,
        at.ONE_ARRIVAL: options.one_arrival,
        at.RECORDS_GPUS: options.records_gpus,
        at.STOPS_AT_PASSES: keys.rekey is not None or options.decide is not None,
        at.PROFILE_ROOM: FIRST_PROFILE_ROOM,
        at.PROMISE_ROOM: len(workload) + cluster.nodes,
    }
