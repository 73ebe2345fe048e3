"""What has been played: one file per scene, with the numbers of every scheduler and window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from league_scenes import PARTS, ROOT, Part

from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray
from yardmaster.workloads.files import whole_file

STORE = ROOT / "runs" / "league"
METRICS = ("mean_bounded_slowdown", "mean_jct_s", "p95_jct_s", "utilisation")
"""Kept of every window, in this order."""

Played = Mapping[Part, FloatArray]
"""Part → (windows, metrics)."""


@dataclass(frozen=True)
class Entry:
    """One scheduler in one scene.

    Attributes:
        information: what it knows of run times.
        objective: metric it was trained for; "" for heuristics and where nobody said.
        values: its numbers in every window.
    """

    information: str
    objective: str
    values: Played


@dataclass
class Record:
    """All that was played in one scene.

    Attributes:
        scene: its name.
        digest: of the jobs and the machines; numbers of others are no match.
        dropped: share of the jobs of each part that are too large for the cluster.
        entries: by scheduler.
    """

    scene: str
    digest: str
    dropped: tuple[float, float] = (0.0, 0.0)
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def windows(self) -> tuple[int, int]:
        """How many windows of each part were played."""
        values = next(iter(self.entries.values())).values
        return len(values["training"]), len(values["validation"])

    def column(self, scheduler: str, part: Part, metric: str) -> FloatArray:
        """Return (windows,) what a scheduler reached."""
        values: FloatArray = self.entries[scheduler].values[part][:, METRICS.index(metric)]
        return values

    def means(self, part: Part, metric: str) -> dict[str, float]:
        """Return the mean over windows of every scheduler."""
        return {name: float(self.column(name, part, metric).mean()) for name in self.entries}


def read_record(scene: str, folder: Path = STORE) -> Record | None:
    """Return what was played in a scene; None if nothing was.

    Raises:
        YardmasterError: if the file is damaged, or not of this version.
    """
    path = folder / f"{scene}.npz"
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            kept = {name: file[name] for name in file.files}
        if tuple(kept["metrics"].tolist()) != METRICS:
            raise YardmasterError(f"{path} holds other metrics than these; remove it.")
        columns = zip(kept["schedulers"], kept["information"], kept["objective"], strict=True)
        entries = {
            str(name): Entry(str(knows), str(goal), {part: kept[part][row] for part in PARTS})
            for row, (name, knows, goal) in enumerate(columns)
        }
        training, validation = kept["dropped"].tolist()
        return Record(scene, str(kept["digest"]), (training, validation), entries)
    except (KeyError, ValueError, OSError, IndexError) as error:
        raise YardmasterError(f"{path} is damaged: {error}; remove it.") from None


def write_record(record: Record, folder: Path = STORE) -> Path:
    """Write what was played in a scene, whole or not at all; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.scene}.npz"
    everybody = list(record.entries.values())
    with whole_file(path, overwrite=True) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(
            file,
            allow_pickle=False,
            digest=np.array(record.digest),
            dropped=np.array(record.dropped),
            metrics=np.array(METRICS),
            schedulers=np.array(list(record.entries), dtype=np.str_),
            information=np.array([entry.information for entry in everybody], dtype=np.str_),
            objective=np.array([entry.objective for entry in everybody], dtype=np.str_),
            training=np.array([entry.values["training"] for entry in everybody]),
            validation=np.array([entry.values["validation"] for entry in everybody]),
        )
    return path
