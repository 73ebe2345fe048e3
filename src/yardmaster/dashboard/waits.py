"""What happened while a job waited: who came first, when there was room, whose turn it was.

All of it is read from the schedule, between the job's submission and its first start (or the cut,
if it never started). "Later" and "earlier" go by submission, and within a second by row, as the
scheduler's ties do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from yardmaster.dashboard.job_lives import MOST_NAMED, named
from yardmaster.engine.requests import shapes_of, shares_gpus
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.errors import YardmasterError
from yardmaster.metrics.holdings import segment_gpus
from yardmaster.metrics.outages import outage_spans
from yardmaster.metrics.timeline import queue_intervals
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.workload import BoolArray, FloatArray, IntArray
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.views import RunTimes, view_for

CELLS_AT_ONCE = 4_000_000
"""Node × instant cells held in memory at a time."""
_MADE_ROOM = (Cause.PREEMPTED, Cause.MIGRATED, Cause.RESIZED)
"""A segment that ends so ends by the pass itself: before it, its GPUs were not free."""


def wait_of(schedule: Schedule, row: int) -> dict[str, Any] | None:
    """Return what happened while a job waited for its first start; None if it did not wait."""
    if schedule.outcome[row] in (Outcome.UNPLACEABLE, Outcome.NOT_SUBMITTED):
        return None
    begin_s = float(schedule.workload.submit_s[row])
    has_started = not np.isnan(schedule.start_s[row])
    end_s = float(schedule.start_s[row]) if has_started else schedule.horizon_s[1]
    if end_s <= begin_s:
        return None
    return {
        "begin_s": begin_s,
        "end_s": end_s,
        "has_started": has_started,
        "gpu_s": _gpu_time(schedule, row, begin_s, end_s),
        "overtaken": _overtaken(schedule, row, begin_s, end_s),
        "ahead": _ahead(schedule, row, begin_s, end_s),
        "room": _room(schedule, row, begin_s, end_s),
        "turn": _turn(schedule, row, begin_s, end_s),
    }


def _held_gpu_s(schedule: Schedule, begin_s: float, end_s: float) -> FloatArray:
    """Return (jobs,) GPU-seconds that each job held between two seconds."""
    since = np.maximum(schedule.segment_start_s, begin_s)
    until = np.minimum(schedule.segment_end_s, end_s)
    held = np.maximum(until - since, 0.0) * segment_gpus(schedule)
    total = np.bincount(schedule.segment_job, held, minlength=len(schedule.workload))
    return np.asarray(total, dtype=np.float64)


def _gpu_time(schedule: Schedule, row: int, begin_s: float, end_s: float) -> dict[str, float]:
    """Return who had the cluster's GPUs meanwhile, GPU-seconds; they add up to all of it."""
    held = _held_gpu_s(schedule, begin_s, end_s)
    rows = np.arange(len(held))
    is_running = schedule.start_s < begin_s
    shares = {
        "running": held[is_running],
        "earlier": held[~is_running & (rows < row)],
        "later": held[~is_running & (rows > row)],
    }
    found = {name: float(part.sum()) for name, part in shares.items()}
    whole = schedule.cluster.gpus * (end_s - begin_s)
    node, down, up = outage_spans(schedule)
    away_s = np.maximum(np.minimum(up, end_s) - np.maximum(down, begin_s), 0.0)
    found["away"] = float(schedule.cluster.node_gpus[node] @ away_s)
    return found | {"idle": max(whole - sum(found.values()), 0.0), "all": whole}


def _overtaken(schedule: Schedule, row: int, begin_s: float, end_s: float) -> dict[str, Any]:
    """Return the jobs that were submitted later and started earlier, and what they took."""
    workload = schedule.workload
    rows = np.arange(len(workload))
    by = np.flatnonzero((rows > row) & (schedule.start_s < end_s))
    held = _held_gpu_s(schedule, begin_s, end_s)
    first = by[np.argsort(-held[by], kind="stable")[:MOST_NAMED]]
    return {
        "count": len(by),
        "gpu_s": float(held[by].sum()),
        "fewer_gpus": int(np.count_nonzero(workload.gpus[by] < workload.gpus[row])),
        "shorter": int(np.count_nonzero(workload.duration_s[by] < workload.duration_s[row])),
        "jobs": [named(schedule, int(one)) | {"gpu_s": float(held[one])} for one in first],
    }


