"""How like the traces the calibrated presets are: `python benchmarks/likeness.py` (half a minute).

Each preset is generated at its trace's own rate (seed 1) and held against the published file, as
`yardmaster workload import` reads it: the total variation between the sizes, the largest gap
between the distributions of run times, mean work, and variance / mean of the jobs per hour.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from yardmaster.model.workload import FloatArray, Workload
from yardmaster.workloads.calibration import calibration
from yardmaster.workloads.operations.slicing import sliced
from yardmaster.workloads.synthetic import generate
from yardmaster.workloads.traces.formats import import_trace

TRACES = Path(__file__).resolve().parents[1] / ".." / "shared" / "traces"
CASES = {
    "venus-like": ("helios/venus_until_2020-07.csv", 120_000, "0"),
    "philly-like": ("philly/philly_rfold_until_2017-10.csv", 150_000, "2017-10-03"),
    "openb-like": ("alibaba_openb2023/openb_pod_list_default.csv", 40_000, "0"),
}
"""Preset → its trace, jobs to generate, and since when its jobs count."""


def asked(workload: Workload) -> FloatArray:
    """Return the GPUs of each job, parts counted as parts."""
    return workload.gpus * (workload.milli_gpu / 1000.0)


def total_variation(one: FloatArray, other: FloatArray) -> float:
    """Return half the sum of the differences between the shares of each size."""
    sizes = np.unique(np.round(np.concatenate((one, other)), 3))
    differences = [np.mean(np.isclose(one, s)) - np.mean(np.isclose(other, s)) for s in sizes]
    return float(np.abs(differences).sum() / 2)


def largest_gap(one: FloatArray, other: FloatArray) -> float:
    """Return the largest difference between two distributions at any value of the first."""
    at = np.unique(one)
    below = [np.searchsorted(np.sort(x), at, "right") / len(x) for x in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def dispersion(submit_s: FloatArray) -> float:
    """Return variance / mean of the jobs per hour."""
    counts = np.bincount((submit_s // 3600).astype(np.int64))
    return float(counts.var() / counts.mean())


def main() -> None:
    """Print a row for each preset."""
    print("preset        sizes  run times  work  dispersion ours / real")
    for preset, (file, jobs, start) in CASES.items():
        real = sliced(import_trace([TRACES / file]).workload(), start=start)
        ours = generate(preset, jobs=jobs, seed=1, rate_per_h=calibration(preset).jobs_per_h)
        first_s = float(real.submit_s.min())
        work = (ours.work_gpu_s / len(ours)) / (real.work_gpu_s / len(real))
        print(
            f"{preset:12} {total_variation(asked(real), asked(ours)):6.1%}"
            f" {largest_gap(real.duration_s, ours.duration_s):9.1%} {work:6.2f}"
            f"  {dispersion(ours.submit_s):6.1f} / {dispersion(real.submit_s - first_s):.1f}"
        )


if __name__ == "__main__":
    main()
