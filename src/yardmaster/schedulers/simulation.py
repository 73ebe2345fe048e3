"""Running a named scheduler on a workload and a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from yardmaster.engine.replay import Compile, replay
from yardmaster.engine.setup import Options
from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.names import unknown
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.views import RunTimes, view_for

Engine = Literal["core", "simpy"]
Compatibility = Literal["none", "rlscheduler"]
ENGINES = ("core", "simpy")
COMPATIBILITIES = ("none", "rlscheduler")


def simulate(
    workload: Workload,
    cluster: Cluster,
    scheduler: str | Scheduler | Order,
    *,
    seed: int = 0,
    until_s: float = math.inf,
    engine: Engine = "core",
    compile_core: Compile = "auto",
    compatibility: Compatibility = "none",
    announce: Callable[[str], None] | None = None,
) -> Schedule:
    """Simulate a scheduler and return the schedule it makes.

    Args:
        workload: the jobs.
        cluster: the machines, empty at the first submission.
        scheduler: a name such as `sjf+easy@pack`, or a Scheduler, or an Order.
        seed: seed of random orders and placements.
        until_s: cut the simulation after this second of the workload's clock.
        engine: `core`, or `simpy` for the readable reference.
        compile_core: whether the core runs compiled; `auto` decides by the number of jobs.
        compatibility: `rlscheduler` moves time as RLScheduler does (arrivals before completions,
            one at a time while nobody waits), to reproduce its tables.
        announce: told when the core must be compiled first.

    Raises:
        InvalidWorkloadError: if the scheduler needs estimates that the workload does not have.
        YardmasterError: for names and options that do not exist.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if compatibility not in COMPATIBILITIES:
        raise unknown("compatibility mode", compatibility, COMPATIBILITIES)
    if not until_s >= 0:  # NaN too
        raise YardmasterError(f"until_s must be a second of the clock, 0 or later, got {until_s}.")
    chosen = parse_scheduler(scheduler)
    estimates = _estimates(workload, chosen)
    true_or_estimated = workload.duration_s if estimates is None else estimates
    run_s = true_or_estimated if chosen.order.reads_run_time else None
    keys = chosen.order.keys(view_for(chosen.order.name, workload, cluster, run_s))
    options = Options(
        discipline=chosen.discipline,
        placement=chosen.placement,
        expected_s=estimates,
        seed=seed,
        one_arrival=compatibility == "rlscheduler",
    )
    if engine == "simpy":
        from yardmaster.engine.reference import simulate_reference

        return simulate_reference(
            workload, cluster, keys, options, scheduler=str(chosen), until_s=until_s
        )
    return replay(
        workload,
        cluster,
        keys,
        options,
        scheduler=str(chosen),
        until_s=until_s,
        compile_core=compile_core,
        announce=announce,
    )


def _estimates(workload: Workload, scheduler: Scheduler) -> FloatArray | None:
    """Return the estimates the scheduler reads, or None if it reads true run times or none."""
    if not scheduler.reads_run_times or scheduler.run_times is RunTimes.TRUE:
        return None
    missing = np.flatnonzero(np.isnan(workload.estimate_s))
    if len(missing):
        raise InvalidWorkloadError(
            f"{scheduler} reads estimates, but {len(missing)} of {len(workload)} jobs of"
            f" {workload.name!r} have none (first: row {missing[0]}, id {workload.id[missing[0]]})."
            " Use the scheduler without ~estimate to read true durations."
        )
    return workload.estimate_s