def _ahead(schedule: Schedule, row: int, begin_s: float, end_s: float) -> dict[str, Any]:
    """Return how many waited already when the job came, and what became of them meanwhile."""
    job, begin, end = queue_intervals(schedule)
    is_ahead = (job < row) & (begin <= begin_s) & (end > begin_s)
    left = job[(job < row) & (begin <= end_s) & (end > end_s)]
    ahead = job[is_ahead]
    return {
        "count": len(ahead),
        "gpus": int(schedule.workload.gpus[ahead].sum()),
        "left": int(np.count_nonzero(np.isin(ahead, left))),
    }


class _Room(NamedTuple):
    """At every instant of a wait: free GPUs the job may use, and whether it would fit there."""

    free: IntArray
    fits: BoolArray


def _room(schedule: Schedule, row: int, begin_s: float, end_s: float) -> dict[str, Any] | None:
    """Return when enough GPUs were free for a job while it waited, and who had them instead.

    GPUs alone are looked at, not cores, memory, watts or quotas. None where jobs share GPUs:
    whether a job fits beside another is more than a number of free ones.
    """
    if shares_gpus(schedule.workload, schedule.cluster):
        return None
    edges = np.concatenate(
        ([begin_s], schedule.segment_start_s, schedule.segment_end_s, *outage_spans(schedule)[1:])
    )
    instants = np.unique(edges[(edges >= begin_s) & (edges < end_s)])
    before = _room_at(schedule, row, instants, is_before_starts=True)
    after = _room_at(schedule, row, instants, is_before_starts=False)
    lasts_s = np.diff(np.append(instants, end_s))
    places = np.flatnonzero(before.fits)
    found: dict[str, Any] = {
        "moments": len(places),
        "unused_s": float(lasts_s[after.fits].sum()),
        "most_free": int(before.free.max(initial=0)),
        "first": None,
    }
    if len(places):
        place = int(places[0])
        time_s = float(instants[place])
        began = np.flatnonzero(schedule.segment_start_s == time_s)
        found["first"] = {
            "time_s": time_s,
            "free_gpus": int(before.free[place]),
            "is_left": bool(after.fits[place]),
            "taken_gpus": int(np.diff(schedule.segment_gpu_offset)[began].sum()),
            "taker_count": len(began),
            "takers": [
                named(schedule, int(schedule.segment_job[one])) for one in began[:MOST_NAMED]
            ],
        }
    return found


