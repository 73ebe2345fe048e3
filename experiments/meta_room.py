"""How much there is to gain by choosing, on the jobs that choosers are judged on.

    python experiments/meta_room.py FOLDER

Two who know what choosers do not. The *oracle* knows the future: at every decision it plays on with
each rule of the menu, to the end, on the jobs that will really come, and puts to work the one with
the least mean JCT. It is asked as often as the trained choosers are, and so is never behind the
best rule. At least what it is ahead can be gained by changing rules, for somebody who knows the
future; who plans several changes ahead may gain more. Other objectives are left out: what they earn
on the way is not quite what they are judged by.

Who is *told the regime* keeps the rule that has the least mean gap in it on jobs of other seeds.
What that is behind the best rule of each run is chance: which rule suits these very jobs shows only
when they are over. Writes FOLDER/room.json, which `meta_results.py` shows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from meta_results import (
    FIRST_SEED,
    OBJECTIVES,
    ROOM,
    STUDIES,
    TEST_SEEDS,
    TRAINING_SEEDS,
    Study,
)
from meta_training import TASKS, trainings

from yardmaster.envs.choosing.batch import ChoosingBatch
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.standards import kept_gaps
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.envs.episodes import FIRST_SEED as SEEDS_OF
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.regimes import Regime, regimes

DRAWS = 2000
AT_A_TIME = 64
"""Episodes that are played together."""


class JudgedEpisodes(ChoosingEpisodes):
    """The jobs that choosers are judged on, regime by regime in turn."""

    def situation(self, number: int) -> tuple[Workload, Cluster]:
        """Return the jobs and the machines of an episode."""
        regime = self.regimes[self.group(number)]
        jobs = regime.jobs(FIRST_SEED + number // len(self.regimes))
        return jobs.starting_at(float(jobs.submit_s[0])), regime.machines()


def gaps(study: str, family: str) -> Any:
    """Return the oracle's gaps to the best rule of each run, (seeds, regimes)."""
    job = next(one for one in trainings() if one["name"] == f"{study}-jct-0")
    task = CHOOSING_TASKS[TASKS[study]].changed(families=(family,), **job["task"])
    episodes = JudgedEpisodes(task, "report")
    count = TEST_SEEDS * len(episodes.regimes)
    found = [
        _played(episodes, np.arange(first, min(first + AT_A_TIME, count)))
        for first in range(0, count, AT_A_TIME)
    ]
    return np.concatenate(found).reshape(TEST_SEEDS, -1)


def _played(episodes: ChoosingEpisodes, numbers: Any) -> Any:
    """Return what the oracle's gap is in each of some episodes."""
    batch = ChoosingBatch(
        episodes, len(numbers), autoreset=False, draw=lambda rows: numbers[rows], announce=print
    )
    batch.begin(np.arange(batch.size))
    found, over = np.zeros(batch.size), np.zeros(batch.size, dtype=np.bool_)
    while not over.all():
        going = np.flatnonzero(~over)
        actions = np.zeros(batch.size, dtype=np.int64)
        actions[going] = batch.kept_returns(going).argmax(axis=1)
        batch.step(actions)
        ended = (batch.terminated | batch.truncated) & ~over
        found[ended] = batch.scores["jct_gap"][ended]
        over |= ended
    return found


def gaps_when_told(study: Study, family: str) -> Any:
    """Return the gaps of who is told the regime, (objectives, seeds, regimes)."""
    found = []
    for regime in regimes(family):
        before = _kept(study, regime, SEEDS_OF["train"], TRAINING_SEEDS)
        now = _kept(study, regime, FIRST_SEED, TEST_SEEDS)
        rules = before.mean(axis=0).argmin(axis=0)
        found.append(now[:, rules, np.arange(len(OBJECTIVES))].T)
    return np.stack(found, axis=-1)


def _kept(study: Study, regime: Regime, first_seed: int, count: int) -> Any:
    """Return what each rule, kept all the time, is behind the best: (seeds, rules, objectives)."""
    rows = []
    for seed in range(first_seed, first_seed + count):
        jobs, machines = regime.jobs(seed), regime.machines()
        rows.append(
            kept_gaps(
                [
                    simulate(jobs, machines, rule, seed=seed, compile_core="always")
                    for rule in study.menu
                ]
            )
        )
    return np.array(rows)


def with_interval(by_seed: Any) -> list[float]:
    """Return the mean of (seeds, regimes) and its 95 % interval, seeds of jobs drawn again."""
    dice = np.random.default_rng(0)
    means = by_seed.mean(axis=1)
    draws = [means[dice.integers(len(means), size=len(means))].mean() for _ in range(DRAWS)]
    return [float(means.mean()), *map(float, np.quantile(draws, [0.025, 0.975]))]


def main() -> None:
    """Find the room of every family."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[float]]] = {}
    for study in STUDIES:
        for family in study.families:
            told = zip(OBJECTIVES, gaps_when_told(study, family), strict=True)
            found[family] = {f"told {objective}": with_interval(one) for objective, one in told}
            found[family]["oracle jct"] = with_interval(gaps(study.name, family))
            for name, values in found[family].items():
                print(family, name, ", ".join(f"{100 * value:+.2f} %" for value in values))
    (folder / ROOM).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
