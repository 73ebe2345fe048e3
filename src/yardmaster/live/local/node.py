"""One node as a live system: what waits and runs on it, and starting jobs on its slots."""

from __future__ import annotations

import math
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decision
from yardmaster.live.folder import JOBS, read_whole, write_json
from yardmaster.live.local.attempts import MARK, Attempt, Ending, attempts_of
from yardmaster.live.local.commands import Command, Commands
from yardmaster.live.local.processes import Process, sessions
from yardmaster.live.local.slots import Slots
from yardmaster.live.state import State, selected
from yardmaster.model.columns import Labels
from yardmaster.model.workload import Workload

BACK_OFF_S = 2.0
LONGEST_BACK_OFF_S = 300.0
KILLING_TAKES_S = 0.05
NEVER_RAN = 125
JOB = "job.json"


@dataclass(slots=True)
class Running:
    """An attempt that runs now."""

    row: int
    attempt: Attempt
    process: Process
    start_s: float
    slots: tuple[int, ...]
    popen: subprocess.Popen[bytes] | None
    """None if an earlier runner started it."""
    watch: int = -1
    """A file descriptor that is ready when the process ends; −1 where the system has none."""
    killed_at_s: float = math.inf
    """When it is to be killed, having been asked to end."""
    timed_out: bool = False
    is_stopping: bool = False
    """Whether it was asked to end because the run stops."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Start a job; which of the free slots it gets is all the same."""

    row: int
    job: str


