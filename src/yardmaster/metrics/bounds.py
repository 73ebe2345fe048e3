"""How good any scheduler could be: proven lower bounds, to tell how much is left to gain.

The bounds hold for every schedule that finishes all placeable jobs of the workload on the cluster,
whatever it knows and whatever it may preempt. Jobs that could not be placed are left out.
"""

from __future__ import annotations

import heapq

import numpy as np

from yardmaster.metrics.per_job import gpu_share
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import FloatArray


def lower_bound(objective: str, schedule: Schedule) -> float:
    """Return the proven lower bound on a metric of `metrics.summary`, NaN where none is known.

    NaN too if the simulation was cut: averages over finished jobs alone may lie below the bound.
    """
    bound = {"mean_jct_s": mean_jct_bound_s, "makespan_s": makespan_bound_s}.get(objective)
    is_complete = np.isin(schedule.outcome, (Outcome.FINISHED, Outcome.UNPLACEABLE)).all()
    return bound(schedule) if bound and is_complete else float("nan")


def mean_jct_bound_s(schedule: Schedule) -> float:
    """Return a lower bound on the mean JCT of all placeable jobs; NaN if there are none.

    Proof: any schedule can be carried out, ending no job later, by one machine that does the work
    of all GPUs together and may preempt and share at will, and on one machine the preemptive rule
    "shortest remaining processing time first" has the least mean completion time. Besides, no job
    ends sooner than its duration after its submission, so the larger of the two means is a bound.
    """
    submit, duration, machine_s = _placeable(schedule)
    if not len(submit):
        return float("nan")
    return max(float(duration.mean()), srpt_mean_jct_s(submit, machine_s))


def makespan_bound_s(schedule: Schedule) -> float:
    """Return a lower bound on the time from the first submission to the last completion.

    Proof: the last job to end does so no sooner than its submission plus its duration. And the
    work of the jobs submitted at or after any instant can only be done from that instant on, by
    all GPUs together at best.
    """
    submit, duration, machine_s = _placeable(schedule)
    if not len(submit):
        return float("nan")
    work_from_here_s = np.cumsum(machine_s[::-1])[::-1]
    latest = max(float((submit + duration).max()), float((submit + work_from_here_s).max()))
    return latest - schedule.horizon_s[0]


def _placeable(schedule: Schedule) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return submit, duration and seconds on the pooled machine of every placeable job."""
    rows = schedule.outcome != Outcome.UNPLACEABLE
    duration = schedule.workload.duration_s[rows]
    machine_s = duration * gpu_share(schedule)[rows] / schedule.cluster.gpus
    return schedule.workload.submit_s[rows], duration, machine_s


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
