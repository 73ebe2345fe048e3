"""What jobs are like: how many GPUs they hold, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yardmaster.model.workload import FloatArray, IntArray, Workload
from yardmaster.workloads.description.spread import Spread, share, spread

SIZE_CLASSES = (
    ("< 1", 0.0), ("1", 1.0), ("2-3", 2.0), ("4-7", 4.0), ("8", 8.0), ("9-16", 9.0),
    ("17-32", 17.0), ("33+", 33.0),
)  # fmt: skip
"""Classes of sizes, and the fewest GPUs of each."""


@dataclass(frozen=True, slots=True)
class Size:
    """Jobs of one size.

    Attributes:
        gpus: GPUs they hold; below 1 for a part of one.
        jobs: how many there are.
        jobs_share: their share of all jobs.
        gpu_time_share: their share of all GPU time (GPUs × run time).
    """

    gpus: float
    jobs: int
    jobs_share: float
    gpu_time_share: float


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs of like size, as `Size`, and how long they run."""

    name: str
    jobs: int
    jobs_share: float
    gpu_time_share: float
    duration_s: Spread


def gpus_held(workload: Workload) -> FloatArray:
    """Return the GPUs each job holds, parts of a GPU counted as parts."""
    return np.asarray(workload.gpus * (workload.milli_gpu / 1000.0), dtype=np.float64)


def gpu_time_s(workload: Workload) -> FloatArray:
    """Return each job's GPU-seconds."""
    return gpus_held(workload) * workload.duration_s


def sizes_of(workload: Workload) -> tuple[Size, ...]:
    """Sum up the jobs of every size, the smallest first."""
    values, numbers = np.unique(gpus_held(workload), return_inverse=True)
    jobs, work_s = totals(numbers, gpu_time_s(workload), len(values))
    whole_s = float(work_s.sum())
    return tuple(
        Size(value, count, share(count, len(workload)), share(work, whole_s))
        for value, count, work in zip(values.tolist(), jobs.tolist(), work_s.tolist(), strict=True)
    )


def size_classes_of(workload: Workload) -> tuple[SizeClass, ...]:
    """Sum up the classes of sizes that there are, the smallest first."""
    classes = class_numbers(workload)
    jobs, work_s = totals(classes, gpu_time_s(workload), len(SIZE_CLASSES))
    whole_s = float(work_s.sum())
    return tuple(
        SizeClass(
            name=SIZE_CLASSES[number][0],
            jobs=int(jobs[number]),
            jobs_share=share(int(jobs[number]), len(workload)),
            gpu_time_share=share(float(work_s[number]), whole_s),
            duration_s=spread(workload.duration_s[classes == number]),
        )
        for number in np.flatnonzero(jobs).tolist()
    )


def class_numbers(workload: Workload) -> IntArray:
    """Return each job's place in `SIZE_CLASSES`."""
    fewest = [gpus for _, gpus in SIZE_CLASSES]
    return np.searchsorted(fewest, gpus_held(workload), side="right") - 1


def totals(
    numbers: npt.NDArray[np.integer], work_s: FloatArray, groups: int
) -> tuple[IntArray, FloatArray]:
    """Return how many jobs each group has, and how much GPU time."""
    return (
        np.asarray(np.bincount(numbers, minlength=groups), dtype=np.int64),
        np.asarray(np.bincount(numbers, weights=work_s, minlength=groups), dtype=np.float64),
    )
