"""A real dashboard over real runs, and a real browser to look at it.

How to use it:

- `dashboard` is the running server: `dashboard.url` (ends with `/`), `dashboard.runs` (its folder).
  One for the whole session; a run that a test puts into the folder is listed without a restart.
- `make_run("simulate", "--jobs", "300", "--out", "mine")` runs the command line in the folder of
  runs, once per session for the same words, and returns the folder named by `--out`.
- `page` is a browser's page on which nothing outside the server can be reached: the test fails if
  the page tried, if a script failed, or if the page's security policy was broken.
  `page.goto(dashboard.url + "#/runs")`.
- `open_page(width=390, color_scheme="dark")` makes more of them, with other windows; `also=` names
  another server that may be reached.
- `barriers(page)` lists what keeps people out of a page: controls without a name, text too faint,
  a page wider than its window … `assert barriers(page) == []`.
- `asking` talks to the server as pages do: `asking.get(path)`, `asking.post(path, body)`,
  `asking.events(path)`, `asking.work(number)`.
- `knock(desk, "/api/runs", headers={"Host": "x"})` asks the application itself, without a network:
  for desks of one's own, and for requests that no browser would make.
- `shoot(page, "runs-dark")` keeps a picture in the folder named by YARDMASTER_ARTEFACTS.

Tests that need the browser are skipped where /usr/bin/chromium is absent.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import httpx
import pytest

CHROMIUM = Path(os.environ.get("YARDMASTER_CHROMIUM", "/usr/bin/chromium"))


@dataclass(frozen=True)
class RunningDashboard:
    """A server that answers, and the folder it shows."""

    url: str
    runs: Path


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dashboard") / "runs"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def make_run(runs_folder: Path) -> Callable[..., Path]:
    """Run the command line in the folder of runs; the same words give the same run."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*words: str) -> Path:
        if words not in made:
            subprocess.run(
                [sys.executable, "-m", "yardmaster", *words, "--quiet"],
                cwd=runs_folder,
                check=True,
                capture_output=True,
            )
            made[words] = runs_folder / words[words.index("--out") + 1]
        return made[words]

    return make


@pytest.fixture(scope="session")
def dashboard(runs_folder: Path) -> Iterator[RunningDashboard]:
    """Start `yardmaster dashboard` on a free port, as a user does; stop it as a user does."""
    command = [sys.executable, "-m", "yardmaster", "dashboard", str(runs_folder), "--port", "0"]
    with subprocess.Popen(
        [*command, "--no-browser", "--quiet"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        yield RunningDashboard(url, runs_folder)
        server.send_signal(2)
        assert server.wait(timeout=10) == 0


@dataclass(frozen=True)
class Reply:
    """What the application answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return what the body says."""
        return json.loads(self.body)


@pytest.fixture(scope="session")
def knock() -> Callable[..., Reply]:
    """Return what sends one request to the application of a desk, as raw as one likes."""
    from yardmaster.dashboard.app import create_app

    def ask(
        desk: Any,
        address: str,
        *,
        method: str = "GET",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        path, _, query = address.partition("?")
        sent = {"Host": "127.0.0.1:8642"} | (headers or {})
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8642),
        }
        messages: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        async def whole() -> None:
            await create_app(desk)(scope, receive, send)

        # In a thread of its own: the browser's tools keep a loop running in this one.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, whole()).result()
        kept = {k.decode().lower(): v.decode() for k, v in messages[0]["headers"]}
        text = b"".join(one.get("body", b"") for one in messages[1:])
        return Reply(messages[0]["status"], kept, text)

    return ask


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as tools:
        started = tools.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, dashboard: RunningDashboard) -> Iterator[Callable[..., Any]]:
    """Return what opens pages that can reach this server alone."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def watch(page: Any) -> None:
        page.on("pageerror", lambda error: wrong.append(f"script failed: {error}"))
        page.on("console", lambda note: wrong.append(note.text) if is_breach(note) else None)

    def is_breach(note: Any) -> bool:
        return note.type == "error" and "Content Security Policy" in note.text

    def deny(route: Any) -> None:
        wrong.append(f"asked for {route.request.url}")
        route.abort()

    def make(*, width: int = 1280, height: int = 860, also: str = "", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        own = (dashboard.url, "data:", "blob:", *([also] if also else []))
        context.route(lambda url: not url.startswith(own), deny)
        page = context.new_page()
        page.set_default_timeout(10_000)
        watch(page)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page()


@pytest.fixture(scope="session")
def barriers() -> Callable[[Any], list[str]]:
    """Return what looks for things that keep people out of a page."""
    script = Path(__file__).with_name("barriers.js").read_text(encoding="utf-8")
    return lambda page: page.evaluate(script)


@pytest.fixture(scope="session")
def shoot(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any, str], Path]:
    """Return what keeps pictures of pages, for people to look at."""
    kept = os.environ.get("YARDMASTER_ARTEFACTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Any, name: str) -> Path:
        path = folder / f"{name}.png"
        page.screenshot(path=str(path))
        return path

    return take


class Asking:
    """A page's requests: same origin, with the token."""

    def __init__(self, url: str) -> None:
        self.url = url
        place = urlsplit(url)
        self.origin = f"{place.scheme}://{place.netloc}"
        self._client = httpx.Client(base_url=self.origin, timeout=30.0)
        self.token = self._client.get("/api/desk").json()["token"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str, **query: Any) -> httpx.Response:
        """Ask for something."""
        return self._client.get(path, params=query)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """Start or stop something."""
        usual = {"Origin": self.origin, "X-Yardmaster-Token": self.token}
        return self._client.post(path, json=body, headers=usual | headers)

    def events(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the events of a stream; ends when the caller stops."""
        with self._client.stream("GET", path, params=query) as stream:
            assert stream.status_code == 200, stream.read()
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def work(self, number: int, *, seconds: float = 60.0) -> dict[str, Any]:
        """Wait for a piece of work to end and return what became of it."""
        return self.wait(
            lambda: next(
                (
                    one
                    for one in self.get("/api/work").json()["works"]
                    if one["number"] == number and one["state"] not in {"waiting", "running"}
                ),
                None,
            ),
            seconds=seconds,
        )

    @staticmethod
    def wait(found: Callable[[], Any], *, seconds: float = 30.0) -> Any:
        """Return what a question answers as soon as it answers anything."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            answer = found()
            if answer:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"nothing after {seconds} s")


@pytest.fixture
def asking(dashboard: RunningDashboard) -> Iterator[Asking]:
    """Return what talks to the dashboard as its pages do, without a browser."""
    with Asking(dashboard.url) as requests:
        yield requests
