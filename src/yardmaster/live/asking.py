"""Asking a scheduler about the present: an order, a trained policy, or a chooser."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.state import Discipline, OrderKind
from yardmaster.experiments.eta import ResumedOrder
from yardmaster.live.present import Present, present_of
from yardmaster.live.state import State
from yardmaster.model.columns import FloatArray, IntArray
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.learned.driving import Why, drive_policy
from yardmaster.schedulers.meta.driving import WhyScheduler, drive_chooser
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import view_for

RANKED_PICKS = 64
"""How many of a policy's next picks are simulated to rank the queue; the rest keeps its order."""
PROMISED_JOBS = 1_000
"""How many jobs, from the first in order, `conservative` promises GPUs to; others do not start."""
_MOMENT_S = 2.0**-11
"""Simulations stop so long after now: nothing else happens in between."""

Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a scheduler says: rows of the state in order, their scores, and who starts where."""

    order: IntArray
    scores: FloatArray
    starts: Sequence[tuple[int, Places]]
    chosen: str

    @classmethod
    def nothing(cls, name: str) -> Answer:
        """Return the answer where nobody waits."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), (), name)


def ask_order(state: State, scheduler: Scheduler, *, seed: int) -> Answer:
    """Ask a scheduler that goes by keys."""
    present = present_of(state, scheduler, at_once=True)
    keys = keys_now(state, present, _resumed(scheduler, present), seed)
    asked = present
    if scheduler.discipline is Discipline.CONSERVATIVE and len(keys) > PROMISED_JOBS:
        asked = present_of(_first_of(state, present, keys), scheduler, at_once=True)
    schedule = simulate(
        asked.jobs,
        state.cluster,
        _resumed(scheduler, asked),
        seed=seed,
        until_s=asked.now_s + _MOMENT_S,
        compile_core="always",
    )
    return _ranked(present, keys, asked.begun(schedule), str(scheduler))


def _resumed(scheduler: Scheduler, present: Present) -> Scheduler:
    """Return the scheduler with an order for which jobs are as old as they really are."""
    order = scheduler.order
    resumed = ResumedOrder(
        order.name, order.function, order.reads_run_time, order.formula,
        order.source, order.discipline, present.submitted_s,
    )  # fmt: skip
    return replace(scheduler, order=resumed)


def _first_of(state: State, present: Present, keys: FloatArray) -> State:
    """Return the state with only the first jobs in order let in."""
    behind = present.rows[np.argsort(keys, kind="stable")[PROMISED_JOBS:]]
    held = state.is_held.copy()
    held[behind] = True
    return replace(state, is_held=held)


def _ranked(
    present: Present, keys: FloatArray, starts: Sequence[tuple[int, Places]], chosen: str
) -> Answer:
    best = np.argsort(keys, kind="stable")
    return Answer(present.rows[best], -keys[best], starts, chosen)


def keys_now(state: State, present: Present, scheduler: Scheduler, seed: int) -> FloatArray:
    """Return (waiting,) the keys of the waiting jobs at this second; the lowest goes first."""
    order, jobs = scheduler.order, present.jobs
    run_s = jobs.estimate_s if order.reads_run_time else None
    keys = order.keys(view_for(order.name, jobs, state.cluster, run_s))
    rows = np.arange(present.first, len(jobs))
    if keys.rekey is not None:
        return keys.rekey(rows, present.now_s)
    if keys.kind is OrderKind.SHUFFLED:
        return np.random.default_rng(seed).random(len(rows))
    if keys.kind in {OrderKind.SHARE, OrderKind.USAGE}:
        return _tenants_gpus(present)
    return _evaluated(keys, rows, present.now_s)


def _evaluated(keys: OrderKeys, rows: IntArray, now_s: float) -> FloatArray:
    """Return keys that are numbers, or numbers that change with age."""
    offset = keys.offset[rows]
    if keys.rate is None or keys.since is None:
        return offset
    age_s = np.clip(now_s - keys.since[rows], *keys.clip_s)
    return np.asarray(offset + keys.rate[rows] * age_s)


