"""Running the dashboard until somebody stops it."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn

from yardmaster.dashboard.app import create_app
from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.runs import RunsFolder
from yardmaster.errors import YardmasterError

DEFAULT_PORT = 8642
SHORTEST_TOKEN = 16
MOST_CONNECTIONS = 200


def open_desk(folder: Path, *, host: str, token: str | None) -> Desk:
    """Return a desk over a folder of runs.

    Raises:
        YardmasterError: if the folder cannot be read, or the token is too short to be a secret.
    """
    if folder.exists() and not folder.is_dir():
        raise YardmasterError(f"{folder} is a file, not a folder of runs.")
    if not folder.exists():
        raise YardmasterError(
            f"There is no folder {folder}; `yardmaster simulate` makes a first run under runs/."
        )
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise YardmasterError(f"--token needs at least {SHORTEST_TOKEN} characters.")
    is_open = not is_loopback(host) or token is not None
    return Desk(RunsFolder(folder), token or secrets.token_urlsafe(24), is_loopback=not is_open)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens: on the port asked for, or the usual one if it is free.

    Raises:
        YardmasterError: if it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (DEFAULT_PORT, 0) if port is None else (port,):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, candidate))
        except (OSError, OverflowError) as error:
            bound.close()
            reason = getattr(error, "strerror", None) or error
            problem = f"Cannot listen on {host}, port {candidate}: {reason}."
            continue
        return bound
    raise YardmasterError(problem)


def address(desk: Desk, bound: socket.socket, host: str) -> str:
    """Return what to open in a browser; with the token, where one is needed."""
    port = bound.getsockname()[1]
    if host in {"0.0.0.0", "::"}:  # noqa: S104  (no address that can be opened elsewhere)
        host = socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    query = "" if desk.is_loopback else f"?token={desk.token}"
    return f"http://{name}:{port}/{query}"


def serve(desk: Desk, bound: socket.socket, started: Callable[[], None] | None = None) -> None:
    """Answer requests until the process is interrupted."""
    config = uvicorn.Config(
        create_app(desk),
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
    _Server(config, desk, started).run(sockets=[bound])


class _Server(uvicorn.Server):
    """A server that ends its event streams when it is told to stop."""

    def __init__(
        self, config: uvicorn.Config, desk: Desk, started: Callable[[], None] | None
    ) -> None:
        super().__init__(config)
        self._desk = desk
        self._when_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self.started and self._when_started is not None:
            self._when_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop: streams end by themselves, so nobody has to be cut off."""
        self._desk.streams.close()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the commands that pages have started, then stop answering."""
        await self._desk.bench.close()
        await super().shutdown(sockets)
