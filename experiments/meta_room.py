"""How much there is to gain by choosing: an oracle on the jobs that choosers are judged on.

    python experiments/meta_room.py FOLDER

At every decision the oracle plays on with each rule of the menu, to the end, on the jobs that will
really come, and puts to work the one with the least mean JCT. It is asked as often as the trained
choosers are, and so is never behind the best rule. At least what it is ahead can be gained by
changing rules, for somebody who knows the future; who plans several changes ahead may gain more.
Other objectives are left out: what
they earn on the way is not quite what they are judged by. Writes FOLDER/room.json, which
`meta_results.py` shows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from meta_results import FIRST_SEED, ROOM, STUDIES, TEST_SEEDS
from meta_training import TASKS, trainings

from yardmaster.envs.choosing.batch import ChoosingBatch
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

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


def with_interval(by_seed: Any) -> list[float]:
    """Return the mean and its 95 % interval, seeds of jobs drawn again."""
    dice = np.random.default_rng(0)
    means = by_seed.mean(axis=1)
    draws = [means[dice.integers(len(means), size=len(means))].mean() for _ in range(DRAWS)]
    return [float(means.mean()), *map(float, np.quantile(draws, [0.025, 0.975]))]


def main() -> None:
    """Find the room of every family."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[float]] = {}
    for study in STUDIES:
        for family in study.families:
            found[family] = with_interval(gaps(study.name, family))
            print(family, ", ".join(f"{100 * value:+.2f} %" for value in found[family]))
    (folder / ROOM).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
