"""Who plays in the league: every order under every discipline, sorted by what it knows."""

from __future__ import annotations

from functools import cache
from itertools import product

from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.orders import ORDERS
from yardmaster.schedulers.views import Information

DISCIPLINES = ("strict", "skip", "commit", "easy", "conservative")
"""Disciplines that never stop a job, as a policy that picks jobs cannot."""
SAME_AS = {
    "static-equal": "fifo",
    "srpt": "sjf",
    "las": "fifo",
    "las-2d": "fifo",
    "off-peak": "fifo",
}
"""Orders that are others here: nobody is stopped, and electricity has no price."""
PREEMPTIVE = ("srpt+preemptive", "las+preemptive", "las-2d+preemptive")
"""For orientation: these stop jobs, which costs nothing here."""
FLOOR = "random-feasible+skip"
"""What any rule should beat; a lucky draw is no rule, so it is nobody's best heuristic."""
LEAGUES = (Information.CLAIRVOYANT, Information.ESTIMATE_BASED, Information.BLIND)


@cache
def heuristics() -> tuple[str, ...]:
    """Return every heuristic of every league; none of them stops jobs."""
    drawn = FLOOR.partition("+")[0]
    orders = [name for name in ORDERS if name not in SAME_AS and name != drawn]
    found: dict[str, None] = {}
    for order, discipline, told in product(orders, DISCIPLINES, ("", "~estimate")):
        scheduler = parse_scheduler(f"{order}+{discipline}@pack{told}")
        if scheduler.reads_run_times or not told:
            found[str(scheduler)] = None
    return tuple(found)


def everybody() -> tuple[str, ...]:
    """Return all who play but the trained: heuristics, those who stop jobs, and the floor."""
    return (*heuristics(), *PREEMPTIVE, FLOOR)


def knowledge(scheduler: str) -> Information:
    """Return what a scheduler knows of run times."""
    return parse_scheduler(scheduler).information


def may_play(information: str, league: str) -> bool:
    """Return whether somebody who knows so much belongs to a league.

    A league holds those who read the same run times, and those who read none: who knows more can
    always do as the blind do.
    """
    return information in (league, Information.BLIND)
