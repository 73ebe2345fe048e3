"""Running a workload of real commands on a Ray cluster, to its end, through crashes of our own."""

from __future__ import annotations

import dataclasses
import math
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider, Decision
from yardmaster.live.folder import ABOUT, AUDIT, LiveFolder, write_json
from yardmaster.live.local.commands import Command, Commands
from yardmaster.live.local.runner import FALLBACK, Result, already_told, failures, opening
from yardmaster.live.loop import Loop
from yardmaster.live.ray.access import RayAccess
from yardmaster.live.ray.cluster import Launch, Launched, News, RayCluster, check_sizes
from yardmaster.live.ray.fates import Journal
from yardmaster.live.ray.machines import Machines
from yardmaster.live.ray.orders import Order, own_version
from yardmaster.live.reasons import Reasons
from yardmaster.live.state import State

LONGEST_SLEEP_S = 0.5
MEETING_TAKES_S = 60.0
UNSURE_AT_STOP_S = 10.0
"""How long a stopping run waits to learn what became of attempts it has lost sight of."""
LETTING_GO_S = 5.0
NO_TELEMETRY = "the nodes are not sampled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a workload is run.

    Attributes:
        scheduler: who decides.
        address: the cluster's address; auto: the one on this machine.
        grace_s: how long a job that is asked to end has before it is killed.
        node_folder: folder for attempts on the nodes; empty: the run's own where nodes see it,
            else one in the user's cache.
        start_wait_s: how long Ray may take to give GPUs that it says are free.
        loss_wait_s: how long after a loss a job whose whole host is away is left alone.
        seed: seed of random schedulers.
    """

    scheduler: str = "sjf+easy"
    address: str = "auto"
    grace_s: float = 10.0
    node_folder: str = ""
    start_wait_s: float = 60.0
    loss_wait_s: float = 90.0
    seed: int = 0

    def record(self) -> dict[str, Any]:
        """Return what is worth keeping of it."""
        return {
            "address": self.address, "grace_s": self.grace_s, "node_folder": self.node_folder,
            "loss_wait_s": self.loss_wait_s, "seed": self.seed,
        }  # fmt: skip


def run_ray(
    commands: Commands,
    folder: Path,
    settings: Settings,
    *,
    report: Callable[[str], None] | None = None,
) -> Result:
    """Run a workload on a Ray cluster, or take it up where it was left.

    Raises:
        YardmasterError: if there is no cluster, no GPU in it, another process works in the folder,
            or the folder is that of another workload.
    """
    noting = _NotingDecider(settings.scheduler, seed=settings.seed)
    held = LiveFolder(folder)
    try:
        _check_same(held, commands)
        access = RayAccess(settings.address)
        try:
            machines = _met(access, held)
            if not held.about:
                check_sizes(machines.all, commands)
            noting.warm(machines.cluster)  # before the clock starts: compiling takes seconds
            runner = _Runner(
                commands, held, settings, access=access, machines=machines, decider=noting,
                report=report,
            )  # fmt: skip
            return runner.run()
        finally:
            access.close()
    finally:
        held.close()


def _check_same(folder: LiveFolder, commands: Commands) -> None:
    """Refuse to go on with another workload than the folder's.

    Raises:
        YardmasterError: naming what is different.
    """
    there = (folder.about.get("workload"), folder.about.get("jobs"))
    here = (commands.name, len(commands))
    if folder.about and there != here:
        raise YardmasterError(
            f"{folder.path} is of another workload: {there[1]} jobs of {there[0]}, not {here[1]} of"
            f" {here[0]}."
        )


def _met(access: RayAccess, folder: LiveFolder) -> Machines:
    """Return the cluster's nodes, once they have said who they are."""
    machines = Machines(access, folder.about.get("nodes", []))
    until = time.monotonic() + MEETING_TAKES_S
    machines.look(0.0)
    while not machines.is_settled and time.monotonic() < until:
        access.ready(machines.tickets, LONGEST_SLEEP_S)
        machines.look(0.0)
    if not machines.all:
        raise YardmasterError("No node of this Ray cluster has GPUs (ray start --num-gpus=N).")
    return machines


class _NotingDecider(Decider):
    """A scheduler whose reasons also say what keeps GPUs from being used."""

    notes: Callable[[], list[str]] = staticmethod(list)

    def decide(self, state: State) -> Decision:
        """Decide, and add what is held back to why jobs wait."""
        decision = super().decide(state)
        notes = self.notes()
        if not notes:
            return decision
        parts = {one.name: getattr(decision.reasons, one.name)
                 for one in dataclasses.fields(Reasons)}  # fmt: skip
        return dataclasses.replace(decision, reasons=_NotedReasons(**parts, notes=tuple(notes)))


@dataclass(frozen=True, slots=True, eq=False)
class _NotedReasons(Reasons):
    """Reasons, and what keeps GPUs from being used."""

    notes: tuple[str, ...] = ()

    def text(self, row: int) -> str:
        """Return why the job in this row of the state starts now or does not."""
        why = Reasons.text(self, row)
        return why if self.starts[row] else "; ".join([why, *self.notes])


