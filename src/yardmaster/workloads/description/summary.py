"""Everything there is to say about a workload, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import BoolArray, Workload
from yardmaster.workloads.clock import DAY_S, date_of
from yardmaster.workloads.description.arrivals import Arrivals, arrivals_of
from yardmaster.workloads.description.demand import Demand, demand_of
from yardmaster.workloads.description.owners import Group, Owners, groups_of, owners_of
from yardmaster.workloads.description.quality import (
    Censoring,
    Estimates,
    Waits,
    censoring_of,
    coverage_of,
    estimates_of,
    waits_of,
)
from yardmaster.workloads.description.shapes import (
    Size,
    SizeClass,
    size_classes_of,
    sizes_of,
)
from yardmaster.workloads.description.spread import Spread, spread

ORACLE_SHARE = 0.9
"""From this share of exact estimates on, they are taken for copies of the run times."""


@dataclass(frozen=True, slots=True)
class Description:
    """What is in a workload.

    Attributes:
        name: the workload's name.
        notes: what its importer or generator noted.
        jobs: how many there are.
        jobs_of_no_length: how many of them run for 0 seconds.
        begins: local date and time of second 0, "" if unknown.
        first_submit_s: second of the first submission.
        last_submit_s: second of the last submission.
        first_submit: date of the first submission, "" if unknown.
        last_submit: date of the last submission, "" if unknown.
        arrivals: when jobs are submitted.
        demand: how many GPUs they ask for, and what load that is.
        sizes: jobs of every size.
        size_classes: jobs of like size and their run times.
        duration_s: run times of all jobs.
        tenants: whose jobs they are.
        users: who submitted them.
        statuses: how they ended.
        censoring: run times that are cut off.
        estimates: estimated run times.
        waits: recorded waits.
        coverage: column → share of the jobs that have a value in it.
        missing_columns: the columns in which no job has a value.
        remarks: what a reader should not overlook.
    """

    name: str
    notes: tuple[str, ...]
    jobs: int
    jobs_of_no_length: int
    begins: str
    first_submit_s: float
    last_submit_s: float
    first_submit: str
    last_submit: str
    arrivals: Arrivals
    demand: Demand
    sizes: tuple[Size, ...]
    size_classes: tuple[SizeClass, ...]
    duration_s: Spread
    tenants: Owners
    users: Owners
    statuses: tuple[Group, ...]
    censoring: Censoring
    estimates: Estimates
    waits: Waits
    coverage: dict[str, float]
    missing_columns: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last submission."""
        return self.last_submit_s - self.first_submit_s

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and dictionaries, for JSON; NaN where there is no value."""
        return asdict(self) | {"span_s": self.span_s}


def describe(
    workload: Workload,
    *,
    cluster: Cluster | None = None,
    fits: BoolArray | None = None,
    reasons: Sequence[str] = (),
) -> Description:
    """Say what is in a workload.

    Args:
        workload: the jobs.
        cluster: machines to tell the offered load for.
        fits: (jobs,) whether the empty cluster could hold each job; None if nobody looked.
        reasons: why it could not hold the others, alike jobs together.
    """
    first_s, last_s = float(workload.submit_s[0]), float(workload.submit_s[-1])
    coverage = coverage_of(workload)
    estimates, censoring = estimates_of(workload), censoring_of(workload)
    no_length = int(np.count_nonzero(workload.duration_s == 0))
    return Description(
        name=workload.name,
        notes=workload.notes,
        jobs=len(workload),
        jobs_of_no_length=no_length,
        begins=workload.begins,
        first_submit_s=first_s,
        last_submit_s=last_s,
        first_submit=date_of(workload, first_s),
        last_submit=date_of(workload, last_s),
        arrivals=arrivals_of(workload),
        demand=demand_of(workload, cluster, fits, reasons),
        sizes=sizes_of(workload),
        size_classes=size_classes_of(workload),
        duration_s=spread(workload.duration_s),
        tenants=owners_of(workload, workload.tenant),
        users=owners_of(workload, workload.user),
        statuses=groups_of(workload, workload.status),
        censoring=censoring,
        estimates=estimates,
        waits=waits_of(workload),
        coverage=coverage,
        missing_columns=tuple(key for key, part in coverage.items() if part == 0),
        remarks=tuple(_remarks(workload, censoring, estimates)),
    )


def _remarks(workload: Workload, censoring: Censoring, estimates: Estimates) -> Iterator[str]:
    """Yield what a reader should not overlook."""
    if not workload.begins:
        yield "no dates: second 0 is taken for a Monday's midnight in hours and weekdays"
    shared = censoring.shared_duration
    if shared is not None and shared.jobs > censoring.jobs:
        yield (
            f"{shared.jobs:,} jobs ({shared.jobs_share:.1%}) run for exactly"
            f" {shared.duration_s:g} s: a time limit, or run times cut off there"
        )
    if estimates.exact_share >= ORACLE_SHARE:
        yield (
            f"{estimates.exact_share:.0%} of the estimates equal the run time: they know the"
            " future, and no user wrote them"
        )
    if float(workload.submit_s[-1] - workload.submit_s[0]) < DAY_S:
        yield "less than a day of submissions: hours of the day mean little"
