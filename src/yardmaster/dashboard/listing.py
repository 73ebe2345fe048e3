"""The list of runs, and what is in it from moment to moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.run_cards import Card
from yardmaster.dashboard.serving import PULSE_S, answer, event_stream

LOOK_EVERY_S = 1.0
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline';"
    " script-src 'unsafe-inline'; img-src data: blob:"
)
"""A report may draw with what is in it, and reach nothing: neither us nor anybody else."""
LARGEST_REPORT = 200_000_000


def routes(desk: Desk) -> list[BaseRoute]:
    """List runs, follow the list, and show the reports that runs hold."""

    def runs(_: Request) -> Response:
        cards = desk.runs.index()
        return answer({"folder": desk.runs.path.name, "runs": [asdict(card) for card in cards]})

    async def events(request: Request) -> Response:
        return event_stream(desk, request, _changes(desk))

    def report(request: Request) -> Response:
        file = desk.runs.resolve(request.path_params["run"]) / "report.html"
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LARGEST_REPORT:
            raise Refusal(404, "This run has no report.")
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(file.read_bytes(), media_type="text/html; charset=utf-8", headers=headers)

    return [
        Route("/api/runs", runs),
        Route("/api/runs/events", events),
        Route("/report/{run:path}", report),
    ]


async def _changes(desk: Desk) -> AsyncIterator[dict[str, Any] | None]:
    """Yield cards that are new or other than before, and the names that are gone."""
    told: dict[str, Card] = {}
    is_first = True
    while True:
        cards = {card.name: card for card in await run_in_threadpool(desk.runs.index)}
        changed = [asdict(card) for name, card in cards.items() if told.get(name) != card]
        removed = [name for name in told if name not in cards]
        if changed or removed or is_first:
            yield {"changed": changed, "removed": removed, "first": is_first}
        told, is_first = cards, False
        pending = any(card.pending for card in cards.values())
        for _ in range(1 if pending else round(LOOK_EVERY_S / PULSE_S)):
            await asyncio.sleep(PULSE_S)
            yield None
