"""The only door through which anything is written to Slurm.

`command_line` builds every line that `scontrol` is given, and can build two kinds: a SiteFactor,
and a preferred feature; and a third, a requeue, only where it is told that somebody asked for that.
It cannot hold a job (a driver that dies would leave it held for ever),
write its priority (age would no longer count), its start time (a requeued job would be lost), its
time limit (backfill's contract with the user) or its node list (the job would be stuck if the node
drains).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.factors import LARGEST_POINTS

JOB = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
FEATURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
PER_CHANGE_S = 0.02
"""How much longer `scontrol` may take for each change; one takes 1–1.5 ms."""
SIDE_BY_SIDE = 4
"""How many `scontrol` share many changes; more gain nothing and crowd slurmctld."""
LEAST_SHARE = 25
"""Changes that are worth another `scontrol`."""
_COMPLAINT = re.compile(r"\bfor job (\d+)")


@dataclass(frozen=True, slots=True)
class SetFactor:
    """Give a waiting job a SiteFactor, in points; 0 takes it away."""

    job: str
    points: int


@dataclass(frozen=True, slots=True)
class SetPrefer:
    """Let a waiting job prefer nodes with a feature, softly; "" takes the wish away."""

    job: str
    feature: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Stop a running job and put it back into the queue."""

    job: str


Change = SetFactor | SetPrefer | Requeue


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a change; the audit log holds it as it is."""

    operation: str
    job: str
    outcome: Literal["done", "failed", "skipped"]
    detail: str


def command_line(change: Change, *, may_requeue: bool = False) -> str:
    """Return the one line that carries a change out.

    Raises:
        SlurmError: if the job is no number, the value out of range, or a job is to be requeued and
            nobody said that jobs may be.
    """
    if not JOB.fullmatch(change.job):
        raise SlurmError(f"{change.job!r} is not the number of a job.")
    if isinstance(change, SetFactor):
        points = change.points
        if isinstance(points, bool) or not isinstance(points, int):
            raise SlurmError(f"{points!r} is not a number of points.")
        if not 0 <= points <= LARGEST_POINTS:
            raise SlurmError(f"A factor of {points} points is out of range.")
        return f"update JobId={change.job} SiteFactor={points}"
    if isinstance(change, Requeue):
        if may_requeue is not True:
            raise SlurmError(f"Job {change.job} must not be requeued: nobody asked for that.")
        # Without that word a job that has just ended would be run again.
        return f"requeue incomplete {change.job}"
    if change.feature and not FEATURE.fullmatch(change.feature):
        raise SlurmError(f"{change.feature!r} is not the name of a feature.")
    return f"update JobId={change.job} Prefer={change.feature}"


def apply_changes(
    slurm: Slurm, changes: Sequence[Change], *, may_requeue: bool = False
) -> list[Outcome]:
    """Carry changes out, first ones first, by `scontrol` that reads them from its input.

    Many are shared out among a few `scontrol` side by side: a change is a round trip to slurmctld
    and munge in which everybody mostly waits for the others. Jobs are requeued only with
    `may_requeue`. What Slurm does not complain about counts as done; whether it is, reading back
    tells.

    Raises:
        SlurmError: if `scontrol` does not come back; some changes may have been made.
    """
    if not changes:
        return []
    lines = [command_line(change, may_requeue=may_requeue) + "\n" for change in changes]
    patient = Slurm(slurm.timeout_s + PER_CHANGE_S * len(changes), slurm.environment)
    shares = min(SIDE_BY_SIDE, -(-len(lines) // LEAST_SHARE))
    texts = ["".join(lines[number::shares]) for number in range(shares)]
    refused: dict[str, str] = {}
    with ThreadPoolExecutor(shares) as pool:
        for found in pool.map(lambda text: _refused(patient, text), texts):
            refused |= found
    return [_outcome(change, refused.get(change.job)) for change in changes]


def _refused(slurm: Slurm, text: str) -> dict[str, str]:
    """Give `scontrol` its lines; return what it complained about, by job.

    Raises:
        SlurmError: if it does not come back, or fails without naming a job.
    """
    answer = slurm.run(("scontrol",), text)
    refused: dict[str, str] = {}
    for line in answer.stderr.splitlines():
        match = _COMPLAINT.search(line)
        if match:
            refused[match[1]] = line.strip()
    if answer.returncode and not refused:
        raise SlurmError(f"scontrol failed: {' '.join(answer.stderr.split())[-300:]}")
    return refused


def skipped(change: Change, why: str) -> Outcome:
    """Return the outcome of a change that was planned and not sent."""
    operation, detail = _in_words(change)
    return Outcome(operation, change.job, "skipped", f"{why}: {detail}")


def _in_words(change: Change) -> tuple[str, str]:
    if isinstance(change, SetFactor):
        return "factor", f"{change.points} points"
    if isinstance(change, Requeue):
        return "requeue", "stopped"
    return "prefer", change.feature or "no wish"


def _outcome(change: Change, complaint: str | None) -> Outcome:
    operation, detail = _in_words(change)
    if complaint is None:
        return Outcome(operation, change.job, "done", detail)
    return Outcome(operation, change.job, "failed", f"{detail}: {complaint}")
