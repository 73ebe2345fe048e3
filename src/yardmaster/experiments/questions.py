"""Carrying out questions (`whatif`, `eta`) inside a run directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments import whatif_changes as make
from yardmaster.experiments.compare import Progress
from yardmaster.experiments.eta import Forecast, predict
from yardmaster.experiments.eta_calibration import calibrate
from yardmaster.experiments.plan import EtaQuestion, Plan, WhatIfQuestion
from yardmaster.experiments.run_directory import write_inputs, write_meta, write_summary
from yardmaster.experiments.snapshot import Snapshot, snapshot_of, typical_moment, with_newcomer
from yardmaster.experiments.snapshot_file import read_snapshot
from yardmaster.experiments.whatif import whatif
from yardmaster.experiments.whatif_rows import WhatIf
from yardmaster.model.reshape import parse_nodes
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.simulation import simulate

QUANTILES = (0.1, 0.5, 0.9)
"""What is saved of every job's distribution."""


def run_whatif(
    plan: Plan,
    workloads: Sequence[Workload],
    folder: Path,
    *,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> WhatIf:
    """Simulate every change of the plan, save everything, and return the answers."""
    question = plan.whatif or WhatIfQuestion()
    started = datetime.now(UTC)
    machines = plan.make_cluster()
    changes = changes_of(question, workloads, unit=make.unit_of(machines))
    found = whatif(
        workloads,
        machines,
        plan.schedulers[0],
        [make.combined(changes)] if question.together and changes else changes,
        sweep=make.sweeping(question.sweep, machines) if question.sweep else None,
        target=make.reading_target(question.target) if question.target else None,
        target_nodes=parse_nodes(question.target_node) if question.target_node else None,
        objective=plan.objective,
        seed=plan.seed,
        until_s=plan.cut_s,
        progress=progress,
        announce=announce,
    )
    write_inputs(folder, plan, workloads)
    write_summary(
        folder,
        ({"change": run.scheduler, "workload": run.workload} | run.summary for run in found.runs),
    )
    fingerprints = {f"{run.scheduler} on {run.workload}": run.fingerprint for run in found.runs}
    write_meta(folder, fingerprints, found.notes, started)
    return found


def changes_of(
    question: WhatIfQuestion, workloads: Sequence[Workload], *, unit: str = "node"
) -> list[make.Change]:
    """Return every change that was named; `unit` is what the cluster grows by."""
    return [
        *map(make.adding, question.add),
        *map(make.removing, question.remove),
        *(make.resizing(text, unit=unit) for text in question.nodes),
        *map(make.replacing, question.replace),
        *(make.changing_quota(text, workloads) for text in question.quota),
        *map(make.scaling_load, question.scale_load),
    ]


def run_eta(
    plan: Plan,
    workloads: Sequence[Workload],
    folder: Path,
    *,
    progress: Progress | None = None,
) -> tuple[Snapshot, Forecast]:
    """Predict the starts the plan asks for, save everything, and return moment and forecast.

    `workloads` holds the jobs to simulate up to the moment of asking or, with a snapshot file, the
    past to learn from; it may then be empty.
    """
    question = plan.eta or EtaQuestion()
    started = datetime.now(UTC)
    moment, schedule = _moment(plan, question, workloads)
    rows = None
    if question.gpus is not None:
        hours = float("nan") if question.hours is None else question.hours
        moment = with_newcomer(moment, gpus=question.gpus, estimate_s=hours * 3600.0)
        rows = np.array([len(moment.jobs) - 1])
    elif question.job:
        rows = np.sort([moment.row_of(name) for name in question.job])
    forecast = predict(
        moment, rows, simulations=question.simulations, seed=plan.seed,
        report=_told(progress, "simulating futures"),
    )  # fmt: skip
    forecast = _corrected(forecast, schedule, question.calibrate, plan.seed, progress)
    write_inputs(folder, plan, workloads)
    write_summary(folder, _records(forecast))
    write_meta(folder, {}, forecast.notes, started)
    return moment, forecast


def _moment(
    plan: Plan, question: EtaQuestion, workloads: Sequence[Workload]
) -> tuple[Snapshot, Schedule | None]:
    """Return the moment of asking, and what led to it where that was simulated."""
    machines, scheduler = plan.make_cluster(), plan.schedulers[0]
    if question.snapshot is not None:
        past = workloads[0] if workloads else None
        path = Path(question.snapshot)
        return read_snapshot(path, machines, scheduler, now_s=question.now_s, history=past), None
    schedule = simulate(workloads[0], machines, scheduler, seed=plan.seed)
    now_s = typical_moment(schedule) if question.now_s is None else question.now_s
    return snapshot_of(schedule, now_s), schedule


def _corrected(
    forecast: Forecast,
    schedule: Schedule | None,
    trials: int,
    seed: int,
    progress: Progress | None,
) -> Forecast:
    """Correct the forecast by earlier ones, or say why that is not possible."""
    if schedule is None or not trials:
        note = "not corrected by earlier predictions: intervals may be too narrow"
        return replace(forecast, notes=(*forecast.notes, note))
    try:
        correction = calibrate(
            schedule, forecast.now_s, trials=trials, seed=seed,
            report=_told(progress, "learning from earlier predictions"),
        )  # fmt: skip
    except YardmasterError as error:
        return replace(forecast, notes=(*forecast.notes, f"not corrected: {error}"))
    return correction.applied(forecast)


def _told(progress: Progress | None, label: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, total: progress(label, done, total)


def _records(forecast: Forecast) -> list[dict[str, object]]:
    """Return every job with the quantiles of its start, seconds from now."""
    starts: list[FloatArray] = [forecast.quantile(share) for share in QUANTILES]
    return [
        {"job": name, "gpus": int(forecast.gpus[place])}
        | {
            f"p{share * 100:.0f}_s": float(start[place])
            for share, start in zip(QUANTILES, starts, strict=True)
        }
        for place, name in enumerate(forecast.ids)
    ]
