"""What training must know of tasks in which jobs are picked; see `kinds`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from yardmaster.experiments.training.evaluation import (
    HIGHER_IS_BETTER,
    Choose,
    Scores,
    default_opponents,
)
from yardmaster.experiments.training.placement import (
    in_whole_tiles,
    tell_apart,
    why_not_on_gpu,
)
from yardmaster.experiments.training.tables import kinds_of

if TYPE_CHECKING:
    from yardmaster.envs.task import Task


class Picking:
    """Tasks in which jobs are picked."""

    higher_is_better: Mapping[str, bool] = HIGHER_IS_BETTER
    default_learner = "ppo"
    eval_episodes = 32
    threads: int | None = None

    def tasks(self) -> Mapping[str, Any]:
        """Return the ready tasks by name."""
        from yardmaster.envs.task import TASKS

        return TASKS

    def setting_kinds(self) -> dict[str, Any]:
        """Return the kinds of a task's settings; those of its sight stand beside them."""
        from yardmaster.engine.picking.sight import Sight
        from yardmaster.envs.task import Task

        own = kinds_of(Task)
        del own["sight"]
        return own | kinds_of(Sight)

    def learner_settings(self, learner: str, preset: str) -> Any:
        """Return the settings of a preset."""
        from yardmaster.agents.learners import LEARNERS

        return LEARNERS[learner].preset(preset)

    def refuse(self, config: Any) -> None:
        """Complain about nothing: what does not fit shows when the learner is built."""

    def laid_out(self, task: Any, announce: Callable[[str], None] | None) -> Any:
        """Return the task: nothing must be worked out in advance."""
        del announce
        return task

    def environment(self, batch: Any) -> str:
        """Return what tells versions of the environments apart, on the CPU and on a GPU."""
        from yardmaster.agents.tensors import ResidentBatch
        from yardmaster.engine.gpu.version import version
        from yardmaster.engine.picking.compilation import cache_folder

        name = cache_folder().parent.name
        return f"{name} gpu {version()}" if isinstance(batch, ResidentBatch) else name

    def open_batch(
        self,
        task: Task,
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
        from yardmaster.agents.tensors import open_resident, torch_device
        from yardmaster.envs.batch import open_batch

        if device == "cuda":
            torch_device(device)
            reason = why_not_on_gpu(learner)
            if reason is None:
                whole = in_whole_tiles(size, announce)
                return open_resident(task, size=whole, seed=seed, announce=announce)
            tell_apart(reason, announce)
        return open_batch(
            task, size=size, split="train", seed=seed, threads=threads, announce=announce
        )

    def opponents(self, task: Task) -> tuple[str, ...]:
        """Return the well-known heuristics that can play the task."""
        return default_opponents(task)

    def validation(self, task: Task, *, episodes: int, size: int) -> PickingValidation:
        """Open the validation episodes."""
        return PickingValidation(task, episodes, size)

    def write_policy(self, path: Path, network: Any, batch: Any, about: dict[str, Any]) -> None:
        """Write a network as an order that picks jobs."""
        from yardmaster.agents.export import policy_of
        from yardmaster.schedulers.learned.policy_file import write_policy

        # Not the configuration's sight: the time unit of this one is measured.
        sight = batch.task.sight.to_table()
        write_policy(path, policy_of(network, batch.layout, sight, about))


class PickingValidation:
    """The validation episodes of a task in which jobs are picked."""

    parts: Mapping[str, slice] = {}

    def __init__(self, task: Task, episodes: int, size: int) -> None:
        from yardmaster.envs.episodes import Episodes

        self._task, self._episodes, self._size = task, episodes, size
        self._prepared = Episodes(task, "val")

    def player(self, name: str) -> Choose:
        """Return a heuristic."""
        from yardmaster.envs.experts import expert

        return expert(name, self._task)

    def play(self, choose: Choose) -> Scores:
        """Let somebody play all of them."""
        from yardmaster.envs.playing import play

        played = play(
            self._task,
            choose,
            split="val",
            episodes=self._episodes,
            size=self._size,
            prepared=self._prepared,
        )
        return {
            name: np.asarray(getattr(played, name), dtype=np.float64) for name in HIGHER_IS_BETTER
        }
