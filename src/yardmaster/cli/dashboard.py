"""`yardmaster dashboard`: look at runs in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from yardmaster.cli.console import remark, say
from yardmaster.cli.options import QuietOption

USUAL = Path("runs")
"""Where commands put their runs."""


def dashboard(
    runs: Annotated[Path, Parameter(help="The folder that holds the runs.")] = USUAL,
    *,
    host: Annotated[
        str,
        Parameter(
            help="Address to listen on. Any other than this machine's own needs a token, which is"
            " made and printed unless --token gives one."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        Parameter(help="Port to listen on; 0 takes any. By default 8642, or any if it is taken."),
    ] = None,
    token: Annotated[
        str | None,
        Parameter(
            help="Secret that every request must bring, of 16 characters or more.",
            env_var="YARDMASTER_TOKEN",
        ),
    ] = None,
    no_browser: Annotated[
        bool,
        Parameter(name="--no-browser", negative="", help="Only print the address, open nothing."),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Serve the runs of a folder as web pages, from this machine alone and without a network."""
    from yardmaster.dashboard.server import address, listen, open_desk, serve

    with _usual_folder(runs), listen(host, port) as bound:
        desk = open_desk(runs, host=host, token=token)
        place = address(desk, bound, host)

        def started() -> None:
            say(place)
            if not quiet:
                remark(f"Showing {runs}. Ctrl-C stops.")
            if not no_browser:
                _open(place)

        with suppress(KeyboardInterrupt):
            serve(desk, bound, started)
    if not quiet:
        remark("Stopped.")


@contextmanager
def _usual_folder(runs: Path) -> Iterator[None]:
    """Make the usual folder where there is none yet, so that a first run can be made in a page."""
    is_new = runs == USUAL and not runs.exists()
    if is_new:
        runs.mkdir()
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # something is in it now
                runs.rmdir()


def _open(place: str) -> None:
    """Open the page in the user's browser, without waiting for it."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(place,), daemon=True).start()
