"""A command that the dashboard runs: the command line itself, tied to the life of the server.

`python -m yardmaster.cli.child PARENT WORD…` runs `yardmaster WORD…`. When the server that
started it dies, however that happens, or asks (SIGHUP), the command is interrupted as by Ctrl-C,
and tidies up. Once only: a training that is asked a second time would not stay to save.
"""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

PR_SET_PDEATHSIG = 1
LINE_EVERY_S = 0.2
"""How often the command says how far it is: often enough for a bar that moves."""
POLITENESS = 5
"""How much the command steps back for the server's answers."""


class _Output(io.TextIOWrapper):
    """Output whose reader may go away: the command has to tidy up all the same."""

    def write(self, text: str) -> int:
        with suppress(BrokenPipeError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(BrokenPipeError):
            super().flush()


def _output(number: int) -> _Output:
    binary = os.fdopen(number, "wb", closefd=False)
    return _Output(binary, encoding="utf-8", errors="replace", line_buffering=True)


class _InterruptOnce:
    """Takes requests to end for one Ctrl-C, even if they come at once.

    Further ones are switched off, since a handler is gone while Python itself ends.
    """

    def __init__(self) -> None:
        self._is_asked = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if not self._is_asked:  # the second of two may come before further ones are off
            self._is_asked = True
            signal.signal(number, signal.SIG_IGN)
            signal.raise_signal(signal.SIGINT)


def main() -> None:
    """Run the words of the command line after the first as a command."""
    parent = int(sys.argv[1])
    # Who starts the dashboard in a shell's background has Ctrl-C switched off, for us too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, _InterruptOnce())
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGHUP, 0, 0, 0)
    if os.getppid() != parent:
        return  # it died before it could be followed
    os.nice(POLITENESS)
    sys.stdout, sys.stderr = (_output(number) for number in (1, 2))
    from yardmaster.cli import app, console

    console.LINE_EVERY_S = LINE_EVERY_S
    sys.argv = ["yardmaster", *sys.argv[2:]]
    app.main()


if __name__ == "__main__":
    main()
