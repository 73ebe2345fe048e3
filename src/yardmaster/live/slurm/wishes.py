"""Soft placement: a job that is to start now may prefer the node our scheduler would give it.

Slurm knows preferences (22.05 and later) by features of nodes, so this works where each node has
its own name as a feature. A preference that cannot be met is ignored by Slurm; a job never waits
for it. But Slurm tries a preference before the job's own constraint, and instead of it: a job whose
owner says where it must run is never given one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from yardmaster.live.decision import Decision
from yardmaster.live.slurm.changes import SetPrefer
from yardmaster.live.slurm.commands import SEPARATOR, Slurm, SlurmError
from yardmaster.live.slurm.observing import Observation
from yardmaster.live.slurm.reading import NOWHERE

_JOB_FIELDS = ("JobID", "Prefer", "Feature", "ReqNodes")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a waiting job says about nodes.

    Attributes:
        feature: what it prefers; "" for nothing.
        is_bound: whether it also says where it must run.
    """

    feature: str
    is_bound: bool = False


Wishes = Mapping[str, Wish]
"""What each waiting job wishes, by its number."""


def read_wishes(slurm: Slurm) -> tuple[dict[str, Wish], frozenset[str]]:
    """Return what waiting jobs wish, and the nodes that have their own name as a feature.

    Raises:
        SlurmError: if this Slurm knows no preferences.
    """
    wanted = ",".join(f"{name}:{SEPARATOR}" for name in _JOB_FIELDS)
    try:
        jobs, nodes = slurm.read_all(
            ("squeue", "-h", "-a", "-t", "PD", "-O", wanted),
            ("sinfo", "-h", "-N", "-a", "-O", f"NodeList:{SEPARATOR},Features:{SEPARATOR}"),
        )
    except SlurmError as error:
        raise SlurmError(f"--prefer needs Slurm 22.05 or later: {error}") from None
    wishes = {}
    for line in filter(None, jobs.split("\n")):
        job, *cells = line.split(SEPARATOR)[: len(_JOB_FIELDS)]
        wish, constraint, nodes_asked = ("" if cell.lower() in NOWHERE else cell for cell in cells)
        # While Slurm tries a preference it shows it as the constraint too.
        wishes[job] = Wish(wish, is_bound=bool(nodes_asked) or constraint not in {"", wish})
    rows = [line.split(SEPARATOR) for line in nodes.splitlines() if line]
    named = frozenset(row[0] for row in rows if row[0] in row[1].split(","))
    return wishes, named


def plan_wishes(
    observation: Observation,
    decision: Decision,
    wishes: Wishes,
    named: frozenset[str],
    is_ours: Callable[[str, str], bool],
) -> list[SetPrefer]:
    """Return the preferences to give to jobs that are to start now on one node.

    A job whose owner prefers something keeps that; one that says where it must run gets none.
    """
    state = observation.state
    planned = []
    for start in decision.starts:
        job = str(state.jobs.id[start.row])
        node = state.node_names[start.nodes[0][0]]
        has = wishes.get(job)
        if len(start.nodes) != 1 or node not in named or has is None or has.is_bound:
            continue
        if has.feature != node and (not has.feature or is_ours(job, has.feature)):
            planned.append(SetPrefer(job, node))
    return planned
