"""The kinds of tasks that can be trained on, and what training must know of each.

Picking jobs, in one scene or in many, and choosing schedulers differ in their environments, their
opponents, their metrics and the files that come of them. Everything else about a training run is
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from yardmaster.experiments.training.choosing import Choosing
from yardmaster.experiments.training.evaluation import Choose, Scores
from yardmaster.experiments.training.picking import Picking
from yardmaster.experiments.training.scenes import Scenes
from yardmaster.names import unknown


class Validation(Protocol):
    """The validation episodes of a task, always the same."""

    @property
    def parts(self) -> Mapping[str, slice]:
        """The episodes of each scene; empty where there is but one workload."""

    def player(self, name: str) -> Choose:
        """Return an opponent.

        Raises:
            YardmasterError: if it is unknown or cannot play this task.
        """

    def play(self, choose: Choose) -> Scores:
        """Let somebody play all of them."""


class TaskKind(Protocol):
    """What training must know of a kind of task."""

    @property
    def higher_is_better(self) -> Mapping[str, bool]:
        """The metrics of an episode, and which way is better."""

    @property
    def default_learner(self) -> str:
        """Who learns where nobody is named."""

    @property
    def eval_episodes(self) -> int:
        """Validation episodes where nobody says how many."""

    @property
    def threads(self) -> int | None:
        """Threads where nobody says how many; None: one per core."""

    def tasks(self) -> Mapping[str, Any]:
        """Return the ready tasks by name."""

    def setting_kinds(self) -> dict[str, Any]:
        """Return the kind of every setting a task has in a table, by name."""

    def learner_settings(self, learner: str, preset: str) -> Any:
        """Return the settings of a learner before any is changed.

        Raises:
            UnknownNameError: if there is no such learner or preset.
        """

    def refuse(self, config: Any) -> None:
        """Complain, before anything is opened, about what cannot be trained.

        Raises:
            YardmasterError: saying what else to do.
        """

    def laid_out(self, task: Any, announce: Callable[[str], None] | None) -> Any:
        """Return a task with what must be worked out once: what the methods below are given."""

    def environment(self, batch: Any) -> str:
        """Return what tells versions of the environments apart."""

    def open_batch(
        self,
        task: Any,
        *,
        size: int,
        seed: int,
        threads: int,
        device: str,
        learner: str,
        announce: Callable[[str], None] | None,
    ) -> Any:
        """Open environments for training, already in their first episodes.

        With the device `cuda` they are on the GPU where that is possible.
        """

    def opponents(self, task: Any) -> tuple[str, ...]:
        """Return who is played against where nobody is named."""

    def validation(self, task: Any, *, episodes: int, size: int) -> Validation:
        """Open the validation episodes, so many of them at once."""

    def write_policy(self, path: Path, network: Any, batch: Any, about: dict[str, Any]) -> None:
        """Write a network as a file that schedulers can use."""


KINDS: tuple[TaskKind, ...] = (Picking(), Choosing())
SCENES: TaskKind = Scenes()
"""Many scenes at once, for any task in which jobs are picked."""


def kind_named(task: str) -> TaskKind:
    """Return the kind of a ready task.

    Raises:
        UnknownNameError: if there is no such task.
    """
    for kind in KINDS:
        if task in kind.tasks():
            return kind
    raise unknown("task", task, [name for kind in KINDS for name in kind.tasks()])


def kind_of(task: Any) -> TaskKind:
    """Return the kind of a task."""
    from yardmaster.envs.choosing.task import ChoosingTask
    from yardmaster.envs.scene_mix import SceneMix

    if isinstance(task, SceneMix):
        return SCENES
    return KINDS[1] if isinstance(task, ChoosingTask) else KINDS[0]
