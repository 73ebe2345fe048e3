"""The cells of an experiment: one run each, with everything it is made from.

The key of a cell is a digest of its description and of the code it depends on; files count with
their content, wherever they lie. What has the same key is the same run, so it is made once, whoever
asks, and is made again when anything changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.errors import InvalidConfigError
from yardmaster.experiments.suite.document import Suite
from yardmaster.experiments.suite.fingerprints import (
    code_fingerprint,
    name_by_content,
    scheduler_fingerprint,
)
from yardmaster.experiments.suite.settings import Setting
from yardmaster.workloads.regimes import Perturbation


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One run: jobs and machines, what goes wrong, who schedules, which dice."""

    key: str
    setting: Setting
    perturbation: Perturbation | None
    scheduler: str
    """In the scheduler language, every part written out."""
    information: str
    """What the scheduler knows of run times: clairvoyant, estimate-based or blind."""
    seed: int
    until_s: float | None
    """Second at which the run is cut."""

    def shares_jobs_with(self, other: Cell) -> bool:
        """Whether both run the same jobs on the same machines."""
        return (
            self.setting is other.setting
            and self.perturbation == other.perturbation
            and self.seed == other.seed
        )

    def __str__(self) -> str:
        disturbed = f" under {self.perturbation}" if self.perturbation else ""
        return f"{self.scheduler} on {self.setting.name}{disturbed}, seed {self.seed}"


def cells_of(suite: Suite) -> list[Cell]:
    """Return all cells of an experiment; those that share jobs stand together.

    Two schedulers whose files hold the same have cells of the same keys. What several tables of the
    document ask for is one cell.

    Raises:
        YardmasterError: if a scheduler, a regime or a file cannot be found, with all schedulers
            that cannot; or if two settings are the same under different names.
    """
    code = code_fingerprint()
    schedulers = suite.parsed_schedulers()
    named = [
        (name, one.information.value, name_by_content(name), scheduler_fingerprint(name))
        for one in schedulers
        for name in [str(one)]
    ]
    cells: dict[tuple[str, str], Cell] = {}
    of_key: dict[str, Setting] = {}
    for setting, perturbations in suite.settings():
        table = setting.table()
        for perturbation in perturbations:
            for seed in suite.seeds_of(setting):
                shared = _shared(table, perturbation, seed, suite.until_s)
                for name, information, by_content, own in named:
                    key = cell_key(shared, by_content, code, own)
                    cell = Cell(key, setting, perturbation, name, information, seed, suite.until_s)
                    cells.setdefault((key, name), cell)
                    first = of_key.setdefault(key, setting)
                    if first is not setting:
                        same = f"{first.name!r} and {setting.name!r} are the same jobs and machines"
                        raise InvalidConfigError(suite.name, [same])
    return list(cells.values())


def cell_key(shared: Any, scheduler: str, code: str, own: str) -> str:
    """Return the digest that stands for a run.

    Args:
        shared: plain values that determine jobs and machines.
        scheduler: who schedules; files by their content.
        code: digest of the code that all runs depend on.
        own: digest of the code that this scheduler alone depends on.
    """
    table = {"jobs": shared, "scheduler": scheduler, "code": code, "own": own}
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _shared(
    table: dict[str, Any], perturbation: Perturbation | None, seed: int, until_s: float | None
) -> str:
    """Return canonical text of what the runs of all schedulers on the same jobs share."""
    disturbed = [perturbation.kind, perturbation.severity] if perturbation else None
    whole = {"setting": table, "perturbation": disturbed, "seed": seed, "until_s": until_s}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def batches_of(cells: Sequence[Cell], most: int) -> list[tuple[Cell, ...]]:
    """Cut the cells into batches of at most so many, between different jobs where possible."""
    batches: list[tuple[Cell, ...]] = []
    batch: list[Cell] = []
    group: list[Cell] = []
    for place, cell in enumerate(cells):
        group.append(cell)
        is_last = place + 1 == len(cells) or not cell.shares_jobs_with(cells[place + 1])
        if not is_last and len(group) < most:
            continue
        if batch and len(batch) + len(group) > most:
            batches.append(tuple(batch))
            batch = []
        batch += group
        group = []
    return [*batches, tuple(batch)] if batch else batches
