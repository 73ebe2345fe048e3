"""Which regime and jobs an environment gets: in turn, the same everywhere, sets apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from yardmaster.engine.choosing import places as at
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.standards import kept_gaps, mixed_cost
from yardmaster.envs.choosing.task import CHOOSING_TASKS, MOST_EPISODES
from yardmaster.envs.episodes import FIRST_SEED
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.metrics.summary import summarise
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.regimes import regimes

TASK = CHOOSING_TASKS["regimes"].changed(regimes=["base-low-2", "bursty-low-4", "diurnal-low-2"])


def jobs_of(episodes, number):
    return episodes.situation(number)[0]


def is_same(one, other):
    return len(one) == len(other) and bool((one.duration_s == other.duration_s).all())


def test_episodes_are_the_same_everywhere():
    """Opened twice, an episode has the same jobs, to the bit, the disturbed ones too."""
    one, other = ChoosingEpisodes(TASK), ChoosingEpisodes(TASK)
    for number in range(9):
        first, second = one.prepared(number), other.prepared(number)
        assert np.array_equal(first.facts, second.facts)
        assert np.array_equal(first.simulation.ints, second.simulation.ints)
        assert np.array_equal(first.simulation.reals, second.simulation.reals, equal_nan=True)
        assert jobs_of(one, number).submit_s[0] == 0.0


def test_regimes_take_turns():
    """Episode n is of regime n modulo their number, and no two of a set are alike."""
    episodes = ChoosingEpisodes(TASK.changed(randomised=False), "val")
    assert [episodes.group(number) for number in range(5)] == [0, 1, 2, 0, 1]
    assert [episodes.situation(number)[1].gpus for number in range(3)] == [2, 4, 2]
    for number in range(3):
        assert not is_same(jobs_of(episodes, number), jobs_of(episodes, number + 3))


def test_sets_share_no_seed():
    """Train, val and report begin where no other gets to, so no jobs are met in two of them."""
    first = sorted(FIRST_SEED.values())
    assert all(later - sooner >= MOST_EPISODES for sooner, later in pairwise(first))
    plain = TASK.changed(randomised=False)
    sets = [ChoosingEpisodes(plain, split) for split in ("train", "val", "report")]
    for number in range(3):
        drawn = [jobs_of(one, number) for one in sets]
        assert not any(is_same(drawn[a], drawn[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_about_half_of_the_training_episodes_are_disturbed():
    """Only training is randomised; what is judged is the regimes as they are."""
    task = TASK.changed(regimes=["base-low-2"])
    disturbed, plain = ChoosingEpisodes(task), ChoosingEpisodes(task.changed(randomised=False))
    changed = 0
    for number in range(60):
        one, other = jobs_of(disturbed, number), jobs_of(plain, number)
        changed += len(one) != len(other) or bool(
            (one.submit_s != other.submit_s).any() or (one.duration_s != other.duration_s).any()
        )
    assert 18 <= changed <= 42
    for split in ("val", "report"):
        one, other = (
            ChoosingEpisodes(which, split) for which in (task, task.changed(randomised=False))
        )
        assert all(is_same(jobs_of(one, number), jobs_of(other, number)) for number in range(5))


def test_the_time_unit_is_the_mean_run_time():
    """Unless it is given, it is measured on the regimes' first training episodes, in every set."""
    expected = np.mean(
        [
            regime.jobs(FIRST_SEED["train"]).duration_s.mean()
            for regime in regimes("rlmetadqn")
            if regime.name in TASK.regimes
        ]
    )
    for split in ("train", "val"):
        sight = ChoosingEpisodes(TASK, split).task.sight
        assert sight.time_unit_s == pytest.approx(expected)
    assert ChoosingEpisodes(TASK.changed(time_unit_s=7.0)).task.sight.time_unit_s == 7.0


def test_standards_are_the_menus_metrics():
    """Of each metric the best of the schedulers' own summaries is kept."""
    episodes = ChoosingEpisodes(TASK.changed(reward="mixed"), "val")
    jobs, machines = episodes.situation(1)
    rows = [summarise(simulate(jobs, machines, one, seed=1)) for one in TASK.sight.menu]
    best = episodes.standards(1).best
    for name in ("mean_jct_s", "p95_jct_s", "mean_bounded_slowdown", "deadline_miss_rate"):
        assert getattr(best, name) == pytest.approx(min(row[name] for row in rows))
    assert episodes.rules()[at.USES_TAIL] == episodes.rules()[at.USES_ENERGY] == 1
    assert ChoosingEpisodes(TASK).rules()[at.USES_ENERGY] == 0


def test_gaps_of_kept_schedulers_are_those_of_their_own_metrics():
    """Of each objective the best scheduler has gap 0, the others what their metrics say."""
    episodes = ChoosingEpisodes(TASK, "val")
    jobs, machines = episodes.situation(1)
    schedules = [simulate(jobs, machines, one, seed=1) for one in TASK.sight.menu]
    gaps = kept_gaps(schedules)
    assert gaps.min(axis=0).tolist() == [0.0, 0.0, 0.0]
    rows = [summarise(one) for one in schedules]
    for place, name in enumerate(("mean_jct_s", "p95_jct_s")):
        values = np.array([row[name] for row in rows])
        np.testing.assert_allclose(gaps[:, place], values / values.min() - 1.0, rtol=1e-9)
    found = episodes.standards(1)
    costs = [
        mixed_cost(found.best, row["mean_jct_s"], row["p95_jct_s"], row["deadline_miss_rate"])
        for row in rows
    ]
    np.testing.assert_allclose(gaps[:, 2], np.array(costs) / found.mixed - 1.0, atol=1e-9)


def test_labels_tell_regimes_apart():
    """Every regime has its own row of numbers between 0 and 1, shown only where wanted."""
    task = CHOOSING_TASKS["regimes"].changed(labelled=True)
    labels = ChoosingEpisodes(task)._labels
    assert labels.shape[0] == len(np.unique(labels, axis=0)) == 48
    assert labels.min() == 0.0
    assert labels.max() == 1.0
    assert ChoosingEpisodes(TASK).task.sight.labels == 0


def test_what_is_unknown_is_named():
    """Regimes, families and sets that are not there get a hint."""
    with pytest.raises(UnknownNameError, match="Did you mean 'base-low-2'"):
        ChoosingEpisodes(TASK.changed(regimes=["base-low-22"]))
    with pytest.raises(UnknownNameError, match="Did you mean 'drift'"):
        ChoosingEpisodes(TASK.changed(families=["drfit"]))
    with pytest.raises(UnknownNameError, match="Did you mean 'train'"):
        ChoosingEpisodes(TASK, "trian")


def test_too_many_labels_are_refused():
    """What a chooser cannot be told is said, before anything is simulated."""
    task = CHOOSING_TASKS["hard-regimes"].changed(labelled=True, families=["hard", "drift"])
    with pytest.raises(YardmasterError, match="labels, and a chooser can be told"):
        ChoosingEpisodes(task)
