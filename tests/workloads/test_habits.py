"""Owners, estimates, priorities and deadlines of generated jobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.habits import ROUND_LIMITS_S, WEEK_S, Habits, rounded_up_limit


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=50))
def test_limits_are_rounded_up_to_what_people_write(seconds):
    """A limit is the smallest listed one that is long enough, or whole weeks."""
    for asked, limit in zip(seconds, rounded_up_limit(np.array(seconds)), strict=True):
        assert limit >= asked
        if asked <= 7 * 86_400:
            assert limit == min(listed for listed in ROUND_LIMITS_S if listed >= asked)
        else:
            assert limit % WEEK_S == 0
            assert limit - asked < WEEK_S


@given(seed=st.integers(0, 100), sigma=st.sampled_from([0, 0.5, 2.0]))
def test_users_never_ask_for_too_little(seed, sigma):
    """Every estimate is at least the true run time."""
    rng = np.random.default_rng(seed)
    duration_s = np.round(np.exp(rng.normal(6, 3, 200))) + 1
    assert (Habits(estimate_sigma=sigma).estimates(rng, duration_s) >= duration_s).all()


def test_shares_of_tenants_follow_zipf():
    """The k-th largest of four teams has a share proportional to 1/k, and so have its people."""
    rng = np.random.default_rng(5)
    gpus = rng.choice([1, 2, 4, 8], 50_000)
    habits = Habits(tenants=4, users_per_tenant=3)
    tenant, user = habits.owners(rng, gpus, rng.random(50_000))
    shares = np.sort(np.bincount(tenant.codes) / 50_000)[::-1]
    assert shares == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=1e-4)
    largest = tenant.codes == np.bincount(tenant.codes).argmax()
    people = np.sort(np.bincount(user.codes[largest]))[::-1][:3] / largest.sum()
    assert people == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.03)
    assert len(user.names) == 12


def test_every_user_belongs_to_one_tenant():
    """A user's jobs are all paid by the same team."""
    rng = np.random.default_rng(6)
    tenant, user = Habits().owners(rng, rng.choice([1, 8], 5000), rng.random(5000))
    assert len(set(zip(tenant.codes.tolist(), user.codes.tolist(), strict=True))) == len(user.names)


def test_owners_have_typical_sizes_and_lengths():
    """Jobs of one team are of more similar size, of one person of more similar length."""
    rng = np.random.default_rng(7)
    gpus, length = rng.choice([1, 2, 4, 8, 16], 20_000), rng.random(20_000)
    tenant, user = Habits().owners(rng, gpus, length)

    def explained(values, codes):
        means = np.bincount(codes, weights=values) / np.bincount(codes)
        return np.var(means[codes]) / np.var(values)

    assert explained(np.log2(gpus), tenant.codes) > 0.2
    assert explained(length, user.codes) > 0.2


def test_priorities_and_deadlines_have_the_documented_shares():
    """70/25/5 % of priorities 0/1/2; 20 % deadlines at 1.5 to 5 durations after submission."""
    rng = np.random.default_rng(8)
    submit_s, duration_s = np.arange(50_000.0), np.full(50_000, 1000.0)
    priority = Habits().priorities(rng, 50_000)
    assert np.bincount(priority.astype(int)) / 50_000 == pytest.approx([0.7, 0.25, 0.05], abs=0.01)
    slack = (Habits().deadlines(rng, submit_s, duration_s) - submit_s) / duration_s
    given_ = slack[~np.isnan(slack)]
    assert len(given_) / 50_000 == pytest.approx(0.2, abs=0.01)
    assert given_.min() >= 1.5
    assert given_.max() <= 5.001


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tenants", 0),
        ("users_per_tenant", 1.5),
        ("deadline_share", 1.2),
        ("deadline_share", float("nan")),
        ("estimate_sigma", -1),
        ("estimate_sigma", "much"),
        ("priority_shares", (0.5, 0.4)),
        ("priority_shares", (1.5, -0.5)),
    ],
)
def test_habits_that_make_no_sense_are_named(name, value):
    """A bad habit is refused with the name of the argument."""
    with pytest.raises(InvalidWorkloadError, match=name):
        Habits(**{name: value})
