"""Judges the trained choosers on jobs that no training saw, and writes the results page.

    python experiments/meta_results.py CHOOSERS FOLDER [PAGE]

CHOOSERS is the folder that `meta_training.py` wrote; FOLDER takes the two experiments (resumable,
see `yardmaster experiment`); PAGE is the Markdown to write, docs/results/choosing.md by default.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from yardmaster.engine.choosing.sight import DEFAULT_MENU
from yardmaster.envs.choosing.task import GANG_MENU
from yardmaster.experiments.suite.document import Regimes, Suite
from yardmaster.experiments.suite.results import GAP, is_fixed, read_results
from yardmaster.experiments.suite.run import run_suite

FIRST_SEED = 5000
"""Seeds of the jobs begin here; training used those from 1,000,000 on, and regimes were designed
looking at 0 to 7."""
TEST_SEEDS = 8
OBJECTIVES = {"jct": "mean_jct_s", "p95": "p95_jct_s", "mixed": "mixed_cost"}
TITLES = {"jct": "mean JCT", "p95": "p95 JCT", "mixed": "mixed cost"}
DRAWS = 4000
HEAD = (
    "| scheduler | trainings | gap to the best rule of each run, % | to the best rule of each"
    " regime, % | runs with an exploded queue, % | switches |"
)
INTRODUCTION = f"""
MetaDQN and a PPO meta-policy choose among fixed rules while jobs run; no label tells them the
regime. Judged on {TEST_SEEDS} seeds per regime that no training saw ({FIRST_SEED} and up), the
same jobs for everybody. Made by `python experiments/meta_training.py inputs`, `python
experiments/meta_training.py train runs/choosers` and `python experiments/meta_results.py
runs/choosers runs/meta-results`; the trainings ran on 16 cores of a machine with nothing but
NumPy, Numba and torch, those of `gangs-mixed` and `rlmetadqn-mixed` on two.

