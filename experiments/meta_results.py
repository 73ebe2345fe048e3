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
TRAINING_SEEDS = 32
"""Seeds of each regime by which the rule is chosen that somebody who is told the regime keeps."""
OBJECTIVES = {"jct": "mean_jct_s", "p95": "p95_jct_s", "mixed": "mixed_cost"}
TITLES = {"jct": "mean JCT", "p95": "p95 JCT", "mixed": "mixed cost"}
DRAWS = 2000
LEARNERS = ("MetaDQN", "PPO meta-policy")
ROOM = "room.json"
"""What `meta_room.py` found, in the folder of the results."""
HEAD = (
    "| scheduler | trainings | gap to the best rule of each run, % | to the best rule of each"
    " regime, % | runs with an exploded queue, % | switches |"
)
FIRST_HEAD = (
    "| family | objective | aim, % | learner (trainings) | gap to the best rule of each run, % | |"
    " to the best rule of each regime, % | best single rule: gap to the best rule of each run, % |"
    " gap less that of the best single rule, points |"
)
INTRODUCTION = f"""
MetaDQN and a PPO meta-policy choose among fixed rules while jobs run; no label tells them the
regime. Judged on {TEST_SEEDS} seeds per regime that no training saw ({FIRST_SEED} and up), the
same jobs for everybody. Made by `python experiments/results.py choosing`: `python
experiments/meta_training.py inputs`, `python experiments/meta_training.py train runs/choosers`,
`python experiments/meta_room.py runs/meta-results` and `python experiments/meta_results.py
runs/choosers runs/meta-results`; the trainings ran on 16 cores of a machine with nothing but NumPy,
Numba and torch, those of `rlmetadqn-mixed` on two.

*Gap to the best rule of each run*: value / least value of any fixed rule of the menu on the same
jobs − 1, averaged over regimes and seeds; negative is better than every fixed rule in hindsight.
Brackets: 95 % intervals, trainings and seeds of jobs drawn again together. *To the best rule of
each regime*: the mean over seeds by that of the rule that is best in the regime on average, which
nobody knows in advance either; its intervals lean upwards, since that rule is found out again in
every draw. *Mixed cost*: 0.45 · mean JCT by the best rule's + 0.45 · p95 JCT by the best rule's +
0.1 · share of deadlines missed. The best network of a training is the one with the least gap on
validation episodes. One set of five choosers per learner and objective serves the hard and the
drifting family; the six hard regimes with GPU types or quotas were not among those it was trained
on. Those trainings of MetaDQN were stopped after six to eight minutes (`train runs/choosers gangs
--steps 4000000 --limit-s 525`), 15 at a time on 16 cores. The trainings of `rlmetadqn-jct` and
`-p95` were made before two small corrections of the environment: choosers are now asked before the
very first pass, and their first choice is no change of the scheduler. All were judged with the
corrections. The choosers that come along (`meta:NAME`) are the best of each study on validation
episodes, whoever learned them (`python experiments/meta_shipping.py runs/choosers`).
"""

ROOM_WORDS = f"""
Two who know what choosers do not, on the same jobs (`python experiments/meta_room.py
runs/meta-results`). *Told the regime*: keeps the rule that had the least mean gap in the regime on
{TRAINING_SEEDS} other seeds, from the first job to the last. Where nothing drifts, what
it is behind is chance: which rule suits these very jobs shows only when they are over, and the best
of several has luck on its side, the more so the fewer jobs decide (those of p95). *Oracle*: at
every decision plays on with each rule, to the end, on the jobs that will really come, and puts the
best to work, asked as often as the trained choosers. Planning one change at a time, it shows the
least that could be gained by somebody who knows the future. Choosers know neither; they have to
find out while jobs run.
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
    # With other choosers it is another experiment: what both have in common is kept.
    found = run_suite(suite, folder / study.name, overwrite=True, announce=print)
    if found.failures or not found.is_complete:
        raise SystemExit(f"{study.name}: stopped, or {len(found.failures)} runs failed")
    return read_results(folder / study.name)


def by_training(part: pl.DataFrame, names: list[str], column: str) -> Any:
    """Return (trainings, regimes, seeds) of a column."""
    regimes = part["regime"].unique(maintain_order=True).to_list()
    cubes = [
        part.filter(pl.col("scheduler") == name).sort("regime", "seed")[column].to_numpy()
        for name in names
    ]
    return np.array(cubes).reshape(len(names), len(regimes), -1)


def drawn_again(trainings: int, seeds: int) -> list[tuple[Any, Any]]:
    """Return draws of trainings and of seeds of jobs, with replacement."""
    dice = np.random.default_rng(0)
    return [
        (dice.integers(trainings, size=trainings), dice.integers(seeds, size=seeds))
        for _ in range(DRAWS)
    ]


def summed_up(value: float, draws: list[float]) -> tuple[float, float, float]:
    """Return a value and its 95 % interval."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return value, float(low), float(high)


def run_gap(part: pl.DataFrame, names: list[str], column: str) -> tuple[float, float, float]:
    """Return the mean gap to the best rule of each run; regimes are all there are."""
    table = by_training(part, names, GAP + column).mean(axis=1)
    draws = [float(table[a][:, b].mean()) for a, b in drawn_again(*table.shape)]
    return summed_up(float(table.mean()), draws)


