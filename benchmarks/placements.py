"""Measure what each placement buys, on real pods and real jobs: `python benchmarks/placements.py`.

**openb.** Pods of Alibaba's 2023 trace are drawn with replacement and arrive one after the other at
its empty cluster; none ever leaves. When they have asked for as many GPUs as there are, how many
are allocated? A better placement leaves fewer GPUs that nobody can use. Pods without a GPU are left
out; so their cores and memory stay free for others, unlike in the trace.

`openb_filling.py` says what *unusable* means.

**Venus.** July 2020, the busiest month on record, on the cluster as it was (59 % load) and on 90 of
its nodes (88 %), where room is scarce. `milp` takes milliseconds a pass; it is measured on ten
windows of three days, each beginning with an empty cluster, beside all others.

Placements that cannot serve a case are listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from openb_filling import MARKS, drawn_pods, every_nth_node, filled
from yardmaster.errors import YardmasterError
from yardmaster.metrics.summary import summarise
from yardmaster.model.catalogue import load_cluster
from yardmaster.model.cluster import Cluster
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
PODS = "alibaba_openb2023/openb_pod_list_{}.csv"
VENUS = "helios/venus_until_2020-07.csv"
PARTS = ("openb", "venus", "windows")
PLACEMENTS = (
    *("random", "first", "pack", "spread", "tier"),
    *("defrag", "loadbalance", "fgd", "fastest", "power"),
)
TIGHT = Cluster.of("90x V100:8", name="90 nodes of helios-venus")
DAY_S = 86_400.0
WINDOWS, WINDOW_DAYS = 10, 3.0
"""Pieces of July that `milp` serves."""

JULY_S = 104 * DAY_S + 71_901.0
"""Midnight of 1 July 2020 on Venus's clock, which begins on 18 March at 04:01:39."""


