"""The SimPy reference: the queue, the jobs that run, and what starting and stopping one does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import simpy

from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference.clock import Clock, Moment, Turn
from yardmaster.engine.reference.floor import Floor, Room
from yardmaster.engine.reference.order import Order, Tenants
from yardmaster.engine.reference.placements import Placer
from yardmaster.engine.reference.progress import Job, Run
from yardmaster.engine.reference.rules import Gang, Plan, Rules, neutral_conditions
from yardmaster.engine.reference.sharing import choose_gpu
from yardmaster.engine.requests import Shapes
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause
from yardmaster.model.site import Sharing
from yardmaster.model.workload import Workload


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job would run: on fresh GPUs of some nodes, or on a GPU that others share."""

    plan: Plan
    beside: int | None = None
    """The shared GPU."""


class Yard:
    """The cluster, its queue and the jobs that run."""

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        shapes: Shapes,
        keys: OrderKeys,
        options: Options,
    ) -> None:
        self.clock = Clock()
        self.conditions = options.conditions or neutral_conditions(cluster, shapes)
        self.rules = Rules(self.conditions, cluster, shapes)
        self.floor = Floor(self.rules)
        self.tenants = Tenants(self.rules)
        seed = options.seed & 0xFFFFFFFF
        self.placer = Placer(self.floor, options.placement, seed)
        self.discipline = options.discipline
        self.order = Order(
            keys,
            seed,
            self.tenants,
            self.conditions.levels_s.tolist(),
            by_rounds=options.discipline == Discipline.TIMESLICE,
        )
        self.expects_truth = options.expected_s is None
        self.jobs = _jobs(workload, shapes, self.rules, options)
        """All that could ever run, by row."""
        self.over: dict[int, simpy.Event] = {row: self.clock.event() for row in self.jobs}
        """What tells each job that it has finished, or failed for good."""
        self.waiting: set[int] = set()
        self.running: dict[int, Run] = {}
        self.failed: set[int] = set()
        """Jobs that have lost their nodes too often."""
        self.runs: list[Run] = []
        """All segments, in order of start."""
        self.surprised = False
        """Whether a job will end, or has ended, at another moment than promises rest on."""

    @property
    def now_s(self) -> float:
        """The second it is."""
        return self.clock.now_s

    @property
    def room(self) -> Room:
        """What is free now."""
        return self.floor.room

    def gang(self, row: int) -> Gang:
        """Return what a job asks for."""
        return self.jobs[row].gang

    # Whose turn it is.

    def enter(self, row: int) -> None:
        """Put a job that arrives into the queue."""
        self.order.on_arrival(self.gang(row))
        self.waiting.add(row)

    def class_of(self, row: int) -> int | None:
        """Return 0 within the tenant's guarantee, 1 if the job borrows, None if it is held back."""
        gang = self.gang(row)
        is_elastic = self.discipline == Discipline.ELASTIC
        return self.tenants.class_of(gang, gang.least if is_elastic else gang.gpus)

    def key(self, row: int) -> float:
        """Return the key of a job that waits or runs."""
        return self.order.key(self.jobs[row], self.running.get(row), self.now_s)

    def in_order(self, rows: Iterable[int]) -> list[int]:
        """Return waiting jobs by class, key and row, without those that are held back."""
        classes = {row: self.class_of(row) for row in rows}
        ranks = [(rank, self.key(row), row) for row, rank in classes.items() if rank is not None]
        return [row for *_, row in sorted(ranks)]

    def first(self, rows: Iterable[int]) -> int | None:
        """Return the first of these jobs in order; None if there is none or all are held back."""
        return next(iter(self.in_order(rows)), None)

    def choices(self) -> Iterator[int]:
        """Yield every waiting job once: always the first in order of those that are left."""
        if not self.order.moves_within_a_pass:
            yield from self.in_order(self.waiting)
            return
        left = set(self.waiting)
        while (row := self.first(left)) is not None:
            left.remove(row)
            yield row

    # Where it could run.

    def place(self, row: int) -> Place | None:
        """Choose where a job runs if it starts now; None if it does not fit."""
        gang = self.gang(row)
        if not gang.is_fractional:
            return Place(self.planned(gang, self.room)) if self.room.fits(gang) else None
        option = choose_gpu(self.floor, self.placer, gang)
        if option is None or not self.room.has_power_for(gang):
            return None
        return Place({option.node: 1}, beside=option.gpu if option.is_shared else None)

    def planned(self, gang: Gang, room: Room) -> Plan:
        """Choose nodes in some room by the scheduler's own placement."""
        return self.placer.plan(gang, room.usable(gang))

    def planning_rate(self, gang: Gang, plan: Plan) -> float:
        """Speed with which the scheduler reckons when it has found this plan."""
        if self.placer.placement == Placement.RANDOM:
            return self.rules.least_rate(gang)
        return self.rules.rate(gang, plan)

    def queue_value_s(self, row: int) -> float:
        """Seconds on the reference GPU that the scheduler expects of a waiting job."""
        return self.jobs[row].queue_value_s(self.conditions.restore_s)

    def stoppable(self) -> list[Run]:
        """Return the running jobs that have had their quantum, by row."""
        quantum_s = self.conditions.quantum_s
        return [
            run for _, run in sorted(self.running.items()) if run.has_run(self.now_s, quantum_s)
        ]

    # Starting and stopping.

    def starts(self, row: int) -> bool:
        """Start the job if it fits now; say whether it did."""
        place = self.place(row)
        if place is not None:
            self.start(row, place)
        return place is not None

    def start(self, row: int, place: Place) -> None:
        """Take the GPUs, and go."""
        job = self.jobs[row]
        self.waiting.remove(row)
        if place.beside is None:
            holding = self.floor.take(job.gang, place.plan)
        else:
            holding = self.floor.join(job.gang, place.beside)
        job.rounds += 1
        run = Run(job, holding, self.now_s, job.overhead_s)
        self.tenants.book(job.gang, run.size)
        self.running[row] = run
        self.runs.append(run)
        self._set_speed(run)
        self._disturb_mates(run)
        self.surprised |= run.rate != 1.0 or run.overhead_s != 0.0

    def stop(self, row: int, cause: Cause) -> None:
        """Stop a job before its end, and put it back into the queue."""
        run = self.running[row]
        is_hard = cause == Cause.NODE_FAILED or (
            cause == Cause.PREEMPTED and not self.conditions.saves_on_preemption
        )
        run.stop(self.now_s, self.conditions, saves=not is_hard)
        self._vacate(run, cause)
        self.waiting.add(row)

    def complete(self, row: int) -> None:
        """Let a job go that has done its work."""
        run = self.running[row]
        run.wasted_s = run.overhead_s
        self._vacate(run, Cause.FINISHED)
        self.surprised |= run.end_s != run.expected_end_s
        self.order.on_completion(run.job)
        self.over[row].succeed()

    def _vacate(self, run: Run, cause: Cause) -> None:
        """End a segment and give its GPUs back."""
        del self.running[run.row]
        run.end_s, run.cause = self.now_s, cause
        run.job.held_s += run.end_s - run.start_s
        if run.alarm is not None and cause != Cause.FINISHED:
            self.clock.call_off(run.alarm)
        self.floor.give_back(run.holding)
        self.tenants.book(run.job.gang, run.size, sign=-1)
        self._disturb_mates(run)

    # Speed.

    def _set_speed(self, run: Run) -> None:
        """Reckon anew how fast a job runs and when it ends, from its last settling on."""
        job = run.job
        run.rate = self.rules.rate(job.gang, run.holding.plan, self._colocation(run))
        run.due_s = run.begin_s + job.left_s / run.rate
        run.expected_end_s = run.due_s
        if not self.expects_truth:
            run.expected_end_s = run.begin_s + job.expected_left_s(job.left_s) / run.rate
        if run.alarm is not None:
            self.clock.call_off(run.alarm)
        run.alarm = Moment(self.clock, run.due_s, Turn.COMPLETION, run.row)
        run.alarm.callbacks.append(lambda _: self.complete(run.row))

    def _mates(self, run: Run) -> list[Run]:
        """Return the other jobs on the same GPU that slow each other down."""
        (node, *_) = run.holding.plan
        if not run.holding.is_shared or self.rules.node_sharing[node] != Sharing.MPS:
            return []
        sharers = self.room.sharers.get(run.holding.gpus[0], {})
        return [self.running[row] for row in sorted(sharers) if row != run.row]

    def _colocation(self, run: Run) -> float:
        """Speed beside the least pleasant of the others on the GPU; alone it is 1."""
        pair, kind = self.conditions.pair, run.job.gang.kind
        return min(
            (float(pair[kind, mate.job.gang.kind]) for mate in self._mates(run)), default=1.0
        )

    def _disturb_mates(self, run: Run) -> None:
        """Somebody has come or gone: the others on the GPU run at another speed from now on."""
        for mate in self._mates(run):
            mate.settle(self.now_s, self.conditions.every_s)
            self._set_speed(mate)

    # Nodes that go and come.

    def lose(self, node: int) -> None:
        """Stop whatever runs on the node, and do without it until it is back."""
        for row in sorted(row for row, run in self.running.items() if node in run.holding.plan):
            self.stop(row, Cause.NODE_FAILED)
            job = self.jobs[row]
            job.failures += 1
            if job.failures > self.conditions.retries:
                self.waiting.remove(row)
                self.failed.add(row)
                self.over[row].succeed()
        self.floor.lose(node)

    def regain(self, node: int) -> None:
        """Have the node back, wholly free."""
        self.floor.regain(node)


def _jobs(workload: Workload, shapes: Shapes, rules: Rules, options: Options) -> dict[int, Job]:
    """Return each job's work and request; those that could never be placed are missing."""
    expected = workload.duration_s if options.expected_s is None else options.expected_s
    jobs = {}
    for row, shape in enumerate(shapes.of_job.tolist()):
        if shape >= 0:
            duration_s = float(workload.duration_s[row])
            gang = replace(rules.gangs[shape], row=row)
            jobs[row] = Job(gang, duration_s, float(expected[row]), duration_s, duration_s)
    return jobs
