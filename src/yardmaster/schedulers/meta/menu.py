"""Laying out a workload for a chooser: all schedulers of its menu in one simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from yardmaster.engine import state
from yardmaster.engine.choosing import places as at
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.engine.conditions import Conditions
from yardmaster.engine.layout import Simulation
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.engine.setup import lay_out
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.schedulers.fitness import objection
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.picking import KEPT_KINDS, make_room_for_all
from yardmaster.schedulers.simulation import at_rest, conditions_for
from yardmaster.schedulers.views import RunTimes, view_for

DISCIPLINES = (Discipline.STRICT, Discipline.SKIP, Discipline.COMMIT, Discipline.EASY)
"""What may happen, under a menu's schedulers, when a job does not fit."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedChoice:
    """One workload, ready for a chooser; see `engine.choosing.places`."""

    simulation: Simulation
    facts: FloatArray
    shapes: Shapes
    conditions: Conditions | None
    """What a real cluster does to the jobs; None for equal GPUs that never fail."""
    past: int
    """Spans of the recent past that are kept."""

    @property
    def is_real(self) -> bool:
        """Whether it needs the core for real clusters."""
        return self.conditions is not None

    @property
    def book_length(self) -> int:
        """Integers an environment needs beside the core's."""
        return at.BOOK + len(self.shapes.of_job)

    @property
    def purse_length(self) -> int:
        """Reals an environment needs beside the core's."""
        return at.PURSE + at.PAST * self.past + 2 * len(self.shapes.of_job)


@dataclass(frozen=True, slots=True, eq=False)
class Stakes:
    """What an episode is played for, by `engine.choosing.places.Term`."""

    weights: FloatArray
    """(terms,) weight of each term of the reward, in this episode's units."""
    tail_s: tuple[float, float] = (np.inf, np.inf)
    """Ages between which a job counts as old, seconds."""
    labels: tuple[float, ...] = ()
    """Numbers that name the regime."""
    horizon_s: float = np.inf
    """Second at which the episode is cut."""
    compared: FloatArray = field(default_factory=lambda: np.zeros(at.GRID + 1))
    """(GRID + 1,) rewards, up to evenly spaced seconds, of the scheduler to compare with."""
    compared_span_s: float = 0.0
    """The last of these seconds."""


NOTHING_AT_STAKE = Stakes(np.zeros(at.TERMS))


def members_of(menu: Sequence[str]) -> tuple[Scheduler, ...]:
    """Return the schedulers of a menu.

    Raises:
        UnknownNameError: if a name is unknown.
        YardmasterError: if one of them cannot stand on a menu, or they do not agree on where run
            times come from.
    """
    members = tuple(parse_scheduler(name) for name in menu)
    for member in members:
        if member.policy is not None or member.chooser is not None or member.solves:
            raise YardmasterError(f"{member} cannot stand on a menu: it has no keys.")
        if member.discipline not in DISCIPLINES:
            allowed = ", ".join(one.name.lower() for one in DISCIPLINES)
            raise YardmasterError(
                f"{member} cannot stand on a menu: of disciplines, only {allowed} can be changed"
                " while jobs run."
            )
    sources = {member.run_times for member in members if member.reads_run_times}
    if len(sources) > 1:
        raise YardmasterError(
            "The schedulers of a menu must agree on run times: all that read them with ~estimate,"
            f" or all without; got {', '.join(map(str, members))}."
        )
    return members


def run_times_of(members: Sequence[Scheduler], information: str) -> RunTimes:
    """Return where run times come from, for the schedulers of a menu and who chooses among them.

    Raises:
        YardmasterError: if the chooser would be shown other run times than its schedulers read.
    """
    sources = {member.run_times for member in members if member.reads_run_times}
    if information != "blind":
        sources.add(RunTimes.ESTIMATE if information == "estimate" else RunTimes.TRUE)
    if len(sources) > 1:
        raise YardmasterError(
            f"A chooser that is shown {information} run times cannot choose among schedulers that"
            " read others; write ~estimate behind each, or behind none."
        )
    return sources.pop() if sources else RunTimes.TRUE


