"""Ten traces of 50 real jobs each, for one node: the same jobs on every machine, from seeds alone.

`python experiments/live_traces.py FOLDER` writes them as workload files of `yardmaster live local`.
Jobs are those of the job kit: fine-tuning, CNN and ViT training, inference, data preparation. They
come in bursts, run for log-normal times of a few seconds, and ask for 1 to 4 slots. Their owners'
estimates are wrong by a log-normal factor. The seeds are used nowhere else.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yardmaster.live.local.commands import Command, Commands

TRACES = 10
JOBS = 50
FIRST_SEED = 770_001
"""Held out: trainings draw theirs from 0 on, studies of this repository from below 100,000."""
KINDS = {"transformer": 0.2, "cnn": 0.2, "vit": 0.15, "inference": 0.15, "prepare": 0.3}
SIZES = {1: 0.80, 2: 0.12, 4: 0.08}
MEDIAN_S, SIGMA, SHORTEST_S, LONGEST_S = 1.2, 0.9, 0.3, 6.0
ESTIMATE_SIGMA = 0.35
READY_S = 2.0
"""What an owner adds to an estimate for getting ready, seconds."""
LOAD = 1.6
BURSTS = 4


@dataclass(frozen=True)
class Trace:
    """One trace: the jobs, and how long each works once it is ready."""

    number: int
    commands: Commands
    work_s: dict[str, float]
    """Job → seconds of work, which the scheduler is not told."""


def trace(number: int, slots: int, python: str = sys.executable) -> Trace:
    """Return one of the ten traces, for a node of so many slots."""
    rng = np.random.default_rng(FIRST_SEED + number)
    sizes = [size for size in SIZES if size <= slots]
    weights = np.array([SIZES[size] for size in sizes])
    gpus = rng.choice(sizes, JOBS, p=weights / weights.sum())
    kinds = rng.choice(list(KINDS), JOBS, p=list(KINDS.values()))
    drawn = MEDIAN_S * np.exp(SIGMA * rng.standard_normal(JOBS))
    work_s = np.round(np.clip(drawn, SHORTEST_S, LONGEST_S), 2)
    wrong = np.exp(ESTIMATE_SIGMA * rng.standard_normal(JOBS))
    estimate_s = np.round(work_s * wrong + READY_S, 2)
    submit_s = _submissions(rng, float(((work_s + READY_S) * gpus).sum()) / slots)
    jobs = tuple(
        Command(
            id=f"{kinds[row]}-{row:02d}",
            command=(
                *(python, "-m", "yardmaster.live.kit", str(kinds[row])),
                *("--runtime", f"{work_s[row]:g}", "--seed", str(row)),
            ),
            gpus=int(gpus[row]),
            submit_s=float(submit_s[row]),
            estimate_s=float(estimate_s[row]),
            timeout_s=300.0,
            kind=str(kinds[row]),
            folder=str(Path.cwd()),
            environment=(("OMP_NUM_THREADS", "1"),),  # as many jobs as cores must not fight
        )
        for row in range(JOBS)
    )
    named = {job.id: float(work) for job, work in zip(jobs, work_s, strict=True)}
    ordered = tuple(sorted(jobs, key=lambda job: job.submit_s))
    return Trace(number, Commands(f"trace-{number}", ordered), named)


def _submissions(rng: np.random.Generator, work_s: float) -> np.ndarray:
    """Return submissions in a few bursts over the time that offers the load."""
    span_s = work_s / LOAD
    begins = np.sort(rng.uniform(0.0, 0.8, BURSTS))
    begins[0] = 0.0
    burst = rng.integers(0, BURSTS, JOBS)
    at_s = span_s * (begins[burst] + rng.exponential(0.06, JOBS))
    return np.asarray(np.round(at_s - at_s.min(), 3))


def as_toml(found: Trace) -> str:
    """Return a trace as a workload file."""
    lines = [f'name = "{found.commands.name}"', ""]
    for job in found.commands.jobs:
        lines += [
            "[[job]]",
            f'id = "{job.id}"',
            f"command = {json.dumps(['python', *job.command[1:]])}",
            f"gpus = {job.gpus}",
            f"submit_s = {job.submit_s:g}",
            f"estimate_s = {job.estimate_s:g}",
            f"timeout_s = {job.timeout_s:g}",
            f'kind = "{job.kind}"',
            'environment = { OMP_NUM_THREADS = "1" }',
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Write all traces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the workload files go")
    parser.add_argument("--slots", type=int, default=16, help="slots of the node (default 16)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(TRACES):
        path = options.folder / f"trace-{number}.toml"
        path.write_text(as_toml(trace(number, options.slots)), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