@dataclass(frozen=True, slots=True)
class LaunchedJob:
    """What became of a launch."""

    row: int
    job: str
    outcome: str
    """done, failed or skipped."""
    detail: str = ""
    running: Running | None = None

    def record(self) -> dict[str, Any]:
        """Return it as the audit log holds it."""
        return {
            "operation": "start", "job": self.job, "outcome": self.outcome, "detail": self.detail
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that has ended."""

    running: Running
    ending: Ending
    end_s: float


@dataclass(slots=True)
class _Fate:
    """What has become of a job so far."""

    attempts: int = 0
    """Attempts that count: those we stopped ourselves do not."""
    next_number: int = 1
    not_before_s: float = 0.0
    exit_code: int | None = None
    """Of the last attempt; None before any has ended."""
    is_over: bool = False
    running: Running | None = field(default=None, repr=False)


class LocalNode:
    """The jobs of a workload on the slots of this machine; see `decision.Backend`."""

    def __init__(self, commands: Commands, slots: Slots, folder: Path, clock: LiveClock) -> None:
        """Take up the workload where its folder says it is."""
        self.commands, self.slots, self.clock = commands, slots, clock
        self.host = socket.gethostname()
        self.cluster = slots.cluster(self.host)
        self._folder = folder / JOBS
        self._folder.mkdir(exist_ok=True)
        self._table = job_table(commands)
        self._row_of = {job.id: row for row, job in enumerate(commands.jobs)}
        self._submit_s = np.array([job.submit_s for job in commands.jobs])
        self.fates = [_Fate() for _ in commands.jobs]
        self._selector = selectors.DefaultSelector()
        self._holds_back = False
        self._seen_s = -math.inf
        living = sessions()
        for row, job in enumerate(commands.jobs):
            self._take_up(row, job, living)

    def _take_up(self, row: int, job: Command, living: set[int]) -> None:
        """Find out what an earlier runner has made of a job; `living` are sessions."""
        path, fate = self._folder / job.id, self.fates[row]
        if read_whole(path / JOB) is None:
            path.mkdir(exist_ok=True)
            # Not worth waiting for the disk, thousands of times: the workload says it again.
            write_json(path / JOB, job.record(), is_durable=False)
        for attempt in attempts_of(path):
            process, facts = attempt.process(), attempt.facts()
            if process is not None and facts is not None and process.is_alive():
                self._take_over(row, attempt, process, facts)
                return
            if process is not None and process.pid in living:
                process.kill_leftovers(_mark_of(attempt))  # before the job is started again
            ending = attempt.ending()
            if ending is None:  # it never ran: the same number can be used again, if it is clean
                is_spoilt = attempt.has_begun() or attempt.is_stopped
                fate.next_number = attempt.number + is_spoilt
                continue
            fate.next_number = attempt.number + 1
            if not attempt.is_stopped:
                fate.attempts += 1
                self._settle(fate, job, ending, self.clock.of_unix(ending.end_unix_s))

    def _take_over(
        self, row: int, attempt: Attempt, process: Process, facts: dict[str, Any]
    ) -> None:
        """Go on with an attempt that an earlier runner started and that lives."""
        slots, fate = tuple(facts["slots"]), self.fates[row]
        running = Running(row, attempt, process, float(facts["start_s"]), slots, None)
        if not attempt.is_asked:
            attempt.unmark_stopped()  # the runner died before it could ask
        self.slots.hold(slots, self.commands.jobs[row].id)
        self._watch(running)
        fate.running, fate.next_number = running, attempt.number + 1
        fate.attempts += 1

    def _settle(self, fate: _Fate, job: Command, ending: Ending, end_s: float) -> None:
        """Decide what an ending means: done, given up, or another try after a while."""
        fate.exit_code = ending.exit_code
        fate.is_over = ending.exit_code == 0 or fate.attempts > job.retries
        back_off_s = BACK_OFF_S * 2.0 ** min(fate.attempts - 1, 20)
        fate.not_before_s = end_s + min(back_off_s, LONGEST_BACK_OFF_S)

    def hold_back(self) -> None:
        """Start nothing any more."""
        self._holds_back = True

    # observe → plan → apply

    def observe(self) -> State:
        """Return who waits and who runs; jobs that wait out a back-off are held."""
        now_s = self._seen_s = self.clock.time_s()
        rows = np.array(
            [
                row
                for row in range(int(np.searchsorted(self._submit_s, now_s, side="right")))
                if not self.fates[row].is_over
            ],
            dtype=np.int64,
        )
        fates = [self.fates[row] for row in rows]
        since_s = [math.nan if one.running is None else one.running.start_s for one in fates]
        held = [one.running is None and one.not_before_s > now_s for one in fates]
        holdings = [
            (place, 0, len(one.running.slots))
            for place, one in enumerate(fates)
            if one.running is not None
        ]
        return State(
            time_s=max(now_s, max((s for s in since_s if s == s), default=0.0)),  # noqa: PLR0124
            jobs=selected(self._table, rows),
            since_s=np.array(since_s, dtype=np.float64),
            is_held=np.array(held, dtype=np.bool_),
            holdings=np.array(holdings, dtype=np.int64).reshape(-1, 3),
            blocked=np.zeros(1, dtype=np.int64),
            cluster=self.cluster,
            node_names=(self.host,),
        )

    def plan(self, state: State, decision: Decision) -> list[Launch]:
        """Return which jobs to start."""
        ids = [str(state.jobs.id[start.row]) for start in decision.starts]
        return [Launch(self._row_of[job], job) for job in ids]

    def apply(self, operations: Sequence[Launch]) -> list[LaunchedJob]:
        """Start jobs; return what became of each."""
        return [self._launch(operation) for operation in operations]

    def restore(self) -> None:
        """Leave the machine as it was found: end what runs, at once if it does not listen."""
        for running in self.running():
            self.stop(running, 0.0)

    def _launch(self, operation: Launch) -> LaunchedJob:
        job, fate = self.commands.jobs[operation.row], self.fates[operation.row]
        if self._holds_back or fate.running is not None or fate.is_over:
            return LaunchedJob(operation.row, job.id, "skipped", "it need not start any more")
        if job.gpus > self.slots.free:  # whoever decided so, the job keeps its place and its tries
            detail = f"{job.gpus} slots are asked for, {self.slots.free} are free"
            return LaunchedJob(operation.row, job.id, "skipped", detail)
        attempt = Attempt(self._folder / job.id / f"attempt-{fate.next_number}")
        slots = self.slots.choose(job.gpus)
        try:
            start_s = self.clock.time_s()
            process, popen = attempt.launch(
                job.command,
                folder=job.folder,
                environment=self._environment(job, slots, attempt),
                facts={
                    "start_s": start_s,
                    "slots": list(slots),
                    "devices": [self.slots.device_of(slot).record() for slot in slots],
                },
            )
        except YardmasterError as error:
            fate.attempts += 1
            fate.next_number += 1
            self._settle(fate, job, Ending(127, 0.0), self.clock.time_s())
            return LaunchedJob(operation.row, job.id, "failed", str(error))
        running = Running(operation.row, attempt, process, start_s, slots, popen)
        self.slots.hold(slots, job.id)
        fate.running = running
        fate.attempts += 1
        fate.next_number = attempt.number + 1
        self._watch(running)
        detail = f"attempt {attempt.number}, slots {list(slots)}"
        return LaunchedJob(operation.row, job.id, "done", detail, running)

    def _environment(self, job: Command, slots: Sequence[int], attempt: Attempt) -> dict[str, str]:
        return {
            **os.environ,
            **self.slots.environment(slots),
            "YARDMASTER_JOB": job.id,
            "YARDMASTER_ATTEMPT": str(attempt.number),
            **dict(job.environment),
            MARK: str(attempt.path.resolve()),
        }

    # what runs

    def running(self) -> list[Running]:
        """Return the attempts that run."""
        return [fate.running for fate in self.fates if fate.running is not None]

    def _watch(self, running: Running) -> None:
        try:
            running.watch = os.pidfd_open(running.process.pid)
        except (OSError, AttributeError):
            return  # then it is looked at every time
        self._selector.register(running.watch, selectors.EVENT_READ, running)

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until a job ends."""
        unwatched = any(running.watch < 0 for running in self.running())
        for key, _ in self._selector.select(min(seconds, 0.2) if unwatched else seconds):
            if key.data is None:
                os.read(key.fd, 4096)  # it has woken us: once is enough

    def watch_also(self, descriptor: int) -> None:
        """Wake up when something can be read from here, too."""
        self._selector.register(descriptor, selectors.EVENT_READ, None)

    def ended(self) -> Iterator[Ended]:
        """Yield attempts that have ended since the last call; their slots are free again."""
        for running in self.running():
            if running.process.is_alive():
                continue
            if running.popen is not None:
                running.popen.wait()
            if running.killed_at_s <= self.clock.time_s():
                running.attempt.note_killed()
            yield self._bury(running, running.attempt.ending() or Ending(NEVER_RAN, 0.0))

    def _bury(self, running: Running, ending: Ending) -> Ended:
        job, fate = self.commands.jobs[running.row], self.fates[running.row]
        if running.watch >= 0:
            self._selector.unregister(running.watch)
            os.close(running.watch)
        running.process.kill_leftovers(_mark_of(running.attempt))
        end_s = self.clock.of_unix(ending.end_unix_s) if ending.end_unix_s else self.clock.time_s()
        end_s = max(end_s, running.start_s)
        self.slots.release(job.id)
        fate.running = None
        if running.attempt.is_stopped:
            fate.attempts -= 1
        elif not running.attempt.has_begun():  # the same number can be used again
            fate.attempts -= 1
            fate.next_number = running.attempt.number
            fate.not_before_s = end_s + BACK_OFF_S
        else:
            self._settle(fate, job, ending, end_s)
        return Ended(running, ending, end_s)

    def stop(self, running: Running, grace_s: float) -> bool:
        """Ask a job to end, to be killed if it has not after so long; return if it was asked."""
        running.killed_at_s = min(running.killed_at_s, self.clock.time_s() + grace_s)
        return running.process.signal_group(signal.SIGTERM)

    def kill_overdue(self) -> None:
        """Kill the jobs that were asked to end and did not."""
        now_s = self.clock.time_s()
        for running in self.running():
            if running.killed_at_s <= now_s:
                running.process.signal_group(signal.SIGKILL)

    def next_s(self) -> float:
        """Return the next second at which something is due: a submission, a retry, a time-out.

        What has come to be since the last look is overdue: a look may take longer than a job needs
        to be submitted.
        """
        now_s, seen_s = self.clock.time_s(), self._seen_s
        due = [math.inf]
        place = int(np.searchsorted(self._submit_s, seen_s, side="right"))
        if place < len(self._submit_s) and not self._holds_back:
            due.append(float(self._submit_s[place]))
        submitted = int(np.searchsorted(self._submit_s, now_s, side="right"))
        for fate, job in zip(self.fates[:submitted], self.commands.jobs, strict=False):
            if fate.is_over:
                continue
            if fate.running is None:
                if fate.not_before_s > seen_s and not self._holds_back:
                    due.append(fate.not_before_s)
                continue
            if math.isfinite(fate.running.killed_at_s):
                due.append(max(fate.running.killed_at_s, now_s + KILLING_TAKES_S))
            else:
                due.append(fate.running.start_s + job.timeout_s)
        return min(due)

    @property
    def is_done(self) -> bool:
        """Whether every job is over."""
        return all(fate.is_over for fate in self.fates)


def _mark_of(attempt: Attempt) -> str:
    return f"{MARK}={attempt.path.resolve()}"


def job_table(commands: Commands) -> Workload:
    """Return all jobs as a job table; what is believed of run times stands for them."""
    jobs = commands.jobs
    believed_s = [job.believed_s for job in jobs]
    columns: dict[str, Any] = {
        "id": np.array([job.id for job in jobs], dtype=np.str_),
        "submit_s": [job.submit_s for job in jobs],
        "duration_s": believed_s,
        "estimate_s": believed_s,
        "gpus": [job.gpus for job in jobs],
        "priority": [job.priority for job in jobs],
        "deadline_s": [job.deadline_s for job in jobs],
    }
    for name in ("user", "tenant", "kind"):
        columns[name] = Labels.of([getattr(job, name) for job in jobs])
    return Workload.of(name=commands.name, **columns)
