"""Taking our factors and wishes away: Slurm's own order is back with its next pass."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.live.folder import ABOUT, HEARTBEAT, read_json
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.changes import SetPrefer, apply_changes
from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.driving import factors_to_zero
from yardmaster.live.slurm.ledger import Ledger
from yardmaster.live.slurm.wishes import read_wishes

TRIES = 3


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done.

    Attributes:
        zeroed: jobs whose factor was taken away.
        left: jobs that still carry one of ours.
        others: jobs with a factor that somebody else gave; left alone.
    """

    zeroed: int
    left: int
    others: int


def restore(slurm: Slurm, ledger: Ledger, *, everyone: bool = False) -> Restored:
    """Take our factors away and read back, up to three times.

    Args:
        slurm: the programs.
        ledger: which factors are ours.
        everyone: take away other people's factors too.

    Raises:
        SlurmError: if Slurm does not answer.
    """
    zeroed: set[str] = set()
    is_sent = False
    for attempt in range(TRIES):
        sites, unweighed = _sites(slurm)
        silent = () if is_sent else unweighed
        wanted = factors_to_zero(sites, ledger, unweighed=silent, everyone=everyone)
        if not wanted:
            break
        # Nothing goes into the ledger: no factor is always ours, and a run may be writing there.
        try:
            outcomes = apply_changes(slurm, wanted)
        except SlurmError:
            if attempt + 1 == TRIES:
                raise
            continue  # one `scontrol` of several may have failed: reading tells what is left
        is_sent = True
        zeroed |= {one.job for one in outcomes if one.outcome == "done"}
    if ledger.has_wishes:
        wishes, _ = read_wishes(slurm)
        ours = [job for job, wish in wishes.items() if ledger.is_our_wish(job, wish.feature)]
        apply_changes(slurm, [SetPrefer(job, "") for job in ours])
    sites, _ = _sites(slurm)
    left = len(factors_to_zero(sites, ledger, everyone=everyone))
    others = sum(bool(points) for points in sites.values()) - left
    return Restored(len(zeroed), left, others)


def _sites(slurm: Slurm) -> tuple[dict[str, int], list[str]]:
    """Return the factor of each weighed job, and the waiting jobs that sprio is silent about."""
    queue, priorities = slurm.read_all(reading.queue_command("PD"), reading.priorities_command())
    units = {row.unit for row in reading.queue_rows(queue)}
    weighed = {job: row.site for job, row in reading.priority_rows(priorities).items()}
    sites = {job: site for job, site in weighed.items() if job in units}
    return sites, sorted(units - set(sites), key=int)


def heartbeat_age_s(folder: Path) -> float:
    """Return how long ago the run in a folder last gave a sign of life; infinity if never."""
    path = folder / HEARTBEAT
    if not path.exists():
        return float("inf")
    return max(time.time() - float(read_json(path)["unix_s"]), 0.0)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is not that of a run beside Slurm.

    Raises:
        YardmasterError: if it is not.
    """
    kind = read_json(folder / ABOUT).get("kind") if (folder / ABOUT).exists() else None
    if kind != "slurm":
        raise YardmasterError(f"{folder} is not the folder of a live Slurm run.")
