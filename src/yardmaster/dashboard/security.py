"""Who may ask, and what a page may do.

Only this machine can reach the server unless the user says otherwise; then every request needs the
token. Names in the Host header are checked, so that a foreign web page cannot have its own name
point here and read the answers. Pages may load from this server alone.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections import deque
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal

POLICY = (
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'"
)
"""What pages may load: this server's files, and pictures they made themselves."""
LARGEST_BODY = 1_000_000
"""Bytes of a request's body; the largest is a plan for a simulation."""
MOST_GUESSES = 30
GUESSES_S = 10.0
"""So many wrong tokens in so many seconds, and no more are looked at for a while."""
COOKIE = "yardmaster-token"
INTENT_HEADER = "X-Yardmaster-Token"

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def require_intent(request: Request, desk: Desk) -> None:
    """Let a request through that starts or stops work: from our own page, with the token.

    Raises:
        Refusal: if it comes from elsewhere.
    """
    if request.method != "POST":
        raise Refusal(405, "Work is started and stopped with POST.")
    origin = request.headers.get("origin", "")
    if not origin or urlsplit(origin).netloc != request.headers.get("host", ""):
        raise Refusal(403, "Only the dashboard's own pages may start or stop work.")
    if not _same(request.headers.get(INTENT_HEADER, ""), desk.token):
        raise Refusal(403, f"The header {INTENT_HEADER} is missing or wrong; reload the page.")


class Guard:
    """Stands before every route: checks the host, the token and the size, and adds headers."""

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app = app
        self._desk = desk
        self._guesses: deque[float] = deque(maxlen=MOST_GUESSES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        await self._app(scope, _bounded(receive), _with_headers(send))

    def _refused(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further."""
        headers = Headers(scope=scope)
        if self._desk.is_loopback:
            if not is_own_name(headers.get("host", "")):
                return _sentence(421, "This server answers to 127.0.0.1 and localhost alone.")
        else:
            refused = self._without_token(scope, headers)
            if refused is not None:
                return refused
        if _is_foreign(headers, scope["path"]):
            return _sentence(403, "Only the dashboard's own pages may ask for this.")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return _sentence(413, f"A request may hold at most {LARGEST_BODY} bytes.")
        return None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a request that does not bring the token, or brings it in its URL.

        A token in the URL is put into a cookie and taken out of the address at once.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        is_flood = (
            len(self._guesses) == MOST_GUESSES and time.monotonic() - self._guesses[0] < GUESSES_S
        )
        if given is not None and not is_flood and _same(given, self._desk.token):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            # One slash only: an address that begins with two would name another host.
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
            answer.set_cookie(COOKIE, self._desk.token, httponly=True, samesite="strict")
            return answer
        if _same(_cookie(headers), self._desk.token):
            return None
        return self._guessed()

    def _guessed(self) -> Response:
        """Count a request without the right token."""
        now_s = time.monotonic()
        self._guesses.append(now_s)
        if len(self._guesses) == MOST_GUESSES and now_s - self._guesses[0] < GUESSES_S:
            return _sentence(429, "Too many requests without the right token; wait a little.")
        return _sentence(401, "Open the address with the token that the command printed.")


def _is_foreign(headers: Headers, path: str) -> bool:
    """Whether a page from elsewhere asks; it may only lead people to the first page.

    It could not read the answer, but it could keep the server busy with asking.
    """
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return False
    return not (path == "/" and headers.get("sec-fetch-mode") == "navigate")


def is_own_name(host: str) -> bool:
    """Whether a Host header names this machine as only this machine can."""
    name, _, port = host.rpartition(":")
    if not port.isdigit() or (name.count(":") and not name.endswith("]")):
        name = host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _sentence(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _bounded(receive: Receive) -> Receive:
    """Count the bytes of a body that does not say its length."""
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise Refusal(413, f"A request may hold at most {LARGEST_BODY} bytes.")
        return message

    return receiving
