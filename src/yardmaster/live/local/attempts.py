"""One attempt at a job: a folder that says, at any moment, whether it ran, runs, or never will.

The order of things makes a crash harmless. The shell that will run the command waits at a pipe;
who it is (pid and start time) is written down; only then it is let go, notes that it has begun, and
runs. If the runner dies before, the pipe closes and the command never runs. If it dies after, the
shell goes on alone and writes the exit code itself.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.live.folder import read_json, write_json
from yardmaster.live.local.processes import Process, process_of

PROCESS, BEGUN, EXIT, STOPPED = "process.json", "begun", "exit.json", "stopped"
MARK = "YARDMASTER_FOLDER"
"""By this variable the processes of an attempt are told from others."""
KILLED = 137
VANISHED = -1
"""Exit code of an attempt whose processes went away without a word, as after a power cut."""

# The trap keeps the shell alive on SIGTERM, so that it can tell how the command ended; a command
# of ours gets the signal itself, with the whole group. A trap, unlike ignoring, is not inherited.
_SHELL = """
trap : TERM INT HUP
read -r go || exit 125
[ "$go" = go ] || exit 125
: > "$1/begun" || exit 125
place=$1
shift
"$@" < /dev/null
code=$?
printf '{"exit_code": %d, "end_unix_s": %s}\\n' "$code" "$(date +%s.%N)" > "$place/.exit.part"
mv "$place/.exit.part" "$place/exit.json"
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended."""

    exit_code: int
    """0 is success; 128 + n: killed by signal n; −1: went away without a word."""
    end_unix_s: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """The folder of one attempt."""

    path: Path

    @property
    def number(self) -> int:
        """Which attempt it is, from 1."""
        return int(self.path.name.rpartition("-")[2])

    def launch(
        self,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        facts: Mapping[str, Any],
    ) -> tuple[Process, subprocess.Popen[bytes]]:
        """Start the command; `facts` are written down with who runs it.

        Raises:
            YardmasterError: if it cannot be started; then it has not run.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / BEGUN).exists():
            raise YardmasterError(f"{self.path} has run before.")
        gate_end, gate = os.pipe()
        try:
            popen = self._popen(command, folder, environment, gate_end)
        except OSError as error:
            os.close(gate)
            raise YardmasterError(f"Cannot start it: {error}.") from None
        finally:
            os.close(gate_end)
        try:
            process = self._let_go(popen.pid, gate, facts)
        except BaseException as error:
            os.close(gate)
            popen.wait()  # the gate is closed: it ends without having run
            if isinstance(error, OSError):
                raise YardmasterError(f"Cannot write down who runs it: {error}.") from None
            raise
        os.close(gate)
        return process, popen

    def _let_go(self, pid: int, gate: int, facts: Mapping[str, Any]) -> Process:
        """Write down who runs it, then let it run."""
        process = process_of(pid)
        if process is None:
            raise YardmasterError("It ended before it began.")
        who = {"pid": process.pid, "pid_start": process.start_ticks, "boot": process.boot}
        write_json(self.path / PROCESS, {**who, **facts})
        os.write(gate, b"go\n")
        return process

    def _popen(
        self, command: Sequence[str], folder: str, environment: Mapping[str, str], gate_end: int
    ) -> subprocess.Popen[bytes]:
        with (
            (self.path / "stdout.log").open("ab") as out,
            (self.path / "stderr.log").open("ab") as err,
        ):
            return subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", _SHELL, "yardmaster-job", str(self.path.resolve()), *command],
                stdin=gate_end,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )

    def facts(self) -> dict[str, Any] | None:
        """Return who runs it and what was written down with that; None if nobody ever did."""
        path = self.path / PROCESS
        return read_json(path) if path.exists() else None

    def process(self) -> Process | None:
        """Return who runs it or ran it."""
        facts = self.facts()
        if facts is None:
            return None
        return Process(int(facts["pid"]), int(facts["pid_start"]), str(facts["boot"]))

    @property
    def is_stopped(self) -> bool:
        """Whether it was we who ended it, so that it counts as no attempt."""
        return (self.path / STOPPED).exists()

    def mark_stopped(self) -> None:
        """Note that we are about to end it."""
        (self.path / STOPPED).touch()

    def has_begun(self) -> bool:
        """Whether the command may have run, at least a little."""
        return (self.path / BEGUN).exists()

    def ending(self) -> Ending | None:
        """Return how it ended; None if it runs, or never ran."""
        path = self.path / EXIT
        if path.exists():
            record = read_json(path)
            return Ending(int(record["exit_code"]), float(record["end_unix_s"]))
        process = self.process()
        if process is None or process.is_alive():
            return None
        if path.exists():  # written between our two looks
            return self.ending()
        return self._note_end(VANISHED, "vanished") if self.has_begun() else None

    def note_killed(self) -> None:
        """Note that we have killed it, unless it ended by itself before."""
        if self.has_begun() and not (self.path / EXIT).exists():
            self._note_end(KILLED, "killed, as it did not end when asked to")

    def _note_end(self, code: int, reason: str) -> Ending:
        """Write an ending in place of the shell, which was killed with its command."""
        ending = Ending(code, time.time())
        record = {"exit_code": code, "end_unix_s": ending.end_unix_s, "reason": reason}
        write_json(self.path / EXIT, record)
        return ending


def attempts_of(job: Path) -> list[Attempt]:
    """Return the attempts at a job, first to last."""
    if not job.is_dir():
        return []
    found = [Attempt(path) for path in job.glob("attempt-*") if path.name[8:].isdigit()]
    return sorted(found, key=lambda attempt: attempt.number)
