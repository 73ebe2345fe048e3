"""One job's life, and the situation it met: who else waited, what was free."""

from __future__ import annotations

from typing import Any

import numpy as np

from yardmaster.metrics import per_job
from yardmaster.metrics.timeline import queue_intervals
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import FloatArray, IntArray

MOST_NAMED = 12
"""Other jobs that are named; the rest are counted."""
MOST_SEGMENTS = 200


def life(schedule: Schedule, row: int) -> dict[str, Any]:
    """Return what a job asked for, when it ran and where, and what became of it."""
    workload = schedule.workload
    segments = np.flatnonzero(schedule.segment_job == row)
    return {
        "row": row,
        "id": str(workload.id[row]),
        "outcome": Outcome(int(schedule.outcome[row])).name.lower(),
        "submit_s": float(workload.submit_s[row]),
        "start_s": float(schedule.start_s[row]),
        "end_s": float(schedule.end_s[row]),
        "wait_s": float(schedule.start_s[row] - workload.submit_s[row]),
        "jct_s": float(per_job.jct_s(schedule)[row]),
        "bounded_slowdown": float(per_job.bounded_slowdown(schedule)[row]),
        "duration_s": float(workload.duration_s[row]),
        "estimate_s": float(workload.estimate_s[row]),
        "gpus": int(workload.gpus[row]),
        "share": int(workload.milli_gpu[row]) / 1000.0,
        "gpu_types": _name(workload.gpu_types.names, int(workload.gpu_types.codes[row])),
        "tenant": _name(workload.tenant.names, int(workload.tenant.codes[row])),
        "user": _name(workload.user.names, int(workload.user.codes[row])),
        "kind": _name(workload.kind.names, int(workload.kind.codes[row])),
        "priority": float(workload.priority[row]),
        "deadline_s": float(workload.deadline_s[row]),
        "segment_count": len(segments),
        "segments": [_segment(schedule, int(one)) for one in segments[:MOST_SEGMENTS]],
    }


def _segment(schedule: Schedule, segment: int) -> dict[str, Any]:
    cluster = schedule.cluster
    gpus = schedule.gpus_of(segment)
    nodes, counts = np.unique(cluster.gpu_node[gpus], return_counts=True)
    return {
        "start_s": float(schedule.segment_start_s[segment]),
        "end_s": float(schedule.segment_end_s[segment]),
        "cause": Cause(int(schedule.segment_cause[segment])).name.lower(),
        "wasted_s": float(schedule.segment_wasted_s[segment]),
        "gpus": len(gpus),
        "nodes": [
            {
                "node": int(node),
                "type": cluster.gpu_types[int(cluster.node_type[node])].name,
                "gpus": int(count),
            }
            for node, count in zip(nodes[:MOST_NAMED], counts, strict=False)
        ],
        "node_count": len(nodes),
    }


def situation(schedule: Schedule, time_s: float, row: int) -> dict[str, Any]:
    """Return who waited and what was free when a scheduler decided at this second.

    Read from the schedule alone: completions of a second come first, then submissions, then
    starts. So `free` is what was there before anybody started at this second, `started` who got
    some of it, and `waiting` who was left waiting after it.
    """
    workload = schedule.workload
    job, begin, end = queue_intervals(schedule)
    stayed = job[(begin <= time_s) & (end > time_s) & (job != row)]
    began = np.flatnonzero(schedule.segment_start_s == time_s)
    started = schedule.segment_job[began]
    free = free_gpus(schedule, time_s)
    first = np.argsort(workload.submit_s[stayed], kind="stable")[:MOST_NAMED]
    return {
        "time_s": time_s,
        "waiting_count": len(stayed),
        "waiting_gpus": int(workload.gpus[stayed].sum()),
        "waiting_smaller": int(np.count_nonzero(workload.gpus[stayed] < workload.gpus[row])),
        "waiting_longer": int(np.count_nonzero(workload.submit_s[stayed] < workload.submit_s[row])),
        "waiting": [named(schedule, int(one)) for one in stayed[first]],
        "started": [named(schedule, int(one)) for one in started[:MOST_NAMED]],
        "started_count": len(started),
        "free_gpus": int(free.sum()),
        "largest_hole": int(free.max(initial=0)),
        "nodes_with_room": int(np.count_nonzero(free)),
        "gpus": schedule.cluster.gpus,
    }


def free_gpus(schedule: Schedule, time_s: float) -> IntArray:
    """Return (nodes,) GPUs that nobody holds before the starts of a second; 0 on nodes away."""
    cluster = schedule.cluster
    is_on = (schedule.segment_start_s < time_s) & (schedule.segment_end_s > time_s)
    held = np.unique(schedule.gpu_ids[np.repeat(is_on, np.diff(schedule.segment_gpu_offset))])
    taken = np.bincount(cluster.gpu_node[held], minlength=cluster.nodes)
    free = cluster.node_gpus - taken
    for outage in schedule.outages:
        if outage.down_s <= time_s < outage.up_s:
            free[outage.node] = 0
    return np.asarray(free, dtype=np.int64)


def named(schedule: Schedule, row: int) -> dict[str, Any]:
    """Return who a job is, in a list of others."""
    workload = schedule.workload
    return {
        "row": row,
        "id": str(workload.id[row]),
        "gpus": int(workload.gpus[row]),
        "submit_s": float(workload.submit_s[row]),
        "start_s": float(schedule.start_s[row]),
        "duration_s": float(workload.duration_s[row]),
    }


def _name(names: tuple[str, ...], code: int) -> str | None:
    return names[code] if code >= 0 else None


def moments(schedule: Schedule, row: int) -> FloatArray:
    """Return the seconds at which a job was looked at: its submission, and each of its starts."""
    starts = schedule.segment_start_s[schedule.segment_job == row]
    submit = float(schedule.workload.submit_s[row])
    return np.unique(np.concatenate(([submit], starts)))
