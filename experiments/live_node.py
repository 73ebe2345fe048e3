"""Ten traces of real jobs under several schedulers on one node: what happened, and what was said.

`PYTHONPATH=src python experiments/live_node.py FOLDER --slots-per-gpu 16` runs every pair of trace
and scheduler as a live local run, one after the other, each in a folder of its own, and goes on
where it was left; a cell that was interrupted is void and runs again. `--table` makes the table of
what there is: mean JCT, hindsight gap, the GPU's own energy, the cost of deciding, and how well the
simulator predicts each job. It needs neither polars nor pydantic; without a GPU, `--gpus N` runs
the jobs on the CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from live_traces import TRACES, Trace, trace

from yardmaster.live.audit import read_lines
from yardmaster.live.decision import Decider
from yardmaster.live.folder import ABOUT, TELEMETRY, read_json
from yardmaster.live.local.runner import Settings, run_local
from yardmaster.live.local.slots import Slots, pretended
from yardmaster.live.local.telemetry import Nvml
from yardmaster.live.rehearsal import rehearse
from yardmaster.live.replay import Log, read_log
from yardmaster.model.columns import Labels
from yardmaster.model.workload import Workload

ERRORS = ("mean_error_percent", "error_by_last_run_percent")
SCHEDULERS = ("fifo+strict", "fifo+easy", "sjf+easy", "policy:slowdown-clairvoyant", "meta:mixed")


@dataclass(frozen=True)
class Cell:
    """One trace under one scheduler."""

    trace: Trace
    scheduler: str
    folder: Path

    @property
    def is_begun(self) -> bool:
        """Whether it has run, at least a little."""
        return (self.folder / ABOUT).exists()

    @property
    def is_done(self) -> bool:
        """Whether it has run to its end in one go: jobs that were stopped cost the others time."""
        if not self.is_begun:
            return False
        about = read_json(self.folder / ABOUT)
        return bool(about["state"] == "finished" and about["restarts"] == 0)

    def set_aside(self) -> None:
        """Keep a void run beside the others, so that the cell can run again."""
        number = 1
        while (aside := self.folder.with_name(f"{self.folder.name}-void-{number}")).exists():
            number += 1
        self.folder.rename(aside)


def cells_of(folder: Path, schedulers: Sequence[str], traces: int, slots: int) -> list[Cell]:
    """Return all cells, trace after trace: what is there after a while covers all schedulers."""
    return [
        Cell(found, scheduler, folder / f"trace-{found.number}" / scheduler.replace(":", "-"))
        for found in (trace(number, slots) for number in range(traces))
        for scheduler in schedulers
    ]


def run_cells(cells: Sequence[Cell], settings: dict[str, Any], limit_s: float) -> None:
    """Run what has not run yet, as long as another cell is likely to end within the limit."""
    began, longest_s = time.monotonic(), 0.0
    for number, cell in enumerate(cells, start=1):
        if cell.is_done:
            continue
        left_s = limit_s - (time.monotonic() - began)
        if left_s < 1.3 * longest_s:
            print(f"{left_s:.0f} s left: no further cell is begun")
            return
        asked = Settings(scheduler=cell.scheduler, **settings)
        if cell.is_begun:  # its jobs may still be there: first let them end
            run_local(cell.trace.commands, cell.folder, asked)
            cell.set_aside()
            print(f"{cell.folder} was interrupted: it is set aside, and runs again")
        start = time.monotonic()
        result = run_local(cell.trace.commands, cell.folder, asked)
        took_s = time.monotonic() - start
        longest_s = max(longest_s, took_s)
        print(
            f"{number}/{len(cells)} {cell.folder.parent.name} {cell.scheduler}: {took_s:.1f} s,"
            f" {result.finished} done, {result.failed} failed",
            flush=True,
        )


@dataclass(frozen=True)
class Measured:
    """What one cell shows."""

    cell: Cell
    log: Log
    jct_s: np.ndarray
    energy_j: float
    decision_ms: float
    began_unix_s: float


def measured_of(cell: Cell) -> Measured:
    """Read a cell that has run."""
    log = read_log(cell.folder)
    samples = [line["gpus"] for line in read_lines(cell.folder / TELEMETRY)]
    used = [[gpu["energy_j"] for gpu in sample] for sample in samples if sample]
    energy_j = float("nan")
    if used and None not in used[-1] and None not in used[0]:
        energy_j = sum(used[-1]) - sum(used[0])
    return Measured(
        cell=cell,
        log=log,
        jct_s=np.array([job.jct_s for job in log.jobs]),
        energy_j=energy_j,
        decision_ms=float(np.median(log.decisions_ms)),
        began_unix_s=float(read_json(cell.folder / ABOUT)["began_unix_s"]),
    )


def getting_ready_s(found: Sequence[Measured]) -> dict[str, float]:
    """Return what jobs of each kind take beyond their work, on average over some runs."""
    beyond: dict[str, list[float]] = {}
    for one in found:
        for job in one.log.jobs:
            beyond.setdefault(job.kind, []).append(job.run_s - one.cell.trace.work_s[job.id])
    return {kind: float(np.mean(values)) for kind, values in beyond.items()}


def expected_run_s(one: Measured, ready_s: dict[str, float]) -> list[float]:
    """Return how long every job should take: its work, and getting ready for its kind."""
    usual_s = float(np.mean(list(ready_s.values()))) if ready_s else 0.0
    work_s = one.cell.trace.work_s
    return [work_s[job.id] + ready_s.get(job.kind, usual_s) for job in one.log.jobs]


def predicted_jct_s(one: Measured, run_s: Sequence[float]) -> np.ndarray:
    """Return what the simulator says of every job, with these run times."""
    jobs = one.log.jobs
    believed_s = [job.believed_s for job in jobs]
    table = Workload.of(
        name=one.cell.trace.commands.name,
        id=np.array([job.id for job in jobs]),
        submit_s=[job.submit_s for job in jobs],
        duration_s=believed_s,
        estimate_s=believed_s,
        gpus=[job.gpus for job in jobs],
        kind=Labels.of([job.kind for job in jobs]),
    )
    decider = Decider(one.log.scheduler, seed=one.log.seed, picks=0)
    _, end_s = rehearse(table, run_s, one.log.cluster, decider)
    return end_s - table.submit_s


def results(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return one row per cell that has run."""
    found = [measured_of(cell) for cell in cells if cell.is_done]
    best: dict[int, float] = {}
    for one in found:
        number = one.cell.trace.number
        best[number] = min(best.get(number, np.inf), float(one.jct_s.mean()))
    rows = []
    in_time = sorted(found, key=lambda one: one.began_unix_s)
    for one in found:
        number, mean_s = one.cell.trace.number, float(one.jct_s.mean())
        # The trace that is to be predicted says nothing about itself.
        others = [other for other in found if other.cell.trace.number != number]
        predicted_s = predicted_jct_s(one, expected_run_s(one, getting_ready_s(others)))
        place = in_time.index(one)
        lately_s = getting_ready_s(in_time[max(place - 1, 0) : place])
        by_last_s = predicted_jct_s(one, expected_run_s(one, lately_s))
        replayed_s = predicted_jct_s(one, [job.run_s for job in one.log.jobs])
        rows.append(
            {
                "trace": number,
                "scheduler": one.cell.scheduler,
                "jobs": len(one.jct_s),
                "failed": sum(job.exit_code != 0 for job in one.log.jobs),
                "mean_jct_s": mean_s,
                "p95_jct_s": float(np.quantile(one.jct_s, 0.95)),
                "makespan_s": max(job.end_s for job in one.log.jobs),
                "hindsight_gap_percent": 100.0 * (mean_s / best[number] - 1.0),
                "gpu_energy_kj": one.energy_j / 1000.0,
                "decision_ms": one.decision_ms,
                "predicted_mean_jct_s": float(predicted_s.mean()),
                "mean_error_percent": 100.0 * (float(predicted_s.mean()) / mean_s - 1.0),
                "error_by_last_run_percent": 100.0 * (float(by_last_s.mean()) / mean_s - 1.0)
                if place
                else float("nan"),
                "job_error_percent": 100.0
                * float(np.mean(np.abs(predicted_s - one.jct_s) / one.jct_s)),
                "replayed_error_percent": 100.0 * (float(replayed_s.mean()) / mean_s - 1.0),
                "replayed_job_error_percent": 100.0
                * float(np.mean(np.abs(replayed_s - one.jct_s) / one.jct_s)),
            }
        )
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the results per scheduler, over all traces, as Markdown."""
    head = (
        "scheduler", "traces", "mean JCT, s", "p95 JCT, s", "hindsight gap", "GPU energy, kJ",
        "deciding, ms", "predicted mean JCT, s", "error of the mean", "per trace, at most",
        "per job", "run times known: of the mean", "per job",
    )  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for scheduler in dict.fromkeys(row["scheduler"] for row in rows):
        mine = [row for row in rows if row["scheduler"] == scheduler]

        def mean(name: str, mine: list[dict[str, Any]] = mine) -> float:
            return float(np.mean([row[name] for row in mine]))

        error = 100.0 * (mean("predicted_mean_jct_s") / mean("mean_jct_s") - 1.0)
        lines.append(
            f"| {scheduler} | {len(mine)} | {mean('mean_jct_s'):.2f} | {mean('p95_jct_s'):.2f} |"
            f" {mean('hindsight_gap_percent'):.1f} % | {mean('gpu_energy_kj'):.2f} |"
            f" {mean('decision_ms'):.1f} | {mean('predicted_mean_jct_s'):.2f} | {error:+.1f} % |"
            f" {max(abs(row['mean_error_percent']) for row in mine):.1f} % |"
            f" {mean('job_error_percent'):.1f} % | {mean('replayed_error_percent'):+.1f} % |"
            f" {mean('replayed_job_error_percent'):.1f} % |"
        )
    return "\n".join([*lines, "", *remarks(rows)]) + "\n"


def remarks(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return what the table does not show: traces that all have run, and errors of single runs."""
    schedulers = list(dict.fromkeys(row["scheduler"] for row in rows))
    numbers = {row["trace"] for row in rows}
    whole = [
        number
        for number in numbers
        if sum(row["trace"] == number for row in rows) == len(schedulers)
    ]
    means = [
        np.mean([r["mean_jct_s"] for r in rows if r["scheduler"] == name and r["trace"] in whole])
        for name in schedulers
    ]
    later = [row for row in rows if np.isfinite(row[ERRORS[1]])]  # the first run had none before it
    errors = [np.mean([abs(row[name]) for row in later or rows]) for name in ERRORS]
    return [
        f"Mean JCT on the {len(whole)} traces that all have run, s: "
        + ", ".join(f"{mean:.2f}" for mean in means if whole),
        (
            f"Error of a run's mean, on average: {errors[0]:.1f} % by the other traces,"
            f" {errors[1]:.1f} % by the run just before."
        ),
    ]


def main() -> None:
    """Run cells and write the table of all that have run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where runs are kept")
    parser.add_argument("--schedulers", nargs="+", default=list(SCHEDULERS))
    parser.add_argument("--traces", type=int, default=TRACES, help="the first so many")
    parser.add_argument("--slots-per-gpu", type=int, default=16, help="jobs that share a GPU")
    parser.add_argument("--gpus", type=int, help="slots where there is no GPU")
    parser.add_argument("--limit-s", type=float, default=float("inf"),
                        help="begin no cell that would not end by then")  # fmt: skip
    parser.add_argument("--table", action="store_true", help="only make the table")
    options = parser.parse_args()
    per_gpu = 1 if options.gpus else options.slots_per_gpu
    devices = pretended(options.gpus) if options.gpus else Nvml().devices
    slots = len(Slots(devices, per_gpu)) if devices else options.slots_per_gpu
    cells = cells_of(options.folder, options.schedulers, options.traces, slots)
    if not options.table:
        settings = {"gpus": options.gpus, "slots_per_gpu": per_gpu}
        run_cells(cells, settings, options.limit_s)
    rows = results(cells)
    if not rows:
        sys.exit("No cell has run yet.")
    (options.folder / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    text = table(rows)
    (options.folder / "results.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
