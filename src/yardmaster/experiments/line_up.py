"""Who is compared: schedulers by name, the defaults for a cluster, and who cannot run there.

Everything here is settled before the first simulation: a misspelt name, or a scheduler that the
cluster does not allow, must not come to light after an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from yardmaster.engine.conditions import Conditions, conditions_of
from yardmaster.engine.replay import Compile
from yardmaster.engine.requests import shapes_of
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import POLICY_PREFIX, Scheduler, parse_scheduler
from yardmaster.schedulers.learned.catalogue import shipped_names
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.simulation import Compatibility, Engine, simulate

DEFAULT_SCHEDULERS = (
    "fifo+easy~estimate",
    "fifo+strict",
    "fifo+skip",
    "fifo+conservative~estimate",
    "slurm-multifactor+easy~estimate",
    "sjf+easy~estimate",
    "smallest-first+skip",
    "qssf+skip",
    "random-feasible+skip",
    "sjf+skip",
    "sjf+easy",
    "saf+easy",
)
"""What is compared when nothing is named; the first, what most clusters run, is the baseline."""

FOR_UNEQUAL_GPUS = ("fifo+easy@fastest~estimate", "sjf+easy@fastest")
FOR_PRICE_CURVES = ("off-peak+easy@power",)
FOR_ELASTIC_JOBS = ("fifo+elastic",)
FOR_STOPPING = ("las-2d+preemptive", "srpt+preemptive")

MOST_UNCOMPILED = 50_000
"""Jobs up to which schedulers are tried out without the compiled core."""


def given_workloads(workloads: Workload | Sequence[Workload]) -> list[Workload]:
    """Return the workloads that a caller gave as one or several.

    Raises:
        YardmasterError: if there are none, or names stand where jobs should.
    """
    several = [workloads] if isinstance(workloads, Workload | str) else list(workloads)
    if not several:
        raise YardmasterError("A comparison needs at least one workload.")
    for each in several:
        if not isinstance(each, Workload):
            raise YardmasterError(
                f"{each!r} is not a workload; load the jobs first: load_workload({each!r})."
            )
    return several


def hardest(workloads: Sequence[Workload]) -> Workload:
    """Return the workload that most schedulers could object to: one without estimates, if any."""
    return next((each for each in workloads if not each.has_estimates), workloads[0])


def given_cluster(cluster: Cluster | str) -> Cluster:
    """Return the cluster that a caller gave as such or by name."""
    return cluster if isinstance(cluster, Cluster) else load_cluster(cluster)


def parse_schedulers(names: Sequence[str | Scheduler | Order]) -> list[Scheduler]:
    """Read all names; those that mean the same scheduler count once.

    Raises:
        YardmasterError: with every name that cannot be read, if there are any, or if none is given.
    """
    found: dict[str, Scheduler] = {}
    mistakes: list[YardmasterError] = []
    for name in names:
        try:
            scheduler = parse_scheduler(name)
            found.setdefault(str(scheduler), scheduler)
        except YardmasterError as error:
            mistakes.append(error)
    _raise_all(mistakes, f"{len(mistakes)} schedulers cannot be read")
    if not found:
        raise YardmasterError("A comparison needs at least one scheduler.")
    return list(found.values())


def refuse_unfit(
    schedulers: Sequence[Scheduler],
    workload: Workload,
    cluster: Cluster,
    *,
    seed: int = 0,
    compatibility: Compatibility = "none",
    announce: Callable[[str], None] | None = None,
) -> None:
    """Make sure that every scheduler can run on this cluster.

    Raises:
        YardmasterError: naming every scheduler that cannot, with the reason.
    """
    # Compiling takes longer than to prepare so few jobs, and many more would not be worth the wait.
    compile_core: Compile = "never" if len(workload) <= MOST_UNCOMPILED else "auto"
    mistakes: list[tuple[Scheduler, YardmasterError]] = []
    for scheduler in schedulers:
        try:
            # A simulation that is cut at once is refused exactly when a whole one would be.
            simulate(
                workload, cluster, scheduler, seed=seed, until_s=0.0,
                compatibility=compatibility, compile_core=compile_core, announce=announce,
            )  # fmt: skip
        except YardmasterError as error:
            mistakes.append((scheduler, error))
    _raise_all(_alike(mistakes), f"{len(mistakes)} schedulers cannot run here")


def _alike(mistakes: Sequence[tuple[Scheduler, YardmasterError]]) -> list[YardmasterError]:
    """Return one mistake for all schedulers that cannot run for the same reason."""
    alike: dict[str, list[tuple[Scheduler, YardmasterError]]] = {}
    for scheduler, error in mistakes:
        alike.setdefault(str(error).removeprefix(f"{scheduler} "), []).append((scheduler, error))
    return [
        group[0][1]
        if len(group) == 1
        else YardmasterError(f"{', '.join(str(who) for who, _ in group)}: each {reason}")
        for reason, group in alike.items()
    ]


def _raise_all(mistakes: Sequence[YardmasterError], heading: str) -> None:
    """Raise the only mistake as it is, several as one error with a line each."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        lines = "\n".join(f"  - {mistake}" for mistake in mistakes)
        are_names = all(isinstance(mistake, UnknownNameError) for mistake in mistakes)
        kind = UnknownNameError if are_names else YardmasterError
        raise kind(f"{heading}:\n{lines}")


