"""Situations of the meta-scheduler's studies, drawn in advance.

Drawing regimes needs more libraries than a bare machine with many cores may have; what is drawn is
plain arrays. `write_inputs` draws, `use_inputs` lets episodes be taken from the file.
"""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.envs.episodes import Split


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
    with gzip.open(path, "wb", compresslevel=6) as file:
        pickle.dump(kept, file)


class KeptEpisodes(ChoosingEpisodes):
    """Episodes whose jobs and machines come from a file of `write_inputs`."""

    def __init__(self, task: ChoosingTask, split: Split, kept: dict[str, Any]) -> None:
        self._kept = kept
        super().__init__(task.changed(time_unit_s=kept["unit_s"]), split, regimes=kept["regimes"])

    def situation(self, number: int) -> Any:
        """Return the jobs and the machines of an episode."""
        return self._kept["episodes"][self.split, number]


def read_inputs(path: Path) -> dict[str, Any]:
    """Read a file of `write_inputs`."""
    with gzip.open(path, "rb") as file:
        kept: dict[str, Any] = pickle.load(file)  # noqa: S301  (our own file)
    return kept
