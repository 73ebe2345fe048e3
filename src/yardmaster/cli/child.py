"""A command that the dashboard runs: the command line itself, tied to the life of the server.

`python -m yardmaster.cli.child PARENT WORD…` runs `yardmaster WORD…`. When the server that
started it dies, however that happens, the command is interrupted as by Ctrl-C, and tidies up.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
LINE_EVERY_S = 0.2
"""How often the command says how far it is: often enough for a bar that moves."""
POLITENESS = 5
"""How much the command steps back for the server's answers."""


def main() -> None:
    """Run the words of the command line after the first as a command."""
    parent = int(sys.argv[1])
    # Who starts the dashboard in a shell's background has Ctrl-C switched off, for us too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != parent:
        return  # it died before it could be followed
    os.nice(POLITENESS)
    from yardmaster.cli import app, console

    console.LINE_EVERY_S = LINE_EVERY_S
    sys.argv = ["yardmaster", *sys.argv[2:]]
    app.main()


if __name__ == "__main__":
    main()
