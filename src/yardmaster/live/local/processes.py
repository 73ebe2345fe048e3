"""Processes that are ours and nobody else's: told by pid and start time together.

A pid alone may by now belong to another program. Its start time, in clock ticks since boot, makes
the pair unique for as long as the machine runs; the boot's own id makes it unique for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, and the group and session it leads."""

    pid: int
    start_ticks: int
    boot: str

    def is_alive(self) -> bool:
        """Whether this very process still runs; one that nobody has buried yet does not."""
        if self.boot != boot_id():
            return False
        found = _stat(self.pid)
        return found is not None and found[0] not in "ZX" and found[1] == self.start_ticks

    def signal_group(self, number: signal.Signals) -> bool:
        """Send a signal to the whole group, if it is still ours; return whether it was sent."""
        if not self.is_alive():
            return False
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def kill_leftovers(self, mark: str) -> int:
        """Kill what the process left behind in its session; return how many that were.

        No new process can get the number of a session that somebody is still in. To be sure all
        the same, only those are killed that carry our mark in their environment.
        """
        found = _stat(self.pid)
        is_somebody_else = found is not None and found[1] != self.start_ticks
        if self.boot != boot_id() or is_somebody_else or self.is_alive():
            return 0
        left = [pid for pid in self._leftovers() if _carries(pid, mark)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return len(left)

    def _leftovers(self) -> Iterator[int]:
        for entry in os.scandir(PROC):
            if entry.name.isdigit() and int(entry.name) != self.pid:
                found = _stat(int(entry.name))
                if found is None or found[0] in "ZX" or found[2] != self.pid:
                    continue
                if found[1] >= self.start_ticks:
                    yield int(entry.name)


def sessions() -> set[int]:
    """Return the sessions that somebody lives in, each by the number of its first process."""
    names = [entry.name for entry in os.scandir(PROC) if entry.name.isdigit()]
    found = [_stat(int(name)) for name in names]
    return {one[2] for one in found if one is not None and one[0] not in "ZX"}


def _carries(pid: int, mark: str) -> bool:
    """Whether a process was started with this entry in its environment."""
    try:
        entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return mark.encode() in entries


def process_of(pid: int) -> Process | None:
    """Return the process of this number, None if there is none."""
    found = _stat(pid)
    return None if found is None else Process(pid, found[1], boot_id())


def _stat(pid: int) -> tuple[str, int, int] | None:
    """Return state, start time in ticks and session of a process; None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in brackets and may hold anything, brackets and blanks too.
    cells = text[text.rindex(")") + 2 :].split()
    return cells[0], int(cells[19]), int(cells[3])


def boot_id() -> str:
    """Return what tells this boot of the machine from any other; empty if nobody says."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
