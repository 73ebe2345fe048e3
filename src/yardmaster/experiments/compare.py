"""Comparing schedulers on the same jobs, with paired intervals.

With several workloads (seeds of a generator, months of a trace) the pairs are the workloads. With
one workload the pairs are consecutive blocks of its jobs; only means over jobs then have intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from yardmaster.engine.replay import Compile
from yardmaster.errors import YardmasterError
from yardmaster.experiments.comparison import Comparison, ComparisonRow, Estimate, Run
from yardmaster.experiments.line_up import (
    default_schedulers,
    given_cluster,
    given_workloads,
    hardest,
    parse_schedulers,
    refuse_unfit,
)
from yardmaster.metrics.bounds import lower_bound
from yardmaster.metrics.catalogue import METRIC_NAMES, Metric, metric
from yardmaster.metrics.statistics import (
    Interval,
    blocks,
    bootstrap_mean,
    excludes_zero,
    hindsight_gap,
    paired_difference,
)
from yardmaster.metrics.summary import summarise, summarise_blocks
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.schedulers.simulation import Compatibility, Engine, simulate

BLOCKS = 20
"""Into how many blocks of jobs a single workload is cut, to have pairs."""

COMPILE_ABOVE_JOB_RUNS = 20_000
"""Above this many simulated jobs in all, loading the compiled core pays."""

SERVED = {"slowdown": "mean_bounded_slowdown", "jct": "mean_jct_s", "p95": "p95_jct_s"}
"""Objective that a policy's file names → the metric it means."""

