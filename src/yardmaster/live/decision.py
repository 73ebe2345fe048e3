"""Deciding on a real system with the schedulers of the simulator.

    observe() → State → decide(State) → Decision → plan(State, Decision) → operations → apply()

A `Decider` holds a scheduler of the scheduler language (`sjf+easy`, `policy:NAME`, `meta:NAME`) and
asks it by simulating the present: running jobs are put back where they are, waiting ones are let in
as old as they are, and what the simulation starts at this very second is what is to start. Nothing
of a scheduler is written twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from yardmaster.engine.state import Discipline
from yardmaster.errors import YardmasterError
from yardmaster.live.asking import RANKED_PICKS, Answer, ask_chooser, ask_order, ask_policy
from yardmaster.live.reasons import Reasons, in_seconds
from yardmaster.live.state import State
from yardmaster.live.stopping import ask_stops, check_may_stop
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import BoolArray, FloatArray, IntArray
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.meta.choosers import TrainedChooser


@dataclass(frozen=True, slots=True)
class Start:
    """A waiting job that is to start now, and where."""

    row: int
    """Row of the job in the state."""
    nodes: tuple[tuple[int, int], ...]
    """(node, GPUs there), by node."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What a scheduler says to a state.

    Attributes:
        digest: the state's digest.
        time_s: the state's time.
        scheduler: who decided.
        chosen: the scheduler at work: a chooser's pick, else the same as `scheduler`.
        order: rows of all waiting jobs that are not held, first to start first.
        scores: (order,) higher goes first; NaN where the scheduler has not looked at the job (a
            policy looks at a window of the queue). `order` rules: scores may tie.
        prefer: (order,) node the job would start on now, −1 where it does not start now.
        starts: jobs to start now, in this order.
        reasons: why each job starts or does not.
        took_s: seconds the decision took.
    """

    digest: str
    time_s: float
    scheduler: str
    chosen: str
    order: IntArray
    scores: FloatArray
    prefer: IntArray
    starts: tuple[Start, ...]
    reasons: Reasons = field(repr=False)
    took_s: float = 0.0

    def why(self, row: int) -> str:
        """Return why a waiting job starts now or does not, in words."""
        return self.reasons.text(row)

    def record(self, state: State, first: int = 50) -> dict[str, Any]:
        """Return it as plain values for the audit log: the first jobs of the order, all starts."""
        ids = state.jobs.id
        rows = self.order[:first].tolist()
        return {
            "digest": self.digest,
            "scheduler": self.scheduler,
            "chosen": self.chosen,
            "waiting": len(self.order),
            "order": [str(ids[row]) for row in rows],
            "scores": [
                round(float(score), 6) if np.isfinite(score) else None
                for score in self.scores[:first]
            ],
            "why": {str(ids[row]): self.why(row) for row in rows},
            "starts": [
                {"job": str(ids[start.row]), "nodes": [list(pair) for pair in start.nodes]}
                for start in self.starts
            ],
            "took_ms": round(1000 * self.took_s, 3),
        }


STOPPING = "live systems never stop a job to start another"


class Decider:
    """A scheduler of the scheduler language that decides on states, again and again."""

    def __init__(
        self,
        scheduler: str | Scheduler,
        *,
        seed: int = 0,
        picks: int = RANKED_PICKS,
        when: Callable[[float, float], str] = in_seconds,
        may_stop: bool = False,
    ) -> None:
        """Read the scheduler's name; `picks` is how far a policy's picks are followed for ranks.

        With `may_stop`, one under which waiting jobs stop running ones may decide too: `decide`
        says what it would start without that, `stops_for` whom it would stop.

        Raises:
            YardmasterError: if there is no such scheduler, or it stops running jobs.
        """
        self.scheduler = parse_scheduler(scheduler)
        self.name = str(self.scheduler)
        self._seed, self._picks, self._when = seed, picks, when
        self._asked = self.scheduler
        if may_stop and self.scheduler.discipline > Discipline.CONSERVATIVE:
            check_may_stop(self.scheduler)
            self._asked = replace(self.scheduler, discipline=Discipline.SKIP)
        elif self.scheduler.discipline > Discipline.CONSERVATIVE:
            kept = ", ".join(
                one.name.lower() for one in Discipline if one <= Discipline.CONSERVATIVE
            )
            raise YardmasterError(f"{self.name} cannot decide here: {STOPPING}; use {kept}.")

    @property
    def fingerprint(self) -> str:
        """A hash of a trained scheduler's weights: a name may mean others later; else empty."""
        weights = None
        if self.scheduler.policy is not None:
            weights = self.scheduler.policy.weights
        elif isinstance(self.scheduler.chooser, TrainedChooser):
            weights = self.scheduler.chooser.net.weights
        return "" if weights is None else hashlib.sha256(weights.tobytes()).hexdigest()[:16]

    def warm(self, cluster: Cluster) -> None:
        """Decide once on made-up jobs, so that everything is loaded and compiled."""
        count, largest = 8, int(cluster.node_gpus.max())
        columns = {
            "submit_s": np.arange(count, dtype=np.float64),
            "duration_s": np.full(count, 60.0),
            "estimate_s": np.full(count, 60.0),
            "gpus": np.minimum(np.arange(count) % 3 + 1, largest),
        }
        since_s = np.full(count, np.nan)
        since_s[0] = 0.0
        held = np.array([[0, 0, 1]], dtype=np.int64)
        self.decide(
            State.of(time_s=100.0, columns=columns, since_s=since_s, cluster=cluster, holdings=held)
        )

    def decide(self, state: State) -> Decision:
        """Return who is to start now and where, the order of all who wait, and why."""
        began = time.perf_counter()
        digest = state.digest()
        seed = self._seed ^ int(digest[:8], 16)  # dice are thrown anew, but the same way each time
        rows = state.orderable
        answer = Answer.nothing(self.name) if not len(rows) else self._ask(state, seed)
        place = np.full(len(state.jobs), -1, dtype=np.int64)
        place[answer.order] = np.arange(len(answer.order))
        begins = np.zeros(len(state.jobs), dtype=np.int64)
        prefer = np.full(len(state.jobs), -1, dtype=np.int64)
        free = state.free_gpus.copy()
        taken = [(row, node, gpus) for row, nodes in answer.starts for node, gpus in nodes]
        for row, nodes in answer.starts:
            begins[row], prefer[row] = 1, nodes[0][0]
        begun = np.array(taken, dtype=np.int64).reshape(-1, 3)
        np.subtract.at(free, begun[:, 1], begun[:, 2])
        return Decision(
            digest=digest,
            time_s=state.time_s,
            scheduler=self.name,
            chosen=answer.chosen,
            order=answer.order,
            scores=answer.scores,
            prefer=prefer[answer.order],
            starts=tuple(Start(row, nodes) for row, nodes in answer.starts),
            reasons=Reasons(state, place, begins, free, self._when, begun),
            took_s=time.perf_counter() - began,
        )

    @property
    def stops_jobs(self) -> bool:
        """Whether its scheduler stops running jobs for waiting ones."""
        return self._asked is not self.scheduler

    def stops_for(
        self, state: State, decision: Decision, row: int, stoppable: BoolArray
    ) -> tuple[int, ...]:
        """Return running jobs that the scheduler would stop so that a waiting one starts now.

        Args:
            state: the moment the decision is about.
            decision: what starts now without stopping anybody; that is given its GPUs first.
            row: the waiting job.
            stoppable: (jobs,) who may be stopped.
        """
        blocked = state.blocked.copy()
        for start in decision.starts:
            for node, gpus in start.nodes:
                blocked[node] += gpus
        return ask_stops(
            replace(state, blocked=blocked), self.scheduler, row, stoppable=stoppable,
            seed=self._seed,
        )  # fmt: skip

    def _ask(self, state: State, seed: int) -> Answer:
        if self.scheduler.policy is not None:
            return ask_policy(state, self.scheduler, seed=seed, picks=self._picks)
        if self.scheduler.chooser is not None:
            return ask_chooser(state, self.scheduler, seed=seed)
        return ask_order(state, self._asked, seed=seed)


Operation = TypeVar("Operation")
Outcome_co = TypeVar("Outcome_co", covariant=True)


class Backend(Protocol[Operation, Outcome_co]):
    """One real system: what is seen of it, and what can be done to it."""

    def observe(self) -> State:
        """Return the present."""

    def plan(self, state: State, decision: Decision) -> Sequence[Operation]:
        """Return what is to be done; reads nothing but its arguments."""

    def apply(self, operations: Sequence[Operation]) -> Sequence[Outcome_co]:
        """Do it; return what became of each operation, in order."""

    def restore(self) -> None:
        """Leave the system as if nobody had ever decided anything here."""
