"""Schedules: the bars of a run, one job's life, and why it started when it did.

- `/api/schedule/RUN?simulation=K`: the schedule as binary data (see `report.schedule_blob`). A run
  of `compare` has one simulation per scheduler and workload; it is simulated again when asked for.
- `/api/schedule-list/RUN`: the simulations of a run, as JSON.
- `/api/schedule-job/RUN?simulation=K&row=J`: the life of job J, the situations it met,
  and what happened while it waited.

In Python, `desk.schedules.get(desk.runs.resolve(name), k).schedule` is the same schedule.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.job_lives import life, moments, situation
from yardmaster.dashboard.recorded_reasons import RecordedReasons
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.serving import answer, number_of
from yardmaster.dashboard.waits import wait_of
from yardmaster.errors import YardmasterError
from yardmaster.experiments.saved_schedules import list_simulations
from yardmaster.report.schedule_blob import encode

MOST_MOMENTS = 6


def routes(desk: Desk) -> list[BaseRoute]:
    """Serve schedules and what can be asked about them."""
    reasons = RecordedReasons()

    def blob(request: Request) -> Response:
        name = request.path_params["run"]
        path, number = desk.runs.resolve(name), number_of(request, "simulation")
        saved = desk.schedules.get(path, number)
        about = {
            "run": name,
            "simulation": number,
            "is_stored": saved.is_stored,
            "is_same": saved.is_same,
            "has_why": (path / "why.jsonl").is_file(),
            "notes": list(saved.schedule.notes),
        }
        try:
            data = encode(saved.schedule, about)
        except YardmasterError as error:
            raise Refusal(413, str(error)) from None
        return Response(data, media_type="application/octet-stream")

    def simulations(request: Request) -> Response:
        path = desk.runs.resolve(request.path_params["run"])
        try:
            known = list_simulations(path)
        except YardmasterError as error:
            raise Refusal(422, str(error)) from None
        return answer(
            {
                "simulations": [
                    {"number": one.number, "scheduler": one.scheduler, "workload": one.workload}
                    for one in known
                ]
            }
        )

    def job(request: Request) -> Response:
        path = desk.runs.resolve(request.path_params["run"])
        schedule = desk.schedules.get(path, number_of(request, "simulation")).schedule
        row = number_of(request, "row")
        if row >= len(schedule.workload):
            raise Refusal(404, f"There is no job in row {row}.")
        found: dict[str, Any] = life(schedule, row)
        times = moments(schedule, row)[:MOST_MOMENTS].tolist()
        found["situations"] = [situation(schedule, one, row) for one in times]
        found["wait"] = wait_of(schedule, row)
        found["why"] = reasons.of_job(path, found["id"], times[1:] or times)
        return answer(found)

    return [
        Route("/api/schedule/{run:path}", blob),
        Route("/api/schedule-list/{run:path}", simulations),
        Route("/api/schedule-job/{run:path}", job),
    ]
