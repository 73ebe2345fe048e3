"""Does a placement of the repository keep the rules of docs/semantics.md?

    from yardmaster.testing import check_placement

    def test_my_placement():
        check_placement("smallest")

Small awkward workloads are simulated uncompiled, and again by the SimPy reference. The rules are
judged from the schedule alone, so that neither engine marks its own work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.gpus import type_key
from yardmaster.model.schedule import Outcome, Schedule
from yardmaster.model.workload import Workload
from yardmaster.names import unknown
from yardmaster.schedulers.language import PLACEMENTS
from yardmaster.schedulers.simulation import Engine, simulate
from yardmaster.testing.conformance import given_twice
from yardmaster.testing.verdicts import Conformance, NotTriedError, Rule, judged

EXAMPLES = 20
CLUSTERS = (
    ("4x V100:4",),
    ("2x V100:4", "1x T4:8"),
    ("3x A100:2", "1x V100:8", "2x T4:1"),
)
SOLVED = "milp"
"""A placement that decides a whole pass by a solver, which the reference does not have."""


def judge_placement(name: str) -> Conformance:
    """Try every rule on small workloads.

    Raises:
        UnknownNameError: if there is no such placement.
    """
    chosen = name.removeprefix("@")
    if chosen not in PLACEMENTS:
        raise unknown("placement", chosen, PLACEMENTS)
    suite = _Suite(chosen)
    return judged(
        "placement",
        chosen,
        [
            Rule("can be simulated", suite.runs, is_needed=True),
            Rule("gives no GPU to two jobs at a time", suite.on_all(given_twice)),
            Rule("gives every job as many GPUs as it asks for", suite.on_all(wrong_number)),
            Rule("keeps gangs on one node where they could fit", suite.on_all(torn_apart)),
            Rule("keeps to the GPU types and GPUs per node of a job", suite.on_all(not_allowed)),
            Rule("starts a job at once where nobody else is", suite.starts_at_once),
            Rule("places the same twice", suite.repeats),
            Rule("places as the plain reference does", suite.agrees),
        ],
    )


def check_placement(name: str) -> None:
    """Check a placement; see `judge_placement`.

    Raises:
        ConformanceError: with the first rule that is broken, and why.
        UnknownNameError: if there is no such placement.
    """
    judge_placement(name).insist()


def wrong_number(schedule: Schedule) -> str:
    """Return who holds another number of GPUs than asked for, or GPUs that do not exist."""
    for segment, row in enumerate(schedule.segment_job.tolist()):
        held = schedule.gpus_of(segment)
        wanted = int(schedule.workload.gpus[row])
        if len(set(held.tolist())) != wanted or len(held) != wanted:
            return f"job {schedule.workload.id[row]} asks for {wanted} GPUs and holds {len(held)}"
        if held.min() < 0 or held.max() >= schedule.cluster.gpus:
            return f"job {schedule.workload.id[row]} holds GPUs that do not exist"
    return ""


def torn_apart(schedule: Schedule) -> str:
    """Return which gang spans nodes although an allowed node of the empty cluster holds it."""
    for segment, row in enumerate(schedule.segment_job.tolist()):
        allowed = _allowed_nodes(schedule, row)
        most = int(schedule.cluster.node_gpus[allowed].max())
        limit = int(schedule.workload.max_gpus_per_node[row]) or most
        wanted = int(schedule.workload.gpus[row])
        nodes = set(schedule.cluster.gpu_node[schedule.gpus_of(segment)].tolist())
        if wanted <= min(most, limit) and len(nodes) > 1:
            return f"job {schedule.workload.id[row]} ({wanted} GPUs) is on {len(nodes)} nodes"
    return ""


def not_allowed(schedule: Schedule) -> str:
    """Return who is on a GPU type that the job does not take, or has too many on one node."""
    for segment, row in enumerate(schedule.segment_job.tolist()):
        nodes, counts = np.unique(
            schedule.cluster.gpu_node[schedule.gpus_of(segment)], return_counts=True
        )
        name = schedule.workload.id[row]
        if not set(nodes.tolist()) <= set(_allowed_nodes(schedule, row)):
            return f"job {name} is on a GPU type it does not take"
        limit = int(schedule.workload.max_gpus_per_node[row])
        if limit and counts.max() > limit:
            return f"job {name} has {counts.max()} GPUs on a node, at most {limit} are allowed"
    return ""


def _allowed_nodes(schedule: Schedule, row: int) -> list[int]:
    """Return the nodes whose GPU type the job takes."""
    cluster, named = schedule.cluster, schedule.workload.gpu_types.values()[row]
    wanted = {type_key(one) for one in named.split("|")} if named else set()
    types = [type_key(kind.name) for kind in cluster.gpu_types]
    return [
        node
        for node, kind in enumerate(cluster.node_type.tolist())
        if not wanted or types[kind] in wanted
    ]


@dataclass(frozen=True, slots=True)
class _Suite:
    name: str

    def _schedule(self, number: int, engine: Engine = "core", jobs: int = 12) -> Schedule:
        groups = CLUSTERS[number % len(CLUSTERS)]
        scheduler = f"fifo+skip@{self.name}"
        return simulate(
            _workload(number, jobs),
            Cluster.of(*groups),
            scheduler,
            seed=number,
            engine=engine,
            compile_core="never",
        )

    def _all(self) -> Iterator[Schedule]:
        return (self._schedule(number) for number in range(EXAMPLES))

    def on_all(self, judge: Callable[[Schedule], str]) -> Callable[[], str]:
        """Return a rule that asks the same of every schedule; what never ran is left out."""

        def problem() -> str:
            found = (
                (number, judge(_only_placed(schedule)))
                for number, schedule in enumerate(self._all())
            )
            return next((f"{words} (example {number + 1})" for number, words in found if words), "")

        return problem

    def runs(self) -> str:
        for schedule in self._all():
            ran = (schedule.outcome == Outcome.FINISHED) | (schedule.outcome == Outcome.UNPLACEABLE)
            if not ran.all():
                return f"job {schedule.workload.id[int(np.flatnonzero(~ran)[0])]} never ran"
        return ""

    def starts_at_once(self) -> str:
        for number in range(EXAMPLES):
            alone = self._schedule(number, jobs=1)
            waited = alone.start_s - alone.workload.submit_s
            if alone.outcome[0] == Outcome.FINISHED and waited[0] > 0:
                return f"a job alone on the cluster waits {waited[0]:g} s (example {number + 1})"
        return ""

    def repeats(self) -> str:
        for number in range(EXAMPLES):
            if self._schedule(number).event_log() != self._schedule(number).event_log():
                return f"example {number + 1} ends otherwise the second time"
        return ""

    def agrees(self) -> str:
        if self.name == SOLVED:
            raise NotTriedError("the reference solves no integer programs")
        for number in range(EXAMPLES):
            core, plain = self._schedule(number), self._schedule(number, "simpy")
            for segment, row in enumerate(core.segment_job.tolist()):
                here = core.gpus_of(segment).tolist()
                there = plain.gpus_of(int(np.flatnonzero(plain.segment_job == row)[0])).tolist()
                if here != there or core.start_s[row] != plain.start_s[row]:
                    return (
                        f"job {core.workload.id[row]} is on GPUs {here}, in the reference on"
                        f" {there} (example {number + 1})"
                    )
        return ""


def _only_placed(schedule: Schedule) -> Schedule:
    """Return the schedule; raise if nobody was placed, since that judges nothing."""
    if not len(schedule.segment_job):
        raise YardmasterError("No job was placed.")
    return schedule


def _workload(seed: int, jobs: int) -> Workload:
    """Draw jobs that collide, with limits and wishes; some fit no node, some not the cluster."""
    dice = np.random.default_rng(seed)
    return Workload.of(
        submit_s=np.sort(dice.integers(0, 12, jobs)).astype(np.float64),
        duration_s=dice.integers(1, 25, jobs).astype(np.float64),
        gpus=dice.choice([1, 1, 2, 3, 4, 5, 8], jobs),
        max_gpus_per_node=dice.choice([0, 0, 0, 2], jobs),
        gpu_types=dice.choice(["", "", "", "V100"], jobs),
        name=f"placement example {seed + 1}",
    )
