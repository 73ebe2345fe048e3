"""Soft placement: a job that is to start now may prefer the node our scheduler would give it.

Slurm knows preferences (22.05 and later) by features of nodes, so this works where each node has
its own name as a feature. A preference that cannot be met is ignored by Slurm; a job never waits
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yardmaster.live.decision import Decision
from yardmaster.live.slurm.changes import SetPrefer
from yardmaster.live.slurm.commands import SEPARATOR, Slurm, SlurmError
from yardmaster.live.slurm.observing import Observation
from yardmaster.live.slurm.reading import NOWHERE

Wishes = Mapping[str, str]
"""What each waiting job prefers; "" for nothing."""


def read_wishes(slurm: Slurm) -> tuple[dict[str, str], frozenset[str]]:
    """Return what waiting jobs prefer, and the nodes that have their own name as a feature.

    Raises:
        SlurmError: if this Slurm knows no preferences.
    """
    try:
        jobs, nodes = slurm.read_all(
            ("squeue", "-h", "-a", "-t", "PD", "-O", f"JobID:{SEPARATOR},Prefer:{SEPARATOR}"),
            ("sinfo", "-h", "-N", "-a", "-O", f"NodeList:{SEPARATOR},Features:{SEPARATOR}"),
        )
    except SlurmError as error:
        raise SlurmError(f"--prefer needs Slurm 22.05 or later: {error}") from None
    wishes = {}
    for line in jobs.splitlines():
        job, _, rest = line.partition(SEPARATOR)
        wish = rest.rstrip(SEPARATOR)
        wishes[job] = "" if wish.lower() in NOWHERE else wish
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

    A job whose owner prefers something keeps that.
    """
    state = observation.state
    planned = []
    for start in decision.starts:
        job = str(state.jobs.id[start.row])
        node = state.node_names[start.nodes[0][0]]
        has = wishes.get(job)
        if len(start.nodes) != 1 or node not in named or has is None or has == node:
            continue
        if not has or is_ours(job, has):
            planned.append(SetPrefer(job, node))
    return planned
