"""The SimPy reference: jobs, outages and scheduling passes as processes."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import simpy
from simpy.events import ProcessGenerator

from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference.clock import Moment, Turn
from yardmaster.engine.reference.disciplines import Decided, Rule, rule
from yardmaster.engine.reference.yard import Yard
from yardmaster.engine.replay import notes_on
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.site import Outage
from yardmaster.model.workload import Workload

REVIEWING = frozenset(
    {Discipline.PREEMPTIVE, Discipline.TIMESLICE, Discipline.ELASTIC, Discipline.DEFRAG}
)
"""Disciplines that look at the running jobs again after every quantum."""


class Passes:
    """Calls the discipline once per instant at which something happened."""

    def __init__(self, yard: Yard, discipline: Rule) -> None:
        self.yard = yard
        self.discipline = discipline
        self.due: Moment | None = None
        self.review: Moment | None = None

    def ask(self, turn: Turn = Turn.PASS) -> None:
        """Have a pass at this instant; one that must be at once replaces one that can wait."""
        if self.due is None or turn == Turn.PASS_AT_ONCE:
            self.due = Moment(self.yard.clock, self.yard.now_s, turn)
            self.due.callbacks.append(self._run)

    def _run(self, moment: simpy.Event) -> None:
        if moment is not self.due:  # replaced
            return
        self.due = None
        yard = self.yard
        yard.order.begin_pass(yard.waiting, yard.now_s)
        # Elastic jobs may grow although nobody waits.
        if yard.waiting or yard.discipline == Discipline.ELASTIC:
            self.discipline(yard)
        self._set_review()

    def _set_review(self) -> None:
        """Look again at the next multiple of the quantum, if there is anything to look at."""
        yard, quantum_s = self.yard, self.yard.conditions.quantum_s
        if self.review is not None and not self.review.processed:
            yard.clock.call_off(self.review)
        self.review = None
        is_needed = yard.running and (yard.waiting or yard.discipline == Discipline.ELASTIC)
        if yard.discipline in REVIEWING and quantum_s > 0 and is_needed:
            self.review = Moment(yard.clock, next_multiple(yard.now_s, quantum_s), Turn.REVIEW)
            self.review.callbacks.append(lambda _: self.ask())


def next_multiple(now_s: float, quantum_s: float) -> float:
    """Return the first multiple of the quantum after now."""
    count = math.floor(now_s / quantum_s) + 1
    # A rounded quotient may lie below the multiple at which the clock stands.
    return count * quantum_s if count * quantum_s > now_s else (count + 1) * quantum_s


def live(
    yard: Yard, passes: Passes, row: int, enter_s: float, *, one_arrival: bool
) -> ProcessGenerator:
    """Live one job's life: arrive, wait, run, perhaps more than once, and leave."""
    turn = Turn.EARLY_ARRIVAL if one_arrival else Turn.ARRIVAL
    yield Moment(yard.clock, enter_s, turn, row)
    if row not in yard.jobs:  # asks for more than the cluster has: never queued
        passes.ask()
        return
    is_alone = not yard.waiting
    yard.enter(row)
    passes.ask(Turn.PASS_AT_ONCE if one_arrival and is_alone else Turn.PASS)
    yield yard.over[row]
    passes.ask()


def lose_and_repair(yard: Yard, passes: Passes, outage: Outage) -> ProcessGenerator:
    """Have one node go and come back."""
    yield Moment(yard.clock, outage.down_s, Turn.FAILURE, outage.node)
    yard.lose(outage.node)
    passes.ask()
    yield Moment(yard.clock, outage.up_s, Turn.REPAIR, outage.node)
    yard.regain(outage.node)
    passes.ask()


