"""The same jobs by group: which priorities, tenants or sizes waited how long."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from yardmaster.metrics.fairness import UNNAMED
from yardmaster.metrics.per_job import jct_s, wait_s
from yardmaster.model.schedule import Schedule
from yardmaster.model.workload import IntArray, Labels
from yardmaster.names import unknown

GROUP_COLUMNS: dict[str, str] = {
    "priority": "priority",
    "tenant": "tenant",
    "user": "user",
    "size": "gpus",
    "kind": "kind",
    "status": "status",
}
"""What jobs can be grouped by, and the workload's column behind it."""


class GroupRow(NamedTuple):
    """One group of jobs; times are in seconds over its finished jobs, NaN if there are none."""

    group: str
    jobs: int
    finished: int
    mean_jct_s: float
    median_jct_s: float
    p95_jct_s: float
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float


def by_group(schedule: Schedule, column: str) -> tuple[GroupRow, ...]:
    """Return one row per group of `GROUP_COLUMNS`, numbers ascending, names in alphabetical order.

    Jobs without a label form a group of their own, last.

    Raises:
        UnknownNameError: if jobs cannot be grouped by this column.
    """
    if column not in GROUP_COLUMNS:
        raise unknown("column to group by", column, GROUP_COLUMNS)
    names, codes = group_codes(getattr(schedule.workload, GROUP_COLUMNS[column]))
    jobs = np.argsort(codes, kind="stable")
    borders = np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]
    jct, wait = jct_s(schedule), wait_s(schedule)
    return tuple(
        _row(name, jct[rows], wait[rows])
        for name, rows in zip(names, np.split(jobs, borders), strict=True)
        if len(rows)
    )


def group_codes(column: Any) -> tuple[list[str], IntArray]:
    """Return the names of a column's groups in the order of tables, and each job's among them."""
    if isinstance(column, Labels):
        order = sorted(range(len(column.names)), key=column.names.__getitem__)
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order] = np.arange(len(order))
        place[-1] = len(order)  # code −1, no label
        return [*(column.names[code] for code in order), UNNAMED], place[column.codes]
    values, codes = np.unique(column, return_inverse=True)
    return [f"{value:g}" for value in values], codes


def _row(name: str, jct: Any, wait: Any) -> GroupRow:
    finished = ~np.isnan(jct)
    return GroupRow(
        name, len(jct), int(finished.sum()), *_centre(jct[finished]), *_centre(wait[finished])
    )


def _centre(values: Any) -> tuple[float, float, float]:
    """Return mean, median and 95th percentile."""
    if not len(values):
        return (float("nan"),) * 3
    median, p95 = np.percentile(values, (50, 95))
    return float(values.mean()), float(median), float(p95)
