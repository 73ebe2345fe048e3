"""How fast real clusters are simulated, and what looking at GPU types buys.

    python benchmarks/real_clusters.py [--quick] [--json out.json]

Five questions, each with the bar it is held against:

- the same jobs with every rule on, against all of them off (at most 4 times as long);
- preemptive SRPT, 100,000 jobs at 95 % load (3 s);
- one pass of `milp` for 64 waiting jobs on 64 nodes (median 50 ms);
- one decision of `tier` on 64 nodes (50 µs);
- mean completion time on A100, V100 and T4 at 90 % of what the cluster can really do, with the
  placement that looks at types against the one that does not (25 % less).

Times are medians of several calls of `simulate` with the core loaded; compare them within one run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from yardmaster.engine.conditions import conditions_of
from yardmaster.engine.decisions import Situation
from yardmaster.engine.requests import shapes_of
from yardmaster.metrics.summary import summarise
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Checkpoints, Failures, Power, Quota, Sharing, Site
from yardmaster.model.speeds import kinds
from yardmaster.model.workload import IntArray, Workload
from yardmaster.schedulers.milp import MilpDecider
from yardmaster.schedulers.simulation import simulate

TENANTS = ("red", "green", "blue", "black")


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement and the bar it is held against."""

    what: str
    value: float
    unit: str
    bar: float
    better: str
    detail: str

    @property
    def passes(self) -> bool:
        """Whether the bar is met."""
        return self.value <= self.bar if self.better == "lower" else self.value >= self.bar


def jobs_for(cluster: Cluster, count: int, load: float, seed: int, *, plain: bool) -> Workload:
    """Generate log-normal jobs; unless `plain`, with everything a job can ask for."""
    dice = np.random.default_rng(seed)
    gpus = dice.choice([1, 2, 4, 8], count, p=[0.5, 0.2, 0.15, 0.15])
    duration_s = dice.lognormal(np.log(600.0), 1.5, count)
    span_s = float((gpus * duration_s).sum()) / (load * cluster.gpus)
    workload = Workload.of(
        submit_s=np.sort(dice.uniform(0.0, span_s, count)), duration_s=duration_s, gpus=gpus
    )
    if plain:
        return workload
    is_part = (gpus == 1) & (dice.random(count) < 0.3)
    return workload.with_columns(
        kind=dice.choice(kinds(), count),
        tenant=dice.choice(TENANTS, count),
        milli_gpu=np.where(is_part, dice.choice([250, 500], count), 1000),
        cpus=gpus * 4.0,
        memory_gib=gpus * 24.0,
        estimate_s=duration_s * dice.uniform(1.0, 3.0, count),
    )


def full_site(cluster: Cluster) -> Site:
    """Return a site with every rule on."""
    share = cluster.gpus // 5
    return Site(
        quotas=tuple(Quota(name, share, 3 * share) for name in TENANTS),
        checkpoints=Checkpoints(every_s=1800.0, save_s=10.0, restore_s=30.0),
        failures=Failures(mtbf_h=2000.0, mttr_h=4.0),
        power=Power(cap_w=300.0 * cluster.gpus),
        quantum_s=300.0,
    )


def clusters() -> tuple[Cluster, Cluster]:
    """Return 128 equal nodes, and as many of three types with everything on."""
    plain = Cluster.of("128x V100:8")
    group = NodeGroup(
        count=64, gpu_type=gpu_type("V100"), gpus=8, cpus=96.0, memory_gib=512.0, nodes_per_rack=8
    )
    groups = [
        group,
        replace(group, count=32, gpu_type=gpu_type("A100")),
        replace(group, count=32, gpu_type=gpu_type("T4"), sharing=Sharing.MPS),
    ]
    full = from_groups(groups, name="everything on")
    return plain, full.under(full_site(full))


def median_s(call: Callable[[], object], times: int) -> float:
    """Return the median real time of a call, after one that does not count."""
    call()
    taken = []
    for _ in range(times):
        begin_s = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin_s)
    return statistics.median(taken)


def everything_on(count: int, times: int) -> list[Result]:
    """Compare the time of a simulation with all rules on and all off."""
    plain, full = clusters()
    few, many = (
        jobs_for(plain, count, 0.9, 1, plain=True),
        jobs_for(full, count, 0.9, 1, plain=False),
    )
    results = []
    for off, on in (
        ("fifo+skip", "fifo+skip"),
        ("sjf+easy", "sjf+easy"),
        ("sjf+easy", "sjf+easy@fastest~estimate"),
        ("srpt+preemptive", "srpt+preemptive"),
    ):
        off_s = median_s(partial(simulate, few, plain, off), times)
        on_s = median_s(partial(simulate, many, full, on), times)
        detail = f"{count:,} jobs, 90 % load: {off_s:.2f} s off, {on_s:.2f} s on"
        results.append(
            Result(f"{on} with all rules on / {off}", on_s / off_s, "×", 4.0, "lower", detail)
        )
    return results


