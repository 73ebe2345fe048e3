"""Making room by requeueing: off unless asked for, and then seldom.

The scheduler says whom it would stop for the first job in the queue (`live.stopping`). It is done
only if every rule agrees: the running job is on the list of jobs to order, can be requeued, is a
plain batch job on one node, has run for a while, was not stopped before and is in nobody's hands;
the waiting one stands first in Slurm's own order, lacks nothing but resources by Slurm's own word,
is no array, names no place, and room was never made for it before; both are still what they were
when they were looked at; and the time it gains is well above what the other one loses: all it has
done, and the two minutes for which Slurm lets no requeued job start.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider, Decision
from yardmaster.live.slurm.changes import Requeue
from yardmaster.live.slurm.commands import SEPARATOR, Slurm, SlurmError
from yardmaster.live.slurm.history import REQUEUE_S
from yardmaster.live.slurm.observing import (
    BY_PEOPLE,
    ORDERABLE,
    Observation,
    waits_for_its_turn,
)
from yardmaster.live.slurm.reading import NOWHERE, WAITING, moment
from yardmaster.live.slurm.stops import HOUR_S, Stopped, Stops
from yardmaster.model.columns import BoolArray
from yardmaster.workloads.traces.slurm.fields import tres

LONGEST_GAIN_S = 86_400.0
"""No start is believed to be more than a day nearer: nobody knows what happens until then."""
MOST_ASKED = 400
"""Of so many running jobs, those that lose least, Slurm is asked whether they can be requeued."""
_FIELDS = (
    "JobID", "Requeue", "BatchFlag", "RestartCnt", "PriorityLong", "ReqNodes", "Feature",
    "Reservation", "Licenses", "OverSubscribe", "tres-alloc", "State", "StartTime",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """When a running job may be requeued for a waiting one.

    Attributes:
        least_run_s: it has run for so long.
        per_tick: most jobs in one tick.
        per_hour: most jobs in any hour.
        per_job: how often one and the same job; restarts for other reasons count too.
        least_gain: the waiting job gains at least so many times what the stopped ones lose.
    """

    least_run_s: float = 600.0
    per_tick: int = 1
    per_hour: int = 6
    per_job: int = 1
    least_gain: float = 2.0

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            YardmasterError: naming the setting.
        """
        for name, lowest in (("least_run_s", 0.0), ("least_gain", 1.0)):
            value = getattr(self, name)
            if not lowest <= value < float("inf"):
                raise YardmasterError(
                    f"requeue_{name} is {value:g}; it must be at least {lowest:g}."
                )
        for name in ("per_tick", "per_hour", "per_job"):
            if getattr(self, name) < 0:
                raise YardmasterError(
                    f"requeues_{name} is {getattr(self, name)}; it must not be negative."
                )


@dataclass(frozen=True, slots=True)
class _Details:
    """What Slurm says of a job beyond the queue's line."""

    can_requeue: bool
    restarts: int
    is_held: bool
    is_bound: bool
    """Whether it says more about where it runs than how many GPUs, cores and how much memory."""
    cpus: int
    memory_mib: float
    state: str
    start_s: float | None

    @property
    def may_gain(self) -> bool:
        """Whether it would start where room is made."""
        return self.state == WAITING and not self.is_held and not self.is_bound


@dataclass(frozen=True, slots=True)
class Exchange:
    """A job that is to be requeued for another, and why."""

    stop: Requeue
    waiting: str
    ran_s: float
    why: str

    def stopped(self) -> Stopped:
        """Return it as it is remembered."""
        return Stopped(self.stop.job, self.waiting, round(time.time(), 3), round(self.ran_s, 1))


