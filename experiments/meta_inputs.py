"""Situations of the meta-scheduler's studies, drawn in advance.

Drawing regimes needs more libraries than a bare machine with many cores may have; what is drawn is
plain arrays. `write_inputs` draws, `use_inputs` lets episodes be taken from the file.
"""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.rewards import choosing_reward_of
from yardmaster.envs.choosing.standards import Standards, standards
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Split
from yardmaster.schedulers.simulation import simulate


def write_inputs(path: Path, task: ChoosingTask, sets: dict[Split, int]) -> None:
    """Draw so many episodes of each set of a task and keep their jobs and machines."""
    kept: dict[str, Any] = {"episodes": {}}
    for split, count in sets.items():
        episodes = ChoosingEpisodes(task, split)
        kept["unit_s"] = episodes.task.sight.time_unit_s
        kept["regimes"] = episodes.regimes
        for number in range(count):
            kept["episodes"][split, number] = episodes.situation(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    _beside(path).unlink(missing_ok=True)  # what was found of other episodes
    with gzip.open(path, "wb", compresslevel=6) as file:
        pickle.dump(kept, file)


class KeptEpisodes(ChoosingEpisodes):
    """Episodes whose jobs and machines come from a file of `write_inputs`."""

    def __init__(self, task: ChoosingTask, split: Split, kept: dict[str, Any]) -> None:
        self._kept = kept
        super().__init__(task.changed(time_unit_s=kept["unit_s"]), split, regimes=kept["regimes"])

    def standards(self, number: int) -> Standards:
        """Return what an episode is measured by: as it was found before, or found now."""
        found = self._kept.get("standards", {}).get((standing(self.task), self.split, number))
        return super().standards(number) if found is None else found

    def situation(self, number: int) -> Any:
        """Return the jobs and the machines of an episode."""
        return self._kept["episodes"][self.split, number]


def standing(task: ChoosingTask) -> str:
    """Return what the standards of a task's episodes depend on, beside their jobs."""
    return repr((task.sight.menu, task.reward, task.tail))


def write_standards(path: Path, tasks: Sequence[ChoosingTask]) -> None:
    """Find what every episode of a file is measured by, for each of some tasks, and keep it."""
    kept = read_inputs(path)
    found: dict[tuple[str, str, int], Standards] = {}
    for split, number in kept["episodes"]:
        jobs, machines = kept["episodes"][split, number]
        schedules = [
            simulate(jobs, machines, member, seed=number, compile_core="always")
            for member in tasks[0].sight.menu
        ]
        for task in tasks:
            reward = choosing_reward_of(task.reward)
            found[standing(task), split, number] = standards(schedules, reward, task.tail)
    with gzip.open(_beside(path), "wb", compresslevel=6) as file:
        pickle.dump(found, file)


def _beside(path: Path) -> Path:
    return path.with_name(path.name.replace(".pickle.gz", "-standards.pickle.gz"))


def read_inputs(path: Path) -> dict[str, Any]:
    """Read a file of `write_inputs`, and what `write_standards` put beside it, if it did."""
    with gzip.open(path, "rb") as file:
        kept: dict[str, Any] = pickle.load(file)  # noqa: S301  (our own file)
    if _beside(path).exists():
        with gzip.open(_beside(path), "rb") as file:
            kept["standards"] = pickle.load(file)  # noqa: S301
    return kept
