"""What a training will cost, from a few moments of it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from yardmaster.experiments.training.config import TrainConfig

if TYPE_CHECKING:
    from yardmaster.envs.task import Task

SAMPLED_EPISODES = 48
"""Episodes that are laid out, and played, to see how long it takes: some of every regime."""
SAMPLED_UPDATES = 3
START_S = 5.0
"""What a process takes to load torch and the compiled environment."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the parts of a training take, seconds."""

    episode_s: float
    """To lay out one episode."""
    update_s: float
    """For one update of the learner."""
    update_steps: int
    """Environment steps of an update."""
    played_s: float
    """To play one validation episode."""

    def seconds(self, config: TrainConfig, done_steps: int = 0) -> float:
        """Return how long a training takes from so many steps on, roughly."""
        steps = max(config.train.steps - done_steps, 0)
        looks = 1 + steps / config.train.eval_every
        task = cast("Task", config.task)  # or of choosing; an experiment's plan has no scenes
        laid_out = task.episodes + config.train.eval_episodes
        return (
            START_S
            + laid_out * self.episode_s
            + steps / self.update_steps * self.update_s
            + looks * config.train.eval_episodes * self.played_s
        )


def measured_cost(config: TrainConfig, announce: Callable[[str], None] | None = None) -> Cost:
    """Try a few moments of a training, and return what it takes.

    Raises:
        YardmasterError: if the configuration cannot be carried out.
    """
    from yardmaster.agents.learners import LEARNERS, greedy, use_threads

    kind, train = config.kind, config.train
    kind.refuse(config)
    use_threads(1)
    few: Any = config.task
    few = few.changed(episodes=min(few.episodes, SAMPLED_EPISODES))
    batch = kind.open_batch(
        few,
        size=train.envs,
        seed=train.seed,
        threads=1,
        device=train.device,
        learner=config.learner,
        announce=announce,
    )
    validation = kind.validation(
        few, episodes=min(train.eval_episodes, SAMPLED_EPISODES), size=train.envs
    )
    learner = LEARNERS[config.learner].build(
        batch, _learning_at_once(config.settings), train.seed, device=train.device
    )
    play = partial(validation.play, greedy(learner.network))
    # What comes first lays episodes out, and loads what the second time finds loaded.
    first_s, played_s = _taken(play), _taken(play)
    episodes = min(train.eval_episodes, SAMPLED_EPISODES)
    for _ in range(2):
        steps = int(learner.update()["steps"])
    update_s = sum(_taken(learner.update) for _ in range(SAMPLED_UPDATES)) / SAMPLED_UPDATES
    return Cost(
        episode_s=max(first_s - played_s, 0.0) / episodes,
        update_s=update_s,
        update_steps=max(steps, 1),
        played_s=played_s / episodes,
    )


def _learning_at_once(settings: Any) -> Any:
    """Return settings with which the first update learns already: that is what takes time."""
    if not hasattr(settings, "warmup_steps"):
        return settings
    return dataclasses.replace(settings, warmup_steps=settings.batch_size)


def _taken(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def whole_s(each_s: list[float], workers: int) -> float:
    """Return how long trainings take that run so many at a time, longest first."""
    ends = [0.0] * max(workers, 1)
    for one in sorted(each_s, reverse=True):
        ends.sort()
        ends[0] += one
    return max(ends) if each_s else 0.0
