"""Rehearsing: jobs played event by event with the decisions of the very `Decider` that runs live.

Jobs come when they come and run as long as the rehearsal is told; what the scheduler believes of
run times is something else, and it is told no more here than there. So the simulator can be asked
what a live run would do, for schedulers that read run times too.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.state import State, selected
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import FloatArray
from yardmaster.model.workload import Workload

Places = tuple[tuple[int, int], ...]


def rehearse(
    jobs: Workload, run_s: Sequence[float] | FloatArray, cluster: Cluster, decider: Decider
) -> tuple[FloatArray, FloatArray]:
    """Play jobs with a live scheduler's decisions; return when each starts and ends.

    Args:
        jobs: the jobs; their `duration_s` is what the scheduler believes.
        run_s: (jobs,) how long each really runs.
        cluster: the machines, with nothing else on them.
        decider: who decides.

    Raises:
        YardmasterError: if some job never starts.
    """
    rehearsal = _Rehearsal(jobs, np.asarray(run_s, dtype=np.float64), cluster, decider)
    while rehearsal.go_on():
        pass
    never = np.flatnonzero(np.isnan(rehearsal.start_s))
    if len(never):
        raise YardmasterError(f"In the rehearsal, job {jobs.id[never[0]]} never starts.")
    return rehearsal.start_s, rehearsal.end_s


class _Rehearsal:
    """One rehearsal under way."""

    def __init__(
        self, jobs: Workload, run_s: FloatArray, cluster: Cluster, decider: Decider
    ) -> None:
        self._jobs, self._run_s, self._cluster, self._decider = jobs, run_s, cluster, decider
        self.start_s, self.end_s = np.full(len(jobs), np.nan), np.full(len(jobs), np.nan)
        self._places: dict[int, Places] = {}
        self._ends: list[tuple[float, int]] = []
        self._came = 0

    def go_on(self) -> bool:
        """Go to the next instant and start what is to start; return False if there is none."""
        submit_s = self._jobs.submit_s
        now_s = min(
            float(submit_s[self._came]) if self._came < len(submit_s) else math.inf,
            self._ends[0][0] if self._ends else math.inf,
        )
        if now_s == math.inf:
            return False
        while self._ends and self._ends[0][0] <= now_s:
            self._places.pop(heapq.heappop(self._ends)[1])
        self._came = int(np.searchsorted(submit_s, now_s, side="right"))
        for row, nodes in self._started(now_s):
            self.start_s[row], self.end_s[row] = now_s, now_s + self._run_s[row]
            self._places[row] = nodes
            heapq.heappush(self._ends, (float(self.end_s[row]), row))
        return True

    def _started(self, now_s: float) -> list[tuple[int, Places]]:
        """Return the rows that start now, and where."""
        ended = self.end_s[: self._came] <= now_s
        rows = np.flatnonzero(~ended)
        if not np.isnan(self.start_s[rows]).any():
            return []
        place_of = {int(row): place for place, row in enumerate(rows)}
        holdings = [
            (place_of[row], node, gpus)
            for row, nodes in self._places.items()
            for node, gpus in nodes
        ]
        state = State(
            time_s=now_s,
            jobs=selected(self._jobs, rows),
            since_s=self.start_s[rows],
            is_held=np.zeros(len(rows), dtype=np.bool_),
            holdings=np.array(holdings, dtype=np.int64).reshape(-1, 3),
            blocked=np.zeros(self._cluster.nodes, dtype=np.int64),
            cluster=self._cluster,
            node_names=tuple(map(str, range(self._cluster.nodes))),
        )
        return [(int(rows[one.row]), one.nodes) for one in self._decider.decide(state).starts]