def _tenants_gpus(present: Present) -> FloatArray:
    """Return (waiting,) the GPUs that each job's tenant holds now."""
    codes = present.jobs.tenant.codes.astype(np.int64) + 1
    held = np.bincount(codes[: present.first], present.jobs.gpus[: present.first],
                       minlength=int(codes.max(initial=0)) + 1)  # fmt: skip
    held[0] = 0.0  # nobody's: what is out of reach is nobody's share
    return np.asarray(held[codes[present.first :]], dtype=np.float64)


class _EnoughError(Exception):
    """As many picks as were asked for have been seen."""


def ask_policy(state: State, scheduler: Scheduler, *, seed: int, picks: int) -> Answer:
    """Ask a trained policy: what it starts now, and which jobs it would pick next."""
    policy = scheduler.policy
    assert policy is not None  # noqa: S101
    present = present_of(state, scheduler, at_once=False)
    placement = scheduler.placement.name.lower()
    name = str(scheduler)
    schedule, _ = drive_policy(
        present.jobs, state.cluster, policy, placement=placement, called=name, seed=seed,
        until_s=present.now_s + _MOMENT_S, put_back=present.first,
    )  # fmt: skip
    if not present.is_there(schedule):
        return _instead_of_policy(state, scheduler, seed)
    starts = present.begun(schedule)
    seen: list[Why] = []

    def collect(why: Why) -> None:
        seen.append(why)
        if len(seen) >= picks:
            raise _EnoughError

    if picks:
        with contextlib.suppress(_EnoughError):
            drive_policy(
                present.jobs, state.cluster, policy, placement=placement, called=name, seed=seed,
                put_back=present.first, why=collect,
            )  # fmt: skip
    window = replace(scheduler, order=parse_scheduler(policy.sight.window_order).order)
    keys = keys_now(state, present, window, seed)
    queue = present.rows[np.argsort(keys, kind="stable")]
    order, scores = _picked(present, queue, seen, [row for row, _ in starts])
    return Answer(order, scores, starts, name)


def _instead_of_policy(state: State, scheduler: Scheduler, seed: int) -> Answer:
    """Let the order of its window decide where a policy would not put running jobs back.

    One that may wait though a job fits might do so; then nothing it says is about the present.
    """
    assert scheduler.policy is not None  # noqa: S101
    order = parse_scheduler(f"{scheduler.policy.sight.window_order}+skip").order
    return ask_order(state, replace(scheduler, order=order, policy=None), seed=seed)


def _picked(
    present: Present, queue: IntArray, seen: Sequence[Why], begun: Sequence[int]
) -> tuple[IntArray, FloatArray]:
    """Return the order of a policy's picks, then of its window; scores where it gave one."""
    most = int(queue.max()) + 1
    score, is_picked = np.full(most, np.nan), np.zeros(most, dtype=np.bool_)
    picked = list(begun)
    for why in seen:
        rows = present.rows[why.jobs - present.first]
        for row, value in zip(rows.tolist(), why.scores[:-1].tolist(), strict=True):
            if math.isnan(score[row]) and math.isfinite(value):
                score[row] = value
        if why.chosen >= 0:
            picked.append(int(present.rows[why.chosen - present.first]))
    first = np.array(list(dict.fromkeys(picked)), dtype=np.int64)
    is_picked[first] = True
    order = np.concatenate([first, queue[~is_picked[queue]]])
    return order, score[order]


def ask_chooser(state: State, scheduler: Scheduler, *, seed: int) -> Answer:
    """Ask who chooses among schedulers; the order is that of the scheduler it chooses now."""
    chooser = scheduler.chooser
    assert chooser is not None  # noqa: S101
    present = present_of(state, scheduler, at_once=False)
    seen: list[WhyScheduler] = []
    schedule, _ = drive_chooser(
        present.jobs, state.cluster, chooser, called=str(scheduler), seed=seed,
        until_s=present.now_s + _MOMENT_S, why=seen.append,
    )  # fmt: skip
    chosen = seen[-1].menu[seen[-1].chosen] if seen else chooser.sight.menu[0]
    keys = keys_now(state, present, parse_scheduler(chosen), seed)
    return _ranked(present, keys, present.begun(schedule), chosen)
