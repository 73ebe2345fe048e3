"""How good any scheduler could be: proven lower bounds, to tell how much is left to gain.

The bounds hold for every schedule that finishes all placeable jobs of the workload on the cluster,
whatever it knows and whatever it may preempt, move, resize or share. Jobs that could not be placed
are left out.

They rest on two facts about each job. It runs for at least its duration divided by the largest
*speed-up* it can have: that of the fastest GPU type it may use, times, if it is elastic, its most
GPUs over those it asks for (nothing scales better than that). And all that time it holds at least
the fewest GPUs it can run on, or its thousandths of one where some node shares GPUs.
"""

from __future__ import annotations

import heapq

import numpy as np

from yardmaster.metrics.fragmentation import allowed_types
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import GpuType, gpu_type, type_key
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.site import Sharing
from yardmaster.model.speeds import speed
from yardmaster.model.workload import FloatArray


def lower_bound(objective: str, schedule: Schedule) -> float:
    """Return the proven lower bound on a metric of `metrics.summary`, NaN where none is known.

    NaN too if the simulation was cut: averages over finished jobs alone may lie below the bound.
    """
    bound = {"mean_jct_s": mean_jct_bound_s, "makespan_s": makespan_bound_s}.get(objective)
    is_complete = np.isin(schedule.outcome, (Outcome.FINISHED, Outcome.UNPLACEABLE)).all()
    return bound(schedule) if bound and is_complete else float("nan")


def mean_jct_bound_s(schedule: Schedule, *, speed_up: FloatArray | None = None) -> float:
    """Return a lower bound on the mean JCT of all placeable jobs; NaN if there are none.

    Proof: any schedule can be carried out, ending no job later, by one machine that does the work
    of all GPUs together and may preempt and share at will, and on one machine the preemptive rule
    "shortest remaining processing time first" has the least mean completion time. Besides, no job
    ends sooner than its shortest run time after its submission, so the larger of the two means is
    a bound.

    Args:
        schedule: any schedule of the jobs on the cluster.
        speed_up: (jobs,) the largest factor by which each job may run faster than its `duration_s`;
            derived from the cluster (`largest_speed_up`) unless given.
    """
    submit, shortest, machine_s = _placeable(schedule, speed_up)
    if not len(submit):
        return float("nan")
    return max(float(shortest.mean()), srpt_mean_jct_s(submit, machine_s))


def makespan_bound_s(schedule: Schedule, *, speed_up: FloatArray | None = None) -> float:
    """Return a lower bound on the time from the first submission to the last completion.

    Proof: the last job to end does so no sooner than its submission plus its shortest run time. And
    the work of the jobs submitted at or after any instant can only be done from that instant on, by
    all GPUs together at best. `speed_up` is as in `mean_jct_bound_s`.
    """
    submit, shortest, machine_s = _placeable(schedule, speed_up)
    if not len(submit):
        return float("nan")
    work_from_here_s = np.cumsum(machine_s[::-1])[::-1]
    latest = max(float((submit + shortest).max()), float((submit + work_from_here_s).max()))
    return latest - schedule.horizon_s[0]


def _placeable(
    schedule: Schedule, speed_up: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return submit, shortest run time and seconds on the pooled machine of placeable jobs."""
    rows = schedule.outcome != Outcome.UNPLACEABLE
    factor = largest_speed_up(schedule) if speed_up is None else speed_up
    shortest = (schedule.workload.duration_s / factor)[rows]
    machine_s = shortest * _fewest_gpus(schedule)[rows] / schedule.cluster.gpus
    return schedule.workload.submit_s[rows], shortest, machine_s


def _fewest_gpus(schedule: Schedule) -> FloatArray:
    """Return (jobs,) the least each job holds while it runs; thousandths count if a node shares."""
    workload = schedule.workload
    fewest = np.where(workload.min_gpus > 0, workload.min_gpus, workload.gpus)
    shares = bool((schedule.cluster.node_sharing != Sharing.NONE).any())
    return np.asarray(fewest * (workload.milli_gpu / 1000.0 if shares else 1.0))


def largest_speed_up(schedule: Schedule) -> FloatArray:
    """Return (jobs,) the largest factor by which each may run faster than its `duration_s`."""
    workload = schedule.workload
    of_type = _type_speeds(schedule)[workload.kind.codes + 1]
    allowed = allowed_types(schedule)[workload.gpu_types.codes + 1]
    fastest = np.where(allowed, of_type, 0.0).max(axis=1)
    is_elastic = workload.max_gpus > 0
    scale = np.where(is_elastic, workload.max_gpus / workload.gpus, 1.0)
    # A job without a type to run on is not placeable, whatever its factor.
    return np.where(fastest > 0, fastest, 1.0) * scale


def _type_speeds(schedule: Schedule) -> FloatArray:
    """Return (kinds + 1, types) the speed of each kind on each type; row 0: jobs without a kind."""
    cluster = schedule.cluster
    kinds = (None, *schedule.workload.kind.names)
    references = _references(cluster)
    if cluster.site.equal_speeds or cluster.gpu_types == (references[0],):
        return np.ones((len(kinds), len(cluster.gpu_types)))
    return np.array(
        [
            [max(speed(kind, gpu, each) for each in references) for gpu in cluster.gpu_types]
            for kind in kinds
        ]
    )


def _references(cluster: Cluster) -> list[GpuType]:
    """Return the type durations were measured on; where several are as numerous, all of them."""
    name = cluster.site.reference_gpu
    if name:
        own = {type_key(kind.name): kind for kind in cluster.gpu_types}
        return [own.get(type_key(name)) or gpu_type(name)]
    counts = np.bincount(cluster.node_type, weights=cluster.node_gpus)
    return [cluster.gpu_types[index] for index in np.flatnonzero(counts == counts.max())]


def srpt_mean_jct_s(submit_s: FloatArray, work_s: FloatArray) -> float:
    """Return the mean JCT of preemptive SRPT on one machine; `submit_s` must be ascending.

    It sums the time jobs spend in the system gap by gap between submissions: only the remaining
    seconds of the jobs matter, not which job is which. About a second per million jobs.
    """
    gaps = np.diff(submit_s).tolist()
    work = work_s.tolist()
    total = 0.0
    remaining = [work[0]]
    for gap_s, arriving_s in zip(gaps, work[1:], strict=True):
        left_s = gap_s
        while remaining and left_s > 0:
            shortest = remaining[0]
            if shortest > left_s:
                # The shortest job stays the shortest, so the heap needs no repair.
                remaining[0] = shortest - left_s
                total += len(remaining) * left_s
                break
            total += len(remaining) * shortest
            left_s -= shortest
            heapq.heappop(remaining)
        heapq.heappush(remaining, arriving_s)
    draining = np.cumsum(np.sort(remaining))
    return float((total + draining.sum()) / len(work))
