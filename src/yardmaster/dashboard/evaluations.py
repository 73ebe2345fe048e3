"""Results of `evaluate`: who played the same episodes how well.

- `/api/evaluation/RUN`: what `evaluation.json` says, as it stands there.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.serving import answer
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER

LARGEST_FILE = 20_000_000


def routes(desk: Desk) -> list[BaseRoute]:
    """Serve evaluations."""

    def evaluation(request: Request) -> Response:
        file = desk.runs.resolve(request.path_params["run"]) / "evaluation.json"
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LARGEST_FILE:
            raise Refusal(404, "This run is not an evaluation.")
        found: Any
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            rows = [dict(row) for row in found["rows"]]
            metric = str(found["metric"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Refusal(422, "evaluation.json is damaged.") from None
        return answer(
            {
                "task": found.get("task", ""),
                "metric": metric,
                "higher_is_better": HIGHER_IS_BETTER.get(metric, True),
                "episodes": found.get("episodes"),
                "notes": found.get("notes", []),
                "rows": rows,
            }
        )

    return [Route("/api/evaluation/{run:path}", evaluation)]
