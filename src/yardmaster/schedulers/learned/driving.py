"""Replaying a workload with a trained policy picking the jobs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yardmaster.engine import compilation as core_compilation
from yardmaster.engine.conditions import Conditions
from yardmaster.engine.picking import compilation
from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.compilation import Picking
from yardmaster.engine.picking.layout import Floats
from yardmaster.engine.picking.places import End, NoOp
from yardmaster.engine.replay import schedule_of
from yardmaster.engine.state import NOW
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import IntArray, Workload
from yardmaster.schedulers.learned.packing import in_line
from yardmaster.schedulers.learned.policy import LearnedPolicy
from yardmaster.schedulers.picking import Prepared, prepare

DECISIONS_PER_CALL = 100_000
"""Decisions between two looks at the keyboard: Ctrl-C is heard only outside the core."""


@dataclass(frozen=True, slots=True, eq=False)
class Why:
    """One decision of a policy: what it could have done, and how much it liked each."""

    now_s: float
    jobs: IntArray
    """Rows of the waiting jobs in the window, in its order."""
    scores: Floats
    """Preference for starting each, and last for waiting; −inf where that was not legal."""
    chosen: int
    """Row of the job that was started, or −1 for waiting."""

    def record(self, workload: Workload) -> dict[str, Any]:
        """Return the decision as plain values, jobs by their id, places in the window from 1."""
        candidates = [
            {
                "job": str(workload.id[row]),
                "place": place,
                "gpus": int(workload.gpus[row]),
                "wait_s": self.now_s - float(workload.submit_s[row]),
                "legal": bool(np.isfinite(score)),
                "score": float(score) if np.isfinite(score) else None,
            }
            for place, (row, score) in enumerate(
                zip(self.jobs.tolist(), self.scores[:-1], strict=True), start=1
            )
        ]
        wait = float(self.scores[-1])
        return {
            "second": self.now_s,
            "chosen": str(workload.id[self.chosen]) if self.chosen >= 0 else None,
            "candidates": candidates,
            "wait": {"legal": math.isfinite(wait), "score": wait if math.isfinite(wait) else None},
        }


def drive_policy(
    workload: Workload,
    cluster: Cluster,
    policy: LearnedPolicy,
    *,
    placement: str,
    called: str,
    seed: int = 0,
    until_s: float = math.inf,
    compiled: bool = True,
    put_back: int = 0,
    announce: Callable[[str], None] | None = None,
    why: Callable[[Why], None] | None = None,
) -> tuple[Schedule, Conditions | None]:
    """Simulate a policy and return the schedule it makes, and the conditions it met.

    Decisions are the same, and so is the schedule, whether anybody asks why or not. The first
    `put_back` jobs, which must come one by one and fit, start as they come: they are running
    jobs that are put back, and nobody is asked about them.
    """
    prepared = prepare(
        workload,
        cluster,
        replace(policy.sight, placement=placement),
        seed=seed,
        records_gpus=True,
        # The environment ends at its horizon; a replay still handles the events of that second.
        horizon_s=math.nextafter(until_s, math.inf),
    )
    is_real = prepared.is_real
    if compiled:
        core_compilation.compile_core(announce, is_real=is_real)
        picking = compilation.compiled(announce, is_real=is_real)
    else:
        picking = compilation.plain()
    drive = _Drive(prepared, policy, picking)
    drive.put_back(put_back)
    if why is None:
        drive.run()
    else:
        drive.explain(why)
    core = core_compilation.core(is_real=is_real, may_be_compiled=compiled)
    schedule = schedule_of(
        prepared.simulation,
        core,
        workload,
        cluster,
        prepared.shapes,
        conditions=prepared.conditions,
        scheduler=called,
        until_s=until_s,
        engine="compiled" if compiled else "uncompiled",
    )
    return schedule, prepared.conditions


class _Drive:
    """One replay under way."""

    def __init__(self, prepared: Prepared, policy: LearnedPolicy, picking: Picking) -> None:
        sight, layout = policy.sight, policy.sight.layout()
        self.window = sight.window
        self.reals = prepared.simulation.reals
        self.book = np.zeros(prepared.book_length, dtype=np.int64)
        self.scores = np.zeros(layout.actions, dtype=np.float32)
        self._rules = sight.rules(is_fixed=prepared.is_fixed)
        self._arguments = (
            prepared.simulation.ints,
            self.reals,
            self._rules,
            sight.scales(),
            prepared.facts,
            prepared.cards,
            self.book,
            np.zeros(prepared.purse_length),
            np.zeros(layout.length, dtype=np.float32),
            np.zeros(layout.actions, dtype=np.int8),
            policy.net,
            policy.weights,
            self.scores,
            in_line(policy.scratch),
        )
        self._picking = picking

    def take(self, decisions: int) -> int:
        """Take so many decisions; return an End."""
        return int(self._picking.drive(*self._arguments, decisions))

    def put_back(self, jobs: int) -> None:
        """Start the first jobs as they come, by not letting the policy wait."""
        if jobs < 1:
            return
        own = self._rules[at.NOOP]
        self._rules[at.NOOP] = NoOp.NEVER
        self.take(0)
        self.take(jobs - 1)
        # What may be done next is found out by each step: the last one must know the rule again.
        self._rules[at.NOOP] = own
        self.take(1)

    def run(self) -> None:
        """Replay to the end."""
        while self.take(DECISIONS_PER_CALL) == End.NOT_YET:
            pass

    def explain(self, why: Callable[[Why], None]) -> None:
        """Replay to the end, telling of every decision."""
        end = self.take(0)
        while end == End.NOT_YET:
            shown = min(int(self.book[at.LINE_LENGTH]), self.window)
            first = at.BOOK + int(self.book[at.LINE_FIRST])
            jobs = self.book[first : first + shown].copy()
            now_s = float(self.reals[NOW])
            end = self.take(1)
            scores = np.append(self.scores[:shown], self.scores[-1])
            chosen = int(scores.argmax())
            why(Why(now_s, jobs, scores, int(jobs[chosen]) if chosen < shown else -1))
