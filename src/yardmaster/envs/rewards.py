"""Rewards: weighted sums of documented terms.

A term is a quantity the compiled core adds up while time passes (see `TERM_MEANING`). Quantities in
seconds count in units of `unit_s`, by default the task's time unit (its mean run time), so that
rewards are neither huge nor tiny. What accrues step by step adds up, over an episode without
discounting, to the quantity itself: the rewards of `jct` sum to minus the mean completion time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from yardmaster.engine.picking.places import TERMS, Score, Term
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray
from yardmaster.names import Registry, unknown

TERM_MEANING: dict[Term, str] = {
    Term.WAITING: "mean wait of the jobs, as it accrues (time)",
    Term.IN_SYSTEM: "mean completion time of the jobs, as it accrues (time)",
    Term.BOUNDED_SLOWDOWN: "mean bounded slowdown beyond 1, as it accrues",
    Term.SLOWDOWN: "mean slowdown beyond 1, as it accrues",
    Term.BUSY: "share of the GPUs in use, integrated (time)",
    Term.IDLE: "share of the GPUs not in use, integrated (time)",
    Term.FINISHED: "share of the jobs that finished",
    Term.LATE: "share of the jobs that finished after their deadline",
    Term.ENERGY: "energy of the GPUs, kWh",
    Term.WORK_DONE: "share of all GPU-seconds that finished jobs held",
    Term.WORK_LEFT: "share of all GPU-seconds submitted and not done, integrated, by the horizon",
    Term.HELD_BACK: "share of all GPU-seconds submitted and not done, at a no-op while a job fits",
    Term.OUTCOME: "at the end: time left to the horizon by the horizon, or minus the work not done",
    Term.PRIORITY_DONE: "priorities of the jobs that finished",
    Term.QUEUE_WAIT: "time waited so far by all waiting jobs, integrated (time squared)",
    Term.CROWD: "jobs waiting or running, integrated (time)",
    Term.INVALID: "actions that made no sense",
    Term.FAIRNESS: "at the end: Jain index over tenants' mean bounded slowdown",
    Term.RELATIVE: "at the end: (baseline − ours) / max(baseline, ours, 1) of the score",
}

_POWERS_OF_TIME = {
    Term.WAITING: 1,
    Term.IN_SYSTEM: 1,
    Term.BUSY: 1,
    Term.IDLE: 1,
    Term.CROWD: 1,
    Term.QUEUE_WAIT: 2,
}
"""Terms measured in seconds, or in seconds squared."""


@dataclass(frozen=True, slots=True)
class Reward:
    """Weights of terms by name; the reward of a step is the weighted sum of what it earned."""

    meaning: str
    weights: Mapping[str, float] = field(default_factory=dict)
    unit_s: float | None = None
    """Seconds that terms in time are measured in; None: the task's time unit."""
    score: str = "bounded_slowdown"
    """What `relative` compares with the baseline scheduler."""

    def __post_init__(self) -> None:
        known = [term.name.lower() for term in Term]
        for name, weight in self.weights.items():
            if name not in known:
                raise unknown("term of a reward", name, known)
            if not isinstance(weight, int | float) or not np.isfinite(weight):
                raise YardmasterError(f"The weight of {name} must be a number, got {weight}.")
        scores = [score.name.lower() for score in Score]
        if self.score not in scores:
            raise unknown("score", self.score, scores)

    @property
    def needs_baseline(self) -> bool:
        """Whether a baseline scheduler must run on every episode."""
        return self.weights.get("relative", 0.0) != 0.0

    def row(self, time_unit_s: float) -> FloatArray:
        """Return the weights by `Term`, for terms in seconds."""
        unit = time_unit_s if self.unit_s is None else self.unit_s
        row = np.zeros(TERMS)
        for name, weight in self.weights.items():
            term = Term[name.upper()]
            row[term] = weight / unit ** _POWERS_OF_TIME.get(term, 0)
        return row


REWARDS: Registry[Reward] = Registry("reward")


def _add(name: str, meaning: str, score: str | None = None, **weights: float) -> None:
    REWARDS.add(name, Reward(meaning, weights, score=score or "bounded_slowdown"))


_add("wait", "minus the mean wait: what decisions control, and nothing else", waiting=-1.0)
_add("jct", "minus the mean completion time (integral of jobs in the system)", in_system=-1.0)
_add("bounded_slowdown", "minus the mean bounded slowdown", bounded_slowdown=-1.0)
_add("slowdown", "minus the mean slowdown", slowdown=-1.0)
_add("utilisation", "minus the time GPUs stand idle", idle=-1.0)
for _score in Score:
    _add(
        f"relative_{_score.name.lower()}",
        f"at the end only: gain in {_score.name.lower()} over the baseline on the same jobs",
        score=_score.name.lower(),
        relative=1.0,
    )
_add(
    "gpu_optimizer",
    "gpu-optimizer: work done, minus work left over time, minus holding back, and the outcome",
    work_done=1.0,
    work_left=-1.0,
    held_back=-0.05,
    outcome=1.0,
)
REWARDS.add(
    "drl_scheduler",
    Reward(
        "DRL_Scheduler: priorities done, minus waiting, plus GPUs in use, minus jobs in the system",
        {"priority_done": 50.0, "queue_wait": -5e-5, "busy": 1.5, "crowd": -0.3, "invalid": -0.1},
        unit_s=1.0,
    ),
)
_add(
    "balanced",
    "throughput, wait, fairness, utilisation, energy and deadlines together",
    finished=1.0,
    waiting=-1.0,
    fairness=0.5,
    idle=-0.05,
    energy=-0.001,
    late=-1.0,
)


def reward_of(choice: str | Mapping[str, float] | Reward) -> Reward:
    """Return a named reward, or one with weights of your own.

    Raises:
        UnknownNameError: if there is no such reward or term.
    """
    if isinstance(choice, Reward):
        return choice
    if isinstance(choice, str):
        return REWARDS[choice]
    return Reward("weights of your own", dict(choice))
