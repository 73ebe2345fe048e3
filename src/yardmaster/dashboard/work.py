"""The work that was started from pages: who runs, how far it is, and stopping it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.security import require_intent
from yardmaster.dashboard.serving import PULSE_S, answer, event_stream, json_body


def routes(desk: Desk) -> list[BaseRoute]:
    """List work, follow it, and cancel it."""

    async def works(_: Request) -> Response:
        return answer(_told(desk))

    async def events(request: Request) -> Response:
        return event_stream(desk, request, _changes(desk))

    async def cancel(request: Request) -> Response:
        require_intent(request, desk)
        work = desk.bench.find((await json_body(request)).get("number"))
        desk.bench.cancel(work)
        return answer(work.told())

    return [
        Route("/api/work", works),
        Route("/api/work/events", events),
        Route("/api/work/cancel", cancel, methods=["POST"]),
    ]


def _told(desk: Desk) -> dict[str, Any]:
    return {"works": [work.told() for work in desk.bench.works()]}


async def _changes(desk: Desk) -> AsyncIterator[dict[str, Any] | None]:
    """Yield all work whenever something has changed."""
    seen = -1
    while True:
        if desk.bench.version != seen:
            seen = desk.bench.version
            yield _told(desk)
        await asyncio.sleep(PULSE_S)
        yield None
