"""Who is let in: hosts, tokens, origins, sizes; and what pages are allowed to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.runs import RunsFolder
from yardmaster.dashboard.security import COOKIE, LARGEST_BODY

TOKEN = "a-secret-of-some-length"  # noqa: S105  (everybody may know it)


@pytest.fixture
def here(tmp_path: Path) -> Desk:
    return Desk(RunsFolder(tmp_path), TOKEN)


@pytest.fixture
def abroad(tmp_path: Path) -> Desk:
    return Desk(RunsFolder(tmp_path), TOKEN, is_loopback=False)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8642", "localhost:1", "localhost", "[::1]:8642", "127.0.0.9"]
)
def test_own_names_are_answered(knock, here, host):
    """A server on loopback answers to this machine's own names."""
    assert knock(here, "/api/runs", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "localhost.evil:80", "0"],
)
@pytest.mark.parametrize("path", ["/", "/api/desk", "/api/runs", "/web/dom.js"])
def test_foreign_names_are_refused(knock, here, host, path):
    """A web page whose own name points to this machine reads nothing: DNS rebinding fails."""
    reply = knock(here, path, headers={"Host": host})
    assert reply.status == 421
    assert TOKEN.encode() not in reply.body


@pytest.mark.parametrize("path", ["/", "/api/desk", "/api/runs", "/web/dom.js", "/report/x"])
@pytest.mark.parametrize(
    "headers", [{}, {"Cookie": f"{COOKIE}=wrong"}, {"Cookie": "=;;=\x01"}, {"X-Token": TOKEN}]
)
def test_a_server_others_can_reach_wants_the_token(knock, abroad, path, headers):
    """Beyond loopback nothing at all is answered without the token, whatever the Host."""
    reply = knock(abroad, path, headers={"Host": "yard.example"} | headers)
    assert reply.status == 401
    assert "token" in reply.json()["error"]


def test_the_token_moves_from_the_address_into_a_cookie(knock, abroad):
    """The printed address sets a cookie that scripts cannot read, and loses the token at once."""
    reply = knock(abroad, f"/?token={TOKEN}&x=1", headers={"Host": "yard.example"})
    assert reply.status == 303
    assert reply.headers["location"] == "/?x=1"
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    jar = {"Host": "yard.example", "Cookie": cookie.partition(";")[0]}
    assert knock(abroad, "/", headers=jar).status == 200


def test_the_redirect_stays_on_this_server(knock, abroad):
    """An address that begins with two slashes does not send the browser to another host."""
    reply = knock(abroad, f"//evil.example/?token={TOKEN}")
    assert reply.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize("wrong", ["", "A-SECRET-OF-SOME-LENGTH", TOKEN[:-1], TOKEN + "x", "é"])
def test_a_wrong_token_is_no_token(knock, abroad, wrong):
    """Nothing near the token will do."""
    from urllib.parse import quote

    assert knock(abroad, f"/?token={quote(wrong)}").status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_from_elsewhere_cannot_ask(knock, here, site):
    """An image or a frame on another site makes the server do nothing; a link to it is fine."""
    asking = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    for path in ("/api/runs", "/api/schedule/x", "/", "/report/x"):
        assert knock(here, path, headers=asking).status == 403
    leading = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert knock(here, "/", headers=leading).status == 200
    assert knock(here, "/report/x", headers=leading).status == 403


def test_guessing_is_slow(abroad, monkeypatch):
    """After some wrong tokens even the right one has to wait; whoever is in stays in."""
    from yardmaster.dashboard import security

    app = security.Guard(None, abroad)
    scope = {"type": "http", "path": "/", "headers": [], "query_string": b"token=wrong"}
    codes = [app._refused(scope).status_code for _ in range(security.MOST_GUESSES + 1)]
    assert codes[0] == 401
    assert codes[-1] == 429
    right = scope | {"query_string": f"token={TOKEN}".encode()}
    assert app._refused(right).status_code == 429
    inside = scope | {"headers": [(b"cookie", f"{COOKIE}={TOKEN}".encode())]}
    assert app._refused(inside) is None
    monkeypatch.setattr(security, "GUESSES_S", 0.0)
    assert app._refused(right).status_code == 303


def test_every_answer_carries_the_policy(knock, here, abroad):
    """Pages, data and refusals alike forbid everything that does not come from this server."""
    for desk, path in ((here, "/"), (here, "/api/runs"), (here, "/nothing"), (abroad, "/")):
        headers = knock(desk, path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("length", [str(LARGEST_BODY + 1), "-1", "many", "1e3"])
def test_large_requests_are_refused(knock, here, length):
    """A body that is too large, or does not say how large in numbers, is not read."""
    reply = knock(here, "/api/play", method="POST", headers={"Content-Length": length})
    assert reply.status == 413


def test_a_body_that_hides_its_length_is_counted(knock, here):
    """Without a length, reading stops at the limit."""
    origin = {"Origin": "http://127.0.0.1:8642", "X-Yardmaster-Token": TOKEN}
    body = b" " * (LARGEST_BODY + 1)
    assert knock(here, "/api/play", method="POST", headers=origin, body=body).status == 413


ROOT = Path(__file__).resolve().parents[2]
CLIMBS = st.lists(
    st.sampled_from(
        ["..", ".", "%2e%2e", "%252e", "..%2f", "%5c", "\\", "//", "web", "pages", "a"]
    ),
    min_size=1,
    max_size=8,
).map("/".join)


@given(climb=CLIMBS, door=st.sampled_from(["web", "pages", "report", "api/schedule", "api/live"]))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_address_leads_out(knock, tmp_path_factory, climb, door):
    """However an address climbs, no file outside of the pages and the runs is read."""
    base = tmp_path_factory.getbasetemp() / "climbing"
    (base / "runs" / "a").mkdir(parents=True, exist_ok=True)
    (base / "report.html").write_text("SECRET")
    (base / "live.json").write_text('{"SECRET": 1}')
    desk = Desk(RunsFolder(base / "runs"), TOKEN)
    for end in ("", "/report.html", "/pyproject.toml", "/dom.py"):
        reply = knock(desk, f"/{door}/{climb}{end}")
        assert b"SECRET" not in reply.body
        assert b"hatchling" not in reply.body


def test_python_is_not_served(knock, here):
    """The folders of pages hold no source that could be fetched, nor can their neighbours."""
    for name in ("/pages/__init__.py", "/web/../page.py", "/web/vendor", "/web/", "/pages/"):
        assert knock(here, name).status == 404
