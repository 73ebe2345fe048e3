"""One run beside Slurm, from the first look to the last: begin, tick after tick, put back, end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog, read_lines
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import STOPPING, Decider
from yardmaster.live.folder import AUDIT, LiveFolder
from yardmaster.live.reasons import by_the_clock
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.driving import (
    Settings,
    SlurmDriver,
    Tick,
    about,
    check_rights,
)
from yardmaster.live.slurm.history import RunTimes, read_history, run_times
from yardmaster.live.slurm.observing import Observation, observe
from yardmaster.live.slurm.probing import Capabilities, probe
from yardmaster.live.slurm.restoring import Restored, restore

LEARN_AGAIN_S = 3600.0
BEAT_S = 10.0
"""While pausing, a sign of life comes this often."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: ticks, those that were skipped, changes, and what was put back."""

    ticks: int
    skipped: int
    changes: int
    restored: Restored | None


class SlurmSession:
    """A run in a folder."""

    def __init__(
        self,
        slurm: Slurm,
        scheduler: str,
        settings: Settings,
        path: Path,
        *,
        history_days: float = 0.0,
    ) -> None:
        """Probe, look once, and begin; nothing is changed yet.

        Args:
            slurm: the programs.
            scheduler: who decides, in the scheduler language.
            settings: how.
            path: folder of the run.
            history_days: learn run times from so many days of accounts; 0 believes time limits.

        Raises:
            YardmasterError: if Slurm does not answer, the settings make no sense, the scheduler is
                unknown, the folder is in use, or the order is to be changed and must not be.
        """
        settings.check()
        self.slurm, self.settings = slurm, settings
        decider = _decider(scheduler, settings)
        self.capabilities: Capabilities = probe(slurm)
        check_rights(self.capabilities, settings)
        self._first = first = observe(slurm, settings.allowed)
        self._days, self._learnt_s = history_days, -LEARN_AGAIN_S
        self._skipped = self._changes = 0
        self.run_times = RunTimes()
        self.folder = LiveFolder(path)
        restarts = self.folder.begin(
            "slurm", settings.mode, decider.name, nodes=_nodes(first),
            settings={**about(settings), "cluster": self.capabilities.cluster,
                      "slurm_version": self.capabilities.version, "history_days": history_days},
        )  # fmt: skip
        began = float(self.folder.about["began_unix_s"])
        self.audit = AuditLog(path / AUDIT, LiveClock.since(began))
        self.driver = SlurmDriver(
            slurm, decider, self.capabilities, settings, self.folder, self.audit,
            began_unix_s=began, believe=self._believe if history_days else None,
        )  # fmt: skip
        if restarts:
            self.driver.happenings.recall(read_lines(path / AUDIT))
        self.audit.write("begin", pid=self.folder.about["pid"], restart=restarts)
        decider.warm(first.state.cluster)

    def unknown_names(self) -> list[str]:
        """Return a sentence for each user and account to be ordered who has no job at the begin."""
        jobs, allowed = self._first.state.jobs, self.settings.allowed
        return [
            f"no job with GPUs of {kind} {name} is in the queue now; is the name right?"
            for kind, names, found in (
                ("user", allowed.users, jobs.user), ("account", allowed.accounts, jobs.tenant),
            )
            for name in names
            if name not in found.names
        ]  # fmt: skip

    def run(
        self, *, ticks: int | None = None, report: Callable[[Tick], None] | None = None
    ) -> Ending:
        """Work until told to stop (SIGINT, SIGTERM, SIGHUP) or for so many ticks, then put back.

        Whatever else ends the work (a full disk, a pipe nobody reads) also puts back first.

        Args:
            ticks: end after so many; never if not given.
            report: called after every tick.
        """
        self._skipped = self._changes = 0
        stop, state = threading.Event(), "failed"
        with _stopping(stop):
            try:
                self._work(stop, ticks, report)
                state = "stopped" if stop.is_set() else "finished"
            finally:
                restored = self._put_back()
                self._end(state)
        return Ending(self.driver.number, self._skipped, self._changes, restored)

    def _work(
        self, stop: threading.Event, ticks: int | None, report: Callable[[Tick], None] | None
    ) -> None:
        while not stop.is_set():
            began = time.monotonic()
            self._learn()
            tick = self.driver.tick()
            self._skipped += bool(tick.skipped)
            self._changes += sum(outcome.outcome == "done" for outcome in tick.outcomes)
            if report is not None:
                report(tick)
            if ticks is not None and self.driver.number >= ticks:
                break
            self._pause(stop, began + self.driver.pause_s)

    def _pause(self, stop: threading.Event, until_s: float) -> None:
        """Wait until then, by the monotonic clock, or until told to stop."""
        while (left_s := until_s - time.monotonic()) > 0 and not stop.wait(min(left_s, BEAT_S)):
            self.driver.beat()

    def _end(self, state: str) -> None:
        """Say how it ended, as far as the disk lets, and let go of the folder."""
        with suppress(OSError):
            self.audit.write("end", state=state, finished=self.driver.number, failed=self._skipped)
            self.folder.end(state)
        with suppress(OSError):
            self.audit.close()
        self.folder.close()

    def _put_back(self) -> Restored | None:
        """Take our factors away; where Slurm does not answer, `live restore` is left to do it."""
        if self.settings.mode != "apply" or self.settings.dry_run:
            return None
        try:
            restored = restore(self.slurm, self.driver.ledger)
        except SlurmError as error:
            with suppress(OSError):
                self.audit.write("skip", tick=self.driver.number, reason=f"not put back: {error}")
            return None
        with suppress(OSError):
            self.audit.write(
                "apply", tick=self.driver.number, operation="restore",
                outcome="failed" if restored.left else "done",
                detail=f"{restored.zeroed} factors taken away, {restored.left} left",
            )  # fmt: skip
        return restored

    def _learn(self) -> None:
        """Read the accounts now and then; without an answer what was learnt before still counts."""
        if not self._days or time.monotonic() - self._learnt_s < LEARN_AGAIN_S:
            return
        self._learnt_s = time.monotonic()
        try:
            self.run_times = run_times(read_history(self.slurm, days=self._days))
        except YardmasterError as error:
            self.audit.write("skip", tick=self.driver.number, reason=f"no history: {error}")

    def _believe(self, rows: Any) -> list[float]:
        return self.run_times.believe(rows)


