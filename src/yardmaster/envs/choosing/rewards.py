"""What choosers are rewarded for: weighted sums of terms, each relative to the episode's best.

Regimes differ a hundredfold in their completion times. So that each counts alike, a term counts by
what the best scheduler of the menu makes of the same jobs, kept from the first to the last. What
the scheduler with the highest return earns is then taken off (see `standards`): the rewards of
`jct` sum to minus the share by which the mean completion time lies above the best scheduler's, and
anything above 0 is better than every scheduler of the menu.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from yardmaster.engine.choosing.places import TERMS, Term
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray
from yardmaster.names import Registry, unknown

TERM_MEANING: dict[Term, str] = {
    Term.WAITING: "mean wait, as it accrues, by the best mean completion time",
    Term.IN_SYSTEM: "mean completion time, as it accrues, by the best",
    Term.TAIL: "mean time that jobs spend in the system while old, by 5 % of what it can be; old is"
    " from `tail[0]` to `tail[1]` times the best 95th percentile of completion times",
    Term.BOUNDED_SLOWDOWN: "mean bounded slowdown, as it accrues, by the best",
    Term.SLOWDOWN: "mean slowdown, as it accrues, by the best",
    Term.LATE: "share of the jobs that finish after their deadline, or are given up and had one",
    Term.ENERGY: "energy of the GPUs by the least",
    Term.IDLE: "time the GPUs stand idle by the shortest makespan",
    Term.SWITCH: "changes of the scheduler by jobs",
}


@dataclass(frozen=True, slots=True)
class Best:
    """What the schedulers of a menu make of an episode's jobs: of each metric the best."""

    mean_jct_s: float
    p95_jct_s: float
    mean_bounded_slowdown: float
    mean_slowdown: float
    energy_kwh: float
    makespan_s: float
    deadline_miss_rate: float


@dataclass(frozen=True, slots=True)
class ChoosingReward:
    """Weights of terms by name."""

    meaning: str
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [term.name.lower() for term in Term]
        for name, weight in self.weights.items():
            if name not in known:
                raise unknown("term of a reward", name, known)
            if not isinstance(weight, int | float) or not np.isfinite(weight):
                raise YardmasterError(f"The weight of {name} must be a number, got {weight}.")

    def row(self, best: Best, tail: tuple[float, float]) -> FloatArray:
        """Return the weights by `Term`, for an episode whose bests these are."""
        units = {
            Term.WAITING: best.mean_jct_s,
            Term.IN_SYSTEM: best.mean_jct_s,
            Term.TAIL: 0.05 * (tail[1] - tail[0]) * best.p95_jct_s,
            Term.BOUNDED_SLOWDOWN: best.mean_bounded_slowdown,
            Term.SLOWDOWN: best.mean_slowdown,
            Term.ENERGY: best.energy_kwh,
            Term.IDLE: best.makespan_s,
        }
        row = np.zeros(TERMS)
        for name, weight in self.weights.items():
            term = Term[name.upper()]
            row[term] = weight / max(units.get(term, 1.0), 1e-9)
        return row


CHOOSING_REWARDS: Registry[ChoosingReward] = Registry("reward of choosing")
for _name, _meaning, _weights in (
    ("jct", "minus the mean completion time", {"in_system": -1.0}),
    (
        "p95",
        "minus the time that jobs spend in the system while old, and a little completion time",
        {"tail": -1.0, "in_system": -0.05},
    ),
    ("bounded_slowdown", "minus the mean bounded slowdown", {"bounded_slowdown": -1.0}),
    (
        "mixed",
        "completion times, their tail, deadlines and energy together",
        {"in_system": -0.45, "tail": -0.2, "late": -0.1, "energy": -0.05},
    ),
):
    CHOOSING_REWARDS.add(_name, ChoosingReward(_meaning, _weights))


def choosing_reward_of(choice: str | Mapping[str, float]) -> ChoosingReward:
    """Return a named reward, or one with weights of your own.

    Raises:
        UnknownNameError: if there is no such reward or term.
    """
    if isinstance(choice, str):
        return CHOOSING_REWARDS[choice]
    return ChoosingReward("weights of your own", dict(choice))
