"""Run times are drawn from what the past says, running jobs included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import YardmasterError
from yardmaster.experiments.run_time_model import LEAST_ENDED, RunTimeModel, Survival
from yardmaster.model.workload import Workload


def test_without_running_jobs_it_is_the_plain_distribution():
    """When all have ended, the share that runs longer is counted."""
    survival = Survival.of(np.array([1.0, 2.0, 2.0, 5.0]), np.ones(4, dtype=bool))
    shares = survival.longer_than(np.array([0.5, 1.0, 2.0, 4.9, 5.0]))
    np.testing.assert_allclose(shares, [1, 0.75, 0.25, 0.25, 0])


def test_running_jobs_count_as_longer():
    """Kaplan and Meier's worked product: 6 jobs, two of them still running."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    ended = np.array([True, False, True, True, False, True])
    survival = Survival.of(values, ended)
    expected = [5 / 6, 5 / 6 * 3 / 4, 5 / 6 * 3 / 4 * 2 / 3, 0]
    np.testing.assert_allclose(survival.share, expected)


@given(
    st.lists(st.floats(0.1, 1e5), min_size=3, max_size=40),
    st.lists(st.booleans(), min_size=3, max_size=40),
    st.floats(0, 2e5),
    st.floats(0, 0.999),
)
def test_draws_are_not_shorter_than_what_was_run(values, ended, beyond, luck):
    """Whatever the past, no job is given less than it has run already, or for ever."""
    count = min(len(values), len(ended))
    have_ended = np.array(ended[:count])
    have_ended[0] = True
    survival = Survival.of(np.array(values[:count]), have_ended)
    drawn = survival.draw(np.array([luck]), np.array([beyond]))
    assert drawn[0] >= beyond
    assert np.isfinite(drawn).all()


def test_running_jobs_go_on():
    """A job that runs is always given a little more, even past all that was seen."""
    held = np.array([5.0, 7.0, 7.0, 9.0])
    ended = np.array([True, True, False, False])
    model = RunTimeModel.of(table(4), held, ended)
    rows = np.tile([2, 3], (200, 1))
    assert (model.draw(np.random.default_rng(0), rows, held[rows]) > held[rows]).all()


def test_draws_follow_the_conditional_distribution():
    """Beyond 10 s, an exponential has the same mean left: it does not age."""
    rng = np.random.default_rng(3)
    past = rng.exponential(100.0, 40_000)
    survival = Survival.of(past, np.ones(len(past), dtype=bool))
    for beyond in (0.0, 10.0, 150.0):
        drawn = survival.draw(rng.random(20_000), np.full(20_000, beyond))
        assert (drawn - beyond).mean() == pytest.approx(100.0, rel=0.05)


def table(count: int, **columns) -> Workload:
    return Workload.of(submit_s=np.arange(count), duration_s=np.ones(count), **columns)


def test_sizes_have_their_own_distribution():
    """Without estimates, large jobs are drawn from large jobs."""
    gpus = np.repeat([1, 8], LEAST_ENDED + 1)
    held = np.where(gpus == 1, 10.0, 1000.0)
    ended = np.ones(len(gpus), dtype=bool)
    ended[[0, -1]] = False
    held[[0, -1]] = 0.0
    model = RunTimeModel.of(table(len(gpus), gpus=gpus), held, ended)
    rows = np.array([0, len(gpus) - 1])
    drawn = model.draw(np.random.default_rng(0), rows, np.zeros(2))
    assert drawn.tolist() == [10.0, 1000.0]


def test_users_have_their_own_ratio():
    """With estimates, a user who asks for double what is needed is known for it."""
    count = 2 * (LEAST_ENDED + 1)
    user = ["honest", "careful"] * (count // 2)
    estimate = np.linspace(100, 1000, count)
    held = estimate * np.where(np.array(user) == "honest", 1.0, 0.5)
    ended = np.ones(count, dtype=bool)
    ended[-2:], held[-2:] = False, 0.0
    model = RunTimeModel.of(table(count, user=user, estimate_s=estimate), held, ended)
    drawn = model.draw(np.random.default_rng(0), np.array([count - 2, count - 1]), np.zeros(2))
    np.testing.assert_allclose(drawn, estimate[-2:] * [1.0, 0.5])


def test_neighbours_are_drawn_together():
    """Jobs that stand together get run times that stood together in the past."""
    count = 200
    held = np.arange(count, dtype=float) + 1.0
    ended = np.ones(count, dtype=bool)
    ended[-5:], held[-5:] = False, 0.0
    model = RunTimeModel.of(table(count), held, ended)
    drawn = model.draw_like_neighbours(np.random.default_rng(1), np.arange(count - 5, count), 50)
    steps = np.diff(drawn, axis=1)
    assert np.mean(steps == 1.0) > 0.95  # only a wrap from the last to the first breaks the row
    assert len(np.unique(drawn[:, 0])) > 10


def test_without_a_past_estimates_are_believed():
    """Nothing has ended: jobs run as estimated, and without estimates nothing is known."""
    nobody = np.zeros(3, dtype=bool)
    model = RunTimeModel.of(table(3, estimate_s=[10, 20, 30]), np.zeros(3), nobody)
    drawn = model.draw_like_neighbours(np.random.default_rng(0), np.arange(3), 2)
    np.testing.assert_allclose(drawn, [[10, 20, 30]] * 2)
    with pytest.raises(YardmasterError, match="nothing has ended"):
        RunTimeModel.of(table(3), np.zeros(3), nobody)
