"""Schedules of runs that were made before: read back, or simulated again and compared.

A run of `simulate` keeps every segment. A run of `compare` keeps what happened to every job, but
not on which GPUs: its schedules are made again from the saved plan and jobs, which gives the same
ones byte for byte unless the rules have changed since; the fingerprints in `meta.json` tell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.plan import Plan
from yardmaster.experiments.run_directory import is_run_directory, read_inputs
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Cause, Outcome, Schedule
from yardmaster.model.site import Outage
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import (
    BANDIT_PREFIX,
    META_PREFIX,
    POLICY_PREFIX,
    order_files,
)

if TYPE_CHECKING:
    import polars as pl

SEGMENTS = "segments.parquet"


@dataclass(frozen=True, slots=True)
class Simulation:
    """One simulation of a run: its number, and whose it is."""

    number: int
    scheduler: str
    workload: str


@dataclass(frozen=True, slots=True)
class SavedSchedule:
    """A schedule of a run.

    Attributes:
        schedule: what happened.
        is_stored: whether it was read from the folder; else it was simulated again.
        is_same: whether its fingerprint is the one that was written down.
    """

    schedule: Schedule
    is_stored: bool
    is_same: bool


def list_simulations(path: Path) -> list[Simulation]:
    """Return the simulations of a run whose schedules can be had.

    Raises:
        YardmasterError: if the folder is damaged, or a run of another kind.
    """
    if not is_run_directory(path):
        raise YardmasterError(f"{path} is not a run of `simulate` or `compare`.")
    rows = _rows(path)
    return [
        Simulation(number, str(row["scheduler"]), str(row["workload"]))
        for number, row in enumerate(rows)
        if "scheduler" in row and "workload" in row
    ]


def read_schedule(path: Path, number: int = 0, *, runs_code: bool = True) -> SavedSchedule:
    """Return the schedule of one simulation of a run.

    Args:
        path: the run directory.
        number: which of its simulations, from 0.
        runs_code: whether a user's own order, a Python file that lies in the folder, may be run to
            make a schedule again. Whoever only looks at a folder of others should not run it; nor
            is then any file read that the run names and that does not lie in its folder.

    Raises:
        YardmasterError: if the run keeps no schedules, has no such simulation or is damaged; or if
            the schedule could be had only by running code that may not be run, or by reading files
            from elsewhere.
    """
    plan, workloads = read_inputs(path)
    if plan.command not in {"simulate", "compare"}:
        raise YardmasterError(f"A run of `{plan.command}` keeps no schedules.")
    known = list_simulations(path)
    if not 0 <= number < len(known):
        raise YardmasterError(
            f"{path.name} has no simulation {number}; it has {len(known)}, counted from 0."
        )
    chosen = known[number]
    workload = _named(workloads, chosen.workload, path)
    is_stored = (path / SEGMENTS).is_file() and len(known) == 1
    if not is_stored and not runs_code and (reason := needs_code(chosen.scheduler)):
        raise YardmasterError(reason)
    if not runs_code:
        _refuse_files_from_elsewhere(path, plan, [] if is_stored else [chosen.scheduler])
    schedule = (
        _stored(path, plan, workload, chosen.scheduler)
        if is_stored
        else _again(plan, workload, chosen.scheduler)
    )
    expected = _fingerprints(path).get(f"{chosen.scheduler} on {chosen.workload}")
    return SavedSchedule(schedule, is_stored, schedule.fingerprint() == expected)


def _refuse_files_from_elsewhere(path: Path, plan: Plan, schedulers: list[str]) -> None:
    """Complain about a cluster or policy outside of the run's folder, which keeps copies."""
    files = list(order_files(schedulers).values())
    if "/" in plan.cluster or plan.cluster.endswith(".toml"):
        files.append(Path(plan.cluster))
    for file in files:
        if not file.resolve().is_relative_to(path.resolve()):
            raise YardmasterError(
                f"{path.name} names {file}, which does not lie in its folder and is not read;"
                " `yardmaster rerun` reads it."
            )


def needs_code(scheduler: str) -> str:
    """Return why a scheduler's schedule is not made again by looking; "" if it may be.

    That is where the name leads to Python code outside of Yardmaster: `FILE.py:ORDER`.
    """
    known = (POLICY_PREFIX, META_PREFIX, BANDIT_PREFIX)
    if ":" not in scheduler or scheduler.strip().startswith(known):
        return ""
    return (
        f"{scheduler} is an order in a Python file, and the run does not keep its"
        " schedules; `yardmaster simulate` with that order makes a run that does."
    )


