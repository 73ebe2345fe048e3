"""How long a chooser takes to decide, by the length of the queue, and how quickly it is trained on.

`python benchmarks/choosing.py` (a minute). A decision is what a deployed chooser computes from the
state of the cluster: its observation, the forward pass of its network, and the best scheduler on
the menu; of each of the choosers that come along, whose networks and menus differ in size. Steps
are those of the environment alone, with random choices, on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

import yardmaster as ym
from yardmaster.engine.choosing import compilation
from yardmaster.envs.choosing.batch import open_choosing
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.schedulers.meta.chooser_file import packed, read_chooser
from yardmaster.schedulers.meta.choosers import SHIPPED, shipped_names
from yardmaster.schedulers.meta.menu import prepare_choice


def decision_us(name: str, waiting: int) -> float:
    """Return the microseconds of a chooser's decision with so many jobs waiting on 64 GPUs."""
    chooser = read_chooser(SHIPPED / f"{name}.npz")
    sight = chooser.sight
    dice = np.random.default_rng(0)
    jobs = ym.Workload.of(
        submit_s=np.zeros(waiting + 64),
        duration_s=(run_s := dice.uniform(30, 900, waiting + 64)),
        estimate_s=2.0 * run_s,
        deadline_s=dice.uniform(100, 9000, waiting + 64),
    )
    prepared = prepare_choice(jobs, ym.Cluster.of("8x V100:8"), sight)
    choosing = compilation.compiled()
    net = packed(chooser)
    rules, scales, facts = sight.rules(), sight.scales(), prepared.facts[None, :]
    ints, reals = prepared.simulation.ints[None, :], prepared.simulation.reals[None, :]
    rows = (ints.copy(), reals.copy())
    book = np.zeros((1, prepared.book_length), dtype=np.int64)
    purse = np.zeros((1, prepared.purse_length))
    view = np.zeros((1, sight.layout().length), dtype=np.float32)
    first = np.zeros(1, dtype=np.int64)
    lengths = np.array([part.shape[1] for part in (*rows, book, purse)])
    choosing.begin_many(
        *(ints, reals, facts, rules, scales, *rows, book, purse, view, first, lengths, first)
    )
    arguments = (
        *(rows[0][0], rows[1][0], rules, scales, facts[0], book[0], purse[0], view[0]),
        *(net.net, net.weights, np.zeros(len(sight.menu), dtype=np.float32)),
        np.zeros(net.scratch, dtype=np.float32),
    )
    return _microseconds(lambda: choosing.decide(*arguments))


def _microseconds(act: Callable[[], object]) -> float:
    act()
    rounds = []
    for _ in range(30):
        begun = time.perf_counter()
        for _ in range(500):
            act()
        rounds.append((time.perf_counter() - begun) / 500)
    return 1e6 * median(rounds)


def steps_per_s() -> float:
    """Return the decisions a second of 256 environments of the 48 regimes, on one thread."""
    batch = open_choosing(CHOOSING_TASKS["regimes"].changed(episodes=96), size=256)
    dice = np.random.default_rng(0)
    rates = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(100):
            batch.step(dice.integers(batch.layout.actions, size=256))
        rates.append(100 * 256 / (time.process_time() - begun))
    return median(rates)


if __name__ == "__main__":
    for chooser in shipped_names():
        for count in (10, 1_000, 100_000):
            took_us = decision_us(chooser, count)
            print(f"meta:{chooser}, {count:>7,} jobs waiting: {took_us:5.1f} µs a decision")
    print(f"environment: {steps_per_s():,.0f} decisions per CPU second")
