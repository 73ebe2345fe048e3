"""Replay fidelity: real logs, and how often the closest scheduler is the right one.

    python benchmarks/fidelity.py                  # both parts, about four minutes
    python benchmarks/fidelity.py --part logs      # KTH-SP2 and SDSC-BLUE as they were
    python benchmarks/fidelity.py --part identify  # records of known schedulers, disturbed

The logs are read from a folder `shared` beside the repository.

**identify.** Ten schedulers each simulate three stretches of real jobs; their waits, disturbed in
one of five ways, are the records, 150 in all. All ten are then ranked by closeness to each record.
Disturbed means: 5 or 15 % of the jobs are missing from the trace; the machine was 7 % smaller than
stated; every start was delayed by two minutes on average; the real scheduler saw other estimates
(wrong by a factor of e either way). Several measures of closeness were tried on these records, and
the mean |difference| of waits was kept as the plainest of the good ones.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from yardmaster.experiments.fidelity.assumptions import recorded_machine
from yardmaster.experiments.fidelity.distance import Distance, measure_distance
from yardmaster.experiments.fidelity.study import measure_fidelity
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload
from yardmaster.report.fidelity_words import causes_found, caution, headline
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.sources import load_workload

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces" / "swf"
KTH, BLUE = "KTH-SP2-1996-2.1-cln.swf.gz", "SDSC-BLUE-2000-4.2-cln.swf.gz"
WEEK_S = 604_800.0
SCHEDULERS = (
    "fifo+strict", "fifo+skip", "fifo+easy~estimate", "fifo+conservative~estimate",
    "sjf+easy~estimate", "sjf+skip~estimate", "slurm-multifactor+easy~estimate",
    "wfp3+easy~estimate", "smallest-first+skip", "saf+easy~estimate",
)  # fmt: skip
DISTURBANCES = ("5 % missing", "15 % missing", "7 % smaller", "two minutes late", "other estimates")
CLOSENESS: dict[str, Callable[[Distance, FloatArray, FloatArray], float]] = {
    "mean |difference|": lambda found, _recorded, _simulated: found.mean_apart_s,
    "median |difference|": lambda found, _recorded, _simulated: found.median_apart_s,
    "mean |log ratio| (+ 1 min)": lambda _found, recorded, simulated: float(
        np.abs(np.log((simulated + 60.0) / (recorded + 60.0))).mean()
    ),
    "rank correlation": lambda found, _recorded, _simulated: -found.rank_correlation,
    "correlation by day": lambda found, _recorded, _simulated: -found.period_correlation,
    "sorted waits": lambda _found, recorded, simulated: float(
        np.abs(np.sort(simulated) - np.sort(recorded)).mean()
    ),
}
"""Measures of closeness that were tried, the smallest value being the closest."""


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("logs", "identify"), help="only this one")
    part = parser.parse_args().part
    if part in {None, "logs"}:
        real_logs()
    if part in {None, "identify"}:
        identify()


def real_logs() -> None:
    """Hold both logs against EASY, which KTH ran, and against the line-up."""
    for name in (KTH, BLUE):
        jobs = load_workload(TRACES / name)
        machine = recorded_machine(jobs)
        if machine is None:
            raise SystemExit(f"{name} does not state its machine")
        for schedulers in (("fifo+easy~estimate",), None):
            begun = time.perf_counter()
            found = measure_fidelity(jobs, machine, schedulers)
            seconds = time.perf_counter() - begun
            print(f"\n{name}, schedulers: {len(found.candidates)}, {seconds:.1f} s")
            print(f"  {headline(found)}\n  {caution(found)}")
            for each in found.candidates:
                early, late = each.halves
                print(
                    f"  {each.scheduler:32} apart {each.distance.apart:7.1%}"
                    f"  halves {early:7.1%} {late:7.1%}  rank {each.distance.rank_correlation:.2f}"
                )
            for title, text in causes_found(found):
                print(f"  {title}: {text}")


def identify() -> None:
    """Count how often the closest scheduler is the one that made a disturbed record."""
    hits: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for name, jobs, gpus in stretches():
        for disturbance in DISTURBANCES:
            for measure, is_right in trials(jobs, gpus, disturbance):
                hits[measure, disturbance].append(is_right)
        print(f"  ({name} done)", flush=True)
    print(f"\n{'closest by':28}" + "".join(f"{name:>18}" for name in DISTURBANCES) + "     all")
    for measure in CLOSENESS:
        shares = [float(np.mean(hits[measure, each])) for each in DISTURBANCES]
        right = sum(sum(hits[measure, each]) for each in DISTURBANCES)
        total = sum(len(hits[measure, each]) for each in DISTURBANCES)
        cells = "".join(f"{share:18.0%}" for share in shares)
        print(f"{measure:28}{cells} {right:4}/{total}")


def stretches() -> Iterator[tuple[str, Workload, int]]:
    """Yield real jobs that are busy enough to wait, and the GPUs they ran on."""
    yield "KTH-SP2", load_workload(TRACES / KTH), 100
    blue = load_workload(TRACES / BLUE)
    for week in (40, 90):
        there = (blue.submit_s >= week * WEEK_S) & (blue.submit_s < (week + 20) * WEEK_S)
        yield f"SDSC-BLUE from week {week}", blue.select(there).starting_at(week * WEEK_S), 1152


def trials(jobs: Workload, gpus: int, disturbance: str) -> Iterator[tuple[str, bool]]:
    """Yield for every true scheduler and measure whether the closest is the true one."""
    rng = np.random.default_rng(1)
    missing = {"5 % missing": 0.05, "15 % missing": 0.15}.get(disturbance, 0.0)
    real = Cluster.pool(int(gpus * 0.93) if disturbance == "7 % smaller" else gpus)
    jobs = jobs.select(jobs.gpus <= real.gpus)
    seen = rng.random(len(jobs)) >= missing
    trace = jobs.select(seen)
    simulated = {name: waits(trace, Cluster.pool(gpus), name) for name in SCHEDULERS}
    lived = jobs
    if disturbance == "other estimates":
        factor = np.exp(rng.normal(0.0, 1.0, len(jobs)))
        lived = replace(jobs, estimate_s=np.maximum(jobs.estimate_s * factor, 1.0))
    for true in SCHEDULERS:
        recorded = waits(lived, real, true)[seen]
        if disturbance == "two minutes late":
            recorded = recorded + rng.exponential(120.0, len(recorded))
        found = {
            name: measure_distance(trace.submit_s, trace.duration_s, recorded, simulated[name])
            for name in SCHEDULERS
        }
        for measure, closeness in CLOSENESS.items():
            values = [closeness(found[name], recorded, simulated[name]) for name in SCHEDULERS]
            ranked = [math.inf if math.isnan(value) else value for value in values]
            yield measure, SCHEDULERS[int(np.argmin(ranked))] == true


def waits(jobs: Workload, cluster: Cluster, scheduler: str) -> FloatArray:
    """Return how long every job waits."""
    return simulate(jobs, cluster, scheduler).start_s - jobs.submit_s


if __name__ == "__main__":
    main()
