"""The workbench: commands that people start from a page, a few at a time, as child processes.

Everything happens in the server's event loop. A command is a list of words that the caller has
checked; no shell ever sees it. When the server stops, so do its commands: most within seconds, a
training when it has finished its update and saved.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from yardmaster.dashboard.refusals import Refusal

MOST_RUNNING = 2
MOST_WAITING = 8
MOST_KEPT = 40
"""Pieces of work that are remembered after their end."""
OUTPUT_LINES = 60
LONGEST_LINE = 500
SECRETS = frozenset({"YARDMASTER_TOKEN"})
"""Variables that are the server's own business."""
PATIENCE_S = 3.0
"""How long an interrupted command may take to tidy up before it is killed."""
SAVING_S = 600.0
"""The same for a training, which finishes its update and saves: killed before, it loses work."""
_LOOK_S = 0.02
_PROGRESS = re.compile(r"([\d,]+)/([\d,]+) \w+, ")

State = Literal["waiting", "running", "finished", "failed", "cancelled"]


@dataclass(eq=False)
class Work:
    """One command that was asked for.

    Attributes:
        number: names it, counted from 1.
        kind: `play` or `training`: what it was started for.
        run: name of the run that it makes or goes on with.
        words: the command, without `yardmaster`.
        folder: the run's folder.
        state: how it stands.
        done: simulations or steps that are done.
        total: of so many; 0 if not known.
        output: the last lines it wrote.
        exit_code: how it ended; None before that, negative if by a signal.
    """

    number: int
    kind: str
    run: str
    words: tuple[str, ...]
    folder: Path
    state: State = "waiting"
    done: int = 0
    total: int = 0
    output: deque[str] = field(default_factory=lambda: deque(maxlen=OUTPUT_LINES))
    asked_s: float = field(default_factory=time.time)
    ended_s: float | None = None
    exit_code: int | None = None
    is_cancelled: bool = False
    process: subprocess.Popen[bytes] | None = None
    follower: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in {"waiting", "running"}

    @property
    def patience_s(self) -> float:
        """How long it may take to end once it is interrupted."""
        return SAVING_S if self.kind == "training" else PATIENCE_S

    def told(self) -> dict[str, Any]:
        """Return what a page is told of it."""
        return {
            "number": self.number,
            "kind": self.kind,
            "run": self.run,
            "command": shlex.join(["yardmaster", *self.words]),
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "output": list(self.output),
            "asked_s": self.asked_s,
            "ended_s": self.ended_s,
            "exit_code": self.exit_code,
        }


