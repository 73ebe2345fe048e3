"""Measure predictions of run times, and what they buy: `python benchmarks/predictions.py`.

Each trace is predicted by every method of `yardmaster workload predict`. Then it is scheduled
shortest first by these predictions, by the requested times and by the truth: with reservations for
jobs that do not fit (`sjf+easy`), and without (`sjf+skip`). Figures are those of the last half of
the jobs; the parameters of the methods were chosen on the first half of the same traces.

Errors are of predictions made with ends as in the trace. Schedules are other than the trace, so for
them predictions are made twice: first with the trace's ends, then with the ends of the schedule
that those led to. The second ones are scheduled and shown. Rows "too short ones true" and "too long
ones true" are no methods: they show which errors of `history` (ends as in the trace) do harm.

Changes of mean JCT are relative to `fifo+skip`, which needs no run times: ratio of means over ten
blocks of consecutive jobs, with a 95 % bootstrap interval. Neighbouring blocks share a queue, so
the intervals are rather too narrow.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from yardmaster.metrics.per_job import bounded_slowdown, jct_s
from yardmaster.metrics.statistics import blocks, paired_difference
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.prediction.history import Prediction
from yardmaster.workloads.prediction.methods import METHODS
from yardmaster.workloads.prediction.past import LEAST_S, Past
from yardmaster.workloads.prediction.scores import Score, after_warm_up, score
from yardmaster.workloads.sources import load_workload

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
CENSORED_S = 172_800.0
"""The publisher of this copy of Venus cut longer run times to two days."""
BLOCKS = 10
BLIND, SCHEDULERS = "fifo+skip", ("sjf+easy", "sjf+skip")
NEEDY = ("user", "last-two")
"""Methods that are another one where there are no requested times, or no users."""


@dataclass(frozen=True)
class Case:
    """A trace, and a cluster on which its jobs wait."""

    name: str
    about: str
    read: Callable[[], Workload]
    cluster: Cluster


@dataclass(frozen=True)
class Missed:
    """How one method's predictions of one trace came true."""

    trace: str
    method: str
    cpu_s: float
    score: Score


@dataclass(frozen=True)
class Served:
    """What a scheduler made of one trace, knowing run times from somewhere."""

    trace: str
    scheduler: str
    run_times: str
    mean_jct_s: float
    mean_bounded_slowdown: float
    change: float
    change_low: float
    change_high: float


def swf(name: str) -> Callable[[], Workload]:
    """Return the reader of a log of the Parallel Workloads Archive."""
    return lambda: load_workload(TRACES / "swf" / name)


def venus() -> Workload:
    """Read Helios Venus, April to July 2020: no users, no tenants, no requested times."""
    table = pl.read_csv(TRACES / "helios" / "venus_until_2020-07.csv")
    run_s = table["service_sec"].to_numpy()
    return Workload.of(
        name="venus",
        submit_s=table["arrival_s"].to_numpy(),
        duration_s=run_s,
        gpus=table["gpu_count"].to_numpy(),
        status=np.where(run_s >= CENSORED_S, "censored", "").tolist(),
    )


def venus_users() -> Workload:
    """Read two virtual clusters of Venus, September 2020, with users."""
    path = TRACES / "helios_venus_2vc" / "helios_venus_2vc_sept.csv"
    table = pl.read_csv(path, comment_prefix="#")
    return Workload.of(  # walltime_limit_s is the truth itself, and left out
        name="venus-users",
        submit_s=table["submit_time"].to_numpy() / 1e6,
        duration_s=table["duration_s"].to_numpy(),
        gpus=table["num_chips"].to_numpy(),
        user=table["user"].to_list(),
        tenant=table["tenant"].to_list(),
    )


def philly() -> Workload:
    """Read Philly, August to October 2017: virtual clusters as tenants, no users."""
    table = pl.read_csv(TRACES / "philly" / "philly_pollux_until_2017-10.csv")
    seconds = table["timestamp"].str.to_datetime().dt.epoch("s").to_numpy()
    return Workload.of(
        name="philly",
        submit_s=seconds - seconds.min(),
        duration_s=table["duration"].to_numpy(),
        gpus=table["num_gpus"].to_numpy(),
        tenant=table["cluster"].to_list(),
    )


CASES = (
    Case("kth-sp2", "users and requested times", swf("KTH-SP2-1996-2.1-cln.swf.gz"),
         Cluster.pool(100)),
    Case("sdsc-blue", "users and requested times", swf("SDSC-BLUE-2000-4.2-cln.swf.gz"),
         Cluster.pool(1152)),
    Case("venus-users", "users, two virtual clusters, few jobs", venus_users,
         Cluster.of("22x V100:8")),
    Case("philly", "virtual clusters, no users", philly, Cluster.of("90x P100:8")),
    Case("venus", "nothing but GPUs", venus, Cluster.of("80x V100:8")),
)  # fmt: skip


