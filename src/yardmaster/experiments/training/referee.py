"""Who is better on the validation episodes: a policy, or the heuristics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from yardmaster.experiments.training.evaluation import (
    Choose,
    Evaluation,
    SceneScore,
    Scores,
)
from yardmaster.metrics.statistics import paired_difference

if TYPE_CHECKING:
    from yardmaster.experiments.training.kinds import Validation


class Referee:
    """Plays the validation episodes; the heuristics' results are kept to pair policies with."""

    def __init__(
        self, validation: Validation, *, metric: str, higher_is_better: bool, against: Sequence[str]
    ) -> None:
        """Play the heuristics.

        Args:
            validation: the episodes.
            metric: what policies are judged by.
            higher_is_better: whether more of it is better.
            against: heuristics to compare with.

        Raises:
            YardmasterError: if a heuristic is unknown or cannot play these episodes.
        """
        self._validation = validation
        self.metric = metric
        self.higher_is_better = higher_is_better
        players = {name: validation.player(name) for name in against}
        self.heuristics: dict[str, Scores] = {
            name: validation.play(choose) for name, choose in players.items()
        }

    def evaluate(
        self, choose: Choose, *, updates: int, steps: int, seconds: float, best: float | None
    ) -> Evaluation:
        """Play a policy and compare it with the heuristics, and with the best score so far."""
        scores = self._validation.play(choose)
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
            scenes={
                name: self._in_scene(scores[self.metric], part)
                for name, part in self._validation.parts.items()
            },
        )

    def _in_scene(self, values: npt.NDArray[np.float64], part: slice) -> SceneScore:
        """Compare a policy with the heuristics in one scene."""
        differences = {
            name: paired_difference(values[part], other[self.metric][part]).absolute
            for name, other in self.heuristics.items()
        }
        return SceneScore(float(values[part].mean()), differences)

    def is_better(self, score: float, best: float | None) -> bool:
        """Whether a score beats the best so far; NaN beats nothing."""
        if math.isnan(score):
            return False
        if best is None:
            return True
        return score > best if self.higher_is_better else score < best

    def scene_means(self) -> dict[str, dict[str, float]]:
        """Return every heuristic's mean of the metric in each scene, where there are several."""
        return {
            scene: {
                name: float(scores[self.metric][part].mean())
                for name, scores in self.heuristics.items()
            }
            for scene, part in self._validation.parts.items()
        }

    def heuristic_means(self) -> dict[str, dict[str, float]]:
        """Return every heuristic's mean of every metric."""
        return {
            name: {metric: float(values.mean()) for metric, values in scores.items()}
            for name, scores in self.heuristics.items()
        }