*Gap to the best rule of each run*: value / least value of any fixed rule of the menu on the same
jobs − 1, averaged over regimes and seeds; negative is better than every fixed rule in hindsight.
Brackets: 95 % intervals, trainings and seeds of jobs drawn again together. *To the best rule of
each regime*: the mean over seeds by that of the rule that is best in the regime on average, which
nobody knows in advance either. *Mixed cost*: 0.45 · mean JCT by the best rule's + 0.45 · p95 JCT
by the best rule's + 0.1 · share of deadlines missed. The best network of a training is the one
with the least gap on validation episodes. One set of five choosers per objective serves the hard
and the drifting family; the six hard regimes with GPU types or quotas were not among those it was
trained on.
"""


@dataclass(frozen=True)
class Study:
    """Choosers of one menu and the families they are judged on."""

    name: str
    families: tuple[str, ...]
    menu: tuple[str, ...]


STUDIES = (
    Study("rlmetadqn", ("rlmetadqn",), DEFAULT_MENU),
    Study("gangs", ("hard", "drift"), GANG_MENU),
)


def results(study: Study, choosers: Path, folder: Path) -> pl.DataFrame:
    """Run all fixed schedulers, bandits and choosers of a study on the same jobs."""
    files = sorted(choosers.glob(f"{study.name}-*.npz"))
    bandits = [f"bandit:{name}={'/'.join(study.menu)}" for name in ("epsilon-greedy", "exp3")]
    bandits.append(f"bandit:linucb={'/'.join(study.menu)}")
    suite = Suite(
        name=study.name,
        schedulers=(*study.menu, *bandits, *(f"meta:{file}" for file in files)),
        seeds=TEST_SEEDS,
        first_seed=FIRST_SEED,
        objectives=tuple(OBJECTIVES.values()),
        regimes=tuple(Regimes(family=family) for family in study.families),
    )
    found = run_suite(suite, folder / study.name, announce=print)
    if not found.is_complete:
        raise SystemExit(f"{study.name}: {len(found.failures)} runs failed, see failures.json")
    return read_results(folder / study.name)


def by_training(part: pl.DataFrame, names: list[str], column: str) -> Any:
    """Return (trainings, regimes, seeds) of a column."""
    regimes = part["regime"].unique(maintain_order=True).to_list()
    cubes = [
        part.filter(pl.col("scheduler") == name).sort("regime", "seed")[column].to_numpy()
        for name in names
    ]
    return np.array(cubes).reshape(len(names), len(regimes), -1)


def interval(cube: Any) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval, trainings and seeds of jobs both drawn again."""
    table = cube.mean(axis=1)  # regimes are all there are
    dice = np.random.default_rng(0)
    trainings, seeds = table.shape
    rows = dice.integers(trainings, size=(DRAWS, trainings))
    columns = dice.integers(seeds, size=(DRAWS, seeds))
    means = np.array([table[a][:, b].mean() for a, b in zip(rows, columns, strict=True)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(table.mean()), float(low), float(high)


def regime_gap(part: pl.DataFrame, names: list[str], column: str) -> Any:
    """Return (trainings, regimes, 1) the mean over seeds by that of the regime's best rule, − 1."""
    fixed = [name for name in part["scheduler"].unique(maintain_order=True) if is_fixed(name)]
    best = by_training(part, fixed, column).mean(axis=2).min(axis=0)
    return (by_training(part, names, column).mean(axis=2) / best - 1.0)[:, :, None]


def written(found: tuple[float, float, float]) -> str:
    """Write a mean and its interval in percent."""
    mean, low, high = (100.0 * value for value in found)
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def table_of(part: pl.DataFrame, objective: str) -> list[str]:
    """Return the rows of one table: every scheduler, by its gap."""
    column = OBJECTIVES[objective]
    groups: dict[str, list[str]] = {}
    for name in part["scheduler"].unique(maintain_order=True).to_list():
        groups.setdefault(_kind(name, objective), []).append(name)
    groups.pop("", None)
    rows = []
    for label, names in groups.items():
        gap = interval(by_training(part, names, GAP + column))
        against = regime_gap(part, names, column)
        exploded = by_training(part, names, "queue_exploded").mean()
        switches = by_training(part, names, "switches").mean()
        cells = (
            f"| {label} | {len(names)} | {written(gap)} | {100 * against.mean():+.2f} |"
            f" {100 * exploded:.2f} | {switches:.1f} |"
        )
        rows.append((gap[0], cells))
    head = [
        HEAD,
        "|---|---|---|---|---|---|",
    ]
    return head + [cells for _, cells in sorted(rows)]


def _kind(name: str, objective: str) -> str:
    """Return under which name a scheduler stands in the table of an objective; none: not at all."""
    if name.startswith("bandit:"):
        return name.partition("=")[0]
    if not name.startswith("meta:"):
        return name
    _study, trained_for, which = Path(name).stem.rsplit("-", 2)
    if trained_for != objective:
        return ""
    return "**PPO meta-policy**" if which == "ppo" else "**MetaDQN**"


def page(studies: dict[str, pl.DataFrame], choosers: Path) -> str:
    """Return the results page."""
    lines = ["# Choosing schedulers: results", "", *INTRODUCTION.strip().splitlines(), ""]
    words = {
        "rlmetadqn": "RLMetaDQN's 48 regimes: 1-GPU jobs, true run times",
        "hard": "The hard family: gangs, heavy tails, GPU types, wrong estimates",
        "drift": "The drifting family",
    }
    for study in STUDIES:
        table = studies[study.name]
        for family in study.families:
            part = table.filter(pl.col("family") == family)
            count = part["regime"].n_unique()
            lines += [f"## {words[family]} ({count} regimes)", ""]
            for objective, title in TITLES.items():
                lines += [f"### {title}", "", *table_of(part, objective), ""]
            if family == "drift":
                long = part.filter(pl.col("intensity") == "high")
                lines += [f"### mean JCT, the {long['regime'].n_unique()} long ones with gangs", ""]
                lines += [*table_of(long, "jct"), ""]
    return "\n".join([*lines, *_trainings(choosers), ""])


def _trainings(choosers: Path) -> list[str]:
    """Return what the trainings were."""
    lines = [
        "## The trainings",
        "",
        "| chooser | learner | decisions | best gap on validation, % | s |",
    ]
    lines.append("|---|---|---|---|---|")
    for file in sorted(choosers.glob("*.json")):
        record = json.loads(file.read_text())
        job, last = record["job"], record["curve"][-1]
        lines.append(
            f"| {file.stem} | {job['learner']} | {job['steps']:,} | {100 * record['best']:+.2f} |"
            f" {last['seconds']:.0f} |"
        )
    return lines


def main() -> None:
    """Run what is missing and write the page."""
    choosers, folder = Path(sys.argv[1]), Path(sys.argv[2])
    target = Path(sys.argv[3] if len(sys.argv) > 3 else "docs/results/choosing.md")
    found = {study.name: results(study, choosers, folder) for study in STUDIES}
    target.write_text(page(found, choosers), encoding="utf-8")


if __name__ == "__main__":
    main()
