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
from yardmaster.live.folder import read_whole, write_json
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
printf '{"exit_code": %d, "end_unix_s": %s}\\n' "$code" "$(date +%s.%N)" > "$place/.exit.part" &&
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
        except (OSError, ValueError) as error:
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
        """Return who runs it and what was written down with that; None if nobody can say."""
        return read_whole(self.path / PROCESS, "pid", "pid_start", "boot")

    def process(self) -> Process | None:
        """Return who runs it or ran it."""
        facts = self.facts()
        if facts is None:
            return None
        return Process(int(facts["pid"]), int(facts["pid_start"]), str(facts["boot"]))

    @property
    def is_stopped(self) -> bool:
        """Whether it was we who ended it, so that it counts as no attempt.

        Who had ended before we asked was not stopped by us; nor, as far as anybody can tell, was
        who ended well where we died between the intention and the asking.
        """
        mark = self._mark()
        ending = None if mark is None else self.ending()
        if mark is None or ending is None:
            return mark is not None
        since_unix_s, is_asked = mark
        return ending.end_unix_s >= since_unix_s and (is_asked or ending.exit_code != 0)

    @property
    def is_asked(self) -> bool:
        """Whether we have asked it to end, as we stop."""
        mark = self._mark()
        return mark is not None and mark[1]

    def mark_stopped(self, *, is_asked: bool = True) -> None:
        """Note that we are about to ask it to end, as we stop, or that it is asked."""
        mark = self._mark()
        since_unix_s = time.time() if mark is None else mark[0]
        write_json(self.path / STOPPED, {"unix_s": since_unix_s, "is_asked": is_asked})

    def unmark_stopped(self) -> None:
        """Take the mark away: it was not asked, and lives."""
        (self.path / STOPPED).unlink(missing_ok=True)

    def _mark(self) -> tuple[float, bool] | None:
        """Return since when it is to end (seconds since 1970), and whether it was told so."""
        path = self.path / STOPPED
        if not path.exists():
            return None
        record = read_whole(path, "unix_s", "is_asked")
        return (0.0, True) if record is None else (float(record["unix_s"]), record["is_asked"])

    def has_begun(self) -> bool:
        """Whether the command may have run, at least a little."""
        return (self.path / BEGUN).exists()

    def ending(self) -> Ending | None:
        """Return how it ended; None if it runs, or never ran."""
        found = self._written_ending()
        if found is not None:
            return found
        process, has_exit = self.process(), (self.path / EXIT).exists()
        is_alive = process is not None and process.is_alive()
        if is_alive or (process is None and not has_exit):
            return None
        found = self._written_ending()  # between our two looks
        if found is not None:
            return found
        has_run = has_exit or self.has_begun()
        return self._note_end(VANISHED, "vanished") if has_run else None

    def _written_ending(self) -> Ending | None:
        """Return the ending that was written; None if there is none that can be read."""
        record = read_whole(self.path / EXIT, "exit_code", "end_unix_s")
        if record is None:
            return None
        return Ending(int(record["exit_code"]), float(record["end_unix_s"]))

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
