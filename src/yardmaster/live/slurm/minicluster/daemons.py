"""Processes that outlive the command that starts them, remembered by id and start time.

A process id alone is not enough to end something by: ids are used again. Each daemon therefore has
a file with its id and the moment it began (in clock ticks since boot, as the kernel counts), and
nothing is ever sent to a process whose moment differs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

POLL_S = 0.02


def start(name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Start a daemon in a session of its own; its output goes to `logs/NAME.out`.

    Args:
        name: what to remember it by.
        command: the program, told to stay in the foreground, and its arguments.
        folder: the cluster's folder.
        environment: the daemon's environment variables.
    """
    log = folder / "logs" / f"{name}.out"
    # The shell ends at once, so the daemon is nobody's child and leaves no zombie with us.
    shell = 'log="$1"; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
    pid = subprocess.run(  # noqa: S603 - our own daemons
        ["/bin/sh", "-c", shell, "sh", str(log), *command],
        check=True, capture_output=True, text=True, env=dict(environment), start_new_session=True,
    ).stdout.strip()  # fmt: skip
    (folder / "pids" / name).write_text(f"{pid} {_began(int(pid))}\n", encoding="utf-8")


def is_alive(name: str, folder: Path) -> bool:
    """Whether the daemon that was started under this name still runs."""
    return pid_of(name, folder) is not None


def pid_of(name: str, folder: Path) -> int | None:
    """Return the process id of a daemon that runs, None if it does not."""
    try:
        pid, began = map(int, (folder / "pids" / name).read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        return None
    return pid if began and _began(pid) == began else None


def send(name: str, folder: Path, number: signal.Signals) -> bool:
    """Send a signal to a daemon; False if it does not run."""
    pid = pid_of(name, folder)
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def stop(names: Sequence[str], folder: Path, *, patience_s: float = 10.0) -> None:
    """End daemons: ask all of them, wait, then insist."""
    asked = [name for name in names if send(name, folder, signal.SIGTERM)]
    deadline = time.monotonic() + patience_s
    while any(is_alive(name, folder) for name in asked) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    for name in asked:
        send(name, folder, signal.SIGKILL)
    while any(is_alive(name, folder) for name in asked) and time.monotonic() < deadline + 5:
        time.sleep(POLL_S)


def strays(folder: Path) -> Iterator[int]:
    """Yield the ids of processes that belong to the cluster in a folder: jobs and their keepers.

    Slurm gives each of them the path of the configuration in its environment.
    """
    mark = f"SLURM_CONF={folder}/".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(variable.startswith(mark) for variable in variables):
            yield int(entry.name)


def _began(pid: int) -> int:
    """Return when a process began, in ticks since boot; 0 if it does not run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return 0 if fields[0] in {"Z", "X"} else int(fields[19])
