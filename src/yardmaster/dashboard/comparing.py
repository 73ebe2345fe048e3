"""Contrasts of schedules of the same jobs: of several runs, or within one comparison."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from yardmaster.dashboard.desk import Desk
from yardmaster.dashboard.plain_files import read_plain
from yardmaster.dashboard.refusals import Refusal
from yardmaster.dashboard.serving import answer, number_of

if TYPE_CHECKING:
    from yardmaster.experiments.plan import Plan
    from yardmaster.model.workload import FloatArray, Workload
    from yardmaster.report.same_jobs import Side

MOST_RUNS = 12
MOST_SIDES = 32
SHOWN = 4
"""Schedules drawn at first; the eye cannot follow many more lines."""
KEPT = 6
"""Contrasts kept ready: a page asks again when the user changes the baseline."""
NEVER = ("unplaceable", "not_submitted")
"""Outcomes of jobs that no scheduler had to do with."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """One schedule of one run: where it is and who made it."""

    run: str
    folder: Path
    number: int
    """Of the run's simulations; its jobs are in `jobs/NUMBER.parquet`."""
    scheduler: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A run directory that holds schedules."""

    name: str
    folder: Path
    plan: Plan
    summary: tuple[dict[str, Any], ...]
    """The metrics of every simulation: scheduler by scheduler, workload by workload."""

    def simulations(self, workload: int) -> list[Simulation]:
        """Return the schedules of one workload."""
        count = self.plan.workload_files
        return [
            Simulation(self.name, self.folder, number, str(self.summary[number]["scheduler"]))
            for number in range(workload, len(self.summary), count)
        ]

    def column(self, name: str) -> FloatArray:
        """Return (schedulers, workloads) one metric; NaN where it has no value."""
        values = [row.get(name) for row in self.summary]
        found = np.array([np.nan if value is None else value for value in values], dtype=float)
        return found.reshape(-1, self.plan.workload_files)


def read_run(name: str, folder: Path) -> Ran:
    """Read what is needed of a run directory, which must hold schedules of jobs.

    Raises:
        Refusal: if it does not.
    """
    from yardmaster.experiments.plan import Plan
    from yardmaster.experiments.run_directory import is_run_directory
    from yardmaster.model.documents import read_toml, validate

    if not is_run_directory(folder):
        raise Refusal(
            409, f"{name} holds no schedules: only runs of simulate and compare are compared."
        )
    config = folder / "config.toml"
    plan = validate(Plan, read_toml(config), config.name)
    if plan.command not in {"simulate", "compare"}:
        raise Refusal(
            409, f"{name} is a run of {plan.command}: only those of simulate and compare are."
        )
    try:
        summary = json.loads(read_plain(folder / "summary.json"))
        rows = tuple(dict(row) for row in summary)
    except (OSError, ValueError, TypeError):
        raise Refusal(409, f"The summary.json of {name} is missing or damaged.") from None
    if len(rows) % plan.workload_files:
        raise Refusal(409, f"The summary.json of {name} does not fit its config.toml.")
    return Ran(name, folder, plan, rows)


def read_side(simulation: Simulation, name: str) -> Side:
    """Read what a schedule did with every job.

    Raises:
        Refusal: if its table is missing or damaged.
    """
    import polars as pl

    from yardmaster.report.same_jobs import MEASURES, Side

    path = simulation.folder / "jobs" / f"{simulation.number}.parquet"
    try:
        table = pl.read_parquet(path, columns=[*MEASURES, "outcome"])
    except (OSError, pl.exceptions.PolarsError):
        raise Refusal(409, f"jobs/{path.name} of {simulation.run} is missing or damaged.") from None
    outcome = table.get_column("outcome")
    return Side(
        name,
        {measure: table.get_column(measure).to_numpy().astype(np.float64) for measure in MEASURES},
        ~outcome.is_in(NEVER).to_numpy(),
        int((outcome == "failed").sum()),
    )


def contrast_of(runs: Sequence[Ran], workload: int, baseline: int) -> dict[str, Any]:
    """Return the contrast of all schedules that the runs hold of one workload.

    Raises:
        Refusal: if the workloads differ, or there is nothing to compare.
    """
    from yardmaster.report.contrast import contrast
    from yardmaster.report.same_jobs import SameJobs

    count = min(ran.plan.workload_files for ran in runs)
    if not 0 <= workload < count:
        raise Refusal(404, f"There is no workload {workload}: they are numbered from 0.")
    simulations = [each for ran in runs for each in ran.simulations(workload)]
    if len(simulations) < 2:
        raise Refusal(409, "One schedule alone cannot be compared: choose another run too.")
    if len(simulations) > MOST_SIDES:
        raise Refusal(409, f"At most {MOST_SIDES} schedules are compared at once.")
    if not 0 <= baseline < len(simulations):
        raise Refusal(404, f"There is no schedule {baseline} to compare with.")
    jobs = _shared_workload(runs, workload)
    sides = tuple(map(read_side, simulations, _names(simulations)))
    units, whole = _units(runs) if len(runs) == 1 else (None, None)
    found = contrast(SameJobs(jobs, sides), units, baseline=baseline, whole=whole)
    for record, simulation in zip(found["sides"], simulations, strict=True):
        record |= {
            "run": simulation.run,
            "simulation": simulation.number,
            "hidden": _not_drawn(simulation),
        }
    return found | {
        "title": _title(runs, jobs),
        "workload": workload,
        "workloads": _workload_names(runs[0]),
        "notes": _notes(runs, sides),
        "shown": _shown(found, baseline),
    }


def _not_drawn(simulation: Simulation) -> str:
    """Return why a schedule cannot be looked at; "" if it can. Its numbers are there all the same.

    Said beforehand, so that one order in a Python file does not take the others from the page.
    """
    from yardmaster.experiments.saved_schedules import SEGMENTS, needs_code

    is_stored = (simulation.folder / SEGMENTS).is_file()
    return "" if is_stored else needs_code(simulation.scheduler)


def _shared_workload(runs: Sequence[Ran], number: int) -> Workload:
    """Return the workload that all runs have; names may differ, jobs may not."""
    from yardmaster.workloads.tables import read_table

    first = read_table(runs[0].folder / "workloads" / f"{number}.parquet")
    for other in runs[1:]:
        jobs = read_table(other.folder / "workloads" / f"{number}.parquet")
        if jobs.fingerprint() != first.fingerprint():
            raise Refusal(
                409,
                f"{runs[0].name} ({len(first):,} jobs, {first.name}) and {other.name}"
                f" ({len(jobs):,} jobs, {jobs.name}) are of different workloads: only schedules"
                " of the same jobs can be compared.",
            )
    return first


def _names(simulations: Sequence[Simulation]) -> list[str]:
    """Return the scheduler of each; with its run where two have the same."""
    schedulers = [each.scheduler for each in simulations]
    return [
        f"{each.scheduler} ({each.run})" if schedulers.count(each.scheduler) > 1 else each.scheduler
        for each in simulations
    ]


def _units(runs: Sequence[Ran]) -> tuple[dict[str, FloatArray] | None, list[bool] | None]:
    """Return the metrics of every workload of a comparison; None if there is one only."""
    from yardmaster.report.contrast import PAIRED

    ran = runs[0]
    if ran.plan.workload_files < 2:
        return None, None
    left_out = np.nan_to_num(ran.column("unfinished") + ran.column("failed"))
    return {name: ran.column(name) for name in PAIRED}, (left_out.sum(axis=1) == 0).tolist()


def _title(runs: Sequence[Ran], jobs: Workload) -> str:
    from yardmaster.report.values import plain

    clusters = list(dict.fromkeys(ran.plan.cluster for ran in runs))
    return plain(f"{jobs.name} on {', '.join(clusters)}")


def _workload_names(ran: Ran) -> list[str]:
    from yardmaster.report.values import plain

    return [plain(row["workload"]) for row in ran.summary[: ran.plan.workload_files]]


def _notes(runs: Sequence[Ran], sides: Sequence[Side]) -> list[str]:
    notes = []
    if len({ran.plan.cluster for ran in runs}) > 1:
        notes.append("The runs are on different clusters: differences are not the schedulers' own.")
    if len({ran.plan.until_s for ran in runs}) > 1:
        notes.append("The runs were cut at different times.")
    cut = [side.name for side in sides if not side.is_whole]
    if cut:
        notes.append(
            f"Jobs did not finish under {', '.join(cut)}: averages cover finished jobs only, so"
            " differences have no intervals."
        )
    return notes


def _shown(found: dict[str, Any], baseline: int) -> list[int]:
    """Return which schedules are drawn at first: the baseline and the best of the others."""
    places = range(len(found["sides"]))
    values = found["differences"][0]["values"] if found["differences"] else [None for _ in places]
    best = sorted(places, key=lambda place: (values[place] is None, values[place] or 0.0))
    return sorted([baseline, *[place for place in best if place != baseline][: SHOWN - 1]])


def routes(desk: Desk) -> list[BaseRoute]:
    """Serve contrasts."""
    ready: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
    lock = threading.Lock()

    def compare(request: Request) -> Response:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 1 <= len(names) <= MOST_RUNS:
            raise Refusal(400, f"Name one comparison, or two to {MOST_RUNS} runs: ?run=A&run=B.")
        folders = [desk.runs.resolve(name) for name in names]
        workload = number_of(request, "workload")
        baseline = number_of(request, "baseline")
        key = (tuple(zip(names, map(_changed, folders), strict=True)), workload, baseline)
        with lock:
            found = ready.get(key)
        if found is None:
            runs = [read_run(name, folder) for name, folder in zip(names, folders, strict=True)]
            found = contrast_of(runs, workload, baseline)
            with lock:
                ready[key] = found
                while len(ready) > KEPT:
                    ready.popitem(last=False)
        return answer(found)

    return [Route("/api/compare", compare)]


def _changed(folder: Path) -> int:
    """Return when a run was written; runs appear complete and are replaced as a whole."""
    meta = folder / "meta.json"
    return meta.stat().st_mtime_ns if meta.is_file() else 0