def _decider(scheduler: str, settings: Settings) -> Decider:
    """Return who decides; one that stops jobs only where that was asked for.

    Raises:
        YardmasterError: if there is no such scheduler, or it stops jobs and must not, or must and
            does not.
    """
    wanted = settings.requeue is not None
    try:
        decider = Decider(scheduler, when=by_the_clock, may_stop=wanted)
    except YardmasterError as error:
        if not wanted and STOPPING in str(error):
            raise YardmasterError(f"{error} Or ask for it: --preempt-requeue.") from None
        raise
    if wanted and not decider.stops_jobs:
        raise YardmasterError(
            f"--preempt-requeue: {decider.name} stops no job; use srpt+preemptive."
        )
    return decider


def _nodes(observation: Observation) -> list[dict[str, Any]]:
    """Return the nodes as `live.json` lists them."""
    state = observation.state
    cluster = state.cluster
    return [
        {
            "name": name,
            "gpus": int(cluster.node_gpus[number]),
            "gpu_type": cluster.gpu_types[cluster.node_type[number]].name,
            "devices": [],
        }
        for number, name in enumerate(state.node_names)
    ]


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Let signals end the run in good order; outside the main thread leave them be.

    SIGHUP comes when a terminal is closed; who ignores it (`nohup`) goes on ignoring it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {one: signal.signal(one, note) for one in numbers}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