def _room_at(
    schedule: Schedule, row: int, instants: FloatArray, *, is_before_starts: bool
) -> _Room:
    """Return the room for a job at every instant, before or after what the pass started."""
    cluster = schedule.cluster
    shapes = shapes_of(schedule.workload, cluster)
    shape = int(shapes.of_job[row])
    allowed = np.flatnonzero((int(shapes.types[shape]) >> cluster.node_type) & 1)
    node, first, past = _taken(schedule, instants, is_before_starts=is_before_starts)
    free, best = np.zeros(len(instants), dtype=np.int64), np.zeros(len(instants), dtype=np.int64)
    total = np.zeros(len(instants), dtype=np.int64)
    width = len(instants) + 1
    at_once = max(1, CELLS_AT_ONCE // width)
    number = np.full(cluster.nodes, -1)
    for begin in range(0, len(allowed), at_once):
        nodes = allowed[begin : begin + at_once]
        number[:] = -1
        number[nodes] = np.arange(len(nodes))
        here = number[node] >= 0
        key = number[node[here]] * width
        size = len(nodes) * width
        change = np.bincount(key + first[here], minlength=size)
        change -= np.bincount(key + past[here], minlength=size)
        held = np.cumsum(change).reshape(len(nodes), width)[:, :-1]
        idle = np.maximum(cluster.node_gpus[nodes, None] - held, 0)
        free += idle.sum(axis=0)
        best = np.maximum(best, idle.max(axis=0))
        total += np.minimum(idle, shapes.cap[shape]).sum(axis=0)
    enough = best if shapes.single[shape] else total
    return _Room(free, np.asarray(enough >= shapes.gpus[shape]))


def _taken(
    schedule: Schedule, instants: FloatArray, *, is_before_starts: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """Return node, first and past instant of every GPU that was held, or away with its node."""
    cluster = schedule.cluster
    start, end = schedule.segment_start_s, schedule.segment_end_s
    first = np.searchsorted(instants, start, side="right" if is_before_starts else "left")
    past = np.searchsorted(instants, end)
    if is_before_starts:
        by_pass = np.isin(schedule.segment_cause, _MADE_ROOM)
        past = np.where(by_pass, np.searchsorted(instants, end, side="right"), past)
    past = np.maximum(first, past)
    held = np.diff(schedule.segment_gpu_offset)
    node, down, up = outage_spans(schedule)
    gone = cluster.node_gpus[node]
    return (
        np.concatenate((cluster.gpu_node[schedule.gpu_ids], np.repeat(node, gone))),
        np.concatenate((np.repeat(first, held), np.repeat(np.searchsorted(instants, down), gone))),
        np.concatenate((np.repeat(past, held), np.repeat(np.searchsorted(instants, up), gone))),
    )


def _turn(schedule: Schedule, row: int, begin_s: float, end_s: float) -> dict[str, Any] | None:
    """Return for how long the job was first in order; None where that cannot be told.

    It can be told of orders whose keys stay as they are. Under `easy` the first in order is who
    holds the reservation: of those that a pass leaves waiting, it is the first that did not fit.
    """
    chosen = _scheduler(schedule.scheduler)
    if chosen is None or schedule.outages or schedule.cluster.site.quotas:
        return None
    discipline = chosen.discipline.name.lower()
    first_s = since_s = None
    keys = _fixed_keys(schedule, chosen)
    if keys is not None and chosen.discipline is not Discipline.COMMIT:
        is_before = (keys < keys[row]) | ((keys == keys[row]) & (np.arange(len(keys)) < row))
        job, begin, end = queue_intervals(schedule)
        others = is_before[job] & (end > begin_s) & (begin < end_s) & (end > begin)
        gaps = _gaps(begin[others], end[others], begin_s, end_s)
        first_s = sum(until - since for since, until in gaps)
        since_s = gaps[-1][0] if gaps and gaps[-1][1] == end_s else None
    return {"discipline": discipline, "first_s": first_s, "since_s": since_s}


def _gaps(
    begin: FloatArray, end: FloatArray, first_s: float, last_s: float
) -> list[tuple[float, float]]:
    """Return the stretches between two seconds that no span covers."""
    found = []
    covered = first_s
    for place in np.argsort(begin, kind="stable").tolist():
        if begin[place] > covered:
            found.append((covered, float(begin[place])))
        covered = max(covered, float(end[place]))
    if covered < last_s:
        found.append((covered, last_s))
    return found


def _scheduler(name: str) -> Scheduler | None:
    """Return the scheduler of this name if it goes by keys; a user's code is never loaded."""
    if ":" in name:
        return None
    try:
        return parse_scheduler(name)
    except YardmasterError:
        return None  # an order that was registered where the schedule was made


def _fixed_keys(schedule: Schedule, chosen: Scheduler) -> FloatArray | None:
    """Return (jobs,) the keys of an order whose keys never change while a job waits."""
    workload = schedule.workload
    if chosen.order.is_asked_every_pass or chosen.solves:
        return None
    run_s = None
    if chosen.order.reads_run_time:
        is_true = chosen.run_times is RunTimes.TRUE
        run_s = workload.duration_s if is_true else workload.estimate_s
        if np.isnan(run_s).any():
            return None
    keys = chosen.order.keys(view_for(chosen.order.name, workload, schedule.cluster, run_s))
    return keys.offset if keys.kind is OrderKind.FIXED and keys.release_s is None else None
