"""Measure whether predicted starts come true on held-out weeks.

Each trace is simulated once; that is what "really" happens. At random moments of the held-out
weeks a random waiting job is asked for, and its 80 % interval is held against its start. The
correction is learnt on weeks before the held-out ones, with what was known when those began, and
on nothing else.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yardmaster.experiments.eta_calibration import LONGEST_WAIT_S, Trial, fit_correction, try_out
from yardmaster.model.cluster import Cluster
from yardmaster.model.columns import BoolArray, FloatArray
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
WEEK_S = 604_800.0
Z = 1.959963984540054


@dataclass(frozen=True)
class Case:
    """A trace on a cluster small enough that jobs wait, and where it is cut."""

    name: str
    file: str
    columns: tuple[str, str, str]
    """Names of the columns submit, duration, GPUs."""
    cluster: str
    weeks: tuple[int, int, int]
    """Week in which learning begins, the first held-out week, and the week after the last."""


CASES = (
    Case(
        "venus", "helios/venus_until_2020-07.csv", ("arrival_s", "service_sec", "gpu_count"),
        "80x V100:8", (4, 12, 19),
    ),
    Case(
        "philly", "philly/philly_rfold_until_2017-10.csv",
        ("arrival time (sec)", "duration (sec)", "size"), "250x P100:8", (6, 9, 11),
    ),
)  # fmt: skip
SCHEDULERS = ("fifo+strict", "fifo+skip")
"""Blind ones: the traces have no estimates."""


def main() -> None:
    """Measure every case and print one line per method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--trials", type=int, default=240, help="predictions, learnt from or held out"
    )
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    arguments = parser.parse_args()
    records = [
        record
        for case in CASES
        for scheduler in SCHEDULERS
        for record in measure(
            case, scheduler, arguments.trials, arguments.simulations, arguments.seed
        )
    ]
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(records, indent=2) + "\n")


def measure(
    case: Case, scheduler: str, trials: int, simulations: int, seed: int
) -> list[dict[str, object]]:
    """Learn on the earlier weeks, predict in the held-out ones, and print what came true."""
    schedule = simulate(
        read(case), Cluster.of(case.cluster), scheduler, compile_core="always", seed=seed
    )
    first_s, border_s, last_s = (week * WEEK_S for week in case.weeks)
    trial = try_out(
        schedule, first_s, last_s, trials=trials, simulations=simulations, seed=seed
    )  # fmt: skip
    later = trial.select(trial.now_s >= border_s)
    earlier = trial.known_at(border_s)
    corrected = later.corrected(fit_correction(earlier.wait_s, earlier.actual_s))
    print(f"{case.name}, {scheduler}: learnt from {len(earlier.now_s)} predictions before")
    methods = {
        "corrected once": corrected.interval_s,
        "corrected weekly": weekly(trial, border_s, last_s),
        "simulations alone": later.interval_s,
        "past waits": np.minimum(later.naive_s, LONGEST_WAIT_S),
    }
    return [
        scored(f"{case.name}, {scheduler}", name, later, interval)
        for name, interval in methods.items()
    ]


def weekly(trial: Trial, border_s: float, last_s: float) -> FloatArray:
    """Return intervals corrected by all predictions before the week they are made in."""
    intervals = []
    for begin_s in np.arange(border_s, last_s, WEEK_S):
        earlier = trial.known_at(begin_s)
        correction = fit_correction(earlier.wait_s, earlier.actual_s)
        week = (trial.now_s >= begin_s) & (trial.now_s < begin_s + WEEK_S)
        if week.any():
            intervals.append(trial.select(week).corrected(correction).interval_s)
    return np.concatenate(intervals)


def read(case: Case) -> Workload:
    """Read a trace's three columns."""
    with (TRACES / case.file).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    submit, duration, gpus = case.columns
    return Workload.of(
        name=case.name,
        submit_s=[float(row[submit]) for row in rows],
        duration_s=[float(row[duration]) for row in rows],
        gpus=[int(row[gpus]) for row in rows],
    )


def scored(case: str, method: str, trial: Trial, interval_s: FloatArray) -> dict[str, object]:
    """Print and return how often an interval held and how wide it was."""
    held = (interval_s[:, 0] <= trial.actual_s) & (trial.actual_s <= interval_s[:, 1])
    low, high = wilson(int(held.sum()), len(held))
    by_day = day_interval(held, trial.now_s)
    width_s = float(np.median(interval_s[:, 1] - interval_s[:, 0]))
    print(
        f"{case:22} {method:18} {len(held):4} predictions  held {held.mean():6.1%}"
        f" [{low:.1%}, {high:.1%}], by day [{by_day[0]:.1%}, {by_day[1]:.1%}]"
        f"  median width {width_s / 3600:7.2f} h"
    )
    sys.stdout.flush()
    return {
        "case": case,
        "method": method,
        "predictions": len(held),
        "held": float(held.mean()),
        "binomial_95": [low, high],
        "by_day_95": list(by_day),
        "below": float((trial.actual_s < interval_s[:, 0]).mean()),
        "above": float((trial.actual_s > interval_s[:, 1]).mean()),
        "median_width_s": width_s,
        "median_wait_s": float(np.median(trial.actual_s)),
    }


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson's)."""
    share = hits / count
    middle = share + Z**2 / (2 * count)
    reach = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    return (middle - reach) / (1 + Z**2 / count), (middle + reach) / (1 + Z**2 / count)


def day_interval(held: BoolArray, now_s: FloatArray, draws: int = 5000) -> tuple[float, float]:
    """Return a bootstrap interval over days: predictions of one day share their surprises."""
    _, day = np.unique(now_s // 86_400.0, return_inverse=True)
    hits, counts = np.bincount(day, held), np.bincount(day)
    drawn = np.random.default_rng(0).integers(len(counts), size=(draws, len(counts)))
    shares = hits[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


if __name__ == "__main__":
    main()
