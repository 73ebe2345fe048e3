"""Laying out a workload for a policy that picks its jobs one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.engine.conditions import Conditions
from yardmaster.engine.layout import Simulation
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.features import CARDS
from yardmaster.engine.picking.layout import Floats
from yardmaster.engine.picking.sight import Sight
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.engine.setup import lay_out
from yardmaster.engine.state import Discipline, OrderKind, Placement
from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.names import unknown
from yardmaster.schedulers.language import PLACEMENTS, Scheduler, find_order
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.simulation import at_rest, conditions_for
from yardmaster.schedulers.views import view_for

KEPT_KINDS = frozenset({OrderKind.FIXED, OrderKind.AGEING, OrderKind.SHUFFLED, OrderKind.HISTORY})
"""Kinds of keys that the window can be sorted by."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One workload, ready for a policy to pick its jobs; see `engine.picking.places`."""

    simulation: Simulation
    facts: FloatArray
    cards: Floats
    shapes: Shapes
    conditions: Conditions | None
    """What a real cluster does to the jobs; None for equal GPUs that never fail."""
    is_fixed: bool
    """Whether the keys of the window's order never change."""

    @property
    def is_real(self) -> bool:
        """Whether it needs the core for real clusters."""
        return self.conditions is not None

    @property
    def book_length(self) -> int:
        """Integers an environment needs beside the core's."""
        return at.BOOK + len(self.shapes.of_job) + 2 * len(self.shapes.gpus)

    @property
    def purse_length(self) -> int:
        """Reals an environment needs beside the core's."""
        return at.PURSE + 2 * len(self.shapes.of_job) + 2 * int(self.facts[at.TENANT_COUNT])


def prepare(
    workload: Workload,
    cluster: Cluster,
    sight: Sight,
    *,
    seed: int = 0,
    records_gpus: bool = False,
    horizon_s: float = np.inf,
    baseline: float = np.nan,
) -> Prepared:
    """Lay out a workload at its first instant.

    Raises:
        InvalidWorkloadError: if the policy is shown estimates and some job has none.
        YardmasterError: if the window's order cannot be kept, or reads what it may not.
    """
    known_s = known_run_times(workload, sight)
    keys = keys_of(sight.window_order, workload, cluster, known_s)
    scheduler = Scheduler(
        find_order(sight.window_order), Discipline.SKIP, _placement(sight.placement)
    )
    conditions = conditions_for(workload, cluster, scheduler, keys, seed)
    shapes = shapes_of(workload, cluster)
    options = Options(
        discipline=Discipline.SKIP,
        placement=scheduler.placement,
        expected_s=known_s if sight.information == "estimate" else None,
        seed=seed,
        conditions=conditions,
        lists_queue=True,
        records_gpus=records_gpus,
    )
    simulation = lay_out(workload, cluster, shapes, keys, options)
    if conditions is not None:
        make_room_for_all(simulation, len(workload))
    return Prepared(
        simulation=simulation,
        facts=_facts(workload, cluster, sight, shapes, horizon_s=horizon_s, baseline=baseline),
        cards=_cards(workload, cluster, known_s),
        shapes=shapes,
        conditions=conditions,
        is_fixed=keys.kind in {OrderKind.FIXED, OrderKind.HISTORY},
    )


def known_run_times(workload: Workload, sight: Sight) -> FloatArray | None:
    """Return run times as the policy is shown them, seconds; None for a blind one."""
    if not sight.knows_run_times:
        return None
    if sight.information == "clairvoyant":
        return workload.duration_s
    missing = np.flatnonzero(np.isnan(workload.estimate_s))
    if len(missing):
        raise InvalidWorkloadError(
            f"The policy is shown estimates, but {len(missing)} of {len(workload)} jobs of"
            f" {workload.name!r} have none (first: row {missing[0]}, id {workload.id[missing[0]]})."
        )
    return workload.estimate_s


def keys_of(
    name: str, workload: Workload, cluster: Cluster, known_s: FloatArray | None
) -> OrderKeys:
    """Return the keys of an order for a policy that knows these run times.

    Raises:
        YardmasterError: if the order reads run times the policy is not shown, or has keys that
            only Python, tenants or running jobs can tell.
    """
    order: Order = find_order(name)
    if order.reads_run_time and known_s is None:
        raise YardmasterError(
            f"The order {name!r} reads run times, which a blind policy is not shown."
        )
    run_s = known_s if order.reads_run_time else None
    keys = at_rest(order.keys(view_for(order.name, workload, cluster, run_s)))
    if keys.kind not in KEPT_KINDS or keys.rekey is not None or keys.release_s is not None:
        raise YardmasterError(
            f"The order {name!r} cannot sort the window: its keys change with tenants, with the"
            " running jobs, or in Python at every pass."
        )
    return keys


