"""Experiments of many runs: their figures as numbers, and how far those under way have come.

The numbers are those of the experiment's report (`report.suite`), restricted to the regimes and
schedulers a page asks for. Of an experiment under way, the regimes that are complete are shown.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.serving import PULSE_S, answer, event_stream

if TYPE_CHECKING:
    from yardmaster.report.suite.experiment import Experiment
    from yardmaster.report.suite.numbers import Choice

KEPT = 3
"""Experiments kept ready; one of a hundred thousand runs takes some seconds to read."""
KEPT_ANSWERS = 24
"""Answers kept ready: intervals take thousands of resamplings, and filters go back and forth."""
LOOK_S = 0.5
"""How often an experiment under way is looked at."""
WINDOW_S = 30.0
"""The rate of runs is that of so many seconds past."""
LABEL = "label."
"""How parameters of the address begin that name a label of regimes."""


class Shelf:
    """The experiments read last, and what was asked about them."""

    def __init__(self) -> None:
        self._experiments: OrderedDict[tuple[str, int], Experiment] = OrderedDict()
        self._answers: OrderedDict[tuple[str, int, str], dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def numbers(self, folder: Path, choice: Choice) -> dict[str, Any]:
        """Return the numbers of an experiment's figures, made anew if its results changed."""
        from yardmaster.report.suite.numbers import experiment_numbers

        results = folder / "results.parquet"
        if not results.is_file():
            from yardmaster.report.suite.experiment import experiment_so_far

            return experiment_numbers(experiment_so_far(folder), choice)
        key = (str(folder), results.stat().st_mtime_ns)
        question = (*key, repr(choice))
        with self._lock:
            if question in self._answers:
                return self._answers[question]
        found = experiment_numbers(self._experiment(folder, key), choice)
        with self._lock:
            _keep(self._answers, question, found, KEPT_ANSWERS)
        return found

    def _experiment(self, folder: Path, key: tuple[str, int]) -> Experiment:
        from yardmaster.report.suite.experiment import read_experiment

        with self._lock:
            if key in self._experiments:
                return self._experiments[key]
        found = read_experiment(folder)
        with self._lock:
            _keep(self._experiments, key, found, KEPT)
        return found


def _keep(shelf: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    shelf[key] = value
    while len(shelf) > most:
        shelf.popitem(last=False)


def choice_of(request: Request) -> Choice:
    """Return what the address asks for: family, metric, schedulers, labels of regimes."""
    from yardmaster.report.suite.numbers import Choice

    query = request.query_params
    labels = {
        name.removeprefix(LABEL): tuple(sorted(set(query.getlist(name))))
        for name in dict.fromkeys(query)
        if name.startswith(LABEL)
    }
    return Choice(
        family=query.get("family"),
        metric=query.get("metric"),
        schedulers=tuple(sorted(set(query.getlist("scheduler")))),
        labels=dict(sorted(labels.items())),
    )


def kind_of(folder: Path) -> str:
    """Return what kind of experiment a folder holds: `suite`, `lookahead` or `trainings`.

    Raises:
        Refusal: if it holds none.
    """
    if (folder / "experiment.toml").is_file():
        return "suite"
    if (folder / "lookahead.parquet").is_file():
        return "lookahead"
    if (folder / "trainings.toml").is_file():
        return "trainings"
    raise Refusal(409, f"{folder.name} is not the folder of an experiment.")


def figures_of(folder: Path, choice: Choice, shelf: Shelf) -> dict[str, Any]:
    """Return the numbers of every figure; of what only trains so far, none."""
    kind = kind_of(folder)
    if kind == "suite":
        return {"kind": kind} | shelf.numbers(folder, choice)
    if kind == "lookahead":
        from yardmaster.report.lookahead import read_lookahead
        from yardmaster.report.suite.numbers import lookahead_numbers

        return {"kind": kind} | lookahead_numbers(read_lookahead(folder))
    return {"kind": kind, "name": folder.name}


async def states(folder: Path) -> AsyncIterator[dict[str, Any] | None]:
    """Yield how far an experiment is whenever that changes, with rate and time to go."""
    from yardmaster.experiments.suite.progress import Watch

    watch = await asyncio.to_thread(Watch, folder)
    seen: dict[str, Any] | None = None
    past: list[tuple[float, int]] = []
    looked = 0.0
    while True:
        now = time.monotonic()
        if now - looked < LOOK_S:
            await asyncio.sleep(PULSE_S)
            yield None
            continue
        looked = now
        state = await asyncio.to_thread(watch.look)
        past = [each for each in past if now - each[0] <= WINDOW_S]
        past.append((now, state.done + state.failed))
        rate = _rate(past)
        rest = state.total - state.done - state.failed
        told = state.record() | {
            "rate": rate,
            "eta_s": rest / rate if rate and state.is_running else None,
        }
        if told != seen:
            seen = told
            yield told


def _rate(past: list[tuple[float, int]]) -> float | None:
    """Return runs a second over the time looked at; None before anything has happened."""
    (begun, first), (now, last) = past[0], past[-1]
    return (last - first) / (now - begun) if last > first else None


def routes(desk: Desk) -> list[BaseRoute]:
    """Serve experiments."""
    shelf = Shelf()

    def folder_of(request: Request) -> Path:
        # Of a study's trainings the state of each is read, one folder further down.
        return desk.runs.resolve(request.query_params.get("run", ""), deepest=3)

    def figures(request: Request) -> Response:
        return answer(figures_of(folder_of(request), choice_of(request), shelf))

    def state(request: Request) -> Response:
        from yardmaster.experiments.suite.progress import Watch

        folder = folder_of(request)
        kind_of(folder)
        return answer(Watch(folder).look().record())

    async def events(request: Request) -> Response:
        folder = folder_of(request)
        kind_of(folder)
        return event_stream(desk, request, states(folder))

    return [
        Route("/api/experiment", figures),
        Route("/api/experiment/state", state),
        Route("/api/experiment/events", events),
    ]
