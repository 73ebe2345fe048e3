"""Running a named scheduler on a workload and a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from yardmaster.engine.conditions import Conditions, conditions_of, reference_gpu
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.replay import Compile, replay
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.state import Discipline, OrderKind, Placement
from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.names import unknown
from yardmaster.schedulers.fitness import objection
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.views import RunTimes, view_for

if TYPE_CHECKING:
    from yardmaster.schedulers.learned.policy import LearnedPolicy
    from yardmaster.schedulers.meta.choosers import Chooser
    from yardmaster.schedulers.milp import MilpDecider


class Decision(Protocol):
    """One decision of a trained policy or chooser, for people who ask why."""

    def record(self, workload: Workload, /) -> dict[str, Any]:
        """Return it as plain values."""


Engine = Literal["core", "simpy"]
Compatibility = Literal["none", "rlscheduler"]
ENGINES = ("core", "simpy")
COMPATIBILITIES = ("none", "rlscheduler")


def simulate(
    workload: Workload,
    cluster: Cluster | str,
    scheduler: str | Scheduler | Order,
    *,
    seed: int = 0,
    until_s: float = math.inf,
    engine: Engine = "core",
    compile_core: Compile = "auto",
    compatibility: Compatibility = "none",
    announce: Callable[[str], None] | None = None,
    why: Callable[[Decision], None] | None = None,
) -> Schedule:
    """Simulate a scheduler and return the schedule it makes.

    Args:
        workload: the jobs.
        cluster: the machines, empty at the first submission; or what `load_cluster` takes.
        scheduler: a name such as `sjf+easy@pack`, or a Scheduler, or an Order.
        seed: seed of random orders and placements.
        until_s: cut the simulation after this second of the workload's clock.
        engine: `core`, or `simpy` for the readable reference.
        compile_core: whether the core runs compiled; `auto` decides by the number of jobs.
        compatibility: `rlscheduler` moves time as RLScheduler does (arrivals before completions,
            one at a time while nobody waits), to reproduce its tables.
        announce: told when the core must be compiled first.
        why: told of every decision of a trained policy: candidates, scores, what was legal.

    Raises:
        InvalidWorkloadError: if the scheduler needs estimates that the workload does not have.
        YardmasterError: for names and options that do not exist.
    """
    if not isinstance(workload, Workload):
        raise YardmasterError(
            f"{workload!r} is not a workload; load the jobs first: load_workload({workload!r})."
        )
    cluster = cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if compatibility not in COMPATIBILITIES:
        raise unknown("compatibility mode", compatibility, COMPATIBILITIES)
    if not until_s >= 0:  # NaN too
        raise YardmasterError(f"until_s must be a second of the clock, 0 or later, got {until_s}.")
    until_s = float(until_s)  # a whole number would have the core compiled for it anew
    chosen = parse_scheduler(scheduler)
    if chosen.policy is not None:
        if engine == "simpy":
            raise YardmasterError(
                f"{chosen} runs on the core; the SimPy reference has no policies."
            )
        if compatibility != "none":
            raise YardmasterError(f"{chosen} moves time as it was trained to, not {compatibility}.")
        return _simulate_policy(
            workload,
            cluster,
            chosen.policy,
            chosen,
            seed=seed,
            until_s=until_s,
            compiled=compile_core != "never",
            announce=announce,
            why=why,
        )
    if chosen.chooser is not None:
        if engine == "simpy" or compatibility != "none":
            raise YardmasterError(f"{chosen} runs on the core alone, and moves time as it does.")
        return _simulate_chooser(
            workload,
            cluster,
            chosen.chooser,
            chosen,
            seed=seed,
            until_s=until_s,
            compiled=compile_core != "never",
            announce=announce,
            why=why,
        )
    if why is not None:
        raise YardmasterError(f"{chosen} goes by keys; only policies and choosers can say why.")
    return _simulate_order(
        workload,
        cluster,
        chosen,
        seed=seed,
        until_s=until_s,
        engine=engine,
        compile_core=compile_core,
        compatibility=compatibility,
        announce=announce,
    )


def _simulate_order(
    workload: Workload,
    cluster: Cluster,
    chosen: Scheduler,
    *,
    seed: int,
    until_s: float,
    engine: Engine,
    compile_core: Compile,
    compatibility: Compatibility,
    announce: Callable[[str], None] | None,
) -> Schedule:
    """Let an order's keys decide who is next."""
    estimates = _estimates(workload, chosen)
    true_or_estimated = workload.duration_s if estimates is None else estimates
    run_s = true_or_estimated if chosen.order.reads_run_time else None
    keys = chosen.order.keys(view_for(chosen.order.name, workload, cluster, run_s))
    conditions = conditions_for(workload, cluster, chosen, keys, seed)
    if reason := objection(chosen, keys, conditions):
        raise YardmasterError(f"{chosen} cannot run on {cluster.name!r}: {reason}.")
    if compatibility == "rlscheduler" and conditions is not None:
        raise YardmasterError(
            "compatibility rlscheduler moves time for equal GPUs only; set equal_speeds, and leave"
            f" out what {chosen} or {cluster.name!r} have beyond that."
        )
    decider = _decider(chosen)
    options = Options(
        discipline=chosen.discipline,
        placement=chosen.placement,
        expected_s=estimates,
        seed=seed,
        one_arrival=compatibility == "rlscheduler",
        conditions=conditions,
        decide=decider,
    )
    if conditions is None:
        keys = at_rest(keys)
    if engine == "simpy":
        from yardmaster.engine.reference import simulate_reference

        schedule = simulate_reference(
            workload, cluster, keys, options, scheduler=str(chosen), until_s=until_s
        )
    else:
        schedule = replay(
            workload,
            cluster,
            keys,
            options,
            scheduler=str(chosen),
            until_s=until_s,
            compile_core=compile_core,
            announce=announce,
        )
    notes = remarks(workload, cluster, chosen, conditions)
    notes += decider.notes() if decider is not None else ()
    return replace(schedule, notes=schedule.notes + notes)


