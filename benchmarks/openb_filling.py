"""Filling the openb cluster with pods, and what is left of it that nobody can use.

*Unusable* is the share of the cluster that is free but of no use to a pod drawn from the trace, on
average over pods: everything free on nodes where it does not fit, and elsewhere the GPUs with less
left than it needs. It is computed from the schedule alone, so every placement is judged alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import type_key
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray, Workload

FOREVER_S = 1e9
MARKS = (0.5, 0.8, 0.9, 1.0)
"""Requested GPUs, as a share of the cluster, at which fragmentation is looked at."""


def every_nth_node(cluster: Cluster, n: int) -> Cluster:
    """Return a smaller cluster of the same mix."""
    return replace(
        cluster,
        name=cluster.name if n == 1 else f"{cluster.name}, every {n}th node",
        **{
            column: getattr(cluster, column)[::n]
            for column in Cluster.__dataclass_fields__
            if column.startswith("node_")
        },
    )


def drawn_pods(pods: pl.DataFrame, cluster: Cluster, seed: int) -> Workload:
    """Draw pods until they ask for all GPUs; one arrives every second and stays."""
    asked = (pods["num_gpu"] * pods["gpu_milli"]).to_numpy() / 1000
    dice = np.random.default_rng(seed)
    rows = dice.integers(0, len(asked), int(2 * cluster.gpus / asked.mean()))
    enough = int(np.searchsorted(np.cumsum(asked[rows]), cluster.gpus)) + 1
    drawn = pods[rows[:enough]]
    labels = drawn["gpu_spec"].to_list() if "gpu_spec" in drawn.columns else [None] * enough
    return Workload.of(
        name=f"openb pods, draw {seed}",
        submit_s=np.arange(enough, dtype=np.float64),
        duration_s=np.full(enough, FOREVER_S),
        gpus=drawn["num_gpu"].to_numpy(),
        milli_gpu=drawn["gpu_milli"].to_numpy(),
        cpus=drawn["cpu_milli"].to_numpy() / 1000,
        memory_gib=drawn["memory_mib"].to_numpy() / 1024,
        gpu_types=labels,
    )


def filled(schedule: Schedule) -> tuple[float, ...]:
    """Return the share allocated, the pods turned away, and the share unusable at each mark."""
    jobs, gpus = schedule.workload, schedule.cluster.gpus
    asked = jobs.gpus * jobs.milli_gpu / 1000
    is_placed = ~np.isnan(schedule.start_s)
    marks = np.searchsorted(np.cumsum(asked), np.multiply(MARKS, gpus)) + 1
    unusable = [unusable_gpus(schedule, int(mark)) / gpus for mark in marks]
    return float(asked[is_placed].sum()) / gpus, float((~is_placed).sum()), *unusable


def unusable_gpus(schedule: Schedule, arrived: int) -> float:
    """Return the free GPUs of no use to an average pod, once so many pods have arrived."""
    jobs, cluster = schedule.workload, schedule.cluster
    free, cpus, memory = _free(schedule, arrived)
    requests = np.stack(
        [jobs.gpus, jobs.milli_gpu, jobs.gpu_types.codes, jobs.cpus, jobs.memory_gib]
    )
    distinct, popularity = np.unique(requests, axis=1, return_counts=True)
    first, total = cluster.node_first_gpu, 0.0
    free_on_node = np.add.reduceat(free, first)
    allowed = _allowed(jobs, cluster)
    for (gpus, milli, label, cores, gib), count in zip(distinct.T, popularity, strict=True):
        is_enough = free >= milli
        fits = np.add.reduceat(is_enough.astype(np.int64), first) >= gpus
        fits &= (cpus >= cores) & (memory >= gib) & allowed[int(label) + 1]
        too_small = np.add.reduceat(np.where(is_enough, 0, free), first)
        total += count * float(np.where(fits, too_small, free_on_node).sum())
    return total / len(jobs) / 1000


def _free(schedule: Schedule, arrived: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return thousandths free of each GPU, and cores and GiB free of each node."""
    jobs, cluster = schedule.workload, schedule.cluster
    free = np.full(cluster.gpus, 1000)
    cpus, memory = cluster.node_cpus.copy(), cluster.node_memory_gib.copy()
    owner = np.repeat(schedule.segment_job, np.diff(schedule.segment_gpu_offset))
    is_there = owner < arrived
    gpu, owner = schedule.gpu_ids[is_there], owner[is_there]
    np.subtract.at(free, gpu, jobs.milli_gpu[owner])
    node = cluster.gpu_node[gpu]
    np.subtract.at(cpus, node, np.nan_to_num(jobs.cpus / jobs.gpus)[owner])
    np.subtract.at(memory, node, np.nan_to_num(jobs.memory_gib / jobs.gpus)[owner])
    return free, cpus + 1e-6, memory + 1e-6  # shares of a gang add up to slightly more


def _allowed(jobs: Workload, cluster: Cluster) -> list[BoolArray]:
    """Return (nodes,) whether each label allows the node; first for pods without a label."""
    kinds = np.array([type_key(kind.name) for kind in cluster.gpu_types])[cluster.node_type]
    labels = [{type_key(name) for name in label.split("|")} for label in jobs.gpu_types.names]
    return [np.full(cluster.nodes, fill_value=True)] + [
        np.isin(kinds, sorted(label)) for label in labels
    ]
