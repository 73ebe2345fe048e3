"""Who trains in a folder, and asking them to stop.

A training holds the lock of its folder as long as it lives; the kernel says which process that is.
So nobody is ever stopped by a number that a file mentions and that may belong to somebody else by
now: the process must hold the lock at the moment it is asked.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from yardmaster.dashboard.refusals import Refusal

LOCK = ".lock"
_LOCKS = Path("/proc/locks")


def trainer(folder: Path) -> int | None:
    """Return the process that trains in a folder; None if nobody does."""
    lock = folder / LOCK
    try:
        inode = lock.stat().st_ino
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        # 1: FLOCK  ADVISORY  WRITE 6941 fe:00:2174167 0 EOF; those that wait have an arrow.
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK" or not words[5].endswith(f":{inode}"):
            continue
        pid = int(words[4])
        if pid > 0 and _has_open(pid, lock):
            return pid
    return None


def _has_open(pid: int, lock: Path) -> bool:
    """Whether a process has the lock's file open: inodes of other file systems can be equal."""
    wanted = lock.resolve()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if link.readlink() == wanted:
                    return True
            except OSError:
                continue
    except OSError:
        return False
    return False


def ask_to_stop(folder: Path, name: str) -> int:
    """Interrupt the training in a folder, as Ctrl-C would: it finishes its update and saves.

    Returns:
        The process that was asked.

    Raises:
        Refusal: if nobody trains there, or it is part of a larger program.
    """
    pid = trainer(folder)
    if pid is None:
        raise Refusal(409, f"Nobody trains in {name} now.")
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        raise Refusal(409, f"Nobody trains in {name} any more.") from None
    try:
        # The handle stands for this very process; only now is it certain who that is.
        if trainer(folder) != pid:
            raise Refusal(409, f"Nobody trains in {name} any more.")
        if not is_command(pid):
            raise Refusal(
                409,
                f"The training in {name} is part of another program (process {pid}); stop that.",
            )
        signal.pidfd_send_signal(handle, _polite_signal(pid))
    except PermissionError:
        raise Refusal(403, f"The training in {name} belongs to another user.") from None
    except ProcessLookupError:
        raise Refusal(409, f"Nobody trains in {name} any more.") from None
    finally:
        os.close(handle)
    return pid


def _polite_signal(pid: int) -> signal.Signals:
    """Return what asks to stop once, however often it is sent, where the process knows it."""
    is_ours = "yardmaster.cli.child" in _words(pid)
    return signal.SIGHUP if is_ours else signal.SIGINT


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def is_command(pid: int) -> bool:
    """Whether a process is `yardmaster train`, which stops alone and can be resumed."""
    words = _words(pid)
    places = [place for place, word in enumerate(words) if word == "train"]
    names = {"yardmaster", "yardmaster.cli.child", "__main__.py"}
    return bool(places) and any(Path(word).name in names for word in words[: places[0]])