def preemptive_srpt(count: int, times: int) -> list[Result]:
    """Time preemptive SRPT at 95 % load."""
    plain, _ = clusters()
    jobs = jobs_for(plain, count, 0.95, 2, plain=True)
    taken_s = median_s(lambda: simulate(jobs, plain, "srpt+preemptive"), times)
    detail = f"{count:,} jobs on 128 nodes, 95 % load"
    return [Result("srpt+preemptive", taken_s, "s", 3.0, "lower", detail)]


def _full_pass(seed: int) -> Situation:
    """Return a pass with 64 waiting jobs on 64 half-empty nodes."""
    dice = np.random.default_rng(seed)
    cluster = Cluster.of("64x V100:8")
    jobs = Workload.of(
        submit_s=np.zeros(64), duration_s=np.full(64, 600.0), gpus=dice.choice([1, 2, 4, 8], 64)
    )
    free: IntArray = dice.integers(0, 9, 64)
    shapes = shapes_of(jobs, cluster)
    return Situation(0.0, np.arange(64), shapes, cluster.node_gpus, free, lambda _: free)


def decisions(passes: int, count: int, times: int) -> list[Result]:
    """Time one pass of `milp`, and one decision of `tier`."""
    decider = MilpDecider()
    for seed in range(passes):
        decider(_full_pass(seed))
    counts = decider.counts
    detail = f"{passes} random passes, 64 jobs × 64 nodes; {counts.limited} hit the limit"
    detail += f", {counts.fallbacks} fell back to pack"
    milp = Result("one pass of milp", 1000 * counts.median_s, "ms", 50.0, "lower", detail)
    cluster = Cluster.of("64x V100:8")
    jobs = jobs_for(cluster, count, 0.9, 3, plain=True)
    taken_s = median_s(lambda: simulate(jobs, cluster, "fifo+skip@tier"), times)
    detail = f"whole simulation of {count:,} jobs on 64 nodes, divided by the jobs placed"
    return [
        milp,
        Result("one decision of tier", 1e6 * taken_s / count, "µs", 50.0, "lower", detail),
    ]


def types_matter(count: int, seeds: int) -> list[Result]:
    """Compare placements with and without an eye for GPU types on mixed-3-types."""
    cluster = load_cluster("mixed-3-types")
    results = []
    for blind, aware in (("fifo+easy", "fifo+easy@fastest"), ("sjf+easy", "sjf+easy@fastest")):
        means: dict[str, list[float]] = {blind: [], aware: []}
        for seed in range(seeds):
            jobs = jobs_for(cluster, count, 0.9, seed, plain=True)
            dice = np.random.default_rng(seed)
            jobs = at_effective_load(jobs.with_columns(kind=dice.choice(kinds(), count)), cluster)
            for name, found in means.items():
                found.append(summarise(simulate(jobs, cluster, name))["mean_jct_s"])
        cuts = 1.0 - np.array(means[aware]) / np.array(means[blind])
        detail = (
            f"mean JCT {np.mean(means[blind]):.0f} → {np.mean(means[aware]):.0f} s, {seeds} seeds"
        )
        detail += f", cuts {100 * cuts.min():.0f}…{100 * cuts.max():.0f} %"
        what = f"{aware} against {blind}"
        results.append(Result(what, 100 * float(cuts.mean()), "% less", 25.0, "higher", detail))
    return results


def at_effective_load(jobs: Workload, cluster: Cluster) -> Workload:
    """Return jobs that load GPUs of equal speed, submitted at a pace that loads these as much."""
    shapes = shapes_of(jobs, cluster)
    conditions = conditions_of(jobs, cluster, shapes, is_needed=True)
    assert conditions is not None  # noqa: S101  (asked for)
    gpus = np.bincount(cluster.node_type, weights=cluster.node_gpus)
    speed = (conditions.speed @ gpus / gpus.sum())[shapes.of_job]
    work = jobs.duration_s * jobs.gpus
    faster = float(work.sum() / (work / speed).sum())
    return jobs.with_columns(submit_s=jobs.submit_s / faster)


def main() -> None:
    """Measure everything and print a table with a verdict for each bar."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the jobs, one call each")
    parser.add_argument("--json", type=Path, help="also write the results here")
    chosen = parser.parse_args()
    scale, times = (10, 1) if chosen.quick else (1, 5)
    results = [
        *everything_on(200_000 // scale, times),
        *preemptive_srpt(100_000 // scale, times),
        *decisions(100 // scale, 100_000 // scale, times),
        *types_matter(20_000 // scale, 3 if chosen.quick else 8),
    ]
    table = Table("what", "measured", "bar", "", "how")
    for result in results:
        sign = "≤" if result.better == "lower" else "≥"
        table.add_row(
            result.what,
            f"{result.value:.3g} {result.unit}",
            f"{sign} {result.bar:g}",
            "PASS" if result.passes else "MISS",
            result.detail,
        )
    Console(width=180).print(table)
    if chosen.json:
        rows = [asdict(result) | {"passes": result.passes} for result in results]
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
