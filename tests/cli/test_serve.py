"""`yardmaster serve`, as a user runs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from yardmaster.cli.serve import serve
from yardmaster.errors import YardmasterError


def test_it_answers_until_interrupted():
    """The token is taken from the environment; Ctrl-C ends it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "yardmaster", "serve", "-s", "fifo+easy", "--port", str(port)]
    server = subprocess.Popen(command, env=os.environ | {"YARDMASTER_TOKEN": "t"})
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                said = httpx.get(
                    f"http://127.0.0.1:{port}/v1/about", headers={"Authorization": "Bearer t"}
                )
                break
            except httpx.TransportError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert said.json()["scheduler"] == "fifo+easy"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def test_other_machines_are_not_served_by_mistake():
    """An address that others can reach needs a second word."""
    with pytest.raises(YardmasterError, match="--anywhere"):
        serve(host="0.0.0.0")  # noqa: S104
