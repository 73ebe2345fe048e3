"""What training must know of many scenes at once; see `kinds`.

```toml
[[scenes]]                         # `envs.scene_mix.SceneEntry`; what is common stands in [task]
name = "venus"
workload = "venus.parquet"         # a file, a preset or a recipe
cluster = ["16x V100:8", "24x V100:8"]
load = [0.8, 1.3]
share = 2.0
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.experiments.training.evaluation import (
    HIGHER_IS_BETTER,
    Choose,
    Scores,
    default_opponents,
)
from yardmaster.experiments.training.picking import Picking
from yardmaster.experiments.training.placement import (
    in_whole_tiles,
    tell_apart,
    why_not_on_gpu,
)
from yardmaster.experiments.training.tables import checked, kinds_of

if TYPE_CHECKING:
    from yardmaster.envs.episodes import Episodes
    from yardmaster.envs.scene_mix import SceneEntry, SceneMix
    from yardmaster.envs.scene_parts import LaidOutScenes
    from yardmaster.envs.task import Task

EVAL_EPISODES = 8
"""Validation episodes of each scene."""
SAID_BY_SCENES = ("workload", "cluster", "load")
"""Settings of a task that every scene has of its own."""


class Scenes(Picking):
    """Many scenes in which jobs are picked."""

    eval_episodes = EVAL_EPISODES
    threads: int | None = 1  # environments of scenes step on one: more would wait for each other

    def setting_kinds(self) -> dict[str, Any]:
        """Return the kinds of what all scenes have in common."""
        from yardmaster.engine.picking.sight import Sight
        from yardmaster.envs.scene_mix import SceneMix

        own = kinds_of(SceneMix)
        return {name: own[name] for name in ("jobs", "reward")} | kinds_of(Sight)

    def laid_out(self, task: SceneMix, announce: Callable[[str], None] | None) -> LaidOutScenes:
        """Read the jobs of all scenes, and let heuristics say what is usual in each.

        Raises:
            YardmasterError: naming the scene that has too few jobs to train or to validate on.
        """
        from yardmaster.envs.scene_parts import Logs, lay_out

        logs = Logs(task.jobs)
        logs.refuse_short(task.places, "train")
        logs.refuse_short(task.places, "val")
        try:
            logs.refuse_short(task.places, "report")
        except YardmasterError as error:  # can be trained all the same, and judged elsewhere
            if announce is not None:
                announce(f"Warning: {error} As it is, `evaluate` needs --splits val.")
        return lay_out(task, announce, logs)

    def open_batch(
        self,
        task: LaidOutScenes,  # type: ignore[override]  # what `laid_out` gave
        *,
        size: int,
        seed: int,
        threads: int,
        device: str,
        learner: str,
        announce: Callable[[str], None] | None,
    ) -> Any:
        """Open environments of all scenes: on the GPU if the network is there and that can be.

        Raises:
            YardmasterError: if torch has no such device, or there are more scenes than
                environments.
        """
        from yardmaster.agents.tensors import open_scenes, torch_device
        from yardmaster.envs.usual import quiet_scenes

        place = "cpu"
        if device == "cuda":
            torch_device(device)
            reason = why_not_on_gpu(learner)
            if reason is None:
                place, size = "cuda", in_whole_tiles(size, announce)
            else:
                tell_apart(reason, announce)
        batch = open_scenes(
            task.rows, task.task, size,
            seed=seed, device=place, threads=threads, announce=announce,
        )  # fmt: skip
        batch.reset(seed)
        if announce is not None:
            for name in quiet_scenes(task.task):
                announce(
                    f"Scene {name!r}: hardly anybody waits under the best of the heuristics, so"
                    " there is little to learn; give it more load or a smaller cluster."
                )
        return batch

    def opponents(self, task: LaidOutScenes) -> tuple[str, ...]:  # type: ignore[override]
        """Return the well-known heuristics that can play the scenes."""
        return default_opponents(task)

    def validation(  # type: ignore[override]
        self,
        task: LaidOutScenes,  # type: ignore[override]
        *,
        episodes: int,
        size: int,
    ) -> SceneValidation:
        """Open the validation episodes, so many of each scene."""
        return SceneValidation(task, episodes, size)


class SceneValidation:
    """The validation episodes of scenes, those of one behind those of another."""

    def __init__(self, scenes: LaidOutScenes, episodes: int, size: int) -> None:
        self._scenes, self._episodes, self._size = scenes, episodes, size
        self._held_out = {place.name: scenes.held_out(place, "val") for place in scenes.mix.places}
        self.parts: Mapping[str, slice] = {
            name: slice(number * episodes, (number + 1) * episodes)
            for number, name in enumerate(self._held_out)
        }

    def player(self, name: str) -> Choose:
        """Return a heuristic."""
        from yardmaster.envs.experts import expert

        return expert(name, self._scenes)

    def play(self, choose: Choose) -> Scores:
        """Let somebody play all of them."""
        from yardmaster.envs.playing import play

        found = [
            play(
                one.task,
                choose,
                split="val",
                episodes=self._episodes,
                size=self._size,
                prepared=cast("Episodes", one),  # as good as those
            )
            for one in self._held_out.values()
        ]
        return {
            name: np.concatenate([getattr(one, name) for one in found]).astype(np.float64)
            for name in HIGHER_IS_BETTER
        }


def mix_from(
    task: Task, task_preset: str, tables: Sequence[Mapping[str, Any]], where: str
) -> SceneMix:
    """Return the scenes of a file, seen and rewarded as a ready task is.

    Raises:
        InvalidConfigError: with every mistake, each naming its entry.
    """
    from yardmaster.envs.scene_mix import SceneMix

    mistakes: list[str] = []
    entries = [
        entry
        for number, table in enumerate(tables, 1)
        if (entry := _entry(table, _called(number, table), mistakes)) is not None
    ]
    if not tables:
        mistakes.append("scenes: there must be one at least")
    if mistakes:
        raise InvalidConfigError(where, mistakes)
    try:
        return SceneMix.of(task, entries)
    except YardmasterError as error:
        raise InvalidConfigError(where, [f"scenes with the task {task_preset}: {error}"]) from None


def _called(number: int, table: Mapping[str, Any]) -> str:
    """Return what an entry is called in messages: its number, and its name if it has one."""
    name = table.get("name")
    return f"scene {number} ({name})" if isinstance(name, str) else f"scene {number}"


def _entry(table: Mapping[str, Any], path: str, mistakes: list[str]) -> SceneEntry | None:
    from yardmaster.envs.scene_mix import SceneEntry

    found: list[str] = []
    if "jobs" in table:
        found.append(f"{path}.jobs: is the same in all scenes; say it under [task]")
    rest = {key: value for key, value in table.items() if key != "jobs"}
    values = checked(rest, kinds_of(SceneEntry), path, found)
    found += [f"{path}.{key}: is missing" for key in ("workload", "cluster") if key not in table]
    entry = None
    if not found:
        try:
            entry = SceneEntry(**values)
        except YardmasterError as error:
            found.append(f"{path}: {error}")
    mistakes += found
    return entry


def refuse_missing(mix: SceneMix, where: str) -> None:
    """Complain, before anything is read, about files and clusters that are not there.

    Raises:
        InvalidConfigError: with every mistake, each naming its entry.
    """
    mistakes = []
    for number, entry in enumerate(mix.entries, 1):
        path = _called(number, entry.to_table())
        for cluster in entry.clusters:
            mistakes += _refused(f"{path}.cluster", _load_cluster, cluster)
        mistakes += _refused(f"{path}.workload", _find, entry.workload)
    if mistakes:
        raise InvalidConfigError(where, mistakes)


def _refused(path: str, look: Callable[[str], Any], name: str) -> list[str]:
    try:
        look(name)
    except InvalidConfigError as error:  # of another file, with a mistake a line
        return [f"{path}: {error.where}: {mistake}" for mistake in error.mistakes]
    except YardmasterError as error:
        return [f"{path}: {error}"]
    return []


def _load_cluster(name: str) -> None:
    from yardmaster.model.catalogue import load_cluster

    load_cluster(name)


def _find(workload: str) -> None:
    """Complain about jobs that are neither generated nor in a file."""
    from pathlib import Path

    from yardmaster.workloads.files import missing
    from yardmaster.workloads.recipes.document import find_recipe
    from yardmaster.workloads.sources import is_generated, looks_like_file

    if is_generated(workload) or not looks_like_file(workload):
        find_recipe(workload)
    elif not Path(workload).exists():
        raise missing(Path(workload))