class _Runner:
    """One process at work on a folder."""

    def __init__(
        self,
        commands: Commands,
        folder: LiveFolder,
        settings: Settings,
        *,
        access: RayAccess,
        machines: Machines,
        decider: _NotingDecider,
        report: Callable[[str], None] | None,
    ) -> None:
        self._folder, self._settings = folder, settings
        self._report = report or (lambda _: None)
        self._run_id = folder.about.get("settings", {}).get("run") or secrets.token_hex(6)
        self._restarts = folder.begin(
            "ray", "run", decider.name, nodes=machines.records(), workload=commands.name,
            jobs=len(commands), telemetry=NO_TELEMETRY,
            settings=settings.record() | {"run": self._run_id},
        )  # fmt: skip
        self._clock = LiveClock.since(folder.about["began_unix_s"])
        audit = folder.path / AUDIT
        self._told = already_told(audit) if self._restarts else set()
        self._audit = AuditLog(audit, self._clock)
        self._cluster = RayCluster(
            commands, access, Journal(folder.path), self._clock, machines=machines,
            order_of=self._order, start_wait_s=settings.start_wait_s,
            loss_wait_s=settings.loss_wait_s,
        )  # fmt: skip
        decider.notes = self._cluster.notes
        fallback = Decider(FALLBACK, seed=settings.seed)
        self._loop: Loop[Launch, Launched] = Loop(
            self._cluster, decider, self._audit, fallback=fallback
        )
        self._stopping = False
        self._stop_s = math.inf
        self._submitted = 0
        self._found_again = 0

    def _order(self, job: Command, attempt: int, node: str) -> Order:
        return Order(
            run=self._run_id, run_folder=str(self._folder.path.resolve()),
            began_unix_s=float(self._folder.about["began_unix_s"]),
            node_folder=self._settings.node_folder, node=node, job=job.id, attempt=attempt,
            gpus=job.gpus, command=job.command, folder=job.folder, environment=job.environment,
            timeout_s=job.timeout_s if math.isfinite(job.timeout_s) else None,
            grace_s=self._settings.grace_s, version=own_version(),
        )  # fmt: skip

    def run(self) -> Result:
        """Work until every job is over, or somebody asks to stop."""
        self._audit.write("begin", pid=os.getpid(), restart=self._restarts,
                          torn_bytes=self._audit.torn_bytes)  # fmt: skip
        self._report(opening(self._cluster.commands, self._folder.path))
        with self._listening():
            self._note_submissions()
            self._cluster.take_up()
            self._found_again = len(self._cluster.trials())
            self._work()
            self._cluster.let_go(LETTING_GO_S)
        state = "stopped" if self._stopping and not self._cluster.is_done else "finished"
        result = self._result(state)
        self._audit.write("end", state=state, finished=result.finished, failed=result.failed)
        self._audit.close()
        self._folder.end(state)
        return result

    def _work(self) -> None:
        while True:
            for one in self._cluster.news():
                self._note(one)
            self._note_submissions()
            if self._stopping:
                if self._has_stopped():
                    return
            elif self._cluster.is_done:
                return
            else:
                self._loop.tick()
            self._note_nodes()
            self._folder.beat(
                time_s=round(self._clock.time_s(), 3),
                tick=self._loop.number,
                running=len(self._cluster.trials()),
            )
            self._cluster.wait(self._pause_s())

    def _pause_s(self) -> float:
        """Return how long to sleep: until the next submission, and not for long."""
        jobs, now_s = self._cluster.commands.jobs, self._clock.time_s()
        if self._submitted == len(jobs):
            return self._cluster.pause_s
        return min(max(jobs[self._submitted].submit_s - now_s, 0.001), self._cluster.pause_s)

    # what is written down

    def _note(self, news: News) -> None:
        if news.job is None:
            self._audit.write("skip", tick=self._loop.number, reason=news.event)
            self._report(f"{self._clock.time_s():8.1f} s  {news.event}")
            return
        if self._tell(news.event, news.job.id, news.attempt, **news.fields):
            code = news.fields.get("exit_code")
            tail = "" if code is None else f", exit code {code}"
            if news.event == "timed out":
                tail = f" after {news.job.timeout_s:g} s"
            self._report(f"{self._clock.time_s():8.1f} s  {news.job.id} {news.event}{tail}")

    def _tell(self, event: str, job: str, attempt: int, **fields: Any) -> bool:
        """Write down what happened to a job, once; return whether it was new."""
        if (job, event, attempt) in self._told:
            return False
        self._told.add((job, event, attempt))
        self._audit.write("job", job=job, event=event, attempt=attempt, **fields)
        return True

    def _note_submissions(self) -> None:
        now_s, jobs = self._clock.time_s(), self._cluster.commands.jobs
        while self._submitted < len(jobs) and jobs[self._submitted].submit_s <= now_s:
            job = jobs[self._submitted]
            self._tell("submitted", job.id, 0, submit_s=job.submit_s, gpus=job.gpus,
                       estimate_s=job.believed_s, kind=job.kind, user=job.user, tenant=job.tenant,
                       priority=job.priority, deadline_s=job.record()["deadline_s"])  # fmt: skip
            self._submitted += 1

    def _note_nodes(self) -> None:
        nodes = self._cluster.machines.records()
        if nodes != self._folder.about["nodes"]:
            self._folder.about["nodes"] = nodes
            write_json(self._folder.path / ABOUT, self._folder.about)

    # stopping

    def _stop(self) -> None:
        """Begin to stop: nothing starts any more, and what runs is asked to end."""
        self._stopping = True

    def _has_stopped(self) -> bool:
        if math.isinf(self._stop_s):
            self._stop_s = self._clock.time_s() + UNSURE_AT_STOP_S
            self._cluster.hold_back()
        left = self._cluster.trials()
        is_patient = self._clock.time_s() < self._stop_s
        return not any(trial.has_gpus or is_patient for trial in left)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Stop cleanly on SIGTERM and SIGINT."""
        old = {
            number: signal.signal(number, lambda *_: self._stop())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _result(self, state: str) -> Result:
        fates = self._cluster.fates
        finished = sum(fate.is_over and fate.exit_code == 0 for fate in fates)
        failed = sum(fate.is_over and fate.exit_code != 0 for fate in fates)
        left = len(fates) - finished - failed
        names = failures(self._cluster.commands, fates, self._told)
        return Result(state, finished, failed, left, self._found_again, names)