def regime_gap(part: pl.DataFrame, names: list[str], column: str) -> tuple[float, float, float]:
    """Return the mean over regimes of (mean over seeds / that of the regime's best rule − 1).

    Which rule is best is found out again in every draw.
    """
    fixed = [name for name in part["scheduler"].unique(maintain_order=True) if is_fixed(name)]
    rules, own = by_training(part, fixed, column), by_training(part, names, column)

    def gap(a: Any, b: Any) -> float:
        best = rules[:, :, b].mean(axis=2).min(axis=0)
        return float((own[a][:, :, b].mean(axis=(0, 2)) / best - 1.0).mean())

    draws = [gap(a, b) for a, b in drawn_again(own.shape[0], own.shape[2])]
    return summed_up(gap(np.arange(own.shape[0]), np.arange(own.shape[2])), draws)


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
        gap = run_gap(part, names, column)
        against = regime_gap(part, names, column)
        exploded = by_training(part, names, "queue_exploded").mean()
        switches = by_training(part, names, "switches").mean()
        cells = (
            f"| {label} | {len(names)} | {written(gap)} | {written(against)} |"
            f" {100 * exploded:.2f} | {switches:.1f} |"
        )
        rows.append((gap[0], cells))
    head = [
        HEAD,
        "|---|---|---|---|---|---|",
    ]
    return head + [cells for _, cells in sorted(rows)]


def judged(family: str, gap: tuple[float, float, float]) -> tuple[str, str]:
    """Return what was aimed at in a family, and whether a gap with its interval reaches it."""
    mean, _low, high = gap
    if family == "rlmetadqn":
        return "at most 1", "reached" if mean <= 0.01 else f"missed by {100 * mean - 1:.2f}"
    if high < 0:
        return "surely below 0", "reached"
    return "surely below 0", f"missed: the interval ends at {100 * high:+.2f}"


def less(
    part: pl.DataFrame, names: list[str], rule: str, column: str
) -> tuple[float, float, float]:
    """Return the mean gap less that of a rule on the same jobs."""
    table = by_training(part, names, GAP + column).mean(axis=1)
    rivals = by_training(part, [rule], GAP + column).mean(axis=1)[0]
    draws = [float(table[a][:, b].mean() - rivals[b].mean()) for a, b in drawn_again(*table.shape)]
    return summed_up(float(table.mean() - rivals.mean()), draws)


def in_short(studies: dict[str, pl.DataFrame]) -> list[str]:
    """Return the rows of the first table: learners beside the best single rule of each family."""
    rows = [FIRST_HEAD, "|---|---|---|---|---|---|---|---|---|"]
    for study in STUDIES:
        for family in study.families:
            part = studies[study.name].filter(pl.col("family") == family)
            names = part["scheduler"].unique(maintain_order=True).to_list()
            for objective, column in OBJECTIVES.items():
                rules = [(run_gap(part, [name], column), name) for name in names if is_fixed(name)]
                gap, rule = min(rules)
                for learner in LEARNERS:
                    own = [name for name in names if _kind(name, objective) == f"**{learner}**"]
                    if not own:
                        continue
                    found, to_regime = run_gap(part, own, column), regime_gap(part, own, column)
                    aim, verdict = judged(family, found)
                    rows.append(
                        f"| {family} | {TITLES[objective]} | {aim} | {learner} ({len(own)}) |"
                        f" {written(found)} | {verdict} | {written(to_regime)} |"
                        f" {rule} {written(gap)} | {written(less(part, own, rule, column))} |"
                    )
    return rows


def room(folder: Path) -> list[str]:
    """Return what an oracle gains by choosing, if it has been found out."""
    if not (folder / ROOM).exists():
        return []
    lines = [
        "| family | objective | told the regime: gap to the best rule of each run, % | oracle, % |",
        "|---|---|---|---|",
    ]
    for family, gaps in json.loads((folder / ROOM).read_text()).items():
        for objective, title in TITLES.items():
            oracle = gaps.get(f"oracle {objective}")
            lines.append(
                f"| {family} | {title} | {written(gaps[f'told {objective}'])} |"
                f" {written(oracle) if oracle else ''} |"
            )
    return ["## How much there is to gain", "", *ROOM_WORDS.strip().splitlines(), "", *lines, ""]


def _kind(name: str, objective: str) -> str:
    """Return under which name a scheduler stands in the table of an objective; none: not at all."""
    if name.startswith("bandit:"):
        return name.partition("=")[0]
    if not name.startswith("meta:"):
        return name
    _study, trained_for, which = Path(name).stem.rsplit("-", 2)
    if trained_for != objective:
        return ""
    return f"**{LEARNERS[which.startswith('ppo')]}**"


def page(studies: dict[str, pl.DataFrame], choosers: Path, folder: Path) -> str:
    """Return the results page."""
    lines = ["# Choosing schedulers: results", "", *INTRODUCTION.strip().splitlines(), ""]
    lines += ["## In short", "", *in_short(studies), "", *room(folder)]
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
            f"| {file.stem} | {job['learner']} | {record.get('steps', job['steps']):,} |"
            f" {100 * record['best']:+.2f} |"
            f" {last['seconds']:.0f} |"
        )
    return lines


def main() -> None:
    """Run what is missing and write the page."""
    choosers, folder = Path(sys.argv[1]), Path(sys.argv[2])
    target = Path(sys.argv[3] if len(sys.argv) > 3 else "docs/results/choosing.md")
    found = {study.name: results(study, choosers, folder) for study in STUDIES}
    target.write_text(page(found, choosers, folder), encoding="utf-8")


if __name__ == "__main__":
    main()
