"""What training must know of tasks in which schedulers are chosen; see `kinds`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.evaluation import (
    CHOOSERS_HIGHER_IS_BETTER,
    Choose,
    Scores,
)
from yardmaster.experiments.training.placement import (
    CHOOSE_ON_GPU,
    in_whole_tiles,
    tell_apart,
    why_not_on_gpu,
)
from yardmaster.experiments.training.tables import kinds_of
from yardmaster.names import unknown

if TYPE_CHECKING:
    from yardmaster.envs.choosing.episodes import ChoosingEpisodes
    from yardmaster.envs.choosing.task import ChoosingTask
    from yardmaster.model.workload import FloatArray, IntArray

EVAL_EPISODES = 96
"""Validation episodes: of the largest family, two of every regime."""


class Choosing:
    """Tasks in which schedulers are chosen."""

    higher_is_better: Mapping[str, bool] = CHOOSERS_HIGHER_IS_BETTER
    default_learner = "meta-dqn"
    eval_episodes = EVAL_EPISODES
    threads: int | None = 1  # the networks are small: more threads wait for each other

    def tasks(self) -> Mapping[str, Any]:
        """Return the ready tasks by name."""
        from yardmaster.envs.choosing.task import CHOOSING_TASKS

        return CHOOSING_TASKS

    def setting_kinds(self) -> dict[str, Any]:
        """Return the kinds of a task's settings; those of its sight stand beside them."""
        from yardmaster.engine.choosing.sight import ChoiceSight
        from yardmaster.envs.choosing.task import ChoosingTask

        own = kinds_of(ChoosingTask)
        del own["sight"]
        return own | kinds_of(ChoiceSight)

    def learner_settings(self, learner: str, preset: str) -> Any:
        """Return the settings of a preset, with a network that can choose schedulers."""
        from yardmaster.agents.learners import LEARNERS
        from yardmaster.agents.networks.settings import FOR_CHOOSING

        settings = LEARNERS[learner].preset(preset)
        network = settings.network
        if network.arch not in FOR_CHOOSING:
            usual = LEARNERS[self.default_learner].preset("default").network
            network = dataclasses.replace(usual, head_hidden=network.head_hidden)
        # There is no no-op: the bias would be the last scheduler's.
        network = dataclasses.replace(network, noop_bias=0.0)
        return dataclasses.replace(settings, network=network)

    def refuse(self, config: Any) -> None:
        """Complain about what a chooser cannot be taught, or a chooser's file cannot hold."""
        if config.train.warm_start is not None:
            raise YardmasterError(
                "--warm-start imitates a heuristic that picks jobs, and a chooser picks none: every"
                " scheduler of its menu is one of its actions. Leave it out."
            )
        if getattr(config.settings, "atoms", 1) > 1:
            raise YardmasterError(
                f"{config.learner} learns distributions of values, which a chooser's file cannot"
                " hold; use meta-dqn, d3qn, ppo or sac."
            )

    def laid_out(self, task: Any, announce: Callable[[str], None] | None) -> Any:
        """Return the task: nothing must be worked out in advance."""
        del announce
        return task

    def environment(self, batch: Any) -> str:
        """Return what tells versions of the environments apart, on the CPU and on a GPU."""
        from yardmaster.agents.tensors import ResidentBatch
        from yardmaster.engine.choosing.compilation import cache_folder
        from yardmaster.engine.gpu.version import version

        name = cache_folder().parent.name
        return f"{name} gpu {version()}" if isinstance(batch, ResidentBatch) else name

    def open_batch(
        self,
        task: ChoosingTask,
        *,
        size: int,
        seed: int,
        threads: int,
        device: str,
        learner: str,
        announce: Callable[[str], None] | None,
    ) -> Any:
        """Open environments for training: on the GPU if the network is there and that can be.

        Raises:
            YardmasterError: if torch has no such device.
        """
        from yardmaster.envs.choosing.batch import open_choosing

        if device == "cuda":
            from yardmaster.agents.tensors import open_resident, torch_device

            torch_device(device)
            reason = why_not_on_gpu(learner, CHOOSE_ON_GPU)
            if reason is None:
                whole = in_whole_tiles(size, announce)
                return open_resident(task, size=whole, seed=seed, announce=announce)
            tell_apart(reason, announce)
        return open_choosing(
            task, size=size, split="train", seed=seed, threads=threads, announce=announce
        )

    def opponents(self, task: ChoosingTask) -> tuple[str, ...]:
        """Return the schedulers of the menu, each of which is kept all the time."""
        return task.sight.menu

    def validation(self, task: ChoosingTask, *, episodes: int, size: int) -> ChoosingValidation:
        """Open the validation episodes."""
        return ChoosingValidation(task, episodes, size)

    def write_policy(self, path: Path, network: Any, batch: Any, about: dict[str, Any]) -> None:
        """Write a network as a chooser, for `meta:PATH`."""
        from yardmaster.agents.export import chooser_of
        from yardmaster.schedulers.meta.chooser_file import write_chooser

        episodes: ChoosingEpisodes = batch.episodes
        sight = batch.task.sight  # not the configuration's: the time unit of this one is measured
        if sight.labels:
            about = about | {"labels": labels_by_regime(episodes)}
        write_chooser(path, chooser_of(network, sight, about))