def measure(
    case: Case, methods: Sequence[str], show: Callable[[str], None]
) -> tuple[list[Missed], list[Served]]:
    """Predict and schedule one trace in every way that has something to go by."""
    jobs = case.read()
    late = after_warm_up(jobs)
    blind = simulate(jobs, case.cluster, BLIND)
    missed: list[Missed] = []
    knowing = [simulate(jobs, case.cluster, name) for name in SCHEDULERS]
    served = [
        _served(case, blind, blind, "nothing"),
        *(_served(case, schedule, blind, "truth") for schedule in knowing),
    ]
    for method in methods:
        show(f"{case.name} ({case.about}): {method}")
        begun_s = time.process_time()
        prediction = METHODS[method].predict(Past.of(jobs), None)
        cpu_s = time.process_time() - begun_s
        found = score(jobs, prediction, late)
        if found.cold == 1.0 and method in NEEDY:
            continue
        missed.append(Missed(case.name, method, cpu_s, found))
        for name in SCHEDULERS:
            schedule = scheduled(case, f"{name}~estimate", jobs, method, prediction)
            served.append(_served(case, schedule, blind, method))
    if "history" in methods:
        served += repaired(case, jobs, blind)
    return missed, served


def repaired(case: Case, jobs: Workload, blind: Schedule) -> list[Served]:
    """Schedule by `history` with one kind of its errors replaced by the truth: which one hurts?"""
    predicted_s = METHODS["history"].predict(Past.of(jobs), None).run_s
    true_s = np.maximum(jobs.duration_s, LEAST_S)
    oracles = {
        "history, too short ones true": np.maximum(predicted_s, true_s),
        "history, too long ones true": np.minimum(predicted_s, true_s),
    }
    return [
        _served(
            case,
            simulate(jobs.with_columns(estimate_s=run_s), case.cluster, f"{name}~estimate"),
            blind,
            run_times,
        )
        for run_times, run_s in oracles.items()
        for name in SCHEDULERS
    ]


def scheduled(
    case: Case, scheduler: str, jobs: Workload, method: str, prediction: Prediction
) -> Schedule:
    """Schedule by predictions whose past is the schedule they lead to, as far as one turn goes."""
    first = simulate(jobs.with_columns(estimate_s=prediction.run_s), case.cluster, scheduler)
    again = METHODS[method].predict(Past.of(jobs, first.end_s), None)
    return simulate(jobs.with_columns(estimate_s=again.run_s), case.cluster, scheduler)


def _served(case: Case, schedule: Schedule, baseline: Schedule, run_times: str) -> Served:
    late = after_warm_up(schedule.workload)
    taken_s = jct_s(schedule)[late]
    change = paired_difference(_by_block(taken_s), _by_block(jct_s(baseline)[late])).relative
    return Served(
        trace=case.name,
        scheduler=schedule.scheduler,
        run_times=run_times,
        mean_jct_s=float(taken_s.mean()),
        mean_bounded_slowdown=float(bounded_slowdown(schedule)[late].mean()),
        change=change.mean,
        change_low=change.low,
        change_high=change.high,
    )


def _by_block(values: FloatArray) -> FloatArray:
    return np.array([values[block].mean() for block in blocks(values, BLOCKS)])


def errors_table(rows: Sequence[Missed]) -> Table:
    """Return how predictions came true, for reading."""
    table = Table(
        *("trace", "method", "median |log2|", "within ×2", "bias", "rank correlation"),
        *("too short", "cold", "CPU s"),
    )
    for row in rows:
        found = row.score
        table.add_row(
            row.trace,
            row.method,
            f"{found.median_error:.2f}",
            f"{found.within_2:.0%}",
            f"{found.bias:+.2f}",
            f"{found.rank_correlation:.2f}",
            f"{found.underestimated:.0%}",
            f"{found.cold:.0%}",
            f"{row.cpu_s:.1f}",
        )
    return table


def schedules_table(rows: Sequence[Served]) -> Table:
    """Return what they bought, for reading."""
    table = Table(
        *("trace", "scheduler", "run times from", "mean JCT h"),
        *(f"against {BLIND}", "bounded slowdown"),
    )
    for row in sorted(rows, key=lambda row: (row.trace, row.scheduler.partition("~")[0])):
        ends = f"{row.change:+.1%} [{row.change_low:+.1%}, {row.change_high:+.1%}]"
        table.add_row(
            row.trace,
            row.scheduler,
            row.run_times,
            f"{row.mean_jct_s / 3600:.2f}",
            "" if row.run_times == "nothing" else ends,
            f"{row.mean_bounded_slowdown:.1f}",
        )
    return table


def main() -> None:
    """Measure every trace and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--method", action="append", choices=list(METHODS))
    parser.add_argument("--json", type=Path, help="also write the figures here")
    chosen = parser.parse_args()
    missed: list[Missed] = []
    served: list[Served] = []
    for case in CASES:
        if not chosen.case or case.name in chosen.case:
            of_case = measure(case, chosen.method or list(METHODS), Console(stderr=True).print)
            missed += of_case[0]
            served += of_case[1]
    console = Console(width=150)
    console.print(errors_table(missed), schedules_table(served))
    if chosen.json:
        figures = {
            "errors": [asdict(row) for row in missed],
            "schedules": [asdict(row) for row in served],
        }
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