class Requeuer:
    """Finds who is to be requeued for whom; stops nobody itself."""

    def __init__(self, slurm: Slurm, decider: Decider, rules: Rules, stops: Stops) -> None:
        """Join the parts."""
        self._slurm, self._decider, self._rules, self._stops = slurm, decider, rules, stops

    def see(self, observation: Observation) -> None:
        """Remember which waiting jobs somebody has in hand; that is not seen while they run."""
        ids = observation.state.jobs.id
        hands = [
            str(ids[row])
            for row, why in enumerate(observation.why_held)
            if why.startswith(BY_PEOPLE)
        ]
        self._stops.see(hands, observation.row_of)

    def plan(
        self, observation: Observation, decision: Decision, *, is_first: bool
    ) -> Sequence[Exchange]:
        """Return who is to be requeued now, for one waiting job; mostly nobody.

        Args:
            observation: what was read in this tick.
            decision: the scheduler's; about the same moment.
            is_first: ask that the waiting job stands first in Slurm's own order, so that it and
                nobody else is given the room.

        Raises:
            SlurmError: if Slurm does not answer.
        """
        left = min(self._rules.per_tick, self._rules.per_hour - self._stops.within(HOUR_S))
        waiting = self._waiting(observation, decision, is_first=is_first)
        if left < 1 or waiting is None:
            return ()
        rows = self._stoppable(observation)
        if not rows:
            return ()
        ids = observation.state.jobs.id
        details = read_details(self._slurm, [str(ids[row]) for row in (waiting, *rows)])
        about = details.get(str(ids[waiting]))
        if about is None or not about.may_gain or not self._is_unbound(str(ids[waiting])):
            return ()
        rows = [
            row
            for row in rows
            if self._may_go(details.get(str(ids[row])), observation.rows[row].start_s)
        ]
        victims = self._cheapest(observation, decision, waiting, rows)
        if not victims or len(victims) > left:
            return ()
        if not _has_room(self._slurm, observation, waiting, victims, details):
            return ()
        return self._exchanges(observation, decision, waiting, victims)

    def _waiting(
        self, observation: Observation, decision: Decision, *, is_first: bool
    ) -> int | None:
        """Return the job for which room may be made: the first that does not start by itself."""
        starting = {start.row for start in decision.starts}
        order: list[int] = decision.order.tolist()
        row = next((one for one in order if one not in starting), None)
        if row is None:
            return None
        line = observation.rows[row]
        is_plain = line.is_single and line.nodes == 1 and line.reason in ORDERABLE
        if not is_plain or self._stops.made_for(line.job):
            return None
        # Behind a job without GPUs, which is not in the state, or at a limit it says so itself.
        if is_first and not (line.reason == "Resources" and _stands_first(observation, row)):
            return None
        return row

    def _stoppable(self, observation: Observation) -> list[int]:
        """Return rows of running jobs that the queue's lines do not protect, least loss first."""
        state = observation.state
        found = []
        for row in state.running.tolist():
            line, ran_s = observation.rows[row], state.time_s - float(state.since_s[row])
            may = (
                line.state == "RUNNING"
                and line.is_single  # of an array all tasks might be requeued at once
                and line.nodes == 1
                and observation.is_admitted(row)
                and ran_s >= self._rules.least_run_s
                and len(self._stops.of(line.job)) < self._rules.per_job
                and not self._stops.is_in_hands(line.job)
            )
            if may:
                found.append((ran_s * line.gpus, row))
        return [row for _, row in sorted(found)[:MOST_ASKED]]

    def _may_go(self, details: _Details | None, start_s: float | None) -> bool:
        """Whether a job may be requeued, and still is in the run that was seen."""
        return (
            details is not None
            and (details.state, details.start_s) == ("RUNNING", start_s)
            and details.can_requeue
            and not details.is_held
            and details.restarts < self._rules.per_job
        )

    def _is_unbound(self, job: str) -> bool:
        """Whether a job names no nodes that it wants or does not want."""
        text = self._slurm.read("scontrol", "show", "job", job)
        return "ReqNodeList=(null) ExcNodeList=(null)" in (
            line.strip() for line in text.splitlines()
        )

    def _cheapest(
        self, observation: Observation, decision: Decision, waiting: int, rows: Sequence[int]
    ) -> tuple[int, ...]:
        """Return whom the scheduler would stop, of as few as possible of those that lose least."""
        state = observation.state
        partitions = set(observation.rows[waiting].partition.split(","))
        homes = {
            row: observation.nodes[node].partitions
            for row, node, _ in state.holdings.tolist()
            if observation.nodes[node].takes_jobs  # what is freed on one that drains helps nobody
        }
        near = [row for row in rows if partitions & set(homes.get(row, ()))]
        count = 1
        while near and count < 2 * len(near):
            stoppable: BoolArray = np.zeros(len(state.jobs), dtype=np.bool_)
            stoppable[near[:count]] = True
            victims = self._decider.stops_for(state, decision, waiting, stoppable)
            if victims:
                return victims
            count *= 2
        return ()

    def _exchanges(
        self, observation: Observation, decision: Decision, waiting: int, victims: Sequence[int]
    ) -> Sequence[Exchange]:
        """Return the stops with their reasons, if what is gained is well above what is lost."""
        state = observation.state
        free_s = decision.reasons.earliest_s(waiting)
        gain_s = min(free_s - state.time_s, LONGEST_GAIN_S)
        ran_s = [state.time_s - float(state.since_s[row]) for row in victims]
        away_s = max(float(REQUEUE_S), float(state.jobs.duration_s[waiting]))
        lost_s = sum(ran_s) + away_s * len(victims)
        if gain_s < self._rules.least_gain * lost_s:
            return ()
        job = str(state.jobs.id[waiting])
        return [
            Exchange(
                Requeue(str(state.jobs.id[row])), job, one,
                f"for job {job}, which can start now instead of in {gain_s:.0f} s; it has run for"
                f" {one:.0f} s, cannot start again for {REQUEUE_S} s, and all stops for that job"
                f" together cost {lost_s:.0f} s",
            )
            for row, one in zip(victims, ran_s, strict=True)
        ]  # fmt: skip


