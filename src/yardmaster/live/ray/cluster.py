"""A Ray cluster as a live system: what waits, what runs where, and starting jobs on its nodes."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decision
from yardmaster.live.local.attempts import VANISHED
from yardmaster.live.local.commands import Command, Commands
from yardmaster.live.local.node import job_table
from yardmaster.live.ray.access import RayAccess
from yardmaster.live.ray.fates import (
    CANNOT_START,
    ENDED,
    LOST,
    NEVER_RAN,
    STOPPED,
    Fate,
    Journal,
    Outcome,
    Trial,
)
from yardmaster.live.ray.machines import Machine, Machines
from yardmaster.live.ray.orders import Order
from yardmaster.live.ray.reservation import is_busy
from yardmaster.live.state import State, selected
from yardmaster.model.columns import IntArray

LOOK_EVERY_S = 0.5
HURRY_S = 0.1
BOOKS_LAG_S = 1.5
"""So long after GPUs were given back, Ray's books may still say that they are reserved."""
FREED_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Launch:
    """Start a job on a node."""

    row: int
    job: str
    node: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Launched:
    """What became of a launch."""

    job: str
    outcome: str
    """done, failed or skipped."""
    detail: str = ""

    def record(self) -> dict[str, Any]:
        """Return it as the audit log holds it."""
        return {
            "operation": "start", "job": self.job, "outcome": self.outcome, "detail": self.detail
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened: to a job, or (without one) something that is worth telling."""

    event: str
    job: Command | None = None
    attempt: int = 0
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Kept:
    """GPUs whose job is over, and which are not known to be really free yet."""

    node: str
    gpus: int
    reservation: Any
    ticket: Any = None
    who: str = ""
    """Who is still there, in words."""


class RayCluster:
    """The jobs of a workload on the nodes of a Ray cluster; see `decision.Backend`."""

    def __init__(
        self,
        commands: Commands,
        access: RayAccess,
        journal: Journal,
        clock: LiveClock,
        *,
        machines: Machines,
        order_of: Callable[[Command, int, str], Order],
        start_wait_s: float,
        loss_wait_s: float,
    ) -> None:
        """Take up the workload where the run's folder says it is.

        Args:
            commands: the jobs.
            access: the cluster.
            journal: what was sent to it and what is known of that.
            clock: the run's clock.
            machines: its nodes.
            order_of: makes the order of a job's attempt (number) on a node.
            start_wait_s: how long Ray may take to give GPUs that it says are free.
            loss_wait_s: how long after a loss a job without a living node on its host is left
                alone before it is tried elsewhere.
        """
        self.commands, self.clock = commands, clock
        self._access, self._journal, self._order_of = access, journal, order_of
        self._start_wait_s, self._loss_wait_s = start_wait_s, loss_wait_s
        self.machines = machines
        self._table = job_table(commands)
        self._row_of = {job.id: row for row, job in enumerate(commands.jobs)}
        self._submit_s = np.array([job.submit_s for job in commands.jobs])
        self.fates = [Fate() for _ in commands.jobs]
        self._kept: list[Kept] = []
        self._news: list[News] = []
        self._holds_back = False
        self._looked_s = -math.inf
        self._hurry_until_s = -math.inf

    def take_up(self) -> None:
        """Find out what an earlier runner has made of the jobs, and go on from there."""
        there: set[str] | None = None
        for row, job in enumerate(self.commands.jobs):
            self._journal.know(job)
            for trial in self._journal.trials(row, job):
                if there is None:
                    run = trial.order.run
                    there = set(self._access.submissions(run))
                self._take_up(trial, job, is_there=trial.order.submission in there)

    def _take_up(self, trial: Trial, job: Command, *, is_there: bool) -> None:
        fate, order = self.fates[trial.row], trial.order
        fate.next_number = order.attempt + 1
        trial.reservation = self._access.find(order.submission) if is_there else None
        outcome = self._journal.outcome(order)
        if outcome is not None:
            self._tell_outcome(trial, job, outcome)
            if trial.reservation is not None:
                self._keep(trial)
            return
        trial.found_again = True
        fate.trial = trial
        if trial.reservation is not None:  # starting is harmless if it was started before
            self._wait_for(trial, "starting", trial.reservation.start.remote(order))
        else:
            self._wait_for(trial, "unsure", None)

    # observe → plan → apply

    def observe(self) -> State:
        """Return who waits and who runs; jobs in back-off, or of unsure fate, are held."""
        now_s = self.clock.time_s()
        rows = np.array(
            [
                row
                for row in range(int(np.searchsorted(self._submit_s, now_s, side="right")))
                if not self.fates[row].is_over
            ],
            dtype=np.int64,
        )
        fates = [self.fates[row] for row in rows]
        places = [None if one.trial is None else self._place_of(one.trial) for one in fates]
        trials = [
            one.trial if place is not None else None
            for one, place in zip(fates, places, strict=True)
        ]
        held = [
            trial is None and (one.trial is not None or one.not_before_s > now_s)
            for one, trial in zip(fates, trials, strict=True)
        ]
        holdings = [
            (number, place, trial.order.gpus)
            for number, (trial, place) in enumerate(zip(trials, places, strict=True))
            if trial is not None
        ]
        since_s = [math.nan if trial is None else trial.since_s for trial in trials]
        return State(
            time_s=max(now_s, max((s for s in since_s if not math.isnan(s)), default=0.0)),
            jobs=selected(self._table, rows),
            since_s=np.array(since_s, dtype=np.float64),
            is_held=np.array(held, dtype=np.bool_),
            holdings=np.array(holdings, dtype=np.int64).reshape(-1, 3),
            blocked=self._blocked(),
            cluster=self.machines.cluster,
            node_names=tuple(one.name for one in self.machines.all),
        )

    def _place_of(self, trial: Trial) -> int | None:
        """Return the node on which an attempt holds GPUs, None if it holds none that we know of."""
        return self.machines.number(trial.order.node) if trial.has_gpus else None

    def _blocked(self) -> IntArray:
        """Return (nodes,) GPUs out of reach, besides those of `holdings`."""
        ours, kept = np.zeros((2, len(self.machines.all)), dtype=np.int64)
        for trial in self.trials():
            if (place := self._place_of(trial)) is not None:
                ours[place] += trial.order.gpus
        for one in self._kept:
            if (place := self.machines.number(one.node)) is not None:
                kept[place] += one.gpus
        return self.machines.blocked(ours + kept, kept)

    def plan(self, state: State, decision: Decision) -> list[Launch]:
        """Return which jobs to start where; a job is one command, so it starts on one node."""
        planned = []
        for start in decision.starts:
            job = str(state.jobs.id[start.row])
            (node, gpus), *others = start.nodes
            if not others:
                planned.append(Launch(self._row_of[job], job, state.node_names[node], gpus))
        return planned

    def apply(self, operations: Sequence[Launch]) -> list[Launched]:
        """Send jobs to their nodes; return what became of each."""
        return [self._launch(operation) for operation in operations]

    def restore(self) -> None:
        """Leave the cluster as it was found: let go of everything that is ours."""
        for trial in self.trials():
            if trial.reservation is not None:
                self._access.release(trial.reservation)

    def _launch(self, operation: Launch) -> Launched:
        job, fate = self.commands.jobs[operation.row], self.fates[operation.row]
        if self._holds_back or fate.trial is not None or fate.is_over:
            return Launched(job.id, "skipped", "it need not start any more")
        machine = self.machines.named(operation.node)
        if machine is None or not machine.is_usable:
            return Launched(job.id, "skipped", f"node {operation.node} is away")
        order = self._order_of(job, fate.next_number, machine.name)
        now_s = self.clock.time_s()
        self._journal.submitted(order, machine.id, machine.host, now_s)
        fate.next_number += 1
        trial = Trial(operation.row, order, machine.id, machine.host, now_s)
        fate.trial = trial
        try:
            trial.reservation = self._access.reserve(order, machine.id)
            self._wait_for(trial, "starting", trial.reservation.start.remote(order))
        except (self._access.errors, ValueError) as error:
            trial.detail = str(error)
            self._wait_for(trial, "unsure", None)
            return Launched(job.id, "failed", f"Ray does not take it: {error}")
        return Launched(job.id, "done", f"{order.submission} on node {machine.name}")

    # what runs

    def trials(self) -> list[Trial]:
        """Return the attempts that are somewhere in the cluster."""
        return [fate.trial for fate in self.fates if fate.trial is not None]

    @property
    def is_done(self) -> bool:
        """Whether every job is over."""
        return all(fate.is_over for fate in self.fates)

    def notes(self) -> list[str]:
        """Return what keeps GPUs from being used, in words."""
        kept = [
            f"{one.gpus} GPU{'s' * (one.gpus != 1)} of node {one.node} held back, as {one.who}"
            " still lives there"
            for one in self._kept
            if one.who
        ]
        return kept + [one.trouble for one in self.machines.all if one.trouble]

    def hold_back(self) -> None:
        """Start nothing any more, and ask what runs to end."""
        self._holds_back = True
        for trial in self.trials():
            if trial.phase == "running":
                trial.reservation.stop.remote()
            elif trial.phase == "starting":
                self._withdraw(trial, "stopped before it began")

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until the cluster has news."""
        tickets = [one.ticket for one in self._waited() if one.ticket is not None]
        tickets += self.machines.tickets
        if tickets:
            self._access.ready(tickets, max(seconds, 0.001))
        else:
            time.sleep(seconds)

    @property
    def pause_s(self) -> float:
        """Seconds between two looks at the cluster: few just after GPUs were given back."""
        is_soon = self.clock.time_s() < self._hurry_until_s
        return HURRY_S if is_soon else LOOK_EVERY_S

    def _waited(self) -> list[Trial | Kept]:
        return [*self.trials(), *self._kept]

    def news(self) -> Iterator[News]:
        """Hear what has happened since the last call, and yield what is worth telling."""
        now_s = self.clock.time_s()
        has_heard = self._access.ready(self.machines.tickets, 0.0)
        if has_heard or now_s - self._looked_s >= self.pause_s:
            self._looked_s = now_s
            for text in self.machines.look(now_s):
                self._news.append(News(text))
        waited = {one.ticket: one for one in self._waited() if one.ticket is not None}
        for ticket in self._access.ready(list(waited), 0.0):
            one = waited[ticket]
            one.ticket = None
            if isinstance(one, Trial):
                self._hear(one, ticket)
            else:
                self._hear_kept(one, ticket)
        for trial in self.trials():
            self._look_after(trial, now_s)
        told, self._news = self._news, []
        yield from told

    def _wait_for(self, trial: Trial, phase: str, ticket: Any) -> None:
        trial.phase, trial.ticket = phase, ticket
        trial.phase_since_s = self.clock.time_s()

    def _withdraw(self, trial: Trial, why: str) -> None:
        """Let go of a reservation that has not started its job; it is looked at before more."""
        self._access.release(trial.reservation)
        trial.reservation, trial.detail, trial.is_withdrawn = None, why, True
        self._wait_for(trial, "unsure", None)

    def _look_after(self, trial: Trial, now_s: float) -> None:
        """Do what time asks for: give up waiting for GPUs, look again, or believe a loss."""
        waited_s = now_s - trial.phase_since_s
        if trial.phase == "starting" and waited_s > self._start_wait_s:
            self._withdraw(trial, "Ray gave no GPUs")
        if trial.phase != "unsure" or trial.ticket is not None or now_s < trial.ask_again_s:
            return
        machine = self.machines.on_host(trial.host, trial.order.node)
        if machine is not None:
            trial.ask_again_s = now_s + LOOK_EVERY_S
            trial.ticket = self._access.look(trial.order, machine.id)
        elif waited_s > self._loss_wait_s:
            self._lose(trial, f"node {trial.order.node} is lost")

    def _hear(self, trial: Trial, ticket: Any) -> None:
        try:
            report = self._access.answer(ticket)
        except self._access.errors as error:
            if trial.phase != "unsure":
                lines = str(error).strip().splitlines() or [type(error).__name__]
                trial.detail = lines[-1].strip()
                self._withdraw_quietly(trial)
            return
        if trial.phase == "unsure":
            self._hear_look(trial, report)
        else:
            self._hear_reservation(trial, report)

    def _withdraw_quietly(self, trial: Trial) -> None:
        """Leave a reservation that failed; it may be gone already."""
        with contextlib.suppress(self._access.errors, ValueError):
            self._access.release(trial.reservation)
        trial.reservation = None
        self._wait_for(trial, "unsure", None)

    def _hear_reservation(self, trial: Trial, report: dict[str, Any]) -> None:
        state = report["state"]
        trial.is_shared = report.get("is_shared", trial.is_shared)
        self._note_start(trial, report)
        if state == "running":
            self._wait_for(trial, "running", trial.reservation.ended.remote())
            if self._holds_back:
                trial.reservation.stop.remote()
        elif state == "ended":
            self._over(trial, trial.outcome(report), report.get("left"))
        elif is_busy(report):
            busy = self._without_running(NEVER_RAN, report["detail"])
            self._over(trial, busy, [report["detail"]])
        elif state == "refused":
            self._over(trial, self._without_running(ENDED, report["detail"], CANNOT_START))
        else:
            self._over(trial, self._without_running(NEVER_RAN, "it was closed before it began"))

    def _hear_look(self, trial: Trial, report: dict[str, Any]) -> None:
        """Judge by what the attempt's folder says, its reservation being gone."""
        state = report["state"]
        self._note_start(trial, report)
        self._journal.keep_logs(trial.order, report.get("tails", {}))
        if state == "ended":
            self._over(trial, trial.outcome(report))
        elif state == "refused":
            is_fault = not is_busy(report)
            fate, code = (ENDED, CANNOT_START) if is_fault else (NEVER_RAN, None)
            self._over(trial, self._without_running(fate, report["detail"], code))
        elif state == "never":
            self._over(trial, self._without_running(NEVER_RAN, trial.detail or "it never began"))
        elif state == "lost":
            self._lose(trial, f"the machine of node {trial.order.node} was started anew")
        elif state == "unknown":
            waited_s = self.clock.time_s() - trial.phase_since_s
            if waited_s > self._loss_wait_s:
                self._lose(trial, f"node {trial.order.node} is lost")
        # else it still runs, or is just being killed: look again

    def _lose(self, trial: Trial, detail: str) -> None:
        lost_unix_s = time.time() - (self.clock.time_s() - trial.phase_since_s)
        self._over(
            trial,
            Outcome(
                fate=LOST, end_unix_s=lost_unix_s, start_unix_s=trial.start_unix_s,
                exit_code=VANISHED, slots=trial.slots, detail=detail,
            ),
        )  # fmt: skip

    def _without_running(self, fate: str, detail: str, code: int | None = None) -> Outcome:
        return Outcome(fate=fate, end_unix_s=time.time(), exit_code=code, detail=detail)

    def _over(self, trial: Trial, outcome: Outcome, left: Sequence[str] | None = None) -> None:
        """Write an outcome down, and decide what it means.

        Args:
            trial: the attempt.
            outcome: how it ended.
            left: who is on its GPUs all the same; None: nobody has looked yet.
        """
        job = self.commands.jobs[trial.row]
        self._journal.over(trial.order, outcome)
        if trial.reservation is not None:
            if not trial.is_shared:
                self._fetch_logs(trial)
            self._keep(trial, left)
        self._tell_outcome(trial, job, outcome)

    def _fetch_logs(self, trial: Trial) -> None:
        try:
            tails = self._access.answer(trial.reservation.tails.remote())
        except self._access.errors:
            return  # they stay on the node
        self._journal.keep_logs(trial.order, tails)

    # GPUs whose jobs are over

    def _keep(self, trial: Trial, left: Sequence[str] | None = None) -> None:
        """Hold GPUs back until they are known to be really free."""
        kept = Kept(trial.order.node, trial.order.gpus, trial.reservation)
        self._kept.append(kept)
        self._judge(kept, left)

    def _judge(self, kept: Kept, left: Sequence[str] | None) -> None:
        """Give GPUs back if nobody is left on them, else ask again."""
        if left is not None and not left:
            self._access.release(kept.reservation)
            self._kept.remove(kept)
            self._hurry_until_s = self.clock.time_s() + BOOKS_LAG_S
            return
        if left and not kept.who:
            self._news.append(News(f"GPUs of node {kept.node} are held back: {', '.join(left)}"))
        kept.who = ", ".join(left or ())
        kept.ticket = kept.reservation.freed.remote(FREED_WITHIN_S)

    def _hear_kept(self, kept: Kept, ticket: Any) -> None:
        try:
            left = self._access.answer(ticket)
        except self._access.errors:
            self._kept.remove(kept)  # it let go by itself, or its node is lost
            return
        self._judge(kept, left)

    def let_go(self, within_s: float) -> None:
        """Wait until GPUs whose jobs are over are free; who is longer in coming frees itself."""
        until_s = self.clock.time_s() + within_s
        while any(not one.who for one in self._kept) and self.clock.time_s() < until_s:
            waited = {one.ticket: one for one in self._kept}
            for ticket in self._access.ready(list(waited), LOOK_EVERY_S):
                self._hear_kept(waited[ticket], ticket)

    # what is told

    def _second(self, unix_s: float) -> float:
        """Return the run's second of a node's clock, which may be a little wrong."""
        return round(min(max(self.clock.of_unix(unix_s), 0.0), self.clock.time_s()), 4)

    def _note_start(self, trial: Trial, report: dict[str, Any]) -> None:
        if "start_unix_s" not in report or trial.start_unix_s is not None:
            return
        trial.start_unix_s = float(report["start_unix_s"])
        trial.slots = tuple(report.get("slots", ()))
        trial.since_s = self._second(trial.start_unix_s)
        self._tell_started(trial, found_again=trial.found_again)

    def _tell_started(self, trial: Trial, *, found_again: bool) -> None:
        job = self.commands.jobs[trial.row]
        again = {"found_again": True} if found_again else {}
        self._tell("started", trial, start_s=trial.since_s, slots=list(trial.slots),
                   node=trial.order.node, gpus=job.gpus, **again)  # fmt: skip

    def _tell(self, event: str, trial: Trial, **fields: Any) -> None:
        job = self.commands.jobs[trial.row]
        self._news.append(News(event, job, trial.order.attempt, fields))

    def _tell_outcome(self, trial: Trial, job: Command, outcome: Outcome) -> None:
        """Settle a job's fate by an outcome, and tell it."""
        fate, code = self.fates[trial.row], outcome.exit_code
        end_s = max(self._second(outcome.end_unix_s), trial.since_s)
        if outcome.start_unix_s is not None:
            trial.since_s, trial.slots = self._second(outcome.start_unix_s), outcome.slots
            self._tell_started(trial, found_again=False)
            if outcome.timed_out:
                self._tell("timed out", trial, timeout_s=job.timeout_s)
            self._tell(
                "stopped" if outcome.fate == STOPPED else "ended", trial,
                submit_s=job.submit_s, start_s=trial.since_s, end_s=max(end_s, trial.since_s),
                exit_code=code, estimate_s=job.believed_s, gpus=job.gpus, kind=job.kind,
                node=trial.order.node, is_lost=outcome.fate == LOST,
            )  # fmt: skip
        fate.settle(job, outcome, end_s)
        if outcome.fate != STOPPED and not (outcome.fate == ENDED and code == 0):
            last = "gave up" if fate.is_over else "retrying"
            after_s = None if fate.is_over else round(fate.not_before_s, 3)
            self._tell(last, trial, exit_code=code, detail=outcome.detail, not_before_s=after_s)


def check_sizes(machines: Sequence[Machine], commands: Commands) -> None:
    """Refuse jobs that no node can ever run.

    Raises:
        YardmasterError: naming the first.
    """
    most = max((one.gpus for one in machines), default=0)
    if not most:
        raise YardmasterError("No node of this Ray cluster has GPUs (ray start --num-gpus=N).")
    for job in commands.jobs:
        if job.gpus > most:
            raise YardmasterError(
                f"Job {job.id} asks for {job.gpus} GPUs; the largest node has {most}."
            )
