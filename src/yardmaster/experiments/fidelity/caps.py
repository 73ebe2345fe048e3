"""Users and tenants who seem to be limited: they wait with room while they hold what they ever do.

The limit itself is not in the record. But an owner who never holds more than N GPUs (or jobs) at
once, and whose jobs wait on a machine with room for them exactly while one more would exceed N, was
either limited to N, or waited for another reason that looks the same.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from yardmaster.experiments.fidelity.evidence import Cause, Evidence, Owner
from yardmaster.experiments.fidelity.occupancy import ROUNDING
from yardmaster.model.workload import BoolArray, FloatArray, IntArray

OwnerKind = Literal["user", "tenant"]

SHORTEST_WAIT_S = 300.0
"""Jobs that waited with room for less, beyond what they do in the simulation, say nothing."""
FEWEST_JOBS = 10
"""Such jobs that an owner must have."""
MOST_OWNERS = 60
"""Owners looked at: those who waited longest with room."""
MOST_JOBS_EACH = 100
AT_THE_LIMIT = 0.75
"""Share of the waiting with room that must fall into times when one more job was one too many.

Not all of it: backfilling makes limited users wait with room as well. In made traces it is above
0.78 for users with a limit and below 0.15 for those without.
"""
WHOLE_MACHINE = 0.9
"""Who holds such a share of the cluster is limited by the cluster."""


def caps(evidence: Evidence, latency_s: float) -> Cause:
    """Look for users, then for tenants, who wait only while they hold as much as they ever do."""
    extra_s = evidence.extra_with_room_s(latency_s)
    is_telling = extra_s >= SHORTEST_WAIT_S
    found: list[Owner] = []
    explained_s = np.zeros(len(extra_s))
    for kind in _kinds(evidence):
        codes = getattr(evidence.workload, kind).codes
        for code in _most_delayed(codes, extra_s, is_telling):
            owner = _limited(evidence, kind, code, extra_s, is_telling)
            if owner is not None:
                found.append(owner)
                explained_s = np.where(codes == code, extra_s, explained_s)
    found.sort(key=lambda owner: -owner.waited_s)
    return Cause(
        "caps",
        is_found=bool(found),
        share=evidence.share(explained_s),
        numbers={"owners": float(len(found)), "waited_s": float(explained_s.sum())},
        owners=tuple(found),
    )


def _kinds(evidence: Evidence) -> list[OwnerKind]:
    """Return whose limits can be told: tenants only where they are not one user each."""
    user, tenant = evidence.workload.user.codes, evidence.workload.tenant.codes
    kinds: list[OwnerKind] = ["user"] if (user >= 0).any() else []
    pair = user.astype(np.int64) * (int(tenant.max(initial=0)) + 2) + tenant
    if (tenant >= 0).any() and len(np.unique(pair)) > len(np.unique(tenant)):
        kinds.append("tenant")
    return kinds


def _most_delayed(codes: IntArray, extra_s: FloatArray, is_telling: BoolArray) -> list[int]:
    """Return the owners with enough telling jobs, the most delayed first."""
    rows = np.flatnonzero(is_telling & (codes >= 0))
    if not len(rows):
        return []
    jobs = np.bincount(codes[rows])
    delay_s = np.where(jobs >= FEWEST_JOBS, np.bincount(codes[rows], extra_s[rows]), 0.0)
    by_delay = np.argsort(-delay_s, kind="stable")[:MOST_OWNERS]
    return [int(code) for code in by_delay if delay_s[code] > 0]


def _limited(
    evidence: Evidence, kind: OwnerKind, code: int, extra_s: FloatArray, is_telling: BoolArray
) -> Owner | None:
    """Return the owner with the limit that explains the waits, None if no limit does."""
    labels = getattr(evidence.workload, kind)
    mine = np.flatnonzero((labels.codes == code) & np.isfinite(evidence.recorded_s))
    waited = mine[is_telling[mine]]
    some = waited[np.linspace(0, len(waited) - 1, MOST_JOBS_EACH).astype(np.int64)]
    some = np.unique(some)
    units: tuple[tuple[Literal["GPUs", "jobs"], FloatArray], ...] = (
        ("GPUs", evidence.record.wants),
        ("jobs", np.ones(len(evidence.recorded_s))),
    )
    for unit, weight in units:
        limit, at_limit = _held_against_limit(evidence, mine, some, weight)
        whole = evidence.record.gpus if unit == "GPUs" else np.inf
        if at_limit >= AT_THE_LIMIT and limit <= WHOLE_MACHINE * whole:
            total_s = float(extra_s[mine].sum())
            return Owner(kind, labels.names[code], unit, limit, len(waited), total_s)
    return None


def _held_against_limit(
    evidence: Evidence, mine: IntArray, some: IntArray, weight: FloatArray
) -> tuple[float, float]:
    """Return the most that one owner held, and the share of waits with room at that limit."""
    record, jobs = evidence.record, evidence.workload
    start_s = jobs.submit_s[mine] + evidence.recorded_s[mine]
    times_s = np.concatenate((start_s, start_s + jobs.duration_s[mine]))
    in_time = np.argsort(times_s, kind="stable")
    changes = np.concatenate((weight[mine], -weight[mine]))[in_time]
    times_s = times_s[in_time]
    is_settled = np.append(times_s[1:] != times_s[:-1], True)
    times_s, holds = times_s[is_settled], np.cumsum(changes)[is_settled]
    limit = float(holds.max())
    free = record.free + ROUNDING
    room_s = at_limit_s = 0.0
    for row in some.tolist():
        begin, end = int(record.came[row]), int(record.went[row])
        has_room = free[begin:end] >= record.wants[row]
        lasts_s = np.where(has_room, record.lasts_s[begin:end], 0.0)
        place = np.searchsorted(times_s, record.moments_s[begin:end], side="right") - 1
        held = np.where(place >= 0, holds[place], 0.0)
        room_s += float(lasts_s.sum())
        at_limit_s += float(lasts_s[held + weight[row] > limit + ROUNDING].sum())
    return limit, at_limit_s / room_s if room_s > 0 else 0.0
