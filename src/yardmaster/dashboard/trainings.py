"""Trainings: their curves as they grow, and stopping and resuming them."""

from __future__ import annotations

import asyncio
import json
import math
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.plain_files import read_plain
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.security import require_intent
from yardmaster.dashboard.serving import PULSE_S, answer, event_stream, json_body
from yardmaster.dashboard.tails import Record, Tail
from yardmaster.dashboard.trainers import ask_to_stop, is_command, trainer
from yardmaster.experiments.training.folder import RunFolder

MOST_RUNS = 12
"""Runs that one page shows."""
MOST_POINTS = 4_000
"""Points of one curve that are sent at first; beyond, neighbours are averaged."""
MOST_STEPS = 10**12
STUDIES = ("trials", "trainings")
"""Folders in which a sweep or a study keeps its trainings."""
LOOK_AROUND_S = 1.0
"""How often run.json and who trains are looked at."""


def routes(desk: Desk) -> list[BaseRoute]:
    """Follow the curves of trainings; stop and resume them."""

    def folders(request: Request) -> dict[str, RunFolder]:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 1 <= len(names) <= MOST_RUNS:
            raise Refusal(400, f"Name 1 to {MOST_RUNS} trainings.")
        return {name: training_folder(desk, name) for name in names}

    def trainings(request: Request) -> Response:
        names = request.query_params.getlist("run")
        within = _within(desk, names[0]) if len(names) == 1 else []
        found = {} if within else folders(request)
        runs = [{"run": name, "about": _about(one)} for name, one in found.items()]
        return answer({"runs": runs, "within": within})

    async def events(request: Request) -> Response:
        return event_stream(desk, request, _changes(folders(request)))

    async def stop(request: Request) -> Response:
        require_intent(request, desk)
        name = _name(await json_body(request))
        folder = training_folder(desk, name)
        return answer({"asked": await run_in_threadpool(ask_to_stop, folder.path, name)})

    async def resume(request: Request) -> Response:
        require_intent(request, desk)
        body = await json_body(request)
        name = _name(body)
        folder = training_folder(desk, name)
        if trainer(folder.path) is not None:
            raise Refusal(409, f"Somebody trains in {name} already.")
        words = ["train", f"--resume={folder.path}"]
        if "steps" in body:
            words.append(f"--steps={_steps(body['steps'])}")
        elif _about(folder)["status"] == "finished":
            raise Refusal(409, f"{name} has made all of its steps; say how many it is to make.")
        work = desk.bench.submit("training", words, run=name, folder=folder.path)
        return answer(work.told())

    return [
        Route("/api/training", trainings),
        Route("/api/training/events", events),
        Route("/api/training/stop", stop, methods=["POST"]),
        Route("/api/training/resume", resume, methods=["POST"]),
    ]


def training_folder(desk: Desk, name: str) -> RunFolder:
    """Return the folder of a training.

    Raises:
        Refusal: if there is no such run, or it is no training.
    """
    folder = RunFolder(desk.runs.resolve(name))
    if not folder.is_run():
        raise Refusal(404, f"{name} is not a training.")
    return folder


def _within(desk: Desk, name: str) -> list[Record]:
    """Return the trainings of a sweep or a study, which is not a training itself."""
    path = desk.runs.resolve(name)
    if RunFolder(path).is_run():
        return []
    found = []
    for inner in (f"{name}/{part}/{one.name}" for part in STUDIES for one in _folders(path / part)):
        with suppress(Refusal):  # a folder without a training, or one that leads elsewhere
            found.append({"run": inner, "about": _about(training_folder(desk, inner))})
    return found


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(one for one in path.iterdir() if one.is_dir())
    except OSError:
        return []


def _name(body: Record) -> str:
    name = body.get("run")
    if not isinstance(name, str):
        raise Refusal(400, "Name the run.")
    return name


