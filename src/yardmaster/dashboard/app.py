"""The application: every area's routes behind one guard."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from yardmaster.dashboard import (
    comparing,
    evaluations,
    experiments,
    listing,
    live,
    play,
    schedules,
    serving,
    trainings,
    work,
)
from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.security import Guard
from yardmaster.dashboard.serving import answer
from yardmaster.errors import YardmasterError

AREAS = (
    listing,
    schedules,
    comparing,
    experiments,
    evaluations,
    trainings,
    play,
    work,
    live,
    serving,  # last: it takes every address that is left
)
"""Modules that serve something, in the order in which addresses are looked up."""


def create_app(desk: Desk) -> Starlette:
    """Return the dashboard as an ASGI application."""
    found: list[BaseRoute] = [route for area in AREAS for route in area.routes(desk)]
    return Starlette(
        routes=found,
        middleware=[Middleware(Guard, desk=desk)],
        exception_handlers={
            Refusal: _refused,
            YardmasterError: _mistaken,
            HTTPException: _unknown,
            Exception: _failed,
        },
    )


def _refused(_: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refusal) else 400
    return answer({"error": str(error)}, status)


def _mistaken(_: Request, error: Exception) -> Response:
    return answer({"error": str(error)}, 400)


def _unknown(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return answer({"error": "There is nothing at this address."}, status)


def _failed(_: Request, __: Exception) -> Response:
    return answer({"error": "The dashboard failed at this; the fault is its own."}, 500)