def _placement(name: str) -> Placement:
    if name not in PLACEMENTS or name == "milp":
        raise unknown("placement", name, [known for known in PLACEMENTS if known != "milp"])
    return Placement[name.upper()]


def make_room_for_all(simulation: Simulation, jobs: int) -> None:
    """Make room for all that can be recorded: a call of the core must never ask for more."""
    from yardmaster.engine import state

    outages = int(simulation.ints[state.OUTAGES])
    gpus = int(simulation.ints[state.GPUS])
    segments = 4 * jobs + 4 * gpus + outages * gpus
    while int(simulation.ints[state.SEGMENT_ROOM]) < segments:
        simulation.make_room()
    while int(simulation.ints[state.RECORD_ROOM]) < segments + 4 * gpus:
        simulation.make_room()


def _facts(
    workload: Workload,
    cluster: Cluster,
    sight: Sight,
    shapes: Shapes,
    *,
    horizon_s: float,
    baseline: float,
) -> FloatArray:
    """Return the row of what is known of the jobs from the start."""
    jobs = len(workload)
    known_s = known_run_times(workload, sight)
    facts = np.zeros(at.FACTS + (at.RANK_KEY + len(sight.ranks)) * jobs)
    placeable = shapes.of_job >= 0
    work = workload.duration_s * workload.gpus
    facts[at.WORK] = max(float(work[placeable].sum()), 1e-9)
    facts[at.PLACEABLE] = max(int(placeable.sum()), 1)
    facts[at.HORIZON_S] = horizon_s
    is_known = np.isfinite(horizon_s) and sight.features != "gpu_optimizer"
    factor = sight.span_factor if sight.features == "gpu_optimizer" else 2.0
    usual_s = float(workload.submit_s[-1]) + factor * facts[at.WORK] / cluster.gpus
    # A replay has no horizon: what a policy sees must not depend on one.
    facts[at.EPISODE_SPAN_S] = horizon_s if is_known else max(usual_s, 1.0)
    facts[at.BASELINE] = baseline
    tables = facts[at.FACTS :].reshape(-1, jobs)
    tables[at.RUN] = workload.duration_s if known_s is None else known_s
    tables[at.PRIORITY] = np.nan_to_num(workload.priority)
    tables[at.DEADLINE] = workload.deadline_s
    codes = workload.tenant.codes.astype(np.int64)
    owners, tables[at.TENANT] = np.unique(codes, return_inverse=True)
    facts[at.TENANT_COUNT] = len(owners) if (codes >= 0).any() else 0
    for place, name in enumerate(sight.ranks):
        if name == sight.window_order:  # a job's place in the window tells; keys may change
            tables[at.RANK_KEY + place] = np.nan
            continue
        keys = keys_of(name, workload, cluster, known_s)
        if keys.kind is not OrderKind.FIXED:
            raise YardmasterError(
                f"Ranks under {name!r} cannot be shown: its keys change. (Those of the window's own"
                " order can.)"
            )
        tables[at.RANK_KEY + place] = keys.offset
    return facts


def _cards(workload: Workload, cluster: Cluster, known_s: FloatArray | None) -> Floats:
    """Return the part of each job's standard token that never changes, job after job."""
    cards = np.zeros((len(workload), CARDS), dtype=np.float32)
    gpus = workload.gpus.astype(np.float64)
    priority = np.nan_to_num(workload.priority)
    cards[:, 0] = 1.0
    cards[:, 1] = np.minimum(np.log2(1.0 + gpus) / np.log2(1.0 + cluster.gpus), 1.0)
    cards[:, 2] = np.minimum(gpus / cluster.gpus, 1.0)
    if known_s is not None:
        longest = Sight().longest_s
        cards[:, 3] = np.minimum(np.log1p(known_s) / np.log1p(longest), 1.0)
        area = np.log1p(known_s * gpus) / np.log1p(longest * cluster.gpus)
        cards[:, 4] = np.minimum(area, 1.0)
    cards[:, 5] = priority / (1.0 + np.abs(priority))
    return cards.ravel()