Progress = Callable[[str, int, int], None]
"""(what runs now, simulations done, simulations in all)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Results:
    """What one scheduler did on every workload."""

    scheduler: Scheduler
    runs: list[Run]
    bounds: list[float]
    """The proven lower bound of the objective on every workload, NaN where none is known."""
    first: Schedule
    units: list[dict[str, float]]
    """Metrics of every paired unit: a workload, or a block of the only one."""


def compare(
    workloads: Workload | Sequence[Workload],
    cluster: Cluster | str,
    schedulers: Sequence[str | Scheduler] | str | None = None,
    *,
    objective: str = "mean_jct_s",
    baseline: str | None = None,
    seed: int = 0,
    until_s: float = math.inf,
    engine: Engine = "core",
    compatibility: Compatibility = "none",
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
    keep: Callable[[Schedule], None] | None = None,
) -> Comparison:
    """Run every scheduler on every workload and rank them by the objective.

    Args:
        workloads: one workload, or several to pair over.
        cluster: the machines, or their name (see `load_cluster`).
        schedulers: names in the scheduler language; by default `default_schedulers`.
        objective: the metric to rank by (see `yardmaster list metrics`).
        baseline: the scheduler differences refer to; by default the first one.
        seed: seed of random orders and placements.
        until_s: cut every simulation after this second.
        engine: `core` or `simpy`.
        compatibility: see `simulate`.
        progress: called before every simulation and once at the end.
        announce: told when the core must be compiled first.
        keep: given every schedule; the comparison itself keeps only those of the first workload.

    Raises:
        YardmasterError: if names are unknown, a scheduler cannot run on the cluster, or the
            objective cannot be compared; all before the first simulation.
    """
    samples, cluster = given_workloads(workloads), given_cluster(cluster)
    if schedulers is None:
        schedulers = default_schedulers(
            samples, cluster, engine=engine, compatibility=compatibility
        )
    chosen = parse_schedulers([schedulers] if isinstance(schedulers, str) else schedulers)
    base = _baseline(chosen, baseline)
    target = _objective(objective)
    job_runs = sum(map(len, samples)) * len(chosen)
    compile_core: Compile = "always" if job_runs > COMPILE_ABOVE_JOB_RUNS else "auto"
    refuse_unfit(
        chosen, hardest(samples), cluster, seed=seed, compatibility=compatibility,
        announce=announce,
    )  # fmt: skip
    results: list[_Results] = []
    for scheduler in chosen:
        runs: list[Run] = []
        bounds: list[float] = []
        first: Schedule | None = None
        for workload in samples:
            if progress is not None:
                done = len(results) * len(samples) + len(runs)
                progress(f"{scheduler} on {workload.name}", done, len(chosen) * len(samples))
            schedule = simulate(
                workload,
                cluster,
                scheduler,
                seed=seed,
                until_s=until_s,
                engine=engine,
                compatibility=compatibility,
                compile_core=compile_core,
                announce=announce,
            )
            if keep is not None:
                keep(schedule)
            runs.append(_summed_up(schedule))
            # The bound is the workload's, whoever schedules it.
            bounds.append(
                results[0].bounds[len(bounds)] if results else lower_bound(target.name, schedule)
            )
            first = first or schedule  # the others are not kept: they may be large
        assert first is not None  # noqa: S101  (there is at least one workload)
        results.append(_Results(scheduler, runs, bounds, first, _units(runs, first)))
    if progress is not None:
        progress("done", len(chosen) * len(samples), len(chosen) * len(samples))
    return _table(samples, cluster, results, target, results[base])


def _summed_up(schedule: Schedule) -> Run:
    return Run(
        schedule.scheduler, schedule.workload.name, summarise(schedule), schedule.fingerprint()
    )


def _baseline(chosen: Sequence[Scheduler], name: str | None) -> int:
    if name is None:
        return 0
    wanted = str(parse_scheduler(name))
    names = [str(scheduler) for scheduler in chosen]
    if wanted not in names:
        raise YardmasterError(
            f"The baseline {wanted!r} is not among the schedulers compared: {', '.join(names)}."
        )
    return names.index(wanted)


def _objective(name: str) -> Metric:
    target = metric(name)
    if target.better == "neither":
        raise YardmasterError(
            f"{name} is the same under every scheduler; choose another objective."
        )
    return target


def _units(runs: Sequence[Run], first: Schedule) -> list[dict[str, float]]:
    """Return the metrics of every paired unit; NaN where a single block has none."""
    if len(runs) > 1:
        return [run.summary for run in runs]
    cut = blocks(first, min(BLOCKS, len(first.workload)))
    found = summarise_blocks(first, cut)
    return [
        {name: block[name] if _is_mean_over_jobs(name) else math.nan for name in METRIC_NAMES}
        for block in found
    ]


def _is_mean_over_jobs(name: str) -> bool:
    """Whether the mean over blocks of equal size is the metric of the whole."""
    if metric(name).scope != "jobs":
        return False
    return name.startswith("mean_") or name == "deadline_miss_rate"


def _column(results: _Results, name: str) -> FloatArray:
    return np.asarray([unit[name] for unit in results.units], dtype=np.float64)


def _whole(results: _Results, name: str) -> float:
    """Return the mean over workloads, or the whole workload's own value."""
    return float(np.mean([run.summary[name] for run in results.runs]))


def _estimate(results: _Results, name: str) -> Estimate:
    interval = bootstrap_mean(_column(results, name))
    return Estimate(_whole(results, name), interval.low, interval.high)


def _most(results: Sequence[_Results], name: str) -> int:
    """Return the largest count of such jobs that a scheduler has, over all workloads."""
    return int(max(sum(run.summary[name] for run in each.runs) for each in results))


def _leaves_jobs_out(results: _Results) -> bool:
    """Whether averages over finished jobs cover only a part of what was submitted."""
    return any(_most([results], name) > 0 for name in ("unfinished", "failed"))


def _difference(a: _Results, b: _Results, target: Metric) -> Interval:
    """Return a's objective relative to b's, with the paired interval.

    Where jobs did not finish, or failed, there is none: averages over those that did may flatter
    whoever let the long ones wait.
    """
    if _leaves_jobs_out(a) or _leaves_jobs_out(b):
        whole = _whole(b, target.name)
        return Interval(
            _whole(a, target.name) / whole - 1.0 if whole else math.nan, math.nan, math.nan
        )
    paired = paired_difference(_column(a, target.name), _column(b, target.name)).relative
    whole = _whole(b, target.name)
    mean = _whole(a, target.name) / whole - 1.0 if whole else math.nan
    return Interval(mean, paired.low, paired.high)


