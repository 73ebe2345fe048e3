"""One run beside Slurm, from the first look to the last: begin, tick after tick, put back, end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog, read_lines
from yardmaster.live.clock import LiveClock
from yardmaster.live.decision import Decider
from yardmaster.live.folder import AUDIT, LiveFolder
from yardmaster.live.reasons import by_the_clock
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.driving import Settings, SlurmDriver, Tick, about
from yardmaster.live.slurm.history import RunTimes, read_history, run_times
from yardmaster.live.slurm.observing import Observation, observe
from yardmaster.live.slurm.probing import Capabilities, probe
from yardmaster.live.slurm.restoring import Restored, restore

LEARN_AGAIN_S = 3600.0


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
            YardmasterError: if Slurm does not answer, the scheduler is unknown, the folder is in
                use, or the order is to be changed and must not be.
        """
        self.slurm, self.settings = slurm, settings
        self.capabilities: Capabilities = probe(slurm)
        decider = Decider(scheduler, when=by_the_clock)
        first = observe(slurm, settings.allowed)
        self._days, self._learnt_s = history_days, -LEARN_AGAIN_S
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

    def run(
        self, *, ticks: int | None = None, report: Callable[[Tick], None] | None = None
    ) -> Ending:
        """Work until told to stop (SIGINT, SIGTERM) or for so many ticks, then put back.

        Args:
            ticks: end after so many; never if not given.
            report: called after every tick.
        """
        skipped = changes = 0
        stop = threading.Event()
        with _stopping(stop):
            while not stop.is_set():
                began = time.monotonic()
                self._learn()
                tick = self.driver.tick()
                skipped += bool(tick.skipped)
                changes += sum(outcome.outcome == "done" for outcome in tick.outcomes)
                if report is not None:
                    report(tick)
                if ticks is not None and self.driver.number >= ticks:
                    break
                stop.wait(max(self.driver.pause_s - (time.monotonic() - began), 0.0))
            restored = self._put_back()
        state = "finished" if not stop.is_set() else "stopped"
        self.audit.write("end", state=state, finished=self.driver.number, failed=skipped)
        self.folder.end(state)
        self.audit.close()
        self.folder.close()
        return Ending(self.driver.number, skipped, changes, restored)

    def _put_back(self) -> Restored | None:
        """Take our factors away; where Slurm does not answer, `live restore` is left to do it."""
        if self.settings.mode != "apply" or self.settings.dry_run:
            return None
        try:
            restored = restore(self.slurm, self.driver.ledger)
        except SlurmError as error:
            self.audit.write("skip", tick=self.driver.number, reason=f"not put back: {error}")
            return None
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
    """Let SIGINT and SIGTERM end the run in good order; outside the main thread leave them be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {one: signal.signal(one, note) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
