"""Running a workload of real commands on this node, to its end, through crashes of our own."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog, read_lines
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.folder import AUDIT, JOBS, TELEMETRY, LiveFolder, read_whole
from yardmaster.live.local.attempts import attempts_of
from yardmaster.live.local.commands import Commands
from yardmaster.live.local.node import JOB, Ended, LaunchedJob, LocalNode, Running
from yardmaster.live.local.slots import Slots, pretended
from yardmaster.live.local.telemetry import Nvml, Sampler
from yardmaster.live.loop import Loop

LONGEST_SLEEP_S = 1.0
LONGEST_GRACE_S = 86_400.0
SHORTEST_SAMPLE_S, LONGEST_SAMPLE_S = 0.05, 86_400.0
FALLBACK = "fifo+skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a workload is run.

    Attributes:
        scheduler: who decides.
        gpus: slots that stand for GPUs which are not there; None: the GPUs of this machine.
        slots_per_gpu: how many jobs share a GPU.
        grace_s: how long a job that is asked to end has before it is killed.
        sample_s: seconds between two samples of the machine.
        seed: seed of random schedulers.
    """

    scheduler: str = "sjf+easy"
    gpus: int | None = None
    slots_per_gpu: int = 1
    grace_s: float = 10.0
    sample_s: float = 1.0
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            YardmasterError: naming the setting.
        """
        if not 0 <= self.grace_s <= LONGEST_GRACE_S:
            raise YardmasterError(
                f"--grace-s must be between 0 and {LONGEST_GRACE_S:,.0f} seconds, got"
                f" {self.grace_s}."
            )
        if not SHORTEST_SAMPLE_S <= self.sample_s <= LONGEST_SAMPLE_S:
            raise YardmasterError(
                f"--sample-s must be between {SHORTEST_SAMPLE_S} and {LONGEST_SAMPLE_S:,.0f}"
                f" seconds, got {self.sample_s}."
            )

    def record(self) -> dict[str, Any]:
        """Return what a second runner of the same folder must agree with."""
        return {
            "gpus": self.gpus, "slots_per_gpu": self.slots_per_gpu, "grace_s": self.grace_s,
            "seed": self.seed,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    state: str
    """finished or stopped."""
    finished: int
    failed: int
    unfinished: int
    found_again: int
    """Jobs that were running when the run was taken up."""
    failures: tuple[str, ...] = ()
    """Each failed job and how it failed, such as `d (exit 3)` or `e (timed out)`."""


def run_local(
    commands: Commands,
    folder: Path,
    settings: Settings,
    *,
    report: Callable[[str], None] | None = None,
) -> Result:
    """Run a workload in a folder, or take it up where it was left.

    Raises:
        YardmasterError: if there is nothing to run on, another process works in the folder, or the
            folder is that of another workload.
    """
    settings.check()
    nvml = Nvml()
    devices = nvml.devices if settings.gpus is None else pretended(settings.gpus)
    if not devices:
        raise YardmasterError(
            f"There is no GPU to run on ({nvml.reason}); --gpus N gives N slots that stand for"
            " GPUs."
        )
    slots = Slots(devices, settings.slots_per_gpu)
    large = [job.id for job in commands.jobs if job.gpus > len(slots)]
    if large:
        raise YardmasterError(f"Job {large[0]} asks for more than the {len(slots)} slots here.")
    decider = Decider(settings.scheduler, seed=settings.seed)
    decider.warm(slots.cluster("here"))  # before the clock starts: compiling takes seconds
    held = LiveFolder(folder)
    try:
        runner = _Runner(commands, held, settings, slots, nvml=nvml, decider=decider, report=report)
        return runner.run()
    finally:
        held.close()


class _Runner:
    """One process at work on a folder."""

    def __init__(
        self,
        commands: Commands,
        folder: LiveFolder,
        settings: Settings,
        slots: Slots,
        *,
        nvml: Nvml,
        decider: Decider,
        report: Callable[[str], None] | None,
    ) -> None:
        _check_same(folder, commands, settings)
        self._folder, self._settings, self._nvml = folder, settings, nvml
        self._report = report or (lambda _: None)
        self._restarts = folder.begin(
            "local", "run", decider.name,
            nodes=[_node_record(slots)], workload=commands.name, jobs=len(commands),
            telemetry="nvml" if nvml.devices else nvml.reason,
            settings=settings.record() | {"weights": decider.fingerprint},
        )  # fmt: skip
        self._clock = LiveClock.since(folder.about["began_unix_s"])
        path = folder.path
        self._told = already_told(path / AUDIT) if self._restarts else set()
        self._audit = AuditLog(path / AUDIT, self._clock)
        self._node = LocalNode(commands, slots, path, self._clock)
        fallback = Decider(FALLBACK, seed=settings.seed)
        self._loop = Loop(self._node, decider, self._audit, fallback=fallback)
        self._sampler = Sampler(path / TELEMETRY, nvml, self._clock, every_s=settings.sample_s)
        self._stopping = False
        self._energy_j: dict[str, float] = {}
        self._submitted = 0
        self.found_again = len(self._node.running())
        for running in self._node.running():
            if running.attempt.is_asked:  # by an earlier runner, which did not see its end
                self._ask(running)

    def run(self) -> Result:
        """Work until every job is over, or somebody asks to stop."""
        self._audit.write("begin", pid=os.getpid(), restart=self._restarts,
                          torn_bytes=self._audit.torn_bytes)  # fmt: skip
        self._report(opening(self._node.commands, self._folder.path))
        self._tell_the_past()
        self._sampler.start()
        try:
            with self._listening():
                self._work()
        finally:
            self._sampler.stop()
        state = "stopped" if self._stopping and not self._node.is_done else "finished"
        result = self._result(state)
        self._audit.write("end", state=state, finished=result.finished, failed=result.failed)
        self._audit.close()
        self._folder.end(state)
        return result

    def _work(self) -> None:
        due_s = 0.0
        while True:
            ended = list(self._node.ended())
            for one in ended:
                self._note_end(one)
            self._note_submissions()
            self._stop_overdue()
            if self._stopping:
                self._ask_to_end()
                if not self._node.running():
                    return
            elif self._node.is_done:
                return
            elif ended or self._clock.time_s() >= due_s:
                for outcome in self._loop.tick().outcomes:
                    self._note_start(outcome)
            due_s = self._node.next_s()
            self._folder.beat(
                time_s=round(self._clock.time_s(), 3),
                tick=self._loop.number,
                running=len(self._node.running()),
            )
            self._node.wait(max(min(due_s - self._clock.time_s(), LONGEST_SLEEP_S), 0.0))

    # what is written down

    def _tell(self, event: str, job: str, attempt: int, **fields: Any) -> None:
        """Write down what happened to a job, once."""
        if (job, event, attempt) not in self._told:
            self._told.add((job, event, attempt))
            self._audit.write("job", job=job, event=event, attempt=attempt, **fields)

    def _tell_the_past(self) -> None:
        """Write down what happened to jobs while nobody was there to do so."""
        self._note_submissions()
        if not self._restarts:
            return
        for running in self._node.running():
            job = self._node.commands.jobs[running.row]
            self._tell("started", job.id, running.attempt.number, start_s=running.start_s,
                       slots=list(running.slots), gpus=job.gpus, found_again=True)  # fmt: skip
        for job in self._node.commands.jobs:
            for attempt in attempts_of(self._folder.path / JOBS / job.id):
                facts, ending = attempt.facts(), attempt.ending()
                if facts is None or ending is None:
                    continue
                self._tell("started", job.id, attempt.number, start_s=facts["start_s"],
                           slots=facts["slots"], gpus=job.gpus)  # fmt: skip
                event = "stopped" if attempt.is_stopped else "ended"
                self._tell(event, job.id, attempt.number, start_s=facts["start_s"],
                           end_s=round(self._clock.of_unix(ending.end_unix_s), 4),
                           exit_code=ending.exit_code, submit_s=job.submit_s,
                           estimate_s=job.believed_s, gpus=job.gpus)  # fmt: skip

    def _note_submissions(self) -> None:
        now_s, jobs = self._clock.time_s(), self._node.commands.jobs
        while self._submitted < len(jobs) and jobs[self._submitted].submit_s <= now_s:
            job = jobs[self._submitted]
            self._tell("submitted", job.id, 0, submit_s=job.submit_s, gpus=job.gpus,
                       estimate_s=job.believed_s, kind=job.kind, user=job.user, tenant=job.tenant,
                       priority=job.priority, deadline_s=job.record()["deadline_s"])  # fmt: skip
            self._submitted += 1

    def _note_start(self, outcome: LaunchedJob) -> None:
        running = outcome.running
        if outcome.outcome == "failed":
            fate = self._node.fates[outcome.row]
            event = "gave up" if fate.is_over else "retrying"
            self._tell(event, outcome.job, fate.next_number - 1, exit_code=fate.exit_code,
                       detail=outcome.detail)  # fmt: skip
        if running is None:
            return
        job = self._node.commands.jobs[running.row]
        self._energy_j[job.id] = self._energy(running.slots)
        self._tell("started", job.id, running.attempt.number, start_s=round(running.start_s, 4),
                   slots=list(running.slots), gpus=job.gpus)  # fmt: skip
        self._report(f"{self._clock.time_s():8.1f} s  {job.id} starts")

    def _note_end(self, ended: Ended) -> None:
        running, code = ended.running, ended.ending.exit_code
        job, fate = self._node.commands.jobs[running.row], self._node.fates[running.row]
        began_j = self._energy_j.pop(job.id, math.nan)
        used_j = self._energy(running.slots) - began_j
        event = "stopped" if running.attempt.is_stopped else "ended"
        self._tell(
            event, job.id, running.attempt.number,
            submit_s=job.submit_s, start_s=round(running.start_s, 4), end_s=round(ended.end_s, 4),
            exit_code=code, estimate_s=job.believed_s, gpus=job.gpus, kind=job.kind,
            energy_j=None if math.isnan(used_j) else round(used_j, 3),
        )  # fmt: skip
        if event == "ended" and code != 0:
            last = "gave up" if fate.is_over else "retrying"
            after_s = None if fate.is_over else round(fate.not_before_s, 3)
            self._tell(last, job.id, running.attempt.number, exit_code=code, not_before_s=after_s)
        how = f"{event}, exit code {code}"
        if running.timed_out and event == "ended":
            how = f"timed out after {job.timeout_s:g} s (exit code {code})"
        self._report(f"{self._clock.time_s():8.1f} s  {job.id} {how}")

    def _energy(self, slots: tuple[int, ...]) -> float:
        """Return joules so far of the GPUs of these slots; NaN where they are shared or none."""
        if self._node.slots.per_gpu > 1:
            return math.nan
        total = 0.0
        for slot in slots:
            device = self._node.slots.device_of(slot)
            used_j = self._nvml.energy_j(device.index) if device.is_real else None
            total += math.nan if used_j is None else used_j
        return total

    # stopping

    def _stop_overdue(self) -> None:
        """End jobs that have run longer than they may, and kill those that do not listen."""
        now_s = self._clock.time_s()
        for running in self._node.running():
            job = self._node.commands.jobs[running.row]
            if not running.timed_out and now_s >= running.start_s + job.timeout_s:
                running.timed_out = True
                self._node.stop(running, self._settings.grace_s)
                self._tell("timed out", job.id, running.attempt.number, timeout_s=job.timeout_s)
        self._node.kill_overdue()

    def _stop(self) -> None:
        """Begin to stop. A signal may come in the middle of a launch: only flags are set here."""
        self._stopping = True
        self._node.hold_back()

    def _ask_to_end(self) -> None:
        """Ask what runs to end, each once, what has started since the last time too."""
        for running in self._node.running():
            if not running.is_stopping:
                self._ask(running)

    def _ask(self, running: Running) -> None:
        running.is_stopping = True
        running.attempt.mark_stopped(is_asked=running.attempt.is_asked)
        if self._node.stop(running, self._settings.grace_s):
            running.attempt.mark_stopped()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Stop cleanly on SIGTERM and SIGINT, and wake up for them."""
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._node.watch_also(reading)
        old_wake_up = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        old = {
            number: signal.signal(number, lambda *_: self._stop())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(old_wake_up)
            os.close(reading)
            os.close(writing)

    def _result(self, state: str) -> Result:
        fates = self._node.fates
        finished = sum(fate.is_over and fate.exit_code == 0 for fate in fates)
        failed = sum(fate.is_over and fate.exit_code != 0 for fate in fates)
        left = len(fates) - finished - failed
        names = failures(self._node.commands, fates, self._told)
        return Result(state, finished, failed, left, self.found_again, names)


def opening(commands: Commands, folder: Path) -> str:
    """Return what is said once a run begins."""
    return f"{len(commands)} jobs of {commands.name}; everything goes to {folder}"


class Fate(Protocol):
    """What has become of a job, on whatever it runs."""

    exit_code: int | None
    is_over: bool
    next_number: int


def failures(
    commands: Commands, fates: Iterable[Fate], told: Collection[tuple[str, str, int]]
) -> tuple[str, ...]:
    """Name the jobs that were given up, and how the last attempt at each ended.

    Args:
        commands: the jobs.
        fates: what has become of each.
        told: job, event and attempt of what the audit log says of jobs.
    """
    found = []
    for job, fate in zip(commands.jobs, fates, strict=True):
        if not fate.is_over or fate.exit_code == 0:
            continue
        if (job.id, "timed out", fate.next_number - 1) in told:
            how = "timed out"
        else:
            how = "lost with its node" if fate.exit_code is None else f"exit {fate.exit_code}"
        found.append(f"{job.id} ({how})")
    return tuple(found)


def _node_record(slots: Slots) -> dict[str, Any]:
    from yardmaster.live.local.slots import type_named

    return {
        "name": os.uname().nodename,
        "gpus": len(slots),
        "gpu_type": type_named(slots.devices[0].name).name,
        "devices": [device.record() for device in slots.devices],
    }


def _check_same(folder: LiveFolder, commands: Commands, settings: Settings) -> None:
    """Refuse to go on with another workload, or on other slots, than the folder's.

    Raises:
        YardmasterError: naming what is different.
    """
    if not folder.about:
        return
    asked = {"workload": commands.name, "jobs": len(commands)}
    for name, value in asked.items():
        if folder.about.get(name) != value:
            raise YardmasterError(
                f"{folder.path} is of another workload: {name} is {folder.about.get(name)!r} there,"
                f" {value!r} here."
            )
    for name in ("gpus", "slots_per_gpu"):
        there, here = folder.about["settings"].get(name), settings.record()[name]
        if there != here:
            raise YardmasterError(f"{folder.path} was begun with {name} {there!r}, not {here!r}.")
    _check_jobs(folder.path / JOBS, commands)


def _check_jobs(folder: Path, commands: Commands) -> None:
    """Refuse to go on with jobs that are not those which the folder was begun with.

    Raises:
        YardmasterError: naming the first job that is different, and in what.
    """
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    strange = sorted(there - {job.id for job in commands.jobs})
    if strange:
        raise YardmasterError(
            f"{folder} has a job {strange[0]!r} that the workload has not; take up a run with its"
            " own workload, or name another folder."
        )
    for job in commands.jobs:
        asked = json.loads(json.dumps(job.record()))
        was = read_whole(folder / job.id / JOB) or asked
        for name, value in asked.items():
            if was.get(name) != value:
                raise YardmasterError(
                    f"Job {job.id} has changed since this run was begun: {name} was"
                    f" {was.get(name)!r}, now {value!r}; name another folder for a new run."
                )


def already_told(path: Path) -> set[tuple[str, str, int]]:
    """Return what the audit log says of jobs already."""
    if not path.exists():
        return set()
    return {
        (line["job"], line["event"], line["attempt"])
        for line in read_lines(path)
        if line["what"] == "job"
    }