def _table(
    samples: Sequence[Workload],
    cluster: Cluster,
    results: list[_Results],
    target: Metric,
    baseline: _Results,
) -> Comparison:
    matrix = [[run.summary[target.name] for run in result.runs] for result in results]
    gaps = hindsight_gap(matrix, better="lower" if target.better == "lower" else "higher")
    gap_of = {id(result): float(gap) for result, gap in zip(results, gaps, strict=True)}
    sign = 1.0 if target.better == "lower" else -1.0
    ranked = sorted(results, key=lambda r: _nan_last(sign * _whole(r, target.name)))
    winner = _clear_winner(ranked, target)
    rows = tuple(
        ComparisonRow(
            scheduler=str(result.scheduler),
            information=result.scheduler.information.value,
            metrics={name: _estimate(result, name) for name in METRIC_NAMES},
            difference=Estimate(*_difference(result, baseline, target)),
            hindsight_gap=gap_of[id(result)],
            bound_gap=_bound_gap(result, target),
            is_winner=result is winner,
        )
        for result in ranked
    )
    units = (
        f"{len(samples)} workloads"
        if len(samples) > 1
        else f"{len(baseline.units)} blocks of one workload"
    )
    return Comparison(
        workload=_names(samples),
        cluster=cluster.name,
        objective=target.name,
        baseline=str(baseline.scheduler),
        units=units,
        rows=rows,
        schedules=tuple(result.first for result in ranked),
        notes=(*_notes(samples, ranked), *_other_aims(ranked, target.name)),
        runs=tuple(run for result in results for run in result.runs),
    )


def _other_aims(ranked: Sequence[_Results], objective: str) -> list[str]:
    """Say which trained policies serve another objective than the one that ranks them here."""
    notes = []
    for result in ranked:
        policy = result.scheduler.policy
        served = SERVED.get(str(policy.file.about.get("objective"))) if policy else None
        if served is not None and served != objective:
            notes.append(f"{result.scheduler} was trained for {served}, not for {objective}")
    return notes


def _notes(samples: Sequence[Workload], ranked: Sequence[_Results]) -> tuple[str, ...]:
    """Say what the reader must know of the workloads, the cluster, and jobs cut off."""
    notes = dict.fromkeys([*samples[0].notes, *ranked[0].first.notes])
    if len(samples) > 1 and samples[0].notes:
        notes = {
            f"{note} (first of {len(samples)} workloads)" if "seed" in note else note: None
            for note in notes
        }
    for name, what in (("unfinished", "were cut off unfinished"), ("failed", "failed for good")):
        if most := _most(ranked, name):
            notes[
                f"up to {most:,} jobs {what}; averages cover finished jobs only, so differences"
                " have no intervals and nobody is marked as the winner"
            ] = None
    return tuple(notes)


def _names(samples: Sequence[Workload]) -> str:
    names = list(dict.fromkeys(sample.name for sample in samples))
    if len(names) == 1:
        return names[0]
    stems = {name.rpartition(", seed ")[0] for name in names}
    return f"{stems.pop()}, {len(names)} seeds" if len(stems) == 1 else f"{names[0]} … {names[-1]}"


def _nan_last(value: float) -> tuple[bool, float]:
    return (math.isnan(value), value)


def _clear_winner(ranked: Sequence[_Results], target: Metric) -> _Results | None:
    """Return the best scheduler if its interval against every other one excludes zero."""
    best, others = ranked[0], ranked[1:]
    if not others:
        return None
    sign = 1.0 if target.better == "lower" else -1.0
    for other in others:
        difference = _difference(best, other, target)
        if not (excludes_zero(difference) and sign * difference.mean < 0):
            return None
    return best


def _bound_gap(results: _Results, target: Metric) -> float:
    """Return how far the objective lies above its proven bound, averaged over workloads."""
    values = [run.summary[target.name] for run in results.runs]
    gaps = [
        value / bound - 1.0 if bound > 0 else math.nan
        for value, bound in zip(values, results.bounds, strict=True)
    ]
    return float(np.mean(gaps))