def labels_by_regime(episodes: ChoosingEpisodes) -> dict[str, list[float]]:
    """Return what a chooser is told of each regime, by the regime's name."""
    from yardmaster.engine.choosing import places as at

    count = episodes.task.sight.labels
    return {
        regime.name: episodes.prepared(place).facts[at.LABEL_AT : at.LABEL_AT + count].tolist()
        for place, regime in enumerate(episodes.regimes)
    }


class ChoosingValidation:
    """The validation episodes of a task in which schedulers are chosen."""

    parts: Mapping[str, slice] = {}

    def __init__(self, task: ChoosingTask, episodes: int, size: int) -> None:
        from yardmaster.envs.choosing.episodes import ChoosingEpisodes

        self._episodes, self._size = episodes, size
        self._prepared = ChoosingEpisodes(task, "val")

    def player(self, name: str) -> Choose:
        """Return a scheduler of the menu, kept all the time."""
        menu = self._prepared.task.sight.menu
        if name not in menu:
            raise unknown("scheduler of the menu", name, menu)
        place = menu.index(name)
        return lambda batch: np.full(batch.size, place, dtype=np.int64)

    def play(self, choose: Choose) -> Scores:
        """Let somebody play all of them."""
        return play_choosing(self._prepared, choose, episodes=self._episodes, size=self._size)


def play_choosing(
    prepared: ChoosingEpisodes, choose: Choose, *, episodes: int, size: int = 64
) -> dict[str, FloatArray]:
    """Play the first episodes of a set to their end, whatever environment each is played in.

    Args:
        prepared: the set.
        choose: the player.
        episodes: how many, from number 0 on.
        size: environments at a time.
    """
    from yardmaster.envs.choosing.batch import SCORES, ChoosingBatch

    line = iter(range(episodes))
    playing = np.full(min(size, episodes), -1, dtype=np.int64)

    def draw(rows: IntArray) -> IntArray:
        for row in rows.tolist():
            playing[row] = next(line, -1)
        return np.maximum(playing[rows], 0)

    batch = ChoosingBatch(prepared, len(playing), draw=draw)
    batch.begin(np.arange(len(playing)))
    found = {name: np.zeros(episodes) for name in ("returns", *SCORES)}
    left = episodes
    while left > 0:
        before = playing.copy()
        batch.step(choose(batch))
        for row in np.flatnonzero(batch.terminated | batch.truncated).tolist():
            number = int(before[row])
            if number < 0:  # nobody waits for it: the line is at its end
                continue
            found["returns"][number] = batch.episode_returns[row]
            for name in SCORES:
                found[name][number] = batch.scores[name][row]
            left -= 1
    return {name: found[name] for name in CHOOSERS_HIGHER_IS_BETTER}