def _steps(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_STEPS:
        raise Refusal(400, f"steps must be a whole number from 1 to {MOST_STEPS:,}.")
    return value


async def _changes(folders: Mapping[str, RunFolder]) -> AsyncIterator[dict[str, Any] | None]:
    """Yield what is new in each run: what it is, updates and evaluations since the last look."""
    followed = {name: Followed(folder) for name, folder in folders.items()}
    looks = 0
    while True:
        around = looks % round(LOOK_AROUND_S / PULSE_S) == 0
        for name, one in followed.items():
            news = await run_in_threadpool(one.news, around=around)
            if news is not None:
                yield {"run": name} | news
        looks += 1
        await asyncio.sleep(PULSE_S)
        yield None


class Followed:
    """A training that a page looks at."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._updates = Tail(folder.progress)
        self._evaluations = Tail(folder.evaluations)
        self._about: Record | None = None
        self._is_first = True

    def news(self, *, around: bool) -> Record | None:
        """Return what is new; None if nothing is.

        With `around`, also what run.json says and who trains.
        """
        found: Record = {}
        updates, evaluations = self._updates.read_all(), self._evaluations.read_all()
        if self._updates.restarted or self._evaluations.restarted:
            # A resumed run forgets what was written after its last checkpoint: tell all again.
            self._updates, self._evaluations = (
                Tail(self._folder.progress), Tail(self._folder.evaluations),
            )  # fmt: skip
            updates, evaluations = self._updates.read_all(), self._evaluations.read_all()
            found["restarted"] = True
        if updates:
            found["updates"] = columns_of(thinned(updates, MOST_POINTS))
        if evaluations:
            found["evaluations"] = evaluations
        if around or self._is_first:
            about = _about(self._folder)
            if about != self._about:
                found["about"] = self._about = about
        self._is_first = False
        return found or None


def _about(folder: RunFolder) -> Record:
    """Return what a page shows of a training besides its curves."""
    about, config = _json(folder.about), _toml(folder.config)
    pid = trainer(folder.path)
    status = str(about.get("status", "unknown"))
    if status == "running" and pid is None:
        status = "killed"
    elif pid is not None:
        status = "running"
    train = config.get("train", {})
    learner = config.get("learner", {})
    return {
        "status": status,
        "process": pid,
        "stoppable": pid is not None and is_command(pid),
        "learner": str(learner.get("name", "")),
        "task": str(config.get("task", {}).get("preset", "")),
        "seed": train.get("seed"),
        "total_steps": train.get("steps"),
        "metric": about.get("metric"),
        "higher_is_better": _higher_is_better(about.get("metric")),
        "heuristics": about.get("heuristics", {}),
        "warnings": about.get("warnings", []),
        "best": about.get("best"),
        "best_steps": about.get("best_steps"),
        "command": about.get("command", ""),
        "started": about.get("started", ""),
    }


def _higher_is_better(metric: object) -> bool:
    from yardmaster.experiments.training.evaluation import ANY_HIGHER_IS_BETTER

    return ANY_HIGHER_IS_BETTER.get(str(metric), False)


def thinned(records: list[Record], most: int) -> list[Record]:
    """Return at most so many records: averages of neighbours, each at its last one's steps."""
    if len(records) <= most:
        return records
    together = math.ceil(len(records) / most)
    return [_mean(records[at : at + together]) for at in range(0, len(records), together)]


def _mean(records: list[Record]) -> Record:
    """Average what was measured; counts (steps, updates, seconds) stay those of the last."""
    last = records[-1]
    found = dict(last)
    for key in last:
        if key in {"steps", "updates", "seconds"}:
            continue
        values = [one[key] for one in records if isinstance(one.get(key), int | float)]
        found[key] = sum(values) / len(values) if values else None
    return found


def columns_of(records: list[Record]) -> dict[str, list[Any]]:
    """Turn records into columns of equal length; what one does not have is null."""
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def _json(path: Path) -> Record:
    try:
        found = json.loads(read_plain(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _toml(path: Path) -> Record:
    try:
        return tomllib.loads(read_plain(path))
    except (OSError, ValueError):
        return {}
