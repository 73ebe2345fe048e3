"""How good a policy is: the validation episodes, played by it and by the heuristics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yardmaster.errors import YardmasterError
from yardmaster.metrics.statistics import Interval

if TYPE_CHECKING:
    from yardmaster.envs.experts import Seen

Choose = Callable[[Any], npt.NDArray[np.int64]]
"""Batch → the action of each environment."""
Scores = Mapping[str, npt.NDArray[np.float64]]
"""By name of the metric, one number per episode."""

HIGHER_IS_BETTER: Mapping[str, bool] = {
    "returns": True,
    "jct_s": False,
    "wait_s": False,
    "bounded_slowdown": False,
    "slowdown": False,
    "utilisation": True,
    "makespan_s": False,
    "unfinished": False,
}
"""The metrics of an episode in which jobs are picked, and which way is better."""

CHOOSERS_HIGHER_IS_BETTER: Mapping[str, bool] = {
    "returns": True,
    "jct_gap": False,
    "p95_gap": False,
    "mixed_gap": False,
    "jct_s": False,
    "p95_jct_s": False,
    "wait_s": False,
    "bounded_slowdown": False,
    "late": False,
    "unfinished": False,
}
"""The same of an episode in which schedulers are chosen; gaps are to the best of the menu."""

ANY_HIGHER_IS_BETTER: Mapping[str, bool] = {**HIGHER_IS_BETTER, **CHOOSERS_HIGHER_IS_BETTER}
"""The metrics of episodes of any kind."""

WELL_KNOWN = ("fifo", "sjf", "sjf+easy", "fifo+easy", "largest-first")
"""Heuristics to compare with where nobody names any."""


@dataclass(frozen=True, slots=True)
class SceneScore:
    """How the greedy policy did on the validation episodes of one scene."""

    score: float
    """The metric's mean."""
    differences: Mapping[str, Interval]
    """For each heuristic, how the policy's metric differs from its, paired by episode."""

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        gaps = {name: list(one) for name, one in self.differences.items()}
        return {"score": self.score, "differences": gaps}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How the greedy policy did on the validation episodes at one moment of training."""

    updates: int
    steps: int
    """Environment steps trained so far."""
    seconds: float
    """Spent on training so far."""
    metric: str
    """What policies are judged by."""
    means: Mapping[str, float]
    """Every metric, over the episodes."""
    differences: Mapping[str, Interval]
    """For each heuristic, how the policy's metric differs from its, paired by episode."""
    is_best: bool
    """Whether no earlier policy of the run did as well."""
    scenes: Mapping[str, SceneScore] = field(default_factory=dict)
    """The same of each scene, where there are several."""

    @property
    def score(self) -> float:
        """The metric's mean."""
        return self.means[self.metric]

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        scenes = {name: one.record() for name, one in self.scenes.items()}
        return {
            "updates": self.updates,
            "steps": self.steps,
            "seconds": self.seconds,
            "metric": self.metric,
            "is_best": self.is_best,
            "means": dict(self.means),
            "differences": {name: list(one) for name, one in self.differences.items()},
        } | ({"scenes": scenes} if scenes else {})


def evaluation_of(record: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation that a record was written of."""

    def number(value: float | None) -> float:
        return math.nan if value is None else value

    def gaps(found: Mapping[str, Any]) -> dict[str, Interval]:
        return {name: Interval(*map(number, one)) for name, one in found["differences"].items()}

    return Evaluation(
        updates=record["updates"],
        steps=record["steps"],
        seconds=record["seconds"],
        metric=record["metric"],
        is_best=record["is_best"],
        means={name: number(value) for name, value in record["means"].items()},
        differences=gaps(record),
        scenes={
            name: SceneScore(number(one["score"]), gaps(one))
            for name, one in record.get("scenes", {}).items()
        },
    )


def default_opponents(task: Seen) -> tuple[str, ...]:
    """Return the well-known heuristics that can play a task."""
    from yardmaster.envs.experts import expert

    found = []
    for name in WELL_KNOWN:
        with suppress(YardmasterError):
            expert(name, task)
            found.append(name)
    return tuple(found)
