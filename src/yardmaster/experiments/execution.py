"""Carrying out a plan inside a run directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from yardmaster.errors import YardmasterError
from yardmaster.experiments.compare import Progress, compare
from yardmaster.experiments.comparison import Comparison
from yardmaster.experiments.plan import Plan
from yardmaster.experiments.run_directory import (
    write_inputs,
    write_jobs,
    write_meta,
    write_segments,
    write_summary,
)
from yardmaster.metrics.summary import summarise
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

if TYPE_CHECKING:
    from yardmaster.schedulers.simulation import Decision

Announce = Callable[[str], None]


def run_simulation(
    plan: Plan,
    workload: Workload,
    folder: Path,
    *,
    announce: Announce | None = None,
    why: bool = False,
) -> tuple[Schedule, dict[str, float]]:
    """Simulate the plan's one scheduler, save everything, and return schedule and metrics.

    With `why`, every decision of a trained policy is written to `why.jsonl`.
    """
    if len(plan.schedulers) != 1:
        raise YardmasterError("simulate runs one scheduler; use compare for several.")
    started = datetime.now(UTC)
    with _decisions(folder, workload) if why else nullcontext() as keep:
        schedule = simulate(
            workload,
            plan.make_cluster(),
            plan.schedulers[0],
            seed=plan.seed,
            until_s=plan.cut_s,
            engine=plan.engine,
            compatibility=plan.compatibility,
            announce=announce,
            why=keep,
        )
    summary = summarise(schedule)
    write_inputs(folder, plan, [workload])
    write_jobs(folder, 0, schedule)
    write_segments(folder, schedule)
    write_summary(folder, [{"scheduler": schedule.scheduler, "workload": workload.name} | summary])
    fingerprints = {f"{schedule.scheduler} on {workload.name}": schedule.fingerprint()}
    write_meta(folder, fingerprints, (*workload.notes, *schedule.notes), started)
    return schedule, summary


@contextmanager
def _decisions(folder: Path, workload: Workload) -> Iterator[Callable[[Decision], None]]:
    """Open `why.jsonl` for the decisions of a trained policy, a line each."""
    with (folder / "why.jsonl").open("w", encoding="utf-8") as file:

        def keep(why: Decision) -> None:
            file.write(json.dumps(why.record(workload)) + "\n")

        yield keep


def run_comparison(
    plan: Plan,
    workloads: Sequence[Workload],
    folder: Path,
    *,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Comparison:
    """Compare the plan's schedulers, save everything, and return the comparison."""
    started = datetime.now(UTC)
    write_inputs(folder, plan, workloads)
    saved = 0

    def keep(schedule: Schedule) -> None:
        nonlocal saved
        write_jobs(folder, saved, schedule)
        saved += 1

    comparison = compare(
        workloads,
        plan.make_cluster(),
        plan.schedulers,
        objective=plan.objective,
        baseline=plan.baseline,
        seed=plan.seed,
        until_s=plan.cut_s,
        engine=plan.engine,
        compatibility=plan.compatibility,
        progress=progress,
        announce=announce,
        keep=keep,
    )
    write_summary(
        folder,
        [
            {"scheduler": run.scheduler, "workload": run.workload} | run.summary
            for run in comparison.runs
        ],
    )
    fingerprints = {
        f"{run.scheduler} on {run.workload}": run.fingerprint for run in comparison.runs
    }
    write_meta(folder, fingerprints, comparison.notes, started)
    return comparison
