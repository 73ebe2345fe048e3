"""From a decision to the changes that carry it out: a pure function of what was read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decision
from yardmaster.live.slurm.changes import SetFactor
from yardmaster.live.slurm.factors import Queue, Scale, plan_factors
from yardmaster.live.slurm.observing import Observation
from yardmaster.model.columns import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is to be changed.

    Attributes:
        changes: factors to give, first in the order first.
        order: rows of the state as Slurm will see them, as near to the decision as the bound lets.
        moved: how many places of the decision the bound did not let be.
    """

    changes: tuple[SetFactor, ...]
    order: IntArray
    moved: int


def check_decision(observation: Observation, decision: Decision) -> None:
    """Refuse a decision that is not about exactly the jobs that may be ordered.

    Raises:
        YardmasterError: if it is not.
    """
    expected = observation.state.orderable
    if len(decision.order) != len(expected) or not np.array_equal(
        np.sort(decision.order), expected
    ):
        raise YardmasterError("The decision is not about the jobs that may be ordered.")


def plan_changes(
    observation: Observation, decision: Decision, scale: Scale, *, ages_always: bool = False
) -> Plan:
    """Return the changes that make Slurm's order follow a decision.

    Raises:
        YardmasterError: if the decision names jobs that may not be ordered, or leaves some out.
    """
    check_decision(observation, decision)
    rows = decision.order
    state = observation.state
    since_s = state.jobs.submit_s if ages_always else observation.accrue_s
    age_s = np.clip(np.nan_to_num(state.time_s - since_s[rows]), 0.0, scale.max_age_s)
    base = observation.others[rows] + np.floor(scale.points_per_s * age_s).astype(np.int64)
    queue = Queue(
        job=state.jobs.id[rows].astype(np.int64),
        base=base,
        site=observation.site[rows],
        held=observation.priority[rows],
    )
    labels = plan_factors(queue, scale)
    changed = labels.order[labels.changed[labels.order]]
    changes = tuple(
        SetFactor(str(job), points)
        for job, points in zip(
            queue.job[changed].tolist(), labels.site[changed].tolist(), strict=True
        )
    )
    moved = int(np.count_nonzero(labels.order != np.arange(len(rows))))
    return Plan(changes, rows[labels.order], moved)
