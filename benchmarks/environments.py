"""Measure the environments: `python benchmarks/environments.py`.

**Side by side.** The vector environment beside Gymnasium's `SyncVectorEnv` over the reference: the
same environment as a researcher would write it in plain Python. Both get the same episodes and
actions; observations, masks, rewards and ends must agree, step by step, before times count. They
take turns, and the ratio is that of the medians.

**Alone.** Decisions per second with a window of 64 jobs, on one and two threads, for several
numbers of environments and fillings of the queue: what learners step (`envs.batch`), and the same
behind Gymnasium's interface.

Only `step` is timed; every environment picks the first job that fits. Where CPU time is well below
real time, others were using the machine: CPU seconds are then the safer ones to compare.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from yardmaster.envs.batch import EnvironmentBatch, open_batch
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.reference import ReferencePickJob
from yardmaster.envs.task import TASKS, Task
from yardmaster.envs.vector import PickJobVectorEnv
from yardmaster.model.workload import Workload

RATIO_BAR = 100.0
DECISIONS_BAR = 1.5e6
"""Decisions per second on two threads."""

FILLINGS = {"load 1.0": 1.0, "load 1.5": 1.5, "full window": 6.0}
"""Offered load; at six times of what the cluster can do the window is full nearly all the time."""
SIZES = (64, 256, 1024)
EPISODES = 64
JOBS = 256
"""Jobs of an episode, and so decisions of one who never waits."""
TURN = 64
"""Steps that one takes before it is the other's turn."""

Actions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Player = tuple[EnvironmentBatch, Callable[[Actions], Any]]


def task_at(load: float) -> Task:
    """Return the task that is measured: 64 GPUs, episodes of 256 jobs, a window of 64."""
    return TASKS["default"].changed(load=load, episodes=EPISODES, jobs=JOBS)


