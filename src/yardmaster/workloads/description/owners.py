"""Whose jobs they are: tenants and users, and how much of the work the largest have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.model.workload import FloatArray, Labels, Workload
from yardmaster.workloads.description.shapes import gpu_time_s, totals
from yardmaster.workloads.description.spread import share


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs with one label: of one tenant or user, or with one ending.

    Attributes:
        name: the label; None for jobs without one.
        jobs: how many there are.
        jobs_share: their share of all jobs.
        gpu_time_share: their share of all GPU time.
    """

    name: str | None
    jobs: int
    jobs_share: float
    gpu_time_share: float


@dataclass(frozen=True, slots=True)
class Owners:
    """Tenants or users, those with most GPU time first.

    Attributes:
        count: how many there are.
        jobs_of_nobody: jobs without an owner.
        half: how many of the largest together have half of the GPU time of all owners.
        largest_tenth_share: share of that GPU time of the largest tenth of them (at least one).
        groups: every owner's part, of all jobs.
    """

    count: int
    jobs_of_nobody: int
    half: int
    largest_tenth_share: float
    groups: tuple[Group, ...]


def groups_of(workload: Workload, labels: Labels) -> tuple[Group, ...]:
    """Sum up the jobs of every label that is in use, most GPU time first, then by name.

    Jobs without a label come last.
    """
    jobs, work_s = totals(labels.codes + 1, gpu_time_s(workload), len(labels.names) + 1)
    whole_s = float(work_s.sum())
    groups = [
        Group(
            name=labels.names[code - 1] if code else None,
            jobs=int(jobs[code]),
            jobs_share=share(int(jobs[code]), len(workload)),
            gpu_time_share=share(float(work_s[code]), whole_s),
        )
        for code in np.flatnonzero(jobs).tolist()
    ]
    heaviest = dict(zip([None, *labels.names], (-work_s).tolist(), strict=True))
    return tuple(
        sorted(groups, key=lambda group: (group.name is None, heaviest[group.name], group.name))
    )


def owners_of(workload: Workload, labels: Labels) -> Owners:
    """Sum up the owners that a column of labels names."""
    groups = groups_of(workload, labels)
    named = [group for group in groups if group.name is not None]
    passed = concentration([group.gpu_time_share for group in named])
    tenth = max(1, round(0.1 * len(named)))
    return Owners(
        count=len(named),
        jobs_of_nobody=sum(group.jobs for group in groups if group.name is None),
        half=int(np.searchsorted(passed, 0.5)) + 1 if len(passed) else 0,
        largest_tenth_share=float(passed[tenth - 1]) if len(passed) else float("nan"),
        groups=groups,
    )


def concentration(parts: list[float]) -> FloatArray:
    """Return the share that the largest, the two largest, … have of the sum; empty of nothing."""
    ordered = np.sort(np.asarray(parts, dtype=np.float64))[::-1]
    whole = float(ordered.sum())
    return np.cumsum(ordered) / whole if whole > 0 else np.zeros(0)