def _rows(path: Path) -> list[dict[str, object]]:
    """Return the run's results, one row per simulation."""
    try:
        rows = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise YardmasterError(f"{path.name} is damaged: summary.json cannot be read.") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise YardmasterError(f"{path.name} is damaged: summary.json is not a list of results.")
    return rows


def _fingerprints(path: Path) -> dict[str, str]:
    try:
        meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
        return dict(meta["schedules"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _named(workloads: list[Workload], name: str, path: Path) -> Workload:
    if len(workloads) == 1:
        return workloads[0]
    for workload in workloads:
        if workload.name == name:
            return workload
    raise YardmasterError(f"{path.name} is damaged: it holds no workload named {name!r}.")


def _again(plan: Plan, workload: Workload, scheduler: str) -> Schedule:
    from yardmaster.schedulers.simulation import simulate

    return simulate(
        workload,
        plan.make_cluster(),
        scheduler,
        seed=plan.seed,
        until_s=plan.cut_s,
        engine=plan.engine,
        compatibility=plan.compatibility,
    )


def _stored(path: Path, plan: Plan, workload: Workload, scheduler: str) -> Schedule:
    """Read segments and jobs back into a schedule."""
    import polars as pl

    try:
        segments = pl.read_parquet(path / SEGMENTS)
        jobs = pl.read_parquet(path / "jobs" / "0.parquet")
        return _assembled(plan, workload, scheduler, segments, jobs)
    except (OSError, KeyError, ValueError, IndexError, pl.exceptions.PolarsError) as error:
        raise YardmasterError(f"{path.name} is damaged: its tables do not fit: {error}.") from None


def _assembled(
    plan: Plan, workload: Workload, scheduler: str, segments: pl.DataFrame, jobs: pl.DataFrame
) -> Schedule:
    import polars as pl

    cluster = plan.make_cluster()
    row_of = {str(name): row for row, name in enumerate(workload.id.tolist())}
    outcomes = [Outcome[name.upper()] for name in jobs["outcome"].to_list()]
    causes = [Cause[name.upper()] for name in segments["cause"].to_list()]
    # Where all segments hold equally many GPUs, polars has written arrays in place of lists.
    gpus = segments["gpus"].cast(pl.List(pl.Int32))
    held = gpus.list.len().to_numpy()
    gpu_ids = gpus.explode().drop_nulls().to_numpy().astype(np.int32)
    if len(outcomes) != len(workload) or (len(gpu_ids) and gpu_ids.max() >= cluster.gpus):
        raise ValueError("jobs or GPUs are missing")
    ends = segments["end_s"].to_numpy()
    cut_s = plan.cut_s if np.isfinite(plan.cut_s) else _last_event_s(workload, ends)
    return Schedule(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        start_s=jobs["start_s"].to_numpy().copy(),
        end_s=jobs["end_s"].to_numpy().copy(),
        outcome=np.array(outcomes, dtype=np.int8),
        segment_job=np.array([row_of[str(one)] for one in segments["id"]], dtype=np.int64),
        segment_start_s=segments["start_s"].to_numpy().copy(),
        segment_end_s=ends.copy(),
        segment_gpu_offset=np.concatenate(([0], np.cumsum(held))).astype(np.int64),
        gpu_ids=gpu_ids,
        horizon_s=(float(workload.submit_s[0]), max(cut_s, float(workload.submit_s[0]))),
        engine=plan.engine,
        segment_cause=np.array(causes, dtype=np.int8),
        segment_wasted_s=segments["wasted_s"].to_numpy().copy(),
        outages=_outages(plan, workload, cluster, cut_s),
    )


def _last_event_s(workload: Workload, ends: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return when the simulation ended: with the last segment, or a submission after it."""
    return max(float(workload.submit_s[-1]), float(ends.max()) if len(ends) else 0.0)


def _outages(plan: Plan, workload: Workload, cluster: Cluster, cut_s: float) -> tuple[Outage, ...]:
    """Return when nodes were away: the site lists it, or it is drawn from the seed again."""
    from yardmaster.engine.conditions import conditions_of
    from yardmaster.engine.requests import shapes_of

    if np.isinf(cluster.site.failures.mtbf_h) and not cluster.site.failures.outages:
        return ()
    conditions = conditions_of(
        workload, cluster, shapes_of(workload, cluster), is_needed=True, seed=plan.seed
    )
    found = () if conditions is None else conditions.outages
    return tuple(outage for outage in found if outage.down_s <= cut_s)
