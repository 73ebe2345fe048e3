"""The simulator once more, as ordinary SimPy processes: short, readable and slow.

It follows the same rules as the compiled core and shares no code with it, so that each checks the
other. Read it to learn the rules, change it to try others (`--engine simpy`).

Every job is a process: it arrives, waits until it is told to go, runs, and gives its GPUs back.
Arrivals and completions ask for a scheduling pass; however many ask at one instant, one pass
follows. `Turn` says in which order things happen at one instant. Who is told to go is decided in
`reference_disciplines`, where it runs in `reference_yard`.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
import simpy
from simpy.events import EventPriority, ProcessGenerator

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference_disciplines import Rule, rule
from yardmaster.engine.reference_yard import Yard
from yardmaster.engine.replay import notes_on, outcomes
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.engine.setup import Options
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import Workload


class Turn(IntEnum):
    """Who goes first at one instant."""

    PASS_AT_ONCE = 1
    EARLY_ARRIVAL = 2
    COMPLETION = 3
    ARRIVAL = 4
    PASS = 5
    CUT = 6


class Moment(simpy.Event):
    """A timeout that knows its turn among the events of its instant; equal turns go by row."""

    def __init__(self, env: simpy.Environment, delay_s: float, turn: Turn, row: int = 0) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        # SimPy's own events have priority 0 or 1 and precede all of these.
        env.schedule(self, EventPriority((turn << 32) + row), delay_s)


class Passes:
    """Calls the discipline once per instant at which something happened."""

    def __init__(self, yard: Yard, discipline: Rule) -> None:
        self.yard = yard
        self.discipline = discipline
        self.count = 0
        self.due: Moment | None = None

    def ask(self, turn: Turn = Turn.PASS) -> None:
        """Have a pass at this instant; one that must be at once replaces one that can wait."""
        if self.due is None or turn == Turn.PASS_AT_ONCE:
            self.due = Moment(self.yard.env, 0.0, turn)
            self.due.callbacks.append(self._run)

    def _run(self, moment: simpy.Event) -> None:
        if moment is not self.due:  # replaced
            return
        self.due = None
        self.count += 1
        yard = self.yard
        in_order = yard.order.sort(list(yard.waiting), yard.now_s, self.count)
        if in_order:
            self.discipline(yard, in_order)


def live(
    yard: Yard, passes: Passes, row: int, submit_s: float, duration_s: float, *, one_arrival: bool
) -> ProcessGenerator:
    """Live one job's life: arrive, wait, run, leave."""
    yield Moment(yard.env, submit_s, Turn.EARLY_ARRIVAL if one_arrival else Turn.ARRIVAL, row)
    if row not in yard.gangs:  # asks for more than the cluster has: never queued
        passes.ask()
        return
    is_alone = not yard.waiting
    go = yard.enter(row)
    passes.ask(Turn.PASS_AT_ONCE if one_arrival and is_alone else Turn.PASS)
    yield go
    yield Moment(yard.env, duration_s, Turn.COMPLETION, row)
    yard.leave(row)
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
    shapes = shapes_of(workload, cluster)
    yard = Yard(workload, cluster, shapes, keys, options)
    passes = Passes(yard, rule(options.discipline))
    # Every arrival is set off at second 0: its delay is its time, so nothing is rounded.
    for row, submit_s in enumerate(workload.submit_s.tolist()):
        duration_s = float(workload.duration_s[row])
        job = live(yard, passes, row, submit_s, duration_s, one_arrival=options.one_arrival)
        yard.env.process(job)
    is_cut = math.isfinite(until_s)
    yard.env.run(until=Moment(yard.env, until_s, Turn.CUT) if is_cut else None)
    return _schedule(yard, workload, cluster, shapes, scheduler, records_gpus=options.records_gpus)


def _schedule(
    yard: Yard,
    workload: Workload,
    cluster: Cluster,
    shapes: Shapes,
    scheduler: str,
    *,
    records_gpus: bool,
) -> Schedule:
    """Write down what happened; the clock stands at the cut or at the last event."""
    runs, cut_s = yard.runs, yard.now_s
    rows = np.array([run.row for run in runs], dtype=np.int64)
    start_s, end_s = np.full(len(workload), np.nan), np.full(len(workload), np.nan)
    start_s[rows] = [run.start_s for run in runs]
    end_s[rows] = [run.end_s for run in runs]
    held = [run.gpus if records_gpus else [] for run in runs]
    return Schedule(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        start_s=start_s,
        end_s=end_s,
        outcome=outcomes(workload, shapes, start_s, end_s, cut_s),
        segment_job=rows,
        segment_start_s=start_s[rows],
        segment_end_s=np.where(np.isnan(end_s[rows]), cut_s, end_s[rows]),
        segment_gpu_offset=np.cumsum([0, *map(len, held)], dtype=np.int64),
        gpu_ids=np.array([gpu for gpus in held for gpu in gpus], dtype=np.int32),
        horizon_s=(float(workload.submit_s[0]), max(cut_s, float(workload.submit_s[0]))),
        engine="simpy",
        notes=notes_on(workload, shapes),
    )
