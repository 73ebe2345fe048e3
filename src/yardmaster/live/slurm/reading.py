"""What squeue, sinfo and sprio print, as rows. Nothing here runs a program or knows the time.

The fields have meant the same since long before Slurm 22.05, and need no JSON plugin:

- GPUs of a job: `tres-alloc` is right for every way of asking and shows the request while a job
  waits, but only where the site counts GPUs (AccountingStorageTRES=gres/gpu); elsewhere what was
  asked per job, node or task is multiplied out.
- An array that waits is one line (`8_[0-9%2]`), a heterogeneous job several (`11+0`, `11+1`).
- sinfo has one line per node *and partition*.
- sprio is the only reader of SiteFactor, and is silent about jobs it has not weighed yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from yardmaster.live.slurm.commands import SEPARATOR, SlurmError
from yardmaster.model.columns import IntArray
from yardmaster.workloads.traces.slurm.fields import gres, limit_s, tres

QUEUE_FIELDS = (
    "JobArrayID", "JobID", "UserName", "Account", "Partition", "State", "SubmitTime", "StartTime",
    "TimeLimit", "NumNodes", "tres-alloc", "tres-per-job", "tres-per-node", "tres-per-task",
    "NumTasks", "PriorityLong", "Reason", "NodeList", "AccrueTime",
)  # fmt: skip
NODE_FIELDS = ("NodeList", "StateCompact", "Gres", "GresUsed", "Partition")
PRIORITY_FIELDS = "irYSABFJPQNT"
"""sprio's letters: job, partition, priority, site, age, association, fair share, size, partition's
weight, QOS, nice, and other resources."""

WAITING = "PENDING"
"""The state of a job that has not started."""
NOWHERE = ("", "n/a", "(null)", "none", "unknown")


def queue_command(states: str = "PD,R,S,CG,CF") -> tuple[str, ...]:
    """Return how to read the queue."""
    wanted = ",".join(f"{name}:{SEPARATOR}" for name in QUEUE_FIELDS)
    return ("squeue", "-h", "-a", "-t", states, "-O", wanted)


def nodes_command() -> tuple[str, ...]:
    """Return how to read the nodes."""
    return ("sinfo", "-h", "-N", "-a", "-O", ",".join(f"{n}:{SEPARATOR}" for n in NODE_FIELDS))


def priorities_command() -> tuple[str, ...]:
    """Return how to read what priorities are made of."""
    return ("sprio", "-h", "-o", SEPARATOR.join(f"%{letter}" for letter in PRIORITY_FIELDS))


class QueueRow(NamedTuple):
    """One line of squeue; times in seconds since 1970, None where there is none."""

    label: str
    job: str
    user: str
    account: str
    partition: str
    state: str
    submit_s: float
    start_s: float | None
    limit_s: float | None
    nodes: int
    gpus: int
    gpu_types: str
    priority: int
    reason: str
    node_list: str
    accrue_s: float | None

    @property
    def unit(self) -> str:
        """What Slurm orders as one: an array, a heterogeneous job, or the job itself."""
        return _unit(self.label)

    @property
    def is_single(self) -> bool:
        """Whether it is a job by itself: no array, no task of one, no part of several."""
        return self.label == self.job == self.unit

    @property
    def waits(self) -> bool:
        """Whether it has not started."""
        return self.state == WAITING


Row = TypeVar("Row")


class _Lines(Generic[Row]):
    """Reads lines of a program; those that were there at the last look are not read again.

    Nothing older is kept: lines change with every start and every weighing, and a cache of all of
    them would grow for hours.
    """

    def __init__(self, program: str, read: Callable[[str], Row]) -> None:
        self._program, self._read = program, read
        self._last: dict[str, Row] = {}

    def rows(self, text: str) -> list[Row]:
        """Return a row for each line.

        Raises:
            SlurmError: naming the line that makes no sense.
        """
        last, found, rows = self._last, dict[str, Row](), list[Row]()
        for number, line in enumerate(text.split("\n"), start=1):
            if not line:
                continue
            row = last.get(line)
            if row is None:
                try:
                    row = self._read(line)
                except ValueError as error:
                    raise SlurmError(f"{self._program}, line {number}: {error}.") from None
            found[line] = row
            rows.append(row)
        self._last = found
        return rows

    def forget(self) -> None:
        """Read every line anew at the next look."""
        self._last = {}


def queue_rows(text: str) -> list[QueueRow]:
    """Read what squeue printed.

    Raises:
        SlurmError: naming the line that makes no sense.
    """
    return _QUEUE.rows(text)


def _queue_row(line: str) -> QueueRow:
    (label, job, user, account, partition, state, submit, start, limit, nodes, alloc, per_job,
     per_node, per_task, tasks, priority, reason, node_list, accrue, *_) = _cells(
        line, len(QUEUE_FIELDS)
    )  # fmt: skip
    count = max(_whole(nodes), 1)
    gpus, types = _gpus(alloc, per_job, per_node, per_task, count, max(_whole(tasks), 1))
    return QueueRow(
        label, job, user, account, partition, state, float(submit), moment(start),
        _limit_s(limit), count, gpus, types, int(priority), reason, node_list, moment(accrue),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _limit_s(text: str) -> float | None:
    return None if text.lower() in {*NOWHERE, "not_set", "invalid"} else limit_s(text)


@lru_cache(maxsize=4096)
def _gpus(  # noqa: PLR0917 - the cells as squeue has them
    alloc: str, per_job: str, per_node: str, per_task: str, nodes: int, tasks: int
) -> tuple[int, str]:
    """Return how many GPUs, and of which types, in the job's own words."""
    gpus, types = 0, ""
    if alloc.lower() not in NOWHERE:
        counted = tres(alloc)
        gpus, types = counted.gpus or 0, counted.types or ""
    for text, times in ((per_job, 1), (per_node, nodes), (per_task, tasks)):
        if text.lower() in NOWHERE or "gpu" not in text:
            continue
        part = gres(text)
        types = types or part.types or ""
        gpus = gpus or (part.gpus or 0) * times
    return gpus, types


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node, with all partitions it is in."""

    name: str
    state: str
    gpus: int
    gpu_type: str
    used: int
    partitions: tuple[str, ...]

    @property
    def takes_jobs(self) -> bool:
        """Whether jobs may start there."""
        return self.state.rstrip("*~#!%$@^-+") in {"idle", "mix", "alloc", "comp", "plnd"} and (
            "*" not in self.state and "$" not in self.state
        )


def node_rows(text: str) -> list[NodeRow]:
    """Read what sinfo printed; nodes without GPUs are left out.

    Raises:
        SlurmError: naming the line that makes no sense.
    """
    found: dict[str, NodeRow] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line:
            continue
        try:
            name, state, has, uses, partition, *_ = _cells(line, len(NODE_FIELDS))
            (gpus, kind), (used, _) = _node_gpus(has), _node_gpus(uses)
        except ValueError as error:
            raise SlurmError(f"sinfo, line {number}: {error}.") from None
        before = found[name].partitions if name in found else ()
        names = tuple(dict.fromkeys((*before, partition.rstrip("*"))))
        if gpus:
            found[name] = NodeRow(name, state, gpus, kind, used, names)
    return list(found.values())


@lru_cache(maxsize=4096)
def _node_gpus(text: str) -> tuple[int, str]:
    if text.lower() in NOWHERE or "gpu" not in text:
        return 0, ""
    parts = [one for one in re.sub(r"\([^)]*\)", "", text).split(",") if "gpu" in one]
    resources = gres(",".join(parts))
    return resources.gpus or 0, (resources.types or "").split("|")[0]


class PriorityRow(NamedTuple):
    """What the priority of a waiting job is made of, in points."""

    priority: int
    site: int
    age: int
    others: int
    """Everything but site and age, nice included."""

    @property
    def is_set_by_hand(self) -> bool:
        """Whether somebody wrote the priority itself: then its parts do not add up to it."""
        return bool(is_set_by_hand(*self))


Points = TypeVar("Points", int, IntArray)


def is_set_by_hand(priority: Points, site: Points, age: Points, others: Points) -> Any:
    """Whether parts do not add up to a priority, of one job or of many."""
    return (priority > 1) & (abs(priority - site - age - others) > 8)


def priority_rows(text: str) -> dict[str, PriorityRow]:
    """Read what sprio printed, by job; of several partitions the best counts.

    Raises:
        SlurmError: naming the line that makes no sense.
    """
    found: dict[str, PriorityRow] = {}
    for job, row in _PRIORITIES.rows(text):
        if job not in found or row.priority > found[job].priority:
            found[job] = row
    return found


def _priority_row(line: str) -> tuple[str, PriorityRow]:
    cells = _cells(line, len(PRIORITY_FIELDS))
    priority, site, age, *rest, nice = map(int, cells[2:11])
    others = sum(rest) - nice + (_weighed(cells[11]) if cells[11] else 0)
    return _unit(cells[0]), PriorityRow(priority, site, age, others)


_QUEUE = _Lines("squeue", _queue_row)
_PRIORITIES = _Lines("sprio", _priority_row)


def forget() -> None:
    """Read every line anew at the next look."""
    _QUEUE.forget()
    _PRIORITIES.forget()


def _weighed(text: str) -> int:
    """Return the sum of `cpu=1,gres/gpu=20`."""
    return sum(int(float(part.partition("=")[2] or 0)) for part in text.split(",") if part.strip())


def _unit(label: str) -> str:
    """Return what a label belongs to: `8` of `8_[0-9%2]`, `11` of `11+1`."""
    return label.partition("_")[0].partition("+")[0].strip()


def _cells(line: str, fields: int) -> list[str]:
    cells = line.split(SEPARATOR)
    if not fields <= len(cells) <= fields + 1:
        raise ValueError(f"{fields} cells were asked for, {len(cells)} came")
    return cells


def _whole(text: str) -> int:
    """Return a number such as `2`, `2-4` (its least) or `1K`."""
    first = text.partition("-")[0]
    if first[-1:].upper() == "K":
        return int(float(first[:-1]) * 1000)
    return int(first) if first.isdecimal() else 0


def moment(text: str) -> float | None:
    """Return a time in seconds since 1970; None for `N/A` and the like."""
    return float(text) if text.isdecimal() and text != "0" else None


_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expanded(node_list: str) -> list[str]:
    """Return the names in `n[1-3,07],gpu2`.

    Raises:
        SlurmError: if brackets make no sense.
    """
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", node_list):
        names += _expanded_part(part)
    return names


def _expanded_part(part: str) -> list[str]:
    head, bracket, tail = part.partition("[")
    if not bracket:
        return [part]
    inside, closed, rest = tail.partition("]")
    if not closed:
        raise SlurmError(f"Cannot read the node list {part!r}.")
    numbers: list[str] = []
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            raise SlurmError(f"Cannot read the node list {part!r}.")
        first, last = match[1], match[2] or match[1]
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return [f"{head}{number}{end}" for number in numbers for end in _expanded_part(rest)]
