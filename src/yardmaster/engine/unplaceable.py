"""Why jobs can never be placed: what they ask for that the empty cluster does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from yardmaster.engine.requests import (
    Shapes,
    is_over_limit,
    room_on_empty,
    type_masks,
    type_sets,
)
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import BoolArray, IntArray, Workload

GROUPS_TOLD = 4
"""Reasons told one by one; the jobs of all others are counted together."""

EXAMPLES = 3
"""Jobs named for each reason."""

CHUNK = 1000
"""Jobs looked at together: each has a row of all nodes."""

_known: WeakKeyDictionary[Workload, WeakKeyDictionary[Cluster, tuple[str, ...]]] = (
    WeakKeyDictionary()
)
"""Reasons found before: a comparison runs many schedulers on the same jobs and machines."""


class _Reason(NamedTuple):
    verb: str
    """Of one job; several have it without its s."""
    what: str
    """What follows; `{gpus}` stands for the GPUs of the jobs."""


def unplaceable_reasons(workload: Workload, cluster: Cluster, shapes: Shapes) -> tuple[str, ...]:
    """Return why jobs can never be placed, alike ones together, such as `4 ask for V100, …`.

    A job with several reasons counts under the first: the type of GPU, then its memory, the
    tenant's limit, the number of GPUs, the host, and the power.
    """
    found = _known.setdefault(workload, WeakKeyDictionary())
    if cluster not in found:
        found[cluster] = _find(workload, cluster, np.flatnonzero(shapes.of_job < 0))
    return found[cluster]


def _find(workload: Workload, cluster: Cluster, rows: IntArray) -> tuple[str, ...]:
    told: dict[_Reason, list[int]] = {}
    for begin in range(0, len(rows), CHUNK):
        part = rows[begin : begin + CHUNK]
        for row, reason in zip(part.tolist(), _reasons(workload, cluster, part), strict=True):
            told.setdefault(reason, []).append(row)
    groups = sorted(told.items(), key=lambda group: -len(group[1]))
    texts = [_sentence(reason, workload, alike) for reason, alike in groups[:GROUPS_TOLD]]
    others = sum(len(alike) for _, alike in groups[GROUPS_TOLD:])
    return (*texts, f"{others:,} for other reasons") if others else tuple(texts)


def _sentence(reason: _Reason, workload: Workload, rows: Sequence[int]) -> str:
    is_one = len(rows) == 1
    verb = reason.verb if is_one else reason.verb.removesuffix("s")
    least, most = int(workload.gpus[rows].min()), int(workload.gpus[rows].max())
    gpus = _gpus(most) if least == most else f"{least:,} to {_gpus(most)}"
    ids = ", ".join(str(workload.id[row]) for row in rows[:EXAMPLES])
    named = f"job{'s' * (not is_one)} {ids}{', …' * (len(rows) > EXAMPLES)}"
    return f"{len(rows):,} {verb} {reason.what.replace('{gpus}', gpus)} ({named})"


def _reasons(workload: Workload, cluster: Cluster, rows: IntArray) -> Iterator[_Reason]:
    """Yield the first reason of every row."""
    masks = type_masks(workload.select(rows), cluster)
    room = room_on_empty(workload, cluster, rows, masks)
    typed = ((masks[:, None] >> cluster.node_type[None, :]) & 1) * cluster.node_gpus[None, :]
    sets = np.array(type_sets(workload.gpu_types, cluster), dtype=np.int64)
    is_foreign = sets[workload.gpu_types.codes[rows].astype(np.int64) + 1] == 0
    cap = workload.max_gpus_per_node[rows]
    capped = np.where(cap == 0, typed.max(axis=1, initial=0), cap)[:, None]
    lacks_gpus = np.minimum(typed, capped).sum(axis=1) < workload.gpus[rows]
    lacks_host = np.minimum(room, capped).sum(axis=1) < workload.gpus[rows]
    is_beyond_limit = is_over_limit(workload, cluster, rows)
    for place, row in enumerate(rows.tolist()):
        if is_foreign[place]:
            wanted = workload.gpu_types.names[workload.gpu_types.codes[row]].replace("|", " or ")
            there = " and ".join(kind.name for kind in cluster.gpu_types)
            yield _Reason("asks", f"for {wanted}, the cluster has {there}")
        elif masks[place] == 0:
            yield _Reason("needs", "more memory on a GPU than the GPUs have that would do")
        elif is_beyond_limit[place]:
            tenant = workload.tenant.names[workload.tenant.codes[row]]
            yield _Reason("asks", f"for {{gpus}}, more than tenant {tenant} may hold")
        elif lacks_gpus[place]:
            yield _gpus_lacking(int(workload.gpus[row]), int(cap[place]), typed[place] > 0, cluster)
        elif lacks_host[place]:
            yield _Reason("needs", "more cores or memory with each GPU than the nodes have")
        else:
            yield _Reason("would", "draw more power than the site's cap allows")


def _gpus_lacking(gpus: int, cap: int, usable: BoolArray, cluster: Cluster) -> _Reason:
    there = int(cluster.node_gpus[usable].sum())
    if gpus > there or not cap:
        kinds = "" if usable.all() else " of the types that would do"
        return _Reason("asks", f"for {{gpus}}, the cluster has {there:,}{kinds}")
    on_a_node = f"at most {cap:,} on a node"
    return _Reason("asks", f"for {{gpus}}, {on_a_node}, the cluster has too few nodes")


def _gpus(number: int) -> str:
    return f"{number:,} GPU{'s' * (number != 1)}"
