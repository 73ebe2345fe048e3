"""Results of finished trainings and heuristics, put together over seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from learning_runs import BASELINES
from learning_studies import Cell, Study

from yardmaster.experiments.contest import Verdict, by_unit, gap, verdict_of
from yardmaster.experiments.seeds import mean_over_seeds
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.metrics.statistics import Interval, bootstrap_mean
from yardmaster.model.workload import FloatArray, IntArray


@dataclass(frozen=True)
class Heuristic:
    """A heuristic of a study."""

    name: str
    how: str
    information: str
    units: Mapping[str, FloatArray]
    """By set: the metric in every unit."""
    beside: Mapping[str, float]
    """Other metrics on REPORT, mean over episodes."""

    def mean(self, split: str) -> Interval:
        """Return its mean over units."""
        return bootstrap_mean(self.units[split])


@dataclass(frozen=True)
class Learned:
    """What came of one cell, over its seeds."""

    cell: Cell
    information: str
    seeds: tuple[int, ...]
    units: Mapping[str, FloatArray]
    """By set: (seeds, units) the metric."""
    beside: Mapping[str, float]
    """Other metrics on REPORT, mean over seeds and episodes."""
    curves: tuple[FloatArray, ...]
    """Per seed, (evaluations, 2): steps, and the metric on the validation episodes."""
    budget: int
    """Environment steps of one training, as asked for."""
    seconds: float
    """Mean time of one training."""
    warnings: tuple[str, ...]
    best_steps: tuple[int, ...]
    """Per seed, the environment steps after which its best policy was found."""

    def mean(self, split: str) -> Interval:
        """Return its mean over seeds and units."""
        return mean_over_seeds(self.units[split])

    def difference(self, other: Heuristic, split: str) -> Interval:
        """Return how much more it has than a heuristic, over seeds and units."""
        return mean_over_seeds(gap(self.units[split], other.units[split]))

    def verdict(self, other: Heuristic, split: str, metric: str) -> Verdict:
        """Say whether it is better than a heuristic."""
        return verdict_of(self.difference(other, split), metric)

    def typical_change(self, other: Heuristic, split: str) -> Interval:
        """Return by which factor less 1 it differs from a heuristic, in a typical unit.

        That is the geometric mean, which a few extreme units cannot decide. For positive metrics.
        """
        mine, theirs = np.log(self.units[split]), np.log(other.units[split])
        return Interval(*(math.expm1(end) for end in mean_over_seeds(gap(mine, theirs))))


@dataclass(frozen=True)
class Results:
    """Everything known of a study."""

    study: Study
    episodes: int
    unit_counts: Mapping[str, int]
    heuristics: tuple[Heuristic, ...]
    learned: Mapping[str, Learned]
    """By cell."""

    def ranked(self, split: str) -> list[Heuristic]:
        """Return the heuristics, best first."""
        sign = -1.0 if HIGHER_IS_BETTER[self.study.metric] else 1.0
        known = [each for each in self.heuristics if not math.isnan(each.mean(split).mean)]
        return sorted(known, key=lambda each: sign * each.mean(split).mean)

    @property
    def best_heuristic(self) -> Heuristic:
        """The heuristic that is best on VAL: choosing it is not looking at REPORT."""
        return self.ranked("val")[0]


def read_results(study: Study, out: Path) -> Results | None:
    """Read what is there of a study; None if its heuristics have not played."""
    folder = out / "results" / study.name
    if not (folder / f"{BASELINES}.json").is_file():
        return None
    base = _read(folder / f"{BASELINES}.json")
    units = {split: np.array(of_split) for split, of_split in base["units"].items()}
    heuristics = tuple(
        Heuristic(
            name, one["how"], one["information"], _units(one, study.metric, units), _beside([one])
        )
        for name, one in base["players"].items()
    )
    found = {cell.name: _learned(cell, study.metric, folder, units) for cell in study.cells}
    return Results(
        study,
        base["episodes"],
        {split: int(numbers.max()) + 1 for split, numbers in units.items()},
        heuristics,
        {name: each for name, each in found.items() if each is not None},
    )


def _learned(
    cell: Cell, metric: str, folder: Path, units: Mapping[str, IntArray]
) -> Learned | None:
    files = sorted((folder / cell.name).glob("seed-*.json"))
    runs = sorted((_read(path) for path in files), key=lambda run: int(run["seed"]))
    if not runs:
        return None
    per_run = [_units(run, metric, units) for run in runs]
    return Learned(
        cell,
        runs[0]["information"],
        tuple(int(run["seed"]) for run in runs),
        {split: np.stack([one[split] for one in per_run]) for split in units},
        _beside(runs),
        tuple(np.array(run["curve"], dtype=np.float64) for run in runs),
        int(runs[0]["budget"]),
        float(np.mean([run["seconds"] for run in runs])),
        tuple(dict.fromkeys(text for run in runs for text in run["warnings"])),
        tuple(int(run["best_steps"]) for run in runs),
    )


def _units(
    player: Mapping[str, Any], metric: str, units: Mapping[str, IntArray]
) -> dict[str, FloatArray]:
    return {
        split: by_unit(np.array(player["scores"][split][metric], dtype=np.float64), numbers)
        for split, numbers in units.items()
    }


def _beside(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    names = [name for name in HIGHER_IS_BETTER if name != "returns"]
    return {name: float(np.mean([run["scores"]["report"][name] for run in runs])) for name in names}


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
