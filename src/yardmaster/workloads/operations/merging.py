"""Several workloads on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import COLUMN_NAMES, Labels, Workload
from yardmaster.names import unknown
from yardmaster.workloads.clock import WEEK_S, beginning, since_monday_s

How = Literal["clock", "dates", "append"]


def merged(
    workloads: Sequence[Workload],
    *,
    how: How = "clock",
    label_tenants: bool = False,
    label_users: bool = False,
    name: str | None = None,
) -> Workload:
    """Return the jobs of several workloads together.

    Ids that occur in two workloads would make jobs indistinguishable; if there are any, every id
    gets its workload's name in front (`venus:17`).

    Args:
        workloads: at least two; of jobs submitted in the same second, those of the first go first.
        how: `clock` lays all second 0s on each other; `dates` lets every job keep its date, which
            all workloads must know; `append` lets each follow the one before, moved by whole weeks
            so that hours and weekdays stay true and the first of its jobs comes later.
        label_tenants: put the workload's name before each tenant (`venus/vc1`); jobs without a
            tenant are then of the tenant `venus`.
        label_users: the same for users: equal names in two traces are seldom one person.
        name: name of the result; by default the names joined by `+`.

    Raises:
        InvalidWorkloadError: if there are fewer than two, or dates are asked for and unknown.
    """
    if len(workloads) < 2:
        raise InvalidWorkloadError("Merging needs at least two workloads.")
    if how not in _WORDS:
        raise unknown("way to merge", how, _WORDS)
    labels = _distinct([each.name for each in workloads])
    shifts_s, begins = _places(workloads, how)
    columns = {
        key: _joined([getattr(each, key) for each in workloads])
        for key in COLUMN_NAMES
        if key != "id"
    }
    shift_s = np.repeat(shifts_s, [len(each) for each in workloads])
    columns["submit_s"] = columns["submit_s"] + shift_s
    columns["deadline_s"] = columns["deadline_s"] + shift_s
    for key, wanted in (("tenant", label_tenants), ("user", label_users)):
        if wanted:
            columns[key] = _labelled([getattr(each, key) for each in workloads], labels)
    return Workload.of(
        name=name or "+".join(labels),
        notes=_notes(workloads, labels, how),
        begins=begins,
        id=_ids(workloads, labels),
        **columns,
    )


def _notes(workloads: Sequence[Workload], labels: Sequence[str], how: str) -> list[str]:
    sources = list(zip(labels, workloads, strict=True))
    notes = [f"{label}: {note}" for label, each in sources for note in each.notes]
    counts = ", ".join(f"{len(each):,} jobs of {label}" for label, each in sources)
    return [*notes, f"merged: {counts}, {_WORDS[how]}"]


_WORDS = {
    "clock": "all second 0s at once",
    "dates": "each on its own date",
    "append": "one after the other, moved by whole weeks",
}


def _places(workloads: Sequence[Workload], how: How) -> tuple[list[float], str]:
    """Return the seconds by which each clock is moved, and the date of the common second 0."""
    if how == "dates":
        return _by_dates(workloads)
    if how == "append":
        return _one_after_the_other(workloads), workloads[0].begins
    agreed = {each.begins for each in workloads}
    return [0.0] * len(workloads), agreed.pop() if len(agreed) == 1 else ""


def _by_dates(workloads: Sequence[Workload]) -> tuple[list[float], str]:
    begins = [beginning(each) for each in workloads]
    known = [date for date in begins if date is not None]
    if len(known) < len(begins):
        without = [each.name for each, date in zip(workloads, begins, strict=True) if date is None]
        raise InvalidWorkloadError(
            f"Merging by dates needs the date of each second 0; unknown for {', '.join(without)}."
            " Use --how clock or --how append."
        )
    return [(date - min(known)).total_seconds() for date in known], min(known).isoformat()


def _one_after_the_other(workloads: Sequence[Workload]) -> list[float]:
    """Return shifts that keep each job's hour of the week and put it after all jobs before."""
    first_monday_s = since_monday_s(workloads[0])
    shifts_s, last_s = [0.0], float(workloads[0].submit_s[-1])
    for each in workloads[1:]:
        # Where dates are unknown, clocks are taken to begin at the same hour of the week.
        are_known = bool(workloads[0].begins and each.begins)
        phase_s = since_monday_s(each) - first_monday_s if are_known else 0.0
        weeks = np.floor((last_s - phase_s - float(each.submit_s[0])) / WEEK_S) + 1
        shifts_s.append(float(phase_s + weeks * WEEK_S))
        last_s = float(each.submit_s[-1]) + shifts_s[-1]
    return shifts_s


def _joined(columns: Sequence[Any]) -> Any:
    if not isinstance(columns[0], Labels):
        return np.concatenate(columns)
    numbers: dict[str, int] = {}
    codes = []
    for column in columns:
        own = [numbers.setdefault(name, len(numbers)) for name in column.names]
        codes.append(np.array([*own, -1], dtype=np.int32)[column.codes])
    return Labels(np.concatenate(codes), tuple(numbers))


def _labelled(columns: Sequence[Labels], labels: Sequence[str]) -> Labels:
    """Return the joined column with the workload's name before each name, and alone for none."""
    own = [
        Labels(
            np.where(column.codes < 0, len(column.names), column.codes).astype(np.int32),
            (*(f"{label}/{name}" for name in column.names), label),
        ).compact()
        for column, label in zip(columns, labels, strict=True)
    ]
    joined: Labels = _joined(own)
    return joined


def _ids(workloads: Sequence[Workload], labels: Sequence[str]) -> npt.NDArray[Any]:
    """Return ids as they are if they differ, else with the workload's name in front."""
    if all(each.id.dtype.kind == "i" for each in workloads):
        ids = np.concatenate([each.id for each in workloads])
    else:
        ids = np.concatenate([each.id.astype(np.str_) for each in workloads])
    if len(set(ids.tolist())) == len(ids):
        return ids
    # A label without a colon makes the first colon the border: no two jobs get the same id.
    marks = _distinct([label.replace(":", "-") for label in labels])
    names = [
        f"{mark}:{own}"
        for mark, each in zip(marks, workloads, strict=True)
        for own in each.id.tolist()
    ]
    return np.array(names, dtype=np.str_)


def _distinct(names: Sequence[str]) -> list[str]:
    """Number names that occur more than once, from the second on: venus, venus-2."""
    distinct: list[str] = []
    for name in names:
        label, number = name, 1
        while label in distinct:
            number += 1
            label = f"{name}-{number}"
        distinct.append(label)
    return distinct
