"""Running Slurm's programs: always under a time limit, in the C locale, with times in seconds.

They are told to count in UTC: elsewhere they look up the local time of every moment they print,
which takes a third of what squeue does, and mistake moments in the hour that summer time repeats.

Reading and writing are kept apart. What is written to Slurm is built by `changes.py` alone.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Self

from yardmaster.errors import YardmasterError

SEPARATOR = "\x1f"
"""Between cells: what people write may contain `|` and commas, but no control sign."""

READERS = ("squeue", "sinfo", "sprio", "sacct", "sacctmgr", "sdiag")
"""Programs that are run to read; `scontrol` also reads, with `show` alone."""

PIECE_BYTES = 1 << 20
"""Most that is taken of what a program prints at a time."""
_HABITS = ("SQUEUE_", "SINFO_", "SPRIO_", "SACCT_")
"""How variables begin by which people see only their own jobs; nobody must be overlooked."""
_NO_SETTINGS = "Could not establish a configuration source"
"""What Slurm's programs say, after much about DNS, where there is no slurm.conf."""


class SlurmError(YardmasterError):
    """Slurm did not answer, or not as expected."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Slurm's programs on this machine.

    Attributes:
        timeout_s: how long a program may take; commands hang for long without a controller.
        environment: variables to set, such as SLURM_CONF; those of this process otherwise.
    """

    timeout_s: float = 20.0
    environment: Mapping[str, str] = field(default_factory=dict)

    def read(self, *command: str) -> str:
        """Run a program that only reads and return what it printed.

        Raises:
            SlurmError: if it is missing, too slow, or fails.
        """
        _check_reads(command)
        return _told(self.run(command))

    def read_all(self, *commands: Sequence[str]) -> list[str]:
        """Run several programs that only read, at the same time.

        Raises:
            SlurmError: if one is missing, too slow, or fails; the others are ended.
        """
        for command in commands:
            _check_reads(command)
        return [_told(answer) for answer in self._run_all(commands)]

    def run(
        self, command: Sequence[str], text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, with text on its standard input.

        Raises:
            SlurmError: if it is missing or too slow.
        """
        # Without an input of its own the program must not read ours.
        source = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
        try:
            return subprocess.run(  # noqa: S603 - Slurm's own programs
                list(command), env=self._variables(), capture_output=True, text=True, check=False,
                errors="replace", timeout=self.timeout_s, **source,
            )  # fmt: skip
        except FileNotFoundError:
            raise _missing(command) from None
        except subprocess.TimeoutExpired:
            raise self._late(command) from None

    def _run_all(self, commands: Sequence[Sequence[str]]) -> list[subprocess.CompletedProcess[str]]:
        """Run programs at the same time, without a thread for each.

        What they print is taken as it comes, piece by piece: on a busy machine that is quicker than
        taking it at once, as a program that sometimes waits is let run sooner.
        """
        deadline = time.monotonic() + self.timeout_s
        variables = self._variables()
        with ExitStack() as stack, selectors.DefaultSelector() as selector:
            started = [stack.enter_context(_Running.of(one, variables)) for one in commands]
            for one in started:
                for pipe, parts in one.pipes:
                    selector.register(pipe, selectors.EVENT_READ, (one, parts))
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0.0))
                if not ready:
                    raise self._late(next(iter(selector.get_map().values())).data[0].command)
                for key, _ in ready:
                    if part := os.read(key.fd, PIECE_BYTES):
                        key.data[1].append(part)
                    else:
                        selector.unregister(key.fileobj)
            return [one.answer(self._code(one, deadline)) for one in started]

    def _code(self, running: _Running, deadline: float) -> int:
        """Return how a program ended that has nothing more to say."""
        try:
            return running.process.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            raise self._late(running.command) from None

    def _variables(self) -> dict[str, str]:
        told = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C", "TZ": "UTC0"}
        variables = {**os.environ, **self.environment, **told}
        variables.pop("SLURM_BITSTR_LEN", None)
        conf = variables.get("SLURM_CONF", "")
        if conf and not os.path.isfile(conf):  # noqa: PTH113 - thousands of times a day
            # Slurm's programs would look for a controller elsewhere until they are too late.
            raise SlurmError(
                f"$SLURM_CONF names {conf}, and there is no such file; unset it, or name the"
                " slurm.conf of the cluster."
            )
        return {name: value for name, value in variables.items() if not name.startswith(_HABITS)}

    def _late(self, command: Sequence[str]) -> SlurmError:
        return SlurmError(
            f"{command[0]} did not answer within {self.timeout_s:g} s; is slurmctld running?"
        )


@dataclass(frozen=True, slots=True)
class _Running:
    """A program at work; left in the middle, it is ended."""

    command: Sequence[str]
    process: subprocess.Popen[bytes]
    printed: list[bytes] = field(default_factory=list)
    complained: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, command: Sequence[str], variables: Mapping[str, str]) -> _Running:
        try:
            process = subprocess.Popen(  # noqa: S603 - Slurm's own programs
                list(command), env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
        except FileNotFoundError:
            raise _missing(command) from None
        return cls(command, process)

    @property
    def pipes(self) -> tuple[tuple[IO[bytes], list[bytes]], ...]:
        """What it prints and complains about, and where that is kept."""
        assert self.process.stdout is not None  # noqa: S101
        assert self.process.stderr is not None  # noqa: S101
        return (self.process.stdout, self.printed), (self.process.stderr, self.complained)

    def answer(self, code: int) -> subprocess.CompletedProcess[str]:
        out, err = (b"".join(parts).decode("utf-8", "replace") for _, parts in self.pipes)
        return subprocess.CompletedProcess(self.command, code, out, err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe, _parts in self.pipes:
            pipe.close()


def _missing(command: Sequence[str]) -> SlurmError:
    return SlurmError(
        f"{command[0]} is not installed here. On Debian: apt-get install slurm-client"
    )


def _check_reads(command: Sequence[str]) -> None:
    if command[0] not in READERS and tuple(command[:2]) != ("scontrol", "show"):
        raise SlurmError(f"{command[0]} is not a program that only reads.")


def _told(answer: subprocess.CompletedProcess[str]) -> str:
    """Return what a program printed.

    Raises:
        SlurmError: if it failed.
    """
    name = answer.args[0]
    if answer.returncode and _NO_SETTINGS in answer.stderr:
        raise SlurmError(
            f"{name} finds no settings of a Slurm cluster on this machine: set SLURM_CONF"
            " to the path of its slurm.conf."
        )
    if answer.returncode:
        raise SlurmError(f"{name} failed: {_tail(answer.stderr or answer.stdout)}")
    return answer.stdout


def _tail(text: str) -> str:
    return " ".join(text.split())[-300:] or "it said nothing"
