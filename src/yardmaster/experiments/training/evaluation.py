"""How good a policy is: the validation episodes, played by it and by the heuristics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yardmaster.errors import YardmasterError
from yardmaster.metrics.statistics import Interval, paired_difference

if TYPE_CHECKING:
    from yardmaster.envs.task import Task

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
"""The metrics of an episode, and which way is better."""

WELL_KNOWN = ("fifo", "sjf", "sjf+easy", "fifo+easy", "largest-first")
"""Heuristics to compare with where nobody names any."""


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

    @property
    def score(self) -> float:
        """The metric's mean."""
        return self.means[self.metric]

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "updates": self.updates,
            "steps": self.steps,
            "seconds": self.seconds,
            "metric": self.metric,
            "is_best": self.is_best,
            "means": dict(self.means),
            "differences": {name: list(one) for name, one in self.differences.items()},
        }


def evaluation_of(record: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation that a record was written of."""

    def number(value: float | None) -> float:
        return math.nan if value is None else value

    return Evaluation(
        updates=record["updates"],
        steps=record["steps"],
        seconds=record["seconds"],
        metric=record["metric"],
        is_best=record["is_best"],
        means={name: number(value) for name, value in record["means"].items()},
        differences={
            name: Interval(*map(number, one)) for name, one in record["differences"].items()
        },
    )


def default_opponents(task: Task) -> tuple[str, ...]:
    """Return the well-known heuristics that can play a task."""
    from yardmaster.envs.experts import expert

    found = []
    for name in WELL_KNOWN:
        with suppress(YardmasterError):
            expert(name, task)
            found.append(name)
    return tuple(found)


class Referee:
    """Plays the validation episodes; the heuristics' results are kept to pair policies with."""

    def __init__(
        self, task: Task, *, episodes: int, size: int, metric: str, against: Sequence[str]
    ) -> None:
        """Play the heuristics.

        Args:
            task: what is scheduled where.
            episodes: how many of the validation split are played.
            size: how many of them at once.
            metric: what policies are judged by.
            against: heuristics to compare with.

        Raises:
            YardmasterError: if a heuristic is unknown or cannot play this task.
        """
        from yardmaster.envs.episodes import Episodes
        from yardmaster.envs.experts import expert

        self.task = task
        self.episodes = episodes
        self.size = size
        self.metric = metric
        players = {name: expert(name, task) for name in against}
        self._prepared = Episodes(task, "val")
        self.heuristics: dict[str, Scores] = {
            name: self.play(choose) for name, choose in players.items()
        }

    def play(self, choose: Choose) -> Scores:
        """Play all episodes."""
        from yardmaster.envs.playing import play

        played = play(
            self.task,
            choose,
            split="val",
            episodes=self.episodes,
            size=self.size,
            prepared=self._prepared,
        )
        return {
            name: np.asarray(getattr(played, name), dtype=np.float64) for name in HIGHER_IS_BETTER
        }

    def evaluate(
        self, choose: Choose, *, updates: int, steps: int, seconds: float, best: float | None
    ) -> Evaluation:
        """Play a policy and compare it with the heuristics, and with the best score so far."""
        scores = self.play(choose)
        means = {name: float(values.mean()) for name, values in scores.items()}
        differences = {
            name: paired_difference(scores[self.metric], other[self.metric]).absolute
            for name, other in self.heuristics.items()
        }
        return Evaluation(
            updates=updates,
            steps=steps,
            seconds=seconds,
            metric=self.metric,
            means=means,
            differences=differences,
            is_best=self.is_better(means[self.metric], best),
        )

    def is_better(self, score: float, best: float | None) -> bool:
        """Whether a score beats the best so far; NaN beats nothing."""
        if math.isnan(score):
            return False
        if best is None:
            return True
        return score > best if HIGHER_IS_BETTER[self.metric] else score < best

    def heuristic_means(self) -> dict[str, dict[str, float]]:
        """Return every heuristic's mean of every metric."""
        return {
            name: {metric: float(values.mean()) for metric, values in scores.items()}
            for name, scores in self.heuristics.items()
        }