def default_schedulers(
    workloads: Sequence[Workload],
    cluster: Cluster,
    *,
    engine: Engine = "core",
    compatibility: Compatibility = "none",
) -> tuple[str, ...]:
    """Return what is compared when nothing is named: the usual dozen, fitted to the cluster.

    Who cannot run there is left out; what the cluster has beyond equal GPUs brings schedulers that
    make use of it. Where jobs carry no estimates, true durations are read instead. Policies that
    come with Yardmaster follow where GPUs are equal and jobs rigid, as those they learnt from.
    """
    first = workloads[0]
    conditions = conditions_of(first, cluster, shapes_of(first, cluster))
    names = [*DEFAULT_SCHEDULERS, *_additions(first, cluster.site, conditions)]
    if not all(workload.has_estimates for workload in workloads):
        names = [name.removesuffix("~estimate") for name in names]
    distinct = tuple(dict.fromkeys(names))
    if conditions is None and len(distinct) <= len(DEFAULT_SCHEDULERS):
        # Nothing here that any of them could object to; policies run on the core alone.
        if engine == "core" and compatibility == "none":
            return (*distinct, *_fitting_policies(workloads, cluster))
        return distinct
    return tuple(name for name in distinct if _can_run(name, first, cluster))


def _additions(workload: Workload, site: Site, conditions: Conditions | None) -> list[str]:
    """Return schedulers for what goes beyond equal GPUs and rigid jobs."""
    names: list[str] = []
    if conditions is not None and (np.ptp(conditions.speed, axis=1) > 0).any():
        names += FOR_UNEQUAL_GPUS
    if len(set(site.power.price_per_kwh)) > 1:
        names += FOR_PRICE_CURVES
    if (workload.min_gpus > 0).any() or (workload.max_gpus > 0).any():
        names += FOR_ELASTIC_JOBS
    if site.checkpoints != Checkpoints() or site.quantum_s > 0:
        names += FOR_STOPPING
    return names


def _fitting_policies(workloads: Sequence[Workload], cluster: Cluster) -> list[str]:
    """Return the policies that come with Yardmaster and can run here.

    One that reads estimates cannot, for instance, where a job has none.
    """
    hard = hardest(workloads)
    names = [f"{POLICY_PREFIX}{name}" for name in shipped_names()]
    return [name for name in names if _can_run(name, hard, cluster)]


def _can_run(name: str, workload: Workload, cluster: Cluster) -> bool:
    try:
        refuse_unfit([parse_scheduler(name)], workload, cluster)
    except YardmasterError:
        return False
    return True
