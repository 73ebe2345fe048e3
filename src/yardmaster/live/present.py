"""The present as a simulation: running jobs where they are, waiting jobs in the queue, time now.

A simulation begins with an empty cluster. So that it arrives at the present, the running jobs are
let in one after the other just before, node after node, and what is free is filled up with blocks
that end exactly now: nobody can start earlier, and at this second everybody is asked. Times are
multiples of 2⁻¹⁰ s, so that all blocks end in one instant, not in several that differ by rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from yardmaster.live.state import State, columns_of
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import FloatArray, IntArray, Labels
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import Scheduler

TICK_S = 2.0**-10
DAY_S = 86_400.0
FOREVER_S = 10 * 365 * DAY_S
"""How long GPUs that nobody may use stay so, seconds."""
LEAST_REST_S = 2.0**-6
"""Who runs is believed to run at least so long: nobody may end within the second of asking."""
BLOCK = -1
_BY_NUMBER = frozenset({"FIRST", "TIER"})
_FILLS_UP = _BY_NUMBER | {"PACK", "FASTEST"}
_RIGID = {"max_gpus_per_node": 0, "min_gpus": 0, "max_gpus": 0, "milli_gpu": 1000}
"""What is put back asks for exactly what it has."""


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """The jobs of a simulation that arrives at the present.

    Attributes:
        jobs: parts of running jobs and blocks first, then the waiting jobs.
        submitted_s: (jobs,) when each was really submitted, on the simulation's clock.
        first: row of the first waiting job.
        rows: (waiting,) the state's row of each.
        now_s: this second on the simulation's clock.
        is_exact: whether every running job is put onto the nodes it holds.
        parts: (first,) the state's row of each part of a running job, BLOCK for blocks.
    """

    jobs: Workload
    submitted_s: FloatArray
    first: int
    rows: IntArray
    now_s: float
    is_exact: bool
    parts: IntArray

    def is_there(self, schedule: Schedule) -> bool:
        """Whether everything that was to be put back was put back when it was to be."""
        begun_s = schedule.start_s[: self.first]
        return bool((begun_s == self.jobs.submit_s[: self.first]).all())

    def begun(self, schedule: Schedule) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
        """Return (row of the state, ((node, GPUs), …)) of waiting jobs that start now."""
        started = np.flatnonzero(schedule.segment_job >= self.first)
        gpu_node, offset = schedule.cluster.gpu_node, schedule.segment_gpu_offset
        found = []
        for segment in started.tolist():
            held = gpu_node[schedule.gpu_ids[offset[segment] : offset[segment + 1]]]
            nodes, gpus = np.unique(held, return_counts=True)
            row = int(self.rows[schedule.segment_job[segment] - self.first])
            places = tuple(zip(nodes.tolist(), gpus.tolist(), strict=True))
            found.append((row, places))
        return found


def present_of(state: State, scheduler: Scheduler, *, at_once: bool) -> Present:
    """Lay out a state for a simulation under a scheduler.

    Args:
        state: the moment.
        scheduler: who will decide; how its placement looks for nodes tells how to put jobs back.
        at_once: let all waiting jobs in now (for orders, whose keys are told the true submit
            times) instead of when they were submitted (for policies, which look at the clock).
    """
    rows = state.orderable
    parts = _parts(state, scheduler)
    now_s = math.ceil(state.time_s / TICK_S) * TICK_S
    earliest_s = now_s if at_once or not len(rows) else float(state.jobs.submit_s[rows[0]])
    begin_s = math.floor(min(earliest_s, now_s) - 1.0) - len(parts.row) * TICK_S
    # Whole days keep the hour of the day, which some orders look at.
    shift_s = DAY_S * math.ceil(max(-begin_s, 0.0) / DAY_S)
    now_s, begin_s = now_s + shift_s, begin_s + shift_s
    columns = columns_of(state.jobs, np.concatenate([parts.row, rows]))
    count = len(parts.row)
    at_s = begin_s + TICK_S * np.arange(count)
    stays_s = (now_s - at_s) + parts.beyond_s
    submitted_s = columns["submit_s"] + shift_s
    submitted_s[:count] = at_s
    columns["id"] = np.arange(count + len(rows))
    columns["deadline_s"] = columns["deadline_s"] + shift_s
    columns["submit_s"] = submitted_s.copy()
    if at_once:
        columns["submit_s"][count:] = now_s
    columns["duration_s"][:count] = stays_s
    believed_s = columns["estimate_s"]
    columns["estimate_s"] = np.where(np.isnan(believed_s), columns["duration_s"], believed_s)
    columns["estimate_s"][:count] = stays_s
    _put_back(columns, parts, state.cluster)
    jobs = Workload(name=state.jobs.name, **columns)
    return Present(jobs, submitted_s, count, rows, now_s, parts.is_exact, parts.row)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """What is let in before now: row or BLOCK, GPUs, node, and seconds it stays beyond now."""

    row: IntArray
    gpus: IntArray
    node: IntArray
    beyond_s: FloatArray
    is_exact: bool


def _parts(state: State, scheduler: Scheduler) -> _Parts:
    """Return parts of running jobs, GPUs out of reach, and free ones that are blocked until now."""
    cluster = state.cluster
    left_s = np.zeros(len(state.jobs))
    left_s[state.running] = np.maximum(state.left_s(), LEAST_REST_S)
    row, node, gpus = _holdings(state).T
    held = np.bincount(node, gpus, minlength=cluster.nodes).astype(np.int64)
    away = np.minimum(state.blocked, cluster.node_gpus - held)
    free = cluster.node_gpus - held - away
    lost, idle = np.flatnonzero(away > 0), np.flatnonzero(free > 0)
    row = np.concatenate([row, np.full(len(lost) + len(idle), BLOCK)])
    beyond_s = np.concatenate([left_s[row[: len(gpus)]], np.full(len(lost), FOREVER_S),
                               np.zeros(len(idle))])  # fmt: skip
    gpus = np.concatenate([gpus, away[lost], free[idle]])
    node = np.concatenate([node, lost, idle])
    name = scheduler.placement.name
    numbers = np.arange(cluster.nodes)
    turn = np.empty(cluster.nodes, dtype=np.int64)
    turn[numbers if name in _BY_NUMBER else np.lexsort((numbers, cluster.node_gpus))] = numbers
    order = np.lexsort((beyond_s == 0.0, turn[node]))
    is_exact = (name in _FILLS_UP or cluster.nodes == 1) and len(state.holdings) >= len(
        state.running
    )
    return _Parts(row[order], gpus[order], node[order], beyond_s[order], is_exact)


def _holdings(state: State) -> IntArray:
    """Return who holds what where; where nobody knows, running jobs go to the emptiest nodes."""
    known = np.unique(state.holdings[:, 0])
    lacking = np.setdiff1d(state.running, known)
    if not len(lacking):
        return state.holdings
    free = state.free_gpus.copy()
    guessed = []
    for row in lacking[np.argsort(-state.jobs.gpus[lacking], kind="stable")].tolist():
        wanted = int(state.jobs.gpus[row])
        while wanted > 0 and free.any():
            fitting = np.flatnonzero(free >= wanted)
            node = int(fitting[free[fitting].argmin()] if len(fitting) else free.argmax())
            taken = min(wanted, int(free[node]))
            free[node] -= taken
            wanted -= taken
            guessed.append((row, node, taken))
    return np.concatenate([state.holdings, np.array(guessed, dtype=np.int64).reshape(-1, 3)])


def _put_back(columns: dict[str, Any], parts: _Parts, cluster: Cluster) -> None:
    """Set what the parts ask for: their own GPUs on a node of their own type, nothing else."""
    count = len(parts.row)
    head, blocks = slice(0, count), np.flatnonzero(parts.row == BLOCK)
    whole = np.where(parts.row == BLOCK, parts.gpus, columns["gpus"][head])
    columns["gpus"][head] = parts.gpus
    for name, nothing in _RIGID.items():
        columns[name][head] = nothing
    for name in ("cpus", "memory_gib"):
        columns[name][head] *= np.where(parts.row == BLOCK, np.nan, parts.gpus / whole)
    columns["gpu_memory_gib"][head] = np.nan
    for name in ("tenant", "user", "kind"):  # blocks are nobody's: no quota holds them back
        codes = columns[name].codes.copy()
        codes[blocks] = -1
        columns[name] = Labels(codes, columns[name].names)
    wanted: Labels = columns["gpu_types"]
    codes = wanted.codes.copy()
    codes[head] = cluster.node_type[parts.node] + len(wanted.names)
    names = tuple(kind.name for kind in cluster.gpu_types)
    columns["gpu_types"] = Labels(codes, wanted.names + names)
