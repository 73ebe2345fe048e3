"""Why is mine not starting? Slurm's reason, what the priority is made of, and our place for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.folder import ABOUT, read_json
from yardmaster.live.reasons import by_the_clock
from yardmaster.live.slurm.commands import Slurm
from yardmaster.live.slurm.history import REQUEUE_S
from yardmaster.live.slurm.ledger import Ledger
from yardmaster.live.slurm.observing import Allowed, Observation, observe
from yardmaster.live.slurm.restoring import check_folder
from yardmaster.live.slurm.stops import Stops

SLURMS_REASONS = {
    "None": "Slurm has not looked at it since it changed",
    "Priority": "jobs of higher priority come first",
    "Resources": "it is next, and waits for room",
    "Dependency": "it waits for another job",
    "DependencyNeverSatisfied": "it waits for a job that will never end well; it cannot start",
    "BeginTime": "it may not start before a time that was asked for, or was requeued just now",
    "JobHeldUser": "its owner holds it; `scontrol release` lets it go",
    "JobHeldAdmin": "an administrator holds it",
    "JobArrayTaskLimit": "as many tasks of the array run as its owner allows",
    "ReqNodeNotAvail": "a node that was asked for is not available",
}
"""What Slurm's words mean to the person who asks."""

DEFAULT = "sjf+easy"
WIDTH = 100
"""Signs that squeue may use for a column."""
SPREADS = (
    "Yardmaster looks for its GPUs on one node; Slurm may spread a job that asked by --gpus over"
    " several, and so start it earlier. -N1 or --gpus-per-node keeps it together."
)


def explain(
    slurm: Slurm, job: str, *, folder: Path | None = None, scheduler: str | None = None
) -> str:
    """Return why a job does not start, in words.

    Args:
        slurm: the programs.
        job: its number; that of an array or a heterogeneous job means what still waits of it.
        folder: a run beside Slurm, whose scheduler and lists count.
        scheduler: who decides, instead of the run's.

    Raises:
        YardmasterError: if there is no such job.
    """
    allowed, ledger, stops, name = Allowed(), None, None, scheduler
    if folder is not None:
        check_folder(folder)
        about = read_json(folder / ABOUT)
        name = scheduler or str(about["scheduler"])
        lists = about["settings"]["allowed"]
        allowed = Allowed(*(tuple(lists[one]) for one in ("partitions", "users", "accounts")))
        ledger, stops = Ledger(folder), Stops(folder)
    seen = observe(slurm, allowed, is_ours=ledger.is_ours if ledger else None)
    row = seen.row_of.get(job.partition("_")[0]) if job not in seen.row_of else seen.row_of[job]
    if row is None:
        raise YardmasterError(
            f"No job {job!r} with GPUs waits or runs here; `squeue` shows those that do."
        )
    if not np.isnan(seen.state.since_s[row]):
        return f"Job {job} runs since {_clock(seen.state.since_s[row])}."
    lines = _waiting(seen, row, job, name or DEFAULT)
    if not seen.why_held[row] and _may_spread(slurm, seen, row):
        lines.append(SPREADS)
    return "\n".join([*lines, *_stopped(stops, job)] if stops is not None else lines)


def _may_spread(slurm: Slurm, seen: Observation, row: int) -> bool:
    """Whether Slurm may give a job's GPUs on several nodes though the job asks for one at least."""
    asked = seen.rows[row]
    if asked.nodes != 1 or asked.gpus == 1:
        return False
    columns = f"MaxNodes:{WIDTH},tres-per-job:{WIDTH}"
    lines = slurm.read("squeue", "-h", "-j", asked.unit, "-O", columns).splitlines()
    most, per_job = (lines or [""])[0][:WIDTH].strip(), (lines or [""])[0][WIDTH:]
    return "gpu" in per_job and most != "1"


def _stopped(stops: Stops, job: str) -> list[str]:
    """Say that a job was stopped for another, or another for it."""
    lines = [
        f"Yardmaster stopped it at {_clock(one.unix_s)} so that job {one.waiting} could start; it"
        f" had run for {one.ran_s:.0f} s. Slurm lets no requeued job start for two minutes: not"
        f" before {_clock(one.unix_s + REQUEUE_S)}."
        for one in stops.of(job)[-1:]
    ]
    return lines + [
        f"Yardmaster stopped job {one.job} for it at {_clock(one.unix_s)}."
        for one in stops.made_for(job)
    ]


def _waiting(seen: Observation, row: int, job: str, scheduler: str) -> list[str]:
    reason = seen.reason[row]
    meaning = SLURMS_REASONS.get(reason, "see `man squeue`, JOB REASON CODES")
    waited_s = seen.state.time_s - float(seen.state.jobs.submit_s[row])
    lines = [
        f"Job {job} waits since {_clock(float(seen.state.jobs.submit_s[row]))} ({waited_s:.0f} s).",
        f"Slurm: {reason}: {meaning}.",
    ]
    if seen.is_weighed[row]:
        age = int(seen.priority[row] - seen.site[row] - seen.others[row])
        lines.append(
            f"Priority {seen.priority[row]}: {age} for waiting, {seen.others[row]} for fair share,"
            f" QOS, size, partition and nice, {seen.site[row]} from Yardmaster (SiteFactor)."
        )
    if seen.why_held[row]:
        lines.append(f"Yardmaster leaves it alone: {seen.why_held[row]}.")
        return lines
    decision = Decider(scheduler, when=by_the_clock, may_stop=True).decide(seen.state)
    place = int(np.flatnonzero(decision.order == row)[0]) + 1
    lines.append(
        f"Yardmaster ({decision.chosen}): place {place} of {len(decision.order)};"
        f" {decision.why(row)}."
    )
    return lines


def _clock(unix_s: float) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(unix_s).astimezone():%Y-%m-%d %H:%M:%S}"