class PlainPickJob(gymnasium.Env[Floats, np.int64]):
    """The reference as a Gymnasium environment; it plays the episodes it is given, in turn."""

    def __init__(
        self, episodes: Episodes, jobs: Sequence[Workload], numbers: Iterator[int]
    ) -> None:
        layout = episodes.task.sight.layout()
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (layout.length,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(layout.actions)
        self.inner = ReferencePickJob(episodes.task, episodes.cluster)
        self.jobs = jobs
        self.numbers = numbers

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Begin the next episode."""
        super().reset(seed=seed, options=options)
        observation = self.inner.reset(self.jobs[next(self.numbers)])
        return observation, {"action_mask": self.inner.mask}

    def step(self, action: np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Carry out an action."""
        observation, reward, terminated, truncated, more = self.inner.step(int(action))
        return observation, reward, terminated, truncated, {"action_mask": more["action_mask"]}


def plain_vector(
    episodes: Episodes, jobs: Sequence[Workload], first: Sequence[int]
) -> gymnasium.vector.SyncVectorEnv:
    """Return plain environments in step; each begins with its own episode and goes on in turn."""

    def made(number: int) -> Callable[[], PlainPickJob]:
        turns = cycle([*range(number, len(jobs)), *range(number)])
        return lambda: PlainPickJob(episodes, jobs, turns)

    return gymnasium.vector.SyncVectorEnv(
        [made(number) for number in first],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast environments stepped, medians over rounds."""

    what: str
    filling: str
    environments: int
    threads: int
    decisions_per_s: float
    decisions_per_cpu_s: float
    waiting: float
    """Mean number of jobs in line."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The vector environment beside plain Python."""

    filling: str
    environments: int
    plain: float
    """Decisions per second."""
    ours: float
    ratio: float
    cpu_ratio: float


@dataclass(slots=True)
class Stopwatch:
    """Adds up real and CPU seconds of what it is asked to time."""

    real_s: float = 0.0
    cpu_s: float = 0.0

    def time(self, act: Callable[[], Any]) -> Any:
        """Run something and add what it took."""
        cpu, real = time.process_time(), time.perf_counter()
        result = act()
        self.real_s += time.perf_counter() - real
        self.cpu_s += time.process_time() - cpu
        return result


def first_legal(infos: dict[str, Any]) -> Actions:
    """Return the first legal action of every environment."""
    return np.asarray(_masks(infos).argmax(axis=1), dtype=np.int64)


def _masks(infos: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return which actions are legal; Gymnasium stacks what single environments tell as objects."""
    return np.asarray(np.stack(list(infos["action_mask"])) != 0)


def side_by_side(filling: str, size: int, rounds: int) -> SideBySide:
    """Let both play the same episodes, check that they agree, then time them in turns."""
    task = task_at(FILLINGS[filling])
    episodes = Episodes(task)
    jobs = [episodes.workload(number) for number in range(EPISODES)]
    ours = PickJobVectorEnv(size, task=task)
    _, ours_info = ours.reset(seed=0)
    plain = plain_vector(episodes, jobs, ours.batch.episode_numbers.tolist())
    _, plain_info = plain.reset()
    infos = _check(ours, plain, ours_info, plain_info)
    watches: list[tuple[Stopwatch, Stopwatch]] = []
    for _ in range(rounds):
        pair = Stopwatch(), Stopwatch()
        for place, env in enumerate((ours, plain)):
            for _ in range(TURN):
                actions = first_legal(infos[place])
                *_, infos[place] = pair[place].time(partial(env.step, actions))
        watches.append(pair)
    ours_s, plain_s = (median(pair[place].real_s for pair in watches) for place in (0, 1))
    return SideBySide(
        filling,
        size,
        plain=TURN * size / plain_s,
        ours=TURN * size / ours_s,
        ratio=median(theirs.real_s / mine.real_s for mine, theirs in watches),
        cpu_ratio=median(theirs.cpu_s / mine.cpu_s for mine, theirs in watches),
    )


def _check(
    ours: PickJobVectorEnv,
    plain: gymnasium.vector.SyncVectorEnv,
    ours_info: dict[str, Any],
    plain_info: dict[str, Any],
) -> list[dict[str, Any]]:
    """Step both with the same actions; they must agree as long as an environment's episode lasts.

    Return what both tell then.
    """
    alive = np.ones(ours.num_envs, dtype=np.bool_)
    for _ in range(2 * TURN):
        np.testing.assert_array_equal(_masks(ours_info)[alive], _masks(plain_info)[alive])
        actions = first_legal(ours_info)
        mine: tuple[Any, ...] = ours.step(actions)
        theirs: tuple[Any, ...] = plain.step(np.where(alive, actions, first_legal(plain_info)))
        ours_info, plain_info = mine[4], theirs[4]
        for one, other in zip(mine[1:4], theirs[1:4], strict=True):
            np.testing.assert_allclose(one[alive], other[alive], atol=1e-9)
        alive &= ~(mine[2] | mine[3])
        np.testing.assert_allclose(mine[0][alive], theirs[0][alive], atol=1e-5)
    return [ours_info, plain_info]


def paces(filling: str, size: int, threads: int, rounds: int, seconds: float) -> list[Pace]:
    """Time the batch that learners step, and the vector environment, alone."""
    task = task_at(FILLINGS[filling])
    batch = open_batch(task, size=size, threads=threads)
    vector = PickJobVectorEnv(size, task=task, threads=threads, copy=False)
    vector.reset(seed=0)
    players: dict[str, Player] = {
        "batch": (batch, batch.step),
        "Gymnasium": (vector.batch, vector.step),
    }
    found: dict[str, list[tuple[float, float, float]]] = {what: [] for what in players}
    for player in players.values():
        _warm_up(*player)
    for _ in range(rounds):
        for what, player in players.items():
            found[what].append(_paced(*player, seconds))
    batch.close()
    vector.close()
    return [
        Pace(what, filling, size, threads, *(median(column) for column in zip(*rows, strict=True)))
        for what, rows in found.items()
    ]


def _paced(
    batch: EnvironmentBatch, step: Callable[[Actions], Any], seconds: float
) -> tuple[float, float, float]:
    """Return decisions by real and by CPU second, and the mean number of jobs in line."""
    watch = Stopwatch()
    waiting: list[float] = []
    while watch.real_s < seconds or len(waiting) % JOBS:  # whole episodes: queues come and go
        actions = batch.masks.argmax(axis=1)
        watch.time(partial(step, actions))
        waiting.append(float(batch.waiting.mean()))
    decisions = len(waiting) * batch.size
    return decisions / watch.real_s, decisions / watch.cpu_s, float(np.mean(waiting))


def _warm_up(batch: EnvironmentBatch, step: Callable[[Actions], Any]) -> None:
    """Lay out all episodes and play one."""
    for number in range(EPISODES):
        batch.episodes.prepared(number)
    for _ in range(JOBS):
        step(batch.masks.argmax(axis=1))


def _show(rows: Sequence[SideBySide], alone: Sequence[Pace]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="Side by side: decisions per second (medians)")
    for head in ("queue", "environments", "SyncVectorEnv, plain Python", "ours", "ratio", "by CPU"):
        table.add_column(head, justify="left" if head == "queue" else "right")
    for row in rows:
        numbers = (
            f"{row.plain:,.0f}",
            f"{row.ours:,.0f}",
            f"{row.ratio:.0f}",
            f"{row.cpu_ratio:.0f}",
        )
        table.add_row(row.filling, str(row.environments), *numbers)
    console.print(table)
    table = Table(title="Alone: million decisions per second (by CPU second)")
    heads = [f"{what}, {count}" for what in ("batch", "Gymnasium") for count in ("1 thread", "2")]
    for head in ("queue", "jobs in line", "environments", *heads):
        table.add_column(head, justify="left" if head == "queue" else "right")
    for filling, size in dict.fromkeys((row.filling, row.environments) for row in alone):
        here = [row for row in alone if (row.filling, row.environments) == (filling, size)]
        cells = {
            (row.what, row.threads): f"{row.decisions_per_s / 1e6:.2f}"
            f" ({row.decisions_per_cpu_s / 1e6:.2f})"
            for row in here
        }
        table.add_row(
            filling,
            f"{here[0].waiting:.0f}",
            str(size),
            *(cells.get((what, count), "") for what in ("batch", "Gymnasium") for count in (1, 2)),
        )
    console.print(table)


def _show_bars(rows: Sequence[SideBySide], alone: Sequence[Pace]) -> None:
    """Hold the results against the bars: the best number of environments counts."""
    least = min(row.ratio for row in rows)
    print(f"{'PASS' if least >= RATIO_BAR else 'MISS'}: {least:.0f} times plain Python or more")
    for filling in dict.fromkeys(row.filling for row in alone):
        best = max(row.decisions_per_s for row in alone if row.filling == filling)
        verdict = "PASS" if best >= DECISIONS_BAR else "MISS"
        print(f"{verdict}: {filling}: {best / 1e6:.2f} million decisions per second at best")


def main() -> None:
    """Measure, print the tables, and write the numbers where the caller wants them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round of everything")
    parser.add_argument("--rounds", type=int, default=5, help="medians over so many turns (5)")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="each takes at least this long alone (0.5)"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers here")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    rows, alone = [], []
    for filling in FILLINGS:
        _progress(f"side by side, {filling}")
        rows.append(side_by_side(filling, 64, 1 if options.quick else 2 * rounds))
    for filling in FILLINGS:
        for size in SIZES:
            for threads in (1, 2):
                if size >= 64 * threads:
                    _progress(f"{filling}, {size} environments, {threads} threads")
                    alone += paces(filling, size, threads, rounds, options.seconds)
    _show(rows, alone)
    _show_bars(rows, alone)
    if options.json is not None:
        record = {
            "side_by_side": [asdict(row) for row in rows],
            "alone": [asdict(r) for r in alone],
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n")


def _progress(label: str) -> None:
    print(label, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
