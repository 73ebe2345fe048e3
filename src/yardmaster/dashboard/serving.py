"""Answers: JSON, event streams, and the pages' own files."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
}
HEARTBEAT_S = 10.0
PULSE_S = 0.2


def answer(value: Any, status: int = 200) -> JSONResponse:
    """Return a value as JSON; what is not finite becomes null."""
    return JSONResponse(_finite(value), status_code=status)


async def json_body(request: Request) -> dict[str, Any]:
    """Return the object that a request brings.

    Raises:
        Refusal: if it is not a JSON object.
    """
    try:
        value = json.loads(await request.body())
    except ValueError:
        raise Refusal(400, "The request's body is not JSON.") from None
    if not isinstance(value, dict):
        raise Refusal(400, "The request's body is not a JSON object.")
    return value


def number_of(request: Request, name: str) -> int:
    """Return a number from the query, 0 if it is not given.

    Raises:
        Refusal: if it is something else.
    """
    text = request.query_params.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Refusal(400, f"{name} must be a whole number, counted from 0.")
    return int(text)


def event_stream(
    desk: Desk, request: Request, events: AsyncIterator[Mapping[str, Any] | None]
) -> Response:
    """Send every object that `events` yields to the page as it comes; None sends nothing.

    `events` yields at least a few times a second (None if there is nothing new): it is only
    between two of them that a page that has gone, or a server that stops, is noticed. It is closed
    then, so `finally` in it is the place to tidy up.

    Raises:
        Refusal: if too many streams are open.
    """
    place = desk.streams.one_more()
    place.__enter__()

    async def lines() -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        sent = loop.time()
        try:
            yield ": hello\n\n"
            async for event in events:
                if desk.streams.is_closing or await request.is_disconnected():
                    break
                if event is not None:
                    text = json.dumps(_finite(event), ensure_ascii=False)
                    yield f"data: {text}\n\n"
                    sent = loop.time()
                elif loop.time() - sent > HEARTBEAT_S:
                    yield ": still here\n\n"
                    sent = loop.time()
        finally:
            place.__exit__(None, None, None)
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    return StreamingResponse(lines(), media_type="text/event-stream")


def files_below(package: str, folder: str) -> dict[str, Traversable]:
    """Return the files of a package's folder by their path below it: what may be served."""
    found: dict[str, Traversable] = {}

    def gather(place: Traversable, prefix: str) -> None:
        for item in place.iterdir():
            if item.is_dir():
                gather(item, f"{prefix}{item.name}/")
            elif any(item.name.endswith(kind) for kind in KINDS):
                found[f"{prefix}{item.name}"] = item

    gather(resources.files(package).joinpath(folder), "")
    return found


def routes(desk: Desk) -> list[BaseRoute]:
    """Serve the pages, the components they are made of, and who is serving."""
    shelves = {
        "pages": files_below("yardmaster.dashboard", "pages"),
        "web": files_below("yardmaster.report", "web"),
    }

    def asset(request: Request) -> Response:
        shelf, name = request.path_params["shelf"], request.path_params["name"]
        # Looked up in a list of what is there, never put together to a path.
        item = shelves.get(shelf, {}).get(name)
        if item is None:
            raise Refusal(404, "There is no such file.")
        kind = KINDS["." + name.rpartition(".")[2]]
        return Response(item.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})

    def index(_: Request) -> Response:
        return Response(shelves["pages"]["index.html"].read_bytes(), media_type=KINDS[".html"])

    def about(_: Request) -> Response:
        from importlib.metadata import version

        return answer(
            {
                "token": desk.token,
                "folder": desk.runs.path.name,
                "version": version("yardmaster"),
                "loopback": desk.is_loopback,
            }
        )

    return [
        Route("/", index),
        Route("/api/desk", about),
        Route("/{shelf:str}/{name:path}", asset),
    ]


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
