"""The command: what it opens, prints and refuses, and how it ends."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from yardmaster.dashboard.server import is_loopback, listen, open_desk
from yardmaster.errors import YardmasterError

EVERYWHERE = "0.0.0.0"  # noqa: S104  (what is tested)


def started(folder: Path, *words: str) -> tuple[subprocess.Popen[str], str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "yardmaster", "dashboard", str(folder), "--no-browser", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


def test_ctrl_c_stops_it_while_a_page_listens(tmp_path):
    """With a stream open, an interrupt ends the command within moments and without complaint."""
    server, url = started(tmp_path, "--port", "0")
    with server:
        with httpx.Client(timeout=10.0) as client, client.stream("GET", f"{url}api/runs/events"):
            begun = time.monotonic()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=10) == 0
            assert time.monotonic() - begun < 4
        assert server.stderr is not None
        text = server.stderr.read()
    assert "Traceback" not in text
    assert text.endswith("Stopped.\n")


def test_a_taken_port_gives_another():
    """Two dashboards at once: the second takes any free port; a port asked for is not changed."""
    first = listen("127.0.0.1", 0)
    port = first.getsockname()[1]
    first.listen()
    with first, pytest.raises(YardmasterError, match=str(port)):
        listen("127.0.0.1", port)
    with listen("127.0.0.1", None) as one:
        one.listen()
        with listen("127.0.0.1", None) as other:
            assert one.getsockname() != other.getsockname()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.8.8.8", True),
     ("192.0.2.1", False), ("::", False), ("10.0.0.1", False), ("yard.example", False)],
)  # fmt: skip
def test_only_this_machine_is_loopback(host, expected):
    """Which addresses others cannot reach."""
    assert is_loopback(host) is expected


def test_other_addresses_need_a_token(tmp_path):
    """On all interfaces a token is made and printed, and nothing is answered without it."""
    server, url = started(tmp_path, "--host", EVERYWHERE, "--port", "0")
    with server:
        name = re.escape(socket.gethostname())
        match = re.fullmatch(rf"http://{name}:(\d+)/\?token=([\w-]{{20,}})", url)
        assert match
        here = f"http://127.0.0.1:{match[1]}/"
        assert httpx.get(f"{here}api/runs").status_code == 401
        with httpx.Client(follow_redirects=True) as client:
            page = client.get(f"{here}?token={match[2]}")
            assert page.status_code == 200
            assert "token" not in str(page.url)
            assert client.get(f"{here}api/runs").status_code == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=10) == 0


def test_a_newcomer_has_no_runs_yet(tmp_path):
    """Without a name and without runs, the page opens all the same, and leaves nothing behind."""
    with subprocess.Popen(
        [sys.executable, "-m", "yardmaster", "dashboard", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as server:
        url = server.stdout.readline().strip()
        assert httpx.get(f"{url}api/runs").json()["runs"] == []
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=10) == 0
    assert list(tmp_path.iterdir()) == []


def test_mistakes_are_sentences(tmp_path):
    """No folder, a file, a short token: told in words, by the exception users see."""
    with pytest.raises(YardmasterError, match="simulate"):
        open_desk(tmp_path / "missing", host="127.0.0.1", token=None)
    (tmp_path / "file").write_text("")
    with pytest.raises(YardmasterError, match="file"):
        open_desk(tmp_path / "file", host="127.0.0.1", token=None)
    with pytest.raises(YardmasterError, match="16"):
        open_desk(tmp_path, host=EVERYWHERE, token="x" * 15)
    with pytest.raises(YardmasterError, match="Cannot listen"):
        listen("203.0.113.7", 0)
    with pytest.raises(YardmasterError, match="Cannot listen"):
        listen("127.0.0.1", 70_000)


def test_a_given_token_counts_on_loopback_too(tmp_path):
    """Whoever asks for a token gets one, also where none is needed."""
    desk = open_desk(tmp_path, host="127.0.0.1", token="x" * 16)
    assert not desk.is_loopback


def test_nothing_listens_beyond_loopback_by_default(dashboard):
    """The port of the usual dashboard is closed on every other address of this machine."""
    port = int(dashboard.url.rstrip("/").rpartition(":")[2])
    with socket.socket() as probe:
        probe.settimeout(2)
        assert probe.connect_ex(("127.0.0.2", port)) != 0
