"""Does a user's own order keep the promises the engine relies on?

    from yardmaster.testing import check_order

    def test_my_order():
        check_order("my_orders.py:mine")

The checks run on small random workloads built to be awkward: equal submissions, jobs of no length,
missing users and deadlines, a single job. Everything is seeded, so a failure repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from yardmaster.engine.orders import OrderKeys
from yardmaster.errors import ConformanceError, EntitlementError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import IntArray, Labels, Workload
from yardmaster.schedulers.language import Scheduler, order_of, parse_scheduler
from yardmaster.schedulers.orders import ORDERS, KeyFunction, Order
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import JobsView, RunTimes, view_for
from yardmaster.testing.verdicts import Conformance, State, Verdict

Columns = dict[str, npt.NDArray[Any]]

ENTITLED = "reads only what it is entitled to"
USABLE = "gives one number per job, and never NaN"
GENTLE = "leaves the jobs as they are"
STEADY = "gives the same keys when asked again"
BY_JOB = "judges a job by what it is, not by its row"
BY_NAME = "does not depend on how users, tenants and kinds are numbered"
RUNS = "leads to simulations that run"
REPEATS = "leads to the same schedule when a simulation is repeated"
POSSIBLE = "leads to schedules in which every job runs once, on GPUs of its own"
RULES = (ENTITLED, USABLE, GENTLE, STEADY, BY_JOB, BY_NAME, RUNS, REPEATS, POSSIBLE)
"""In the order in which they are tried on every example."""


class BrokenPromiseError(ConformanceError):
    """A broken promise of an order, with the rule that it breaks."""

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        super().__init__(message)


def check_order(order: str | Order | KeyFunction, *, examples: int = 25) -> None:
    """Check an order on `examples` small workloads.

    The order must give one number per job and never NaN, give the same keys when asked again, read
    only what it is entitled to, leave the jobs as they are, judge a job by what it is and not by
    its row or by how names are numbered, and lead to simulations in which every job runs once.

    Args:
        order: a name in the scheduler language, an `Order`, or a function of (jobs) or (jobs, now).
        examples: how many workloads to try.

    Raises:
        ConformanceError: at the first promise broken, with the example in which it broke.
        YardmasterError: if there is no such order.
    """
    for _ in _examples_tried(_scheduler(order), examples):
        pass


def judge_order(order: str | Order | KeyFunction, *, examples: int = 25) -> Conformance:
    """Say rule by rule what `check_order` finds; after a broken one the rest is not tried.

    Raises:
        YardmasterError: if there is no such order.
    """
    scheduler = _scheduler(order)
    broken, reason = "", ""
    try:
        for _ in _examples_tried(scheduler, examples):
            pass
    except BrokenPromiseError as error:
        broken, reason = error.rule, str(error)
    verdicts: list[Verdict] = []
    for rule in RULES:
        is_after = bool(verdicts) and verdicts[-1].state != "kept"
        state: State = "broken" if rule == broken else "not tried" if is_after else "kept"
        verdicts.append(Verdict(rule, state, reason if rule == broken else ""))
    return Conformance("order", scheduler.order.name, tuple(verdicts))


def _examples_tried(scheduler: Scheduler, examples: int) -> Iterator[None]:
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite keys are allowed, NaN is found
        for number in range(examples):
            example = _Example.draw(scheduler, number, examples)
            example.check_keys()
            example.check_simulation()
            yield


def _scheduler(order: str | Order | KeyFunction) -> Scheduler:
    if isinstance(order, str | Order):
        return parse_scheduler(order)
    registered = [known for known in ORDERS.values() if known.function is order]
    name = getattr(order, "__name__", type(order).__name__)
    return parse_scheduler(registered[0] if registered else order_of(order, name))


@dataclass(frozen=True, slots=True, eq=False)
class _Example:
    """One workload on which the order is put to the test."""

    scheduler: Scheduler
    workload: Workload
    cluster: Cluster
    label: str

    @classmethod
    def draw(cls, scheduler: Scheduler, number: int, examples: int) -> _Example:
        workload = _workload(number)
        most = int(workload.gpus.max())
        cluster = Cluster.pool(most) if number % 2 else Cluster.of("2x V100:1", f"T4:{most}")
        return cls(scheduler, workload, cluster, f"example {number + 1} of {examples}")

    def fail(self, rule: str, what: str, cause: Exception | None = None) -> NoReturn:
        """Say which promise was broken, by whom and where."""
        name = self.scheduler.order.name
        raise BrokenPromiseError(rule, f"The order {name!r} {what} ({self.label}).") from cause

    def _rest(self, error: Exception) -> str:
        """Return what an error says about the order, which need not be named again."""
        named = f"The order {self.scheduler.order.name!r} "
        text = str(error).removesuffix(".")
        return f"it {text.removeprefix(named)}" if text.startswith(named) else text

    def check_keys(self) -> None:
        """Ask for keys in several ways that must not make a difference."""
        dice = np.random.default_rng(len(self.workload))
        for view, now in self._moments():
            before = _columns(view)
            keys = self._keys(view, now)
            if not _same(before, _columns(view), 0.0):
                self.fail(GENTLE, "modifies the jobs it is given; work on a copy")
            if not _same(keys, self._keys(view, now), 0.0):
                self.fail(STEADY, "gives other keys when it is asked again")
            rows = dice.permutation(len(view))
            moved = {name: key[rows] for name, key in keys.items()}
            if not _same(moved, self._keys(view.take(rows), now), 1e-9):
                self.fail(BY_JOB, "gives a job another key when it stands in another row")
            if not _same(keys, self._keys(_renumbered(view), now), 1e-9):
                self.fail(BY_NAME, "depends on how users, tenants or kinds are numbered")

    def _moments(self) -> Iterator[tuple[JobsView, float]]:
        """Yield what the order may be asked: all jobs, or those waiting at several moments."""
        everybody = _writable(self._view())
        if not self.scheduler.order.is_asked_every_pass:
            yield everybody, 0.0
            return
        for now in np.unique(self.workload.submit_s)[[0, -1]].tolist():
            yield everybody.take(np.flatnonzero(self.workload.submit_s <= now)), now

    def _view(self) -> JobsView:
        workload, order = self.workload, self.scheduler.order
        is_true = self.scheduler.run_times is RunTimes.TRUE
        run_s = workload.duration_s if is_true else workload.estimate_s
        return view_for(order.name, workload, self.cluster, run_s if order.reads_run_time else None)

    def _keys(self, view: JobsView, now: float) -> Columns:
        """Ask for keys at one moment, as the columns that the engine would get."""
        order = self.scheduler.order
        if order.is_asked_every_pass:
            function = order.function  # asked once, with this very view and this moment
            order = replace(order, function=lambda jobs: function(jobs, now))
        try:
            keys = order.keys(view)
        except EntitlementError as error:
            self.fail(ENTITLED, f"reads what it is not entitled to: {self._rest(error)}", error)
        except YardmasterError as error:
            self.fail(USABLE, f"gives no usable keys: {self._rest(error)}", error)
        return _key_columns(keys)

    def check_simulation(self) -> None:
        """Simulate twice: the same must happen, and all of it must be possible."""
        try:
            first, second = (
                simulate(self.workload, self.cluster, self.scheduler, compile_core="never")
                for _ in range(2)
            )
        except YardmasterError as error:
            self.fail(RUNS, f"breaks the simulation: {self._rest(error)}", error)
        if first.event_log() != second.event_log():
            self.fail(REPEATS, "leads to another schedule when the simulation is repeated")
        if problem := impossible(first):
            self.fail(POSSIBLE, f"leads to an impossible schedule: {problem}")


def impossible(schedule: Schedule) -> str:
    """Return what is impossible about a complete schedule without preemption, or nothing."""
    ran = np.bincount(schedule.segment_job, minlength=len(schedule.workload))
    for row in np.flatnonzero(ran != 1)[:1]:
        return f"job {schedule.workload.id[row]} ran {ran[row]} times"
    return given_twice(schedule)


def given_twice(schedule: Schedule) -> str:
    """Return which GPU serves two jobs at a time, or nothing."""
    held = np.diff(schedule.segment_gpu_offset)
    owner = np.repeat(np.arange(len(held)), held)
    for gpu in np.unique(schedule.gpu_ids).tolist():
        mine = owner[schedule.gpu_ids == gpu]
        mine = mine[np.argsort(schedule.segment_start_s[mine], kind="stable")]
        if np.any(schedule.segment_end_s[mine[:-1]] > schedule.segment_start_s[mine[1:]]):
            return f"GPU {gpu} serves two jobs at a time"
    return ""


def _workload(seed: int) -> Workload:
    """Draw a few jobs that collide in time, with gaps in every optional column."""
    dice = np.random.default_rng(seed)
    jobs = 1 if seed == 0 else int(dice.integers(2, 14))
    duration = dice.integers(0 if seed % 3 == 0 else 1, 30, jobs).astype(np.float64)
    submit = np.sort(dice.integers(0, 20, jobs)).astype(np.float64)
    return Workload.of(
        submit_s=submit,
        duration_s=duration,
        estimate_s=np.maximum(1.0, duration * dice.uniform(0.5, 2.0, jobs)),
        gpus=dice.integers(1, 9, jobs),
        priority=dice.integers(-1, 4, jobs),
        deadline_s=np.where(dice.random(jobs) < 0.3, np.nan, submit + dice.integers(1, 60, jobs)),
        user=dice.choice(["ann", "bob", "cem", ""], jobs),
        tenant=dice.choice(["blue", "red", ""], jobs),
        kind=dice.choice(["bert", "resnet", ""], jobs),
        name=f"conformance example {seed + 1}",
    )


def _writable(view: JobsView) -> JobsView:
    """Return the view with columns of its own, so that changes to them can be seen."""
    return view.take(np.arange(len(view)))


def _columns(view: JobsView) -> Columns:
    """Copy everything an order can reach through the view."""
    columns: Columns = {}
    for field in fields(view):
        value = getattr(view, field.name)
        if isinstance(value, Labels):
            value = value.codes
        if isinstance(value, np.ndarray):
            columns[field.name] = value.copy()
    return columns


def _renumbered(view: JobsView) -> JobsView:
    """Return the same jobs with the names of users, tenants and kinds numbered backwards."""
    return replace(
        view,
        user=_backwards(view.user),
        tenant=_backwards(view.tenant),
        kind=_backwards(view.kind),
    )


def _backwards(labels: Labels) -> Labels:
    codes = np.where(labels.codes < 0, -1, len(labels.names) - 1 - labels.codes)
    return Labels(codes.astype(np.int32), labels.names[::-1])


def _key_columns(keys: OrderKeys) -> Columns:
    columns = {"key": keys.offset, "rate": keys.rate, "since": keys.since, "group": keys.group}
    return {name: column for name, column in columns.items() if column is not None}


def _same(first: Columns, second: Columns, tolerance: float) -> bool:
    """Whether two sets of columns hold the same values, up to rounding."""
    return first.keys() == second.keys() and all(
        _same_groups(first[name], second[name])
        if name == "group"
        else np.allclose(first[name], second[name], rtol=tolerance, atol=tolerance, equal_nan=True)
        for name in first
    )


def _same_groups(first: IntArray, second: IntArray) -> bool:
    """Whether the same jobs are together; which number a group bears does not matter."""
    return np.array_equal(first[:, None] == first, second[:, None] == second)