def prepare_choice(
    workload: Workload,
    cluster: Cluster,
    sight: ChoiceSight,
    *,
    stakes: Stakes = NOTHING_AT_STAKE,
    seed: int = 0,
    records_gpus: bool = False,
) -> PreparedChoice:
    """Lay out a workload at its first instant.

    Raises:
        InvalidWorkloadError: if estimates are read and some job has none.
        YardmasterError: if a scheduler of the menu cannot be kept beside the others.
    """
    members = members_of(sight.menu)
    believed = run_times_of(members, sight.information)
    known_s = _run_times(workload, believed)
    keys = [_keys(member, workload, cluster, known_s) for member in members]
    conditions = _conditions(workload, cluster, members, keys, seed)
    shapes = shapes_of(workload, cluster)
    options = Options(
        discipline=Discipline.SKIP,
        placement=members[0].placement,
        expected_s=known_s if believed is RunTimes.ESTIMATE else None,
        seed=seed,
        conditions=conditions,
        lists_queue=True,
        records_gpus=records_gpus,
    )
    simulation = lay_out(workload, cluster, shapes, _main(keys), options)
    if conditions is not None:
        make_room_for_all(simulation, len(workload))
    menu_at = _append_menu(simulation, members, keys)
    shown_s = known_s if sight.knows_run_times else np.zeros(len(workload))
    facts = _facts(workload, cluster, shapes, shown_s, stakes)
    facts[at.MENU_AT] = menu_at
    return PreparedChoice(simulation, facts, shapes, conditions, sight.past)


def _run_times(workload: Workload, believed: RunTimes) -> FloatArray:
    if believed is RunTimes.TRUE:
        return workload.duration_s
    missing = np.flatnonzero(np.isnan(workload.estimate_s))
    if len(missing):
        raise InvalidWorkloadError(
            f"The menu reads estimates, but {len(missing)} of {len(workload)} jobs of"
            f" {workload.name!r} have none (first: row {missing[0]}, id {workload.id[missing[0]]})."
        )
    return workload.estimate_s


def _keys(
    member: Scheduler, workload: Workload, cluster: Cluster, known_s: FloatArray
) -> OrderKeys:
    """Return the keys of a scheduler's order, as they are while nobody is ever stopped."""
    order = member.order
    run_s = known_s if order.reads_run_time else None
    own = order.keys(view_for(order.name, workload, cluster, run_s))
    if _counts_progress(own.kind, cluster):
        raise YardmasterError(
            f"{member} cannot stand on a menu here: nodes of {cluster.name!r} fail, and the keys of"
            f" {order.name!r} change with what a job has done by then."
        )
    keys = at_rest(own)
    if keys.kind not in KEPT_KINDS or keys.rekey is not None or keys.release_s is not None:
        raise YardmasterError(
            f"{member} cannot stand on a menu: the keys of {order.name!r} change with tenants, with"
            " the running jobs, or in Python at every pass."
        )
    return keys


def _counts_progress(kind: OrderKind, cluster: Cluster) -> bool:
    """Whether keys change with what a job had done when its node failed."""
    failures, every_s = cluster.site.failures, cluster.site.checkpoints.every_s
    may_fail = len(failures.outages) > 0 or np.isfinite(failures.mtbf_h)
    is_saved = np.isfinite(every_s)
    counts = kind is OrderKind.ATTAINED or (kind is OrderKind.REMAINING and is_saved)
    return bool(may_fail and counts)


def _main(keys: Sequence[OrderKeys]) -> OrderKeys:
    """Return the keys to lay the simulation out with: those with a history, if there are any."""
    with_history = [one for one in keys if one.kind is OrderKind.HISTORY]
    groups = [one.group for one in with_history if one.group is not None]
    if any(not np.array_equal(one, groups[0]) for one in groups):
        raise YardmasterError("The schedulers of a menu must agree on whose history counts.")
    return with_history[0] if with_history else keys[0]


