"""The policy service: people with a scheduler of their own ask ours, over local HTTP.

`POST /v1/rank` takes a state and returns ranked jobs (see `live.schema`); `GET /v1/about` says who
answers. Every request needs the token, as `Authorization: Bearer TOKEN`. Nothing is kept.
"""

from __future__ import annotations

import json
import secrets
import threading

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.schema import MOST_JOBS, MOST_NODES, VERSION, answer, read_state

LARGEST_BODY = 16 << 20
"""Bytes of a request: 50,000 jobs take about half of it."""
MOST_WAITING = 8
"""Requests that may wait for their turn; decisions are made one at a time."""


class _Refusal(Exception):  # noqa: N818  (it is an answer, not a fault)
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def create_service(decider: Decider, token: str) -> Starlette:
    """Return the application; `token` must come with every request."""
    turn = threading.Lock()
    waiting = threading.Semaphore(MOST_WAITING)

    def decide(body: bytes) -> JSONResponse:
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            raise _Refusal(400, "The body is not JSON.") from None
        with turn:
            state = read_state(asked)
            return JSONResponse(answer(state, decider.decide(state)))

    async def rank(request: Request) -> JSONResponse:
        _check_token(request, token)
        body = await _body(request)  # before taking a place: who sends slowly keeps nobody out
        if not waiting.acquire(blocking=False):
            raise _Refusal(503, f"{MOST_WAITING} requests are waiting already; ask again later.")
        try:
            return await run_in_threadpool(decide, body)
        except YardmasterError as error:
            raise _Refusal(422, str(error)) from None
        finally:
            waiting.release()

    async def about(request: Request) -> JSONResponse:
        _check_token(request, token)
        return JSONResponse(
            {
                "version": VERSION, "scheduler": decider.name, "most_jobs": MOST_JOBS,
                "most_nodes": MOST_NODES, "largest_body": LARGEST_BODY,
            }
        )  # fmt: skip

    return Starlette(
        routes=[
            Route("/v1/rank", rank, methods=["POST"]),
            Route("/v1/about", about, methods=["GET"]),
        ],
        exception_handlers={_Refusal: _refused, HTTPException: _misdirected},
    )


async def _refused(_: Request, refusal: Exception) -> JSONResponse:
    status = refusal.status if isinstance(refusal, _Refusal) else 500
    return JSONResponse({"error": str(refusal)}, status_code=status)


async def _misdirected(request: Request, error: Exception) -> JSONResponse:
    """Answer who asked for a path or by a method that there is not."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    sentence = (
        f"{request.method} {request.url.path} is not answered here; POST /v1/rank and"
        " GET /v1/about are."
    )
    return JSONResponse({"error": sentence}, status_code=status, headers=headers)


def _check_token(request: Request, token: str) -> None:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secrets.compare_digest(given.encode(), token.encode()):
        raise _Refusal(401, "Send the token: Authorization: Bearer TOKEN.")


async def _body(request: Request) -> bytes:
    """Read a body, counting: a length that was announced may be a lie."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise _Refusal(413, f"A request may hold at most {LARGEST_BODY:,} bytes.")
        parts.append(part)
    return b"".join(parts)