class Workbench:
    """Runs commands, at most a few at once, the others in the order they were asked for."""

    def __init__(self, *, running: int = MOST_RUNNING, waiting: int = MOST_WAITING) -> None:
        self._running = running
        self._waiting = waiting
        self._works: dict[int, Work] = {}
        self._next = 1
        self._is_closed = False
        self.version = 0
        """Changes whenever something has."""

    def works(self) -> list[Work]:
        """Return all that are remembered, the oldest first."""
        return list(self._works.values())

    def find(self, number: object) -> Work:
        """Return a piece of work.

        Raises:
            Refusal: if there is none of this number.
        """
        work = self._works.get(number) if type(number) is int else None
        if work is None:
            raise Refusal(404, "There is no such piece of work; it may have been forgotten.")
        return work

    def submit(self, kind: str, words: Sequence[str], *, run: str, folder: Path) -> Work:
        """Take on a command.

        Raises:
            Refusal: if too many wait, or the run is being worked on.
        """
        open_works = [work for work in self._works.values() if work.is_open]
        if self._is_closed or len(open_works) >= self._running + self._waiting:
            raise Refusal(429, f"{len(open_works)} commands wait or run; wait for one of them.")
        if any(work.folder == folder for work in open_works):
            raise Refusal(409, f"A command for {run} waits or runs already.")
        work = Work(self._next, kind, run, tuple(words), folder)
        self._next += 1
        self._works[work.number] = work
        self._forget()
        self._begin_waiting()
        return work

    def cancel(self, work: Work) -> None:
        """Interrupt a command; one that does not end is killed when patience is over."""
        if not work.is_open:
            return
        work.is_cancelled = True
        if work.state == "waiting":
            self._end(work, "cancelled")
        elif work.process is not None:
            _signal(work.process, signal.SIGHUP)
            loop = asyncio.get_running_loop()
            loop.call_later(work.patience_s, _signal, work.process, signal.SIGKILL)

    async def close(self) -> None:
        """Stop everything; the server is about to end. A training that still saves is let be."""
        self._is_closed = True
        open_works = [work for work in self._works.values() if work.is_open]
        for work in open_works:
            self.cancel(work)
        followers = [work.follower for work in open_works if work.follower is not None]
        if followers:
            _, still = await asyncio.wait(followers, timeout=PATIENCE_S + 1.0)
            for follower in still:
                follower.cancel()

    def _begin_waiting(self) -> None:
        running = sum(work.state == "running" for work in self._works.values())
        waiting = [work for work in self._works.values() if work.state == "waiting"]
        for work in waiting[: max(self._running - running, 0)]:
            work.state = "running"
            work.follower = asyncio.get_running_loop().create_task(self._follow(work))
        self.version += 1

    async def _follow(self, work: Work) -> None:
        """Run a command to its end and note what it says."""
        try:
            work.process = _started(work.words)
        except OSError as error:
            work.output.append(f"Cannot start it: {error.strerror or error}.")
            self._end(work, "failed")
            return
        if work.is_cancelled:  # while it was being started
            _signal(work.process, signal.SIGKILL)
        await self._listen(work, work.process)
        work.exit_code = await _ended(work.process)
        if work.exit_code < 0:
            _remove_unfinished(work.folder, work.process.pid)
        if work.is_cancelled and work.exit_code != 0:
            self._end(work, "cancelled")
        else:
            self._end(work, "finished" if work.exit_code == 0 else "failed")

    async def _listen(self, work: Work, process: subprocess.Popen[bytes]) -> None:
        reader = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), process.stdout
        )
        try:
            while True:
                try:
                    line = await reader.readline()
                except ValueError:  # a line longer than the buffer
                    continue
                if not line:
                    return
                self._note(work, line.decode("utf-8", errors="replace").rstrip()[:LONGEST_LINE])
        finally:
            pipe.close()

    def _note(self, work: Work, text: str) -> None:
        """Keep a line that a command wrote; one of progress moves its bar."""
        found = _PROGRESS.match(text)
        if found:
            work.done, work.total = (int(one.replace(",", "")) for one in found.groups())
        elif text:
            work.output.append(text)
        self.version += 1

    def _end(self, work: Work, state: State) -> None:
        work.state = state
        work.ended_s = time.time()
        work.process = None
        self.version += 1
        if not self._is_closed:
            self._begin_waiting()

    def _forget(self) -> None:
        ended = [work for work in self._works.values() if not work.is_open]
        for work in ended[: max(len(ended) - MOST_KEPT, 0)]:
            del self._works[work.number]


def _started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command.

    Not one of asyncio's own processes: those are killed when their loop ends, saving or not.
    """
    return subprocess.Popen(  # noqa: S603  (words that the caller has checked)
        [sys.executable, "-m", "yardmaster.cli.child", str(os.getpid()), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A group of its own: Ctrl-C in the server's terminal is for the server.
        start_new_session=True,
        env={name: text for name, text in os.environ.items() if name not in SECRETS},
    )


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a command that has closed its output, and return how it ended."""
    while (code := process.poll()) is None:  # noqa: ASYNC110  (the kernel tells nobody else)
        await asyncio.sleep(_LOOK_S)
    return code


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def _remove_unfinished(folder: Path, pid: int) -> None:
    """Remove what a killed command left half written: a folder that names its process."""
    shutil.rmtree(folder.with_name(f".{folder.name}.partial-{pid}"), ignore_errors=True)