def simulate_reference(
    workload: Workload,
    cluster: Cluster,
    keys: OrderKeys,
    options: Options,
    *,
    scheduler: str,
    until_s: float = math.inf,
) -> Schedule:
    """Simulate the workload to its end, or until `until_s`, and return what happened."""
    by_tenant = keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
    shapes = shapes_of(workload, cluster, by_tenant=by_tenant)
    yard = Yard(workload, cluster, shapes, keys, options)
    discipline = rule(options.discipline)
    passes = Passes(yard, Decided(options.decide, shapes) if options.decide else discipline)
    enter_s = workload.submit_s
    if keys.release_s is not None:
        enter_s = np.maximum(enter_s, keys.release_s)
    lives = [
        yard.clock.process(live(yard, passes, row, at_s, one_arrival=options.one_arrival))
        for row, at_s in enumerate(enter_s.tolist())
    ]
    for outage in yard.conditions.outages:
        yard.clock.process(lose_and_repair(yard, passes, outage))
    _run(yard, lives, until_s)
    end_s = until_s if math.isfinite(until_s) else yard.now_s
    return _schedule(
        yard,
        workload,
        cluster,
        shapes,
        scheduler=scheduler,
        end_s=end_s,
        records_gpus=options.records_gpus,
    )


def _run(yard: Yard, lives: list[simpy.Process], until_s: float) -> None:
    """Let time pass as long as anybody lives and anything will happen by the cut."""
    clock = yard.clock
    while math.isfinite(clock.peek()) and clock.peek() <= until_s:
        if clock.peek() > clock.now:
            if not any(process.is_alive for process in lives):
                return
            yard.tenants.pass_time(clock.peek() - clock.now)
        clock.step()


def _schedule(
    yard: Yard,
    workload: Workload,
    cluster: Cluster,
    shapes: Shapes,
    *,
    scheduler: str,
    end_s: float,
    records_gpus: bool,
) -> Schedule:
    """Write down what happened by the end."""
    runs = yard.runs
    for run in yard.running.values():
        run.end_s, run.wasted_s = end_s, run.overhead_until(end_s)
    first_s, last_s = np.full(len(workload), np.nan), np.full(len(workload), np.nan)
    for run in reversed(runs):  # the first segment of a job has the last word
        first_s[run.row] = run.start_s
        if run.cause == Cause.FINISHED:
            last_s[run.row] = run.end_s
    held = [run.holding.gpus if records_gpus else [] for run in runs]
    begin_s = float(workload.submit_s[0])
    return Schedule(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        start_s=first_s,
        end_s=last_s,
        outcome=_outcomes(yard, workload, shapes, last_s, end_s),
        segment_job=np.array([run.row for run in runs], dtype=np.int64),
        segment_start_s=np.array([run.start_s for run in runs], dtype=np.float64),
        segment_end_s=np.array([run.end_s for run in runs], dtype=np.float64),
        segment_gpu_offset=np.cumsum([0, *map(len, held)], dtype=np.int64),
        gpu_ids=np.array([gpu for gpus in held for gpu in gpus], dtype=np.int32),
        segment_cause=np.array([run.cause for run in runs], dtype=np.int8),
        segment_wasted_s=np.array([run.wasted_s for run in runs], dtype=np.float64),
        outages=tuple(outage for outage in yard.conditions.outages if outage.down_s <= end_s),
        horizon_s=(begin_s, max(end_s, begin_s)),
        engine="simpy",
        notes=notes_on(workload, cluster, shapes),
    )


def _outcomes(
    yard: Yard, workload: Workload, shapes: Shapes, last_s: npt.NDArray[np.float64], cut_s: float
) -> npt.NDArray[np.int8]:
    """Return how each job's simulation ended."""
    outcome = np.full(len(workload), Outcome.QUEUED, dtype=np.int8)
    outcome[workload.submit_s > cut_s] = Outcome.NOT_SUBMITTED
    outcome[list(yard.running)] = Outcome.RUNNING
    outcome[list(yard.failed)] = Outcome.FAILED
    outcome[~np.isnan(last_s)] = Outcome.FINISHED
    outcome[shapes.of_job < 0] = Outcome.UNPLACEABLE
    return outcome