def _conditions(
    workload: Workload,
    cluster: Cluster,
    members: Sequence[Scheduler],
    keys: Sequence[OrderKeys],
    seed: int,
) -> Conditions | None:
    """Return what the cluster does to the jobs, if any scheduler of the menu must know."""
    found: Conditions | None = None
    for member, key in zip(members, keys, strict=True):
        conditions = conditions_for(workload, cluster, member, key, seed)
        if reason := objection(member, key, conditions):
            raise YardmasterError(f"{member} cannot run on {cluster.name!r}: {reason}.")
        found = found or conditions
    return found


def _append_menu(
    simulation: Simulation, members: Sequence[Scheduler], keys: Sequence[OrderKeys]
) -> int:
    """Put the menu and the keys of all its orders behind the core's tables.

    Return where the menu begins.
    """
    menu = np.zeros((len(members), at.MENU_FIELDS), dtype=np.int64)
    tables: list[FloatArray] = []
    end = len(simulation.reals)

    def place(table: FloatArray) -> int:
        nonlocal end
        tables.append(np.asarray(table, dtype=np.float64))
        begin, end = end, end + len(table)
        return begin

    nothing = place(np.zeros(len(keys[0].offset)))
    history = int(simulation.ints[state.HISTORY_KEY])
    for row, member, key in zip(menu, members, keys, strict=True):
        row[at.MENU_ORDER] = key.kind
        row[at.MENU_DISCIPLINE] = member.discipline
        row[at.MENU_PLACEMENT] = member.placement
        # All members that go by history share its table, which the core keeps up to date.
        is_history = key.kind is OrderKind.HISTORY
        row[at.MENU_OFFSET] = history if is_history else place(key.offset)
        row[at.MENU_RATE] = nothing if key.rate is None else place(key.rate)
        row[at.MENU_SINCE] = nothing if key.since is None else place(key.since)
        row[at.MENU_CLIP_LOW] = place(np.array(key.clip_s))
    menu_at = len(simulation.ints)
    simulation.ints = np.concatenate([simulation.ints, menu.ravel()])
    simulation.reals = np.concatenate([simulation.reals, *tables])
    return menu_at


def _facts(
    workload: Workload, cluster: Cluster, shapes: Shapes, shown_s: FloatArray, stakes: Stakes
) -> FloatArray:
    """Return the row of what is known of the episode from the start."""
    jobs = len(workload)
    facts = np.zeros(at.FACTS + at.FACT_TABLES * jobs)
    facts[at.HORIZON_S] = stakes.horizon_s
    facts[at.PLACEABLE] = max(int((shapes.of_job >= 0).sum()), 1)
    facts[at.TAIL_FROM_S], facts[at.TAIL_TO_S] = stakes.tail_s
    facts[at.WEIGHT_AT : at.WEIGHT_AT + at.TERMS] = stakes.weights
    for kind, gpu in enumerate(cluster.gpu_types[: at.MOST_TYPES]):
        facts[at.IDLE_W_AT + kind] = gpu.idle_w
        facts[at.EXTRA_W_AT + kind] = gpu.busy_w - gpu.idle_w
    facts[at.LABEL_AT : at.LABEL_AT + len(stakes.labels)] = stakes.labels
    facts[at.GRID_SPAN_S] = stakes.compared_span_s
    facts[at.GRID_AT : at.GRID_AT + at.GRID + 1] = stakes.compared
    tables = facts[at.FACTS :].reshape(-1, jobs)
    tables[at.RUN] = shown_s
    deadline = np.where(np.isnan(workload.deadline_s), np.inf, workload.deadline_s)
    tables[at.DEADLINE] = deadline
    tables[at.PRIORITY] = np.nan_to_num(workload.priority)
    latest = deadline - shown_s
    by_latest: IntArray = np.argsort(latest, kind="stable")
    tables[at.LATEST] = latest[by_latest]
    tables[at.LATEST_JOB] = by_latest
    tables[at.LATEST_RANK][by_latest] = np.arange(jobs)
    return facts