def _simulate_policy(
    workload: Workload,
    cluster: Cluster,
    policy: LearnedPolicy,
    scheduler: Scheduler,
    *,
    seed: int,
    until_s: float,
    compiled: bool,
    announce: Callable[[str], None] | None,
    why: Callable[[Decision], None] | None,
) -> Schedule:
    """Let a trained policy pick the jobs."""
    from yardmaster.schedulers.learned.driving import drive_policy

    schedule, conditions = drive_policy(
        workload,
        cluster,
        policy,
        placement=scheduler.placement.name.lower(),
        called=str(scheduler),
        seed=seed,
        until_s=until_s,
        compiled=compiled,
        announce=announce,
        why=why,
    )
    notes = remarks(workload, cluster, scheduler, conditions)
    return replace(schedule, notes=schedule.notes + notes)


def _simulate_chooser(
    workload: Workload,
    cluster: Cluster,
    chooser: Chooser,
    scheduler: Scheduler,
    *,
    seed: int,
    until_s: float,
    compiled: bool,
    announce: Callable[[str], None] | None,
    why: Callable[[Decision], None] | None,
) -> Schedule:
    """Let a chooser change the scheduler while jobs run."""
    from yardmaster.schedulers.meta.driving import drive_chooser

    schedule, conditions = drive_chooser(
        workload,
        cluster,
        chooser,
        called=str(scheduler),
        seed=seed,
        until_s=until_s,
        compiled=compiled,
        announce=announce,
        why=why,
    )
    notes = remarks(workload, cluster, scheduler, conditions)
    return replace(schedule, notes=schedule.notes + notes)


DEFAULT_QUANTUM_S = 300.0
"""How long a turn is where the site says nothing and the scheduler takes turns, seconds."""


