"""What is assumed where nobody says it: the policy and the machine behind a record."""

from __future__ import annotations

import re

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

CANDIDATES = (
    "fifo+strict",
    "fifo+skip",
    "fifo+easy~estimate",
    "fifo+conservative~estimate",
    "sjf+easy~estimate",
    "smallest-first+skip",
    "wfp3+easy~estimate",
    "slurm-multifactor+easy~estimate",
)
"""Policies that machines with recorded waits have commonly run."""
FOR_PRIORITIES = ("static-priority+easy~estimate",)
FOR_TENANTS = ("fair-share+easy~estimate",)
_MACHINE_NOTE = re.compile(r"the machine had (\d+) processors")
"""What the reader of SWF files notes; notes travel with a table to wherever it is saved."""


def candidates_for(workload: Workload) -> tuple[str, ...]:
    """Return the policies tried where none is named.

    Where jobs carry no estimates, those that read run times read the true ones.
    """
    names = list(CANDIDATES)
    if np.ptp(workload.priority) > 0:
        names += FOR_PRIORITIES
    if len(np.unique(workload.tenant.codes)) > 1:
        names += FOR_TENANTS
    if not workload.has_estimates:
        names = [name.removesuffix("~estimate") for name in names]
    return tuple(names)


def recorded_machine(workload: Workload) -> Cluster | None:
    """Return the machine that the trace's own header states, as a pool; None if it states none."""
    for note in workload.notes:
        if match := _MACHINE_NOTE.fullmatch(note):
            return Cluster.pool(int(match.group(1)))
    return None