def _stands_first(observation: Observation, row: int) -> bool:
    """Whether Slurm, too, would look at this waiting job before all others."""
    mine = (int(observation.priority[row]), -int(observation.rows[row].job))
    for other in observation.state.waiting.tolist():
        line = observation.rows[other]
        is_rival = other != row and waits_for_its_turn(line) and line.priority > 0
        if is_rival and (line.priority, -int(line.job)) > mine:
            return False
    return True


def read_details(slurm: Slurm, jobs: Sequence[str]) -> dict[str, _Details]:
    """Ask Slurm about jobs; those that are gone are left out.

    Raises:
        SlurmError: if it does not answer.
    """
    wanted = ",".join(f"{name}:{SEPARATOR}" for name in _FIELDS)
    text = slurm.read("squeue", "-h", "-a", "-j", ",".join(jobs), "-O", wanted)
    found = {}
    for line in filter(None, text.split("\n")):
        cells = line.split(SEPARATOR)
        if len(cells) < len(_FIELDS):
            raise SlurmError("squeue does not know all that --preempt-requeue asks.")
        job, requeue, batch, restarts, priority, *bounds, shares, alloc, state, start = cells[
            : len(_FIELDS)
        ]
        counted = tres(alloc)
        found[job] = _Details(
            can_requeue=(requeue, batch) == ("1", "1"),
            restarts=int(restarts),
            is_held=priority == "0",
            # A job that shares its node with nobody needs more than its own GPUs.
            is_bound=any(cell.lower() not in NOWHERE for cell in bounds)
            or shares.upper() not in {"OK", "YES"},
            cpus=counted.cpus or 0,
            memory_mib=float(counted.memory_mib or 0.0),
            state=state,
            start_s=moment(start),
        )
    return found


def _has_room(
    slurm: Slurm,
    observation: Observation,
    waiting: int,
    victims: Sequence[int],
    details: Mapping[str, _Details],
) -> bool:
    """Whether the node will have the cores and the memory too, once these jobs are gone."""
    state = observation.state
    nodes = {node for row, node, _ in state.holdings.tolist() if row in victims}
    if len(nodes) != 1:
        return False
    name = state.node_names[nodes.pop()]
    wanted = ",".join(f"{one}:{SEPARATOR}" for one in ("CPUsState", "Memory", "AllocMem"))
    text = slurm.read("sinfo", "-h", "-a", "-N", "-n", name, "-O", wanted)
    cpus, memory, used, *_ = text.split("\n")[0].split(SEPARATOR)
    going = [details[str(state.jobs.id[row])] for row in victims]
    free_cpus = int(cpus.split("/")[1]) + sum(one.cpus for one in going)
    free_mib = float(memory) - float(used) + sum(one.memory_mib for one in going)
    needs = details[str(state.jobs.id[waiting])]
    return needs.cpus <= free_cpus and needs.memory_mib <= free_mib