def conditions_for(
    workload: Workload, cluster: Cluster, scheduler: Scheduler, keys: OrderKeys, seed: int
) -> Conditions | None:
    """Return what the cluster does to the jobs, or None if this scheduler need not know."""
    by_tenant = keys.kind in {OrderKind.SHARE, OrderKind.USAGE}
    is_needed = (
        by_tenant
        or scheduler.discipline > Discipline.CONSERVATIVE
        or scheduler.placement > Placement.RANDOM
        or scheduler.solves
        or keys.release_s is not None
    )
    conditions = conditions_of(
        workload,
        cluster,
        shapes_of(workload, cluster, by_tenant=by_tenant),
        is_needed=is_needed,
        by_tenant=by_tenant,
        seed=seed,
        levels_s=np.array(keys.levels_s),
    )
    takes_turns = keys.kind == OrderKind.ATTAINED or scheduler.discipline is Discipline.TIMESLICE
    if conditions is not None and takes_turns and conditions.quantum_s == 0:
        conditions = replace(conditions, quantum_s=DEFAULT_QUANTUM_S)
    return conditions


def at_rest(keys: OrderKeys) -> OrderKeys:
    """Return the keys of orders by progress as they are while nobody is ever stopped."""
    if keys.kind in {OrderKind.REMAINING, OrderKind.ATTAINED}:
        return OrderKeys.fixed(keys.offset)
    return keys


def _decider(scheduler: Scheduler) -> MilpDecider | None:
    if not scheduler.solves:
        return None
    from yardmaster.schedulers.milp import MilpDecider

    return MilpDecider()


def remarks(
    workload: Workload, cluster: Cluster, scheduler: Scheduler, conditions: Conditions | None
) -> tuple[str, ...]:
    """Say which rules of real clusters shaped the schedule, and which were left alone."""
    notes = []
    if conditions is not None and (conditions.speed != 1.0).any():
        reference = reference_gpu(cluster).name
        notes.append(
            f"run times depend on the GPU type; durations count as measured on {reference},"
            " or on the first type a job names"
        )
    stops = scheduler.discipline > Discipline.CONSERVATIVE
    if conditions is not None and stops and conditions.save_s + conditions.restore_s == 0:
        notes.append("stopping, moving and resizing jobs costs no time: the site sets no costs")
    if conditions is not None and conditions.outages:
        notes.append(f"{len(conditions.outages):,} node failures listed or drawn (seeded)")
    notes += _strangers(workload, cluster, conditions)
    if scheduler.order.name == "off-peak" and len(cluster.site.power.price_per_kwh) < 2:
        notes.append(
            "off-peak waits for nothing here: the site's [power] has no price_per_kwh curve"
        )
    elastic = int(np.count_nonzero((workload.min_gpus > 0) | (workload.max_gpus > 0)))
    if elastic and scheduler.discipline is not Discipline.ELASTIC:
        notes.append(f"{elastic:,} elastic jobs keep their number of GPUs; +elastic resizes them")
    return tuple(notes)


def _strangers(workload: Workload, cluster: Cluster, conditions: Conditions | None) -> list[str]:
    """Name quotas without jobs and kinds that nobody measured: often misspelt, never an error."""
    notes = []
    owners = set(workload.tenant.names)
    idle = [quota.tenant for quota in cluster.site.quotas if quota.tenant not in owners]
    if idle:
        notes.append(f"no job belongs to {_some(idle)}, whom the site gives quotas")
    if conditions is not None and (conditions.speed != 1.0).any():
        from yardmaster.model.speeds import is_measured

        unknown_kinds = [kind for kind in workload.kind.names if not is_measured(kind)]
        if unknown_kinds:
            notes.append(
                f"nobody measured jobs of kind {_some(unknown_kinds)}; they run at the ratio of"
                " peak FP32 (see `yardmaster list kinds`)"
            )
    return notes


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _estimates(workload: Workload, scheduler: Scheduler) -> FloatArray | None:
    """Return the estimates the scheduler reads, or None if it reads true run times or none."""
    if not scheduler.reads_run_times or scheduler.run_times is RunTimes.TRUE:
        return None
    missing = np.flatnonzero(np.isnan(workload.estimate_s))
    if len(missing):
        raise InvalidWorkloadError(
            f"{scheduler} reads estimates, but {len(missing)} of {len(workload)} jobs of"
            f" {workload.name!r} {'has' if len(missing) == 1 else 'have'} none (first: row"
            f" {missing[0]}, id {workload.id[missing[0]]}). Let `yardmaster workload predict FILE"
            " --keep-existing -o NEW.parquet` write estimates for them, or use the scheduler"
            " without ~estimate to read true durations."
        )
    return workload.estimate_s
