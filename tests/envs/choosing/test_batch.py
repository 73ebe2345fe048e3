"""Many environments of choosing in one call: rows do not know of each other."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.envs.choosing.batch import ChoosingBatch, open_choosing
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.metrics.summary import summarise
from yardmaster.schedulers.simulation import simulate

TASK = CHOOSING_TASKS["regimes"].changed(
    regimes=["base-low-2", "bursty-low-4", "shifted-medium-2"], episodes=6, past=2
)


def played(batch: ChoosingBatch, steps: int, seed: int = 0) -> list[np.ndarray]:
    """Return everything that some random steps show."""
    dice = np.random.default_rng(seed)
    shown = []
    for _ in range(steps):
        batch.step(dice.integers(batch.layout.actions, size=batch.size))
        shown += [
            batch.observations.copy(),
            batch.rewards.copy(),
            batch.terminated.copy(),
            batch.truncated.copy(),
            batch.elapsed_s.copy(),
            batch.groups.copy(),
            batch.now_s.copy(),
        ]
    return shown


def assert_same(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one, other)


def test_rows_are_single_environments():
    """Row `i` is, step by step, a batch of one that was reset with seed + i."""
    many = open_choosing(TASK, size=4, seed=3, compiled=False)
    singles = [open_choosing(TASK, size=1, seed=3 + row, compiled=False) for row in range(4)]
    dice = np.random.default_rng(1)
    for _ in range(80):
        actions = dice.integers(5, size=4)
        many.step(actions)
        for row, single in enumerate(singles):
            single.step(actions[row : row + 1])
            assert np.array_equal(single.observations[0], many.observations[row])
            assert single.rewards[0] == many.rewards[row]
            assert single.terminated[0] == many.terminated[row]


def test_threads_change_nothing():
    """On two threads the compiled environments do what they do on one."""
    one, two = (open_choosing(TASK, size=70, threads=threads) for threads in (1, 2))
    assert two._parts == 2
    assert_same(played(one, 60), played(two, 60))


def test_compiled_and_plain_agree():
    """Machine code and plain Python show the same, but for the last bit of sums."""
    plain, compiled = (open_choosing(TASK, size=3, compiled=choice) for choice in (False, True))
    for one, other in zip(played(plain, 100), played(compiled, 100), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-6)


def test_a_snapshot_goes_on_as_the_original_would():
    """From a snapshot the same actions have the same results, also in another batch."""
    batch = open_choosing(TASK, size=3, compiled=False)
    played(batch, 25)
    kept = batch.snapshot()
    first = played(batch, 70, seed=2)
    batch.restore(kept)
    assert_same(first, played(batch, 70, seed=2))
    other = ChoosingBatch(ChoosingEpisodes(TASK), 3, compiled=False)
    other.restore(kept)
    assert_same(first, played(other, 70, seed=2))


def test_groups_are_the_regimes_in_turn():
    """An environment's group is the place of its episode's regime, and there are as many."""
    batch = open_choosing(TASK, size=8, compiled=False)
    assert batch.group_count == 3
    assert np.array_equal(batch.groups, batch.episode_numbers % 3)
    assert batch.masks.all()


@pytest.mark.parametrize("place", [0, 2])
def test_scores_are_the_metrics_of_the_schedule(place: int):
    """What is told at the end of a constant choice is what the scheduler's summary says."""
    episodes = ChoosingEpisodes(TASK, "val")
    batch = ChoosingBatch(
        episodes, 3, compiled=False, autoreset=False, draw=lambda rows: rows.copy()
    )
    batch.begin(np.arange(3))
    open_rows = {0, 1, 2}
    while open_rows:
        batch.step(np.full(3, place))
        for row in sorted(open_rows & set(np.flatnonzero(batch._ends).tolist())):
            open_rows.remove(row)
            jobs, machines = episodes.situation(row)
            alone = summarise(simulate(jobs, machines, TASK.sight.menu[place], seed=row))
            scores = {name: value[row] for name, value in batch.scores.items()}
            assert scores["jct_s"] == pytest.approx(alone["mean_jct_s"])
            assert scores["p95_jct_s"] == pytest.approx(alone["p95_jct_s"])
            assert scores["wait_s"] == pytest.approx(alone["mean_wait_s"])
            assert scores["bounded_slowdown"] == pytest.approx(alone["mean_bounded_slowdown"])
            assert scores["unfinished"] == scores["switches"] == 0
            assert min(scores["jct_gap"], scores["p95_gap"], scores["mixed_gap"]) >= -1e-12


def test_staggered_environments_do_not_march_in_step():
    """Staggered environments stand at different moments of their episodes."""
    batch = ChoosingBatch(ChoosingEpisodes(TASK), 6, compiled=False)
    batch.reset(0, staggered=True)
    assert len(set(batch.now_s.tolist())) > 3


def test_what_is_kept_to_the_end_earns_what_was_told():
    """Going on with one scheduler earns what was told, from wherever; asking changes nothing."""
    task = TASK.changed(regimes=["bursty-low-4"], reward="mixed")
    batch = ChoosingBatch(ChoosingEpisodes(task), 2, compiled=False, autoreset=False)
    batch.reset(5)
    played(batch, 20)
    before = batch.snapshot()
    told = batch.kept_returns(np.array([1, 0]))
    assert told.shape == (2, batch.layout.actions)
    assert np.ptp(told, axis=1).min() > 0
    for action in (1, 3):
        batch.restore(before)
        earned, over = np.zeros(2), np.zeros(2, dtype=np.bool_)
        while not over.all():
            batch.step(np.full(2, action))
            earned += np.where(over, 0.0, batch.rewards)
            over |= batch.terminated | batch.truncated
        assert told[::-1, action] == pytest.approx(earned, abs=1e-9)