@dataclass(frozen=True, slots=True)
class Filling:
    """How one placement filled the cluster, medians over seeds."""

    placement: str
    seeds: int
    allocated: float
    """Share of the GPUs allocated when all have been asked for."""
    worst: float
    best: float
    turned_away: float
    """Pods that found no room."""
    unusable: tuple[float, ...]
    """Share of the GPUs that is free but of no use to a pod, at each of `MARKS`."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Month:
    """How one scheduler served Venus."""

    cluster: str
    jobs: int
    scheduler: str
    mean_jct_h: float
    mean_wait_h: float
    p99_wait_h: float
    fragmentation_gpus: float
    unfinished: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Windows:
    """How one placement served pieces of July under `fifo+skip`."""

    placement: str
    mean_wait_h: float
    better_than_pack: int
    worse_than_pack: int
    waits_h: tuple[float, ...]
    """Mean wait in each piece."""
    seconds: float
    notes: tuple[str, ...]


Missing = dict[str, str]
"""Schedulers that could not run, and why."""


def main() -> None:
    """Measure, print the tables, and write the numbers where the caller wants them."""
    options = _options()
    begin = time.perf_counter()
    # The core is loaded before anything is timed.
    first_day = venus_july(0.0, 1.0)
    simulate(first_day, load_cluster("helios-venus"), "fifo", compile_core="always")
    missing: Missing = {}
    record: dict[str, Any] = {}
    if "openb" in options.parts:
        fillings, about = fill_openb(options, missing)
        _show_fillings(fillings, about)
        record["openb"] = {"about": about, "rows": [asdict(row) for row in fillings]}
    if "venus" in options.parts:
        months = serve_venus(options, missing)
        _show_months(months)
        record["venus"] = [asdict(row) for row in months]
    if "windows" in options.parts:
        windows = serve_windows(options, missing)
        _show_windows(windows)
        record["windows"] = [asdict(row) for row in windows]
    for why, names in _by_reason(missing).items():
        print(f"missing: {', '.join(names)}: {why}")
    record |= {"missing": missing, "seconds": round(time.perf_counter() - begin, 1)}
    print(f"{record['seconds']} s in all")
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--placements", nargs="+", default=list(PLACEMENTS), metavar="NAME")
    parser.add_argument("--pods", choices=("default", "gpuspec33", "multigpu50"), default="default")
    parser.add_argument("--seeds", type=int, default=5, help="draws of pods (5)")
    parser.add_argument("--every", type=int, default=1, help="use every n-th node of openb (1)")
    parser.add_argument("--minutes", type=float, default=2.5, help="no new draw after this (2.5)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    options = parser.parse_args()
    if not TRACES.is_dir():
        parser.error("the folder 'shared' with the traces is not beside the repository")
    return options


def _by_reason(missing: Missing) -> dict[str, list[str]]:
    """Turn schedulers with reasons into reasons with schedulers."""
    reasons: dict[str, list[str]] = {}
    for scheduler, why in missing.items():
        reasons.setdefault(why, []).append(scheduler)
    return reasons


def _try(
    workload: Workload, cluster: Cluster, scheduler: str, missing: Missing, **options: Any
) -> tuple[Schedule, float] | None:
    """Simulate and time a scheduler; None, with the reason noted, if it is refused."""
    if scheduler in missing:
        return None
    begin = time.perf_counter()
    try:
        schedule = simulate(workload, cluster, scheduler, **options)
    except YardmasterError as error:
        missing[scheduler] = str(error).split(" Known:", maxsplit=1)[0]
        return None
    return schedule, time.perf_counter() - begin


def fill_openb(options: argparse.Namespace, missing: Missing) -> tuple[list[Filling], str]:
    """Fill the cluster once per seed and placement."""
    pods = pl.read_csv(TRACES / PODS.format(options.pods))
    wanted = pods.filter(pl.col("num_gpu") > 0)
    cluster = every_nth_node(load_cluster("openb"), options.every)
    runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in options.placements}
    notes: dict[str, None] = {}
    begin = time.perf_counter()
    for seed in range(options.seeds):
        if time.perf_counter() - begin > 60.0 * options.minutes:
            break
        workload = drawn_pods(wanted, cluster, seed)
        for name in options.placements:
            _progress(f"openb, draw {seed + 1}, {name}")
            ran = _try(
                workload, cluster, f"fifo+skip@{name}", missing, seed=seed, until_s=len(workload)
            )
            if ran:
                runs[name].append((*filled(ran[0]), ran[1]))
                notes |= dict.fromkeys(ran[0].notes) if seed == 0 else {}
    about = (
        f"{cluster.describe()}; {wanted.height:,} pods to draw from,"
        f" {pods.height - wanted.height:,} without a GPU left out; medians over draws"
    )
    about = "\n".join([about, *(f"draw 1: {note}" for note in notes)])
    return [_filling(name, rows) for name, rows in runs.items() if rows], about


def _filling(name: str, rows: Sequence[tuple[float, ...]]) -> Filling:
    allocated, turned_away, *unusable, seconds = (
        list(column) for column in zip(*rows, strict=True)
    )
    return Filling(
        placement=name,
        seeds=len(rows),
        allocated=median(allocated),
        worst=min(allocated),
        best=max(allocated),
        turned_away=median(turned_away),
        unusable=tuple(median(column) for column in unusable),
        seconds=median(seconds),
    )


def serve_venus(options: argparse.Namespace, missing: Missing) -> list[Month]:
    """Serve July with every placement, on the whole cluster and on part of it."""
    month = venus_july(0.0, 31.0)
    rows: list[Month] = []
    for cluster in (load_cluster("helios-venus"), TIGHT):
        for rule in ("fifo+skip", "sjf+easy"):
            for name in options.placements:
                _progress(f"Venus, {cluster.name}, {rule}@{name}")
                if ran := _try(month, cluster, f"{rule}@{name}", missing):
                    rows.append(_month(*ran))
    return rows


def serve_windows(options: argparse.Namespace, missing: Missing) -> list[Windows]:
    """Serve pieces of July with every placement and with `milp`."""
    waits_h: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    notes: dict[str, list[str]] = {}
    for piece in range(WINDOWS):
        jobs = venus_july(piece * WINDOW_DAYS, WINDOW_DAYS)
        for name in (*options.placements, "milp"):
            _progress(f"Venus, window {piece + 1}, {name}")
            if ran := _try(jobs, TIGHT, f"fifo+skip@{name}", missing):
                wait_s = float(np.mean(ran[0].start_s - jobs.submit_s))
                waits_h.setdefault(name, []).append(wait_s / 3600)
                seconds[name] = seconds.get(name, 0.0) + ran[1]
                told = [note for note in ran[0].notes if note.startswith("milp")]
                notes.setdefault(name, []).extend(told)
    rival = waits_h.get("pack", [np.nan] * WINDOWS)
    return [
        Windows(
            placement=name,
            mean_wait_h=float(np.mean(waits)),
            better_than_pack=sum(ours < theirs for ours, theirs in zip(waits, rival, strict=True)),
            worse_than_pack=sum(ours > theirs for ours, theirs in zip(waits, rival, strict=True)),
            waits_h=tuple(waits),
            seconds=seconds[name],
            notes=tuple(notes[name]),
        )
        for name, waits in waits_h.items()
    ]


def venus_july(skipped_days: float, days: float) -> Workload:
    """Return the jobs submitted in some days of July; the clock begins with the first day."""
    begin = JULY_S + skipped_days * DAY_S
    is_then = pl.col("arrival_s").is_between(begin, begin + days * DAY_S, closed="left")
    table = pl.read_csv(TRACES / VENUS).filter(is_then)
    return Workload.of(
        name=f"Venus, {days:g} days of July 2020",
        submit_s=table["arrival_s"].to_numpy() - begin,
        duration_s=table["service_sec"].to_numpy(),
        gpus=table["gpu_count"].to_numpy(),
    )


def _month(schedule: Schedule, seconds: float) -> Month:
    summary = summarise(schedule)
    return Month(
        cluster=schedule.cluster.name,
        jobs=len(schedule.workload),
        scheduler=schedule.scheduler,
        mean_jct_h=summary["mean_jct_s"] / 3600,
        mean_wait_h=summary["mean_wait_s"] / 3600,
        p99_wait_h=summary["p99_wait_s"] / 3600,
        fragmentation_gpus=summary["fragmentation_gpus"],
        unfinished=int(summary["unfinished"]),
        seconds=seconds,
    )


def _show_fillings(rows: Sequence[Filling], about: str) -> None:
    heads = ["placement", "draws", "allocated", "range %", "turned away"]
    heads += [f"unusable: {mark:.0%}" for mark in MARKS]
    cells = [
        [
            row.placement,
            str(row.seeds),
            f"{row.allocated:.2%}",
            f"{100 * row.worst:.1f}–{100 * row.best:.1f}",
            f"{row.turned_away:.0f}",
            *(f"{share:.2%}" for share in row.unusable),
            f"{row.seconds:.1f}",
        ]
        for row in sorted(rows, key=lambda row: -row.allocated)
    ]
    _print_table("openb: filled until all GPUs were asked for", [*heads, "s"], cells)
    print(about)


def _show_months(rows: Sequence[Month]) -> None:
    heads = ["scheduler", "mean JCT h", "mean wait h", "p99 wait h", "fragmented GPUs"]
    for cluster, jobs in dict.fromkeys((row.cluster, row.jobs) for row in rows):
        shown = [row for row in rows if (row.cluster, row.jobs) == (cluster, jobs)]
        cells = [
            [
                row.scheduler,
                *(f"{value:.3f}" for value in (row.mean_jct_h, row.mean_wait_h, row.p99_wait_h)),
                f"{row.fragmentation_gpus:.2f}",
                str(row.unfinished),
                f"{row.seconds:.1f}",
            ]
            for row in shown
        ]
        title = f"Venus, July 2020, {jobs:,} jobs, {cluster}"
        _print_table(title, [*heads, "unfinished", "s"], cells)


def _show_windows(rows: Sequence[Windows]) -> None:
    heads = ["fifo+skip@", "mean wait h", "windows better than pack", "worse", "s"]
    cells = [
        [
            row.placement,
            f"{row.mean_wait_h:.3f}",
            str(row.better_than_pack),
            str(row.worse_than_pack),
            f"{row.seconds:.1f}",
        ]
        for row in sorted(rows, key=lambda row: row.mean_wait_h)
    ]
    title = f"Venus, July 2020, {WINDOWS} windows of {WINDOW_DAYS:g} days, {TIGHT.name}"
    _print_table(title, heads, cells)
    for row in rows:
        for note in row.notes:
            print(note)


def _print_table(title: str, heads: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    for row in cells:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _progress(label: str) -> None:
    print(label, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
