"""Measure predictions of run times, and what they buy: `python benchmarks/predictions.py`.

Each trace is predicted by every method of `yardmaster workload predict`, and then scheduled by
shortest first with backfilling on these predictions (`sjf+easy~estimate`), on the requested times,
and on the truth. Figures are those of the last half of the jobs; the parameters of the methods were
chosen on the first half of the same traces.

Errors are of predictions made with ends as in the trace. Schedules are other than the trace, so for
them predictions are made twice: first with the trace's ends, then with the ends of the schedule
that those led to. The second ones are scheduled and shown.

Differences in mean JCT are to `fifo+skip`, which needs no run times: ratio of means over ten blocks
of consecutive jobs with a 95 % bootstrap interval. Neighbouring blocks share a queue, so the
intervals are rather too narrow.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
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
from yardmaster.workloads.prediction.past import Past
from yardmaster.workloads.prediction.scores import after_warm_up, score
from yardmaster.workloads.sources import load_workload

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
CENSORED_S = 172_800.0
"""The publisher of this copy of Venus cut longer run times to two days."""
BLOCKS = 10
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
class Row:
    """What one way to know run times gives on one trace; NaN where there is nothing to score."""

    trace: str
    knows: str
    scheduler: str
    median_error: float = float("nan")
    within_2: float = float("nan")
    bias: float = float("nan")
    rank_correlation: float = float("nan")
    underestimated: float = float("nan")
    cold: float = float("nan")
    seconds: float = float("nan")
    mean_jct_s: float = float("nan")
    mean_bounded_slowdown: float = float("nan")
    jct_change: float = float("nan")
    jct_change_low: float = float("nan")
    jct_change_high: float = float("nan")


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


def measure(case: Case, only: list[str], show: Callable[[str], None]) -> list[Row]:
    """Predict and schedule one trace in every way that has something to go by."""
    jobs = case.read()
    late = after_warm_up(jobs)
    blind = simulate(jobs, case.cluster, "fifo+skip")
    known = simulate(jobs, case.cluster, "sjf+easy")
    rows = [
        Row(case.name, "nothing", "fifo+skip", **outcome(blind, blind)),
        Row(case.name, "the truth", "sjf+easy", **outcome(known, blind)),
    ]
    for method in (METHODS[name] for name in only):
        show(f"{case.name} ({case.about}): {method.name}")
        begun = time.perf_counter()
        prediction = method.predict(Past.of(jobs), None)
        seconds = time.perf_counter() - begun
        found = asdict(score(jobs, prediction, late))
        del found["jobs"]
        if found["cold"] == 1.0 and method.name in NEEDY:
            continue
        schedule = scheduled(case, jobs, method.name, prediction)
        rows.append(
            Row(
                case.name,
                method.name,
                "sjf+easy~estimate",
                **found,
                seconds=seconds,
                **outcome(schedule, blind),
            )
        )
    return rows


def scheduled(case: Case, jobs: Workload, method: str, prediction: Prediction) -> Schedule:
    """Schedule by predictions whose past is the schedule they lead to, as far as one turn goes."""
    first = simulate(
        jobs.with_columns(estimate_s=prediction.run_s), case.cluster, "sjf+easy~estimate"
    )
    again = METHODS[method].predict(Past.of(jobs, first.end_s), None)
    return simulate(jobs.with_columns(estimate_s=again.run_s), case.cluster, "sjf+easy~estimate")


def outcome(schedule: Schedule, baseline: Schedule) -> dict[str, float]:
    """Return what the last half of the jobs met with, and how that differs from the baseline."""
    late = after_warm_up(schedule.workload)
    taken_s = jct_s(schedule)[late]
    change = paired_difference(_by_block(taken_s), _by_block(jct_s(baseline)[late])).relative
    return {
        "mean_jct_s": float(taken_s.mean()),
        "mean_bounded_slowdown": float(bounded_slowdown(schedule)[late].mean()),
        "jct_change": change.mean,
        "jct_change_low": change.low,
        "jct_change_high": change.high,
    }


def _by_block(values: FloatArray) -> FloatArray:
    return np.array([values[block].mean() for block in blocks(values, BLOCKS)])


def table_of(rows: list[Row]) -> Table:
    """Return the rows of all traces for reading."""
    titles = ("trace", "run times from", "median |log2|", "within ×2", "bias", "rank corr.",
              "too short", "cold", "s", "mean JCT h", "vs fifo+skip", "bounded slowdown")  # fmt: skip
    table = Table(*titles)
    for row in rows:
        has_score = not np.isnan(row.median_error)
        scored = (
            f"{row.median_error:.2f}", f"{row.within_2:.0%}", f"{row.bias:+.2f}",
            f"{row.rank_correlation:.2f}", f"{row.underestimated:.0%}", f"{row.cold:.0%}",
            f"{row.seconds:.1f}",
        )  # fmt: skip
        ends = f"{row.jct_change:+.1%} [{row.jct_change_low:+.1%}, {row.jct_change_high:+.1%}]"
        table.add_row(
            row.trace,
            f"{row.knows}",
            *(scored if has_score else [""] * len(scored)),
            f"{row.mean_jct_s / 3600:.2f}",
            ends if row.knows != "nothing" else "",
            f"{row.mean_bounded_slowdown:.1f}",
        )
    return table


def main() -> None:
    """Measure every trace and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--method", action="append", choices=list(METHODS))
    parser.add_argument("--json", type=Path, help="also write the figures here")
    chosen = parser.parse_args()
    console, errors = Console(width=190), Console(stderr=True)
    rows = [
        row
        for case in CASES
        if not chosen.case or case.name in chosen.case
        for row in measure(case, chosen.method or list(METHODS), errors.print)
    ]
    console.print(table_of(rows))
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
