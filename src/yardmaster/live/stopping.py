"""Which running jobs a scheduler would stop so that a waiting one starts now.

Asked as everything else is: by simulating the present, with the one waiting job let in and the
scheduler's own rules for who may stop whom. What must not be stopped is put back as if it were
about to end, or with a key before everybody's: no waiting job stands before that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.errors import YardmasterError
from yardmaster.live.present import BLOCK, LEAST_REST_S, TICK_S, Present, present_of
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import BoolArray, FloatArray, IntArray
from yardmaster.model.schedule import Cause, Schedule
from yardmaster.model.site import Checkpoints, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import Scheduler
from yardmaster.schedulers.orders import Order
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import JobsView, view_for

_SITE = Site(checkpoints=Checkpoints(restore_s=1.0), equal_speeds=True)
"""Stopping costs the same for every GPU, so that few are stopped; what it costs really is weighed
by who asks."""


@dataclass(frozen=True, slots=True)
class _Keeping(Order):
    """An order as it was when jobs were submitted, in which some jobs are never behind anybody."""

    kept: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    submitted_s: FloatArray = field(default_factory=lambda: np.zeros(0))
    run_s: FloatArray = field(default_factory=lambda: np.zeros(0))

    def keys(self, jobs: JobsView) -> OrderKeys:
        """Return the keys; by what is left where the order goes by that."""
        keys = Order.keys(self, replace(jobs, submit_s=self.submitted_s))
        if keys.kind is OrderKind.REMAINING:
            return keys
        known = None if jobs._run_s is None else self.run_s  # noqa: SLF001 - not for the order to see
        keys = Order.keys(self, replace(jobs, submit_s=self.submitted_s, _run_s=known))
        return replace(keys, offset=np.where(self.kept, -math.inf, keys.offset))


def check_may_stop(scheduler: Scheduler) -> None:
    """Refuse a scheduler whose way of stopping jobs cannot be asked about a present.

    Raises:
        YardmasterError: saying why, and what to use.
    """
    instead = "use srpt+preemptive, or another order whose keys stay as they are"
    if scheduler.discipline is not Discipline.PREEMPTIVE:
        name = scheduler.discipline.name.lower()
        raise YardmasterError(
            f"{scheduler} cannot decide here: {name} is for simulation; {instead}."
        )
    one = Workload.of(submit_s=[0.0], duration_s=[1.0], estimate_s=[1.0], deadline_s=[2.0])
    run_s = one.estimate_s if scheduler.order.reads_run_time else None
    keys = scheduler.order.keys(view_for(scheduler.order.name, one, Cluster.of("1x A100:1"), run_s))
    is_kept = keys.kind in {OrderKind.REMAINING, OrderKind.FIXED}
    if not is_kept or keys.rekey is not None or keys.release_s is not None:
        raise YardmasterError(
            f"{scheduler} cannot decide here: its keys depend on a past that nobody has seen;"
            f" {instead}."
        )


def ask_stops(
    state: State, scheduler: Scheduler, row: int, *, stoppable: BoolArray, seed: int = 0
) -> tuple[int, ...]:
    """Return rows of running jobs to stop so that a waiting one starts now; none if that is no way.

    Args:
        state: the moment; what others are to be given now must be blocked.
        scheduler: who decides; one that `check_may_stop` admits.
        row: the waiting job.
        stoppable: (jobs,) who may be stopped at all.
        seed: of random placements.
    """
    held = np.ones(len(state.jobs), dtype=np.bool_)
    held[row] = False
    present = present_of(replace(state, is_held=held), scheduler, at_once=True)
    parts, first = present.parts, present.first
    on_one = np.bincount(parts[parts != BLOCK], minlength=len(state.jobs)) == 1
    kept = np.zeros(len(present.jobs), dtype=np.bool_)
    kept[:first] = (parts == BLOCK) | ~(stoppable & on_one)[parts]
    schedule = simulate(
        _about_to_end(present, kept),
        replace(state.cluster, site=_SITE),
        _keeping(state, scheduler, present, kept),
        seed=seed,
        until_s=present.now_s + TICK_S / 2,
    )
    begun = np.flatnonzero(schedule.segment_job == first)
    if not present.is_there(schedule) or not len(begun):
        return ()
    # Who is stopped may stop others in turn: of interest are those whose GPUs the job is given.
    taken = _gpus_of(schedule, int(begun[0]))
    stopped = np.flatnonzero(schedule.segment_cause == Cause.PREEMPTED).tolist()
    rows = sorted(
        int(parts[schedule.segment_job[segment]])
        for segment in stopped
        if schedule.segment_job[segment] < first and taken & _gpus_of(schedule, segment)
    )
    # Some placements put running jobs back onto other nodes than they hold, or at other times.
    may = all(row != BLOCK and stoppable[row] for row in rows)
    return tuple(rows) if may and _has_room(state, schedule, taken, rows) else ()


def _has_room(state: State, schedule: Schedule, taken: set[int], rows: Sequence[int]) -> bool:
    """Whether the nodes that a job is given have its GPUs once these jobs are gone, not before."""
    nodes = schedule.cluster.gpu_node[np.array(sorted(taken), dtype=np.int64)]
    going = state.holdings[np.isin(state.holdings[:, 0], rows)]
    freed = np.bincount(going[:, 1], going[:, 2], minlength=state.cluster.nodes)
    wanted = np.bincount(nodes, minlength=state.cluster.nodes)
    lacking = wanted - state.free_gpus
    return bool((lacking <= freed).all() and (lacking > 0).any())


def _gpus_of(schedule: Schedule, segment: int) -> set[int]:
    begin, end = schedule.segment_gpu_offset[segment : segment + 2]
    return set(schedule.gpu_ids[begin:end].tolist())


def _about_to_end(present: Present, kept: BoolArray) -> Workload:
    """Return the jobs; those that are kept have next to nothing left, but do not end now."""
    jobs, first = present.jobs, present.first
    until_now_s = present.now_s - jobs.submit_s
    rests = kept & (jobs.duration_s > until_now_s)
    rests[first:] = False
    duration_s = np.where(rests, until_now_s + LEAST_REST_S, jobs.duration_s)
    estimate_s = np.where(rests, duration_s, jobs.estimate_s)
    return replace(jobs, duration_s=duration_s, estimate_s=estimate_s)


def _keeping(state: State, scheduler: Scheduler, present: Present, kept: BoolArray) -> Scheduler:
    rows: IntArray = np.concatenate([present.parts, present.rows])
    shift_s = float(present.submitted_s[-1] - state.jobs.submit_s[rows[-1]])
    order = scheduler.order
    keeping = _Keeping(
        order.name, order.function, order.reads_run_time, order.formula, order.source,
        order.discipline, kept, state.jobs.submit_s[rows] + shift_s, state.jobs.duration_s[rows],
    )  # fmt: skip
    return replace(scheduler, order=keeping)
