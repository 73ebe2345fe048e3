"""`yardmaster/PickJob-v0` as a vector environment: thousands stepped in one compiled call."""

from __future__ import annotations

from typing import Any

from yardmaster.envs.episodes import Split
from yardmaster.envs.faces import ManyEnvs, Shown
from yardmaster.envs.numbered import NumberedBatch, opened
from yardmaster.envs.pick_job import shown
from yardmaster.envs.task import Task


class PickJobVectorEnv(ManyEnvs):
    """Many `PickJobEnv` in step; see there for what they are, and `ManyEnvs` for how it is told."""

    batch: NumberedBatch

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: str | Task = "default",
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
            task: a name of `TASKS`, or a task.
            split: which of its sets of episodes: train, val or report.
            observation: flat or dict.
            compiled: False runs the same functions as plain Python.
            threads: threads to step them on; each takes at least 32 environments.
            copy: whether each step returns arrays of its own.
            render_mode: None or ansi.
            **changes: settings of the task to change, by name; see `Task` and `Sight`.

        Raises:
            UnknownNameError: if a name or a setting is unknown.
            YardmasterError: if there is no environment at all.
        """

        def show() -> Shown:
            batch = opened(task, changes, split, size=num_envs, threads=threads, compiled=compiled)
            return shown(batch, observation)

        super().__init__(num_envs, show, copy=copy, render_mode=render_mode)
