"""`yardmaster/PickScheduler-v0` as a vector environment: many stepped in one compiled call."""

from __future__ import annotations

from typing import Any

from yardmaster.envs.choosing.numbered import NumberedChoosing, opened_choosing
from yardmaster.envs.choosing.pick_scheduler import shown
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Split
from yardmaster.envs.faces import ManyEnvs, Shown


class PickSchedulerVectorEnv(ManyEnvs):
    """Many `PickSchedulerEnv` in step; see there for what they are, and `ManyEnvs` for the rest."""

    batch: NumberedChoosing

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str | ChoosingTask = "regimes",
        split: Split = "train",
        observation: str = "flat",
        compiled: bool = True,
        threads: int = 1,
        copy: bool = True,
        render_mode: str | None = None,
        **changes: Any,
    ) -> None:
        """Open the environments.

        Args:
            num_envs: how many.
            task: a name of `CHOOSING_TASKS`, or a task.
            split: which of its sets of episodes: train, val or report.
            observation: flat or dict.
            compiled: False runs the same functions as plain Python.
            threads: threads to step them on; each takes at least 32 environments.
            copy: whether each step returns arrays of its own.
            render_mode: None or ansi.
            **changes: settings of the task to change, by name; see `ChoosingTask` and
                `ChoiceSight`.

        Raises:
            UnknownNameError: if a name or a setting is unknown.
            YardmasterError: if there is no environment at all.
        """

        def show() -> Shown:
            batch = opened_choosing(
                task, changes, split, size=num_envs, threads=threads, compiled=compiled
            )
            return shown(batch, observation)

        super().__init__(num_envs, show, copy=copy, render_mode=render_mode)
