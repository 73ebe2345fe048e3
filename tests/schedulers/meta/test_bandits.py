"""Bandits find the best arm, and keep the books that their formulas ask for."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.errors import UnknownNameError
from yardmaster.schedulers.meta.bandits import BANDITS, Exp3, LinUCB

LEARNING = ("epsilon-greedy", "exp3", "linucb")
NOTHING_SEEN = np.zeros(2)


def pulls(name, pay, *, seed=0, times=3_000):
    """Return which arms a bandit pulls, being paid 0 or 1 by these odds."""
    dice = np.random.default_rng(seed + 1_000)
    bandit = BANDITS[name].begin(len(pay), 2, seed)
    arms = []
    for _ in range(times):
        arms.append(bandit.choose(NOTHING_SEEN))
        bandit.learn(float(dice.random() < pay[arms[-1]]))
    return np.array(arms)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", LEARNING)
def test_the_best_arm_is_found(name, seed):
    """Where the odds never change, the best arm is in the end pulled most of the time."""
    arms = pulls(name, (0.3, 0.8, 0.4, 0.2), seed=seed)
    assert np.mean(arms[-1_000:] == 1) > 0.75
    assert set(arms.tolist()) == {0, 1, 2, 3}


def test_the_random_one_learns_nothing():
    """It pulls all arms alike, whatever they pay."""
    counts = np.bincount(pulls("random", (0.0, 1.0, 0.0)), minlength=3)
    assert counts == pytest.approx([1_000] * 3, rel=0.1)


@pytest.mark.parametrize("name", sorted(BANDITS))
def test_chance_comes_from_the_seed(name):
    """The same seed pulls the same arms."""
    pay = (0.5, 0.5, 0.6)
    first, again = (pulls(name, pay, seed=3, times=200) for _ in range(2))
    assert np.array_equal(first, again)


def test_linucb_keeps_the_inverse():
    """After any rewards, the matrix it keeps is the inverse of the one Li et al. write down."""
    dice = np.random.default_rng(0)
    bandit = LinUCB(3, 4, 0)
    seen = {arm: [] for arm in range(3)}
    paid = {arm: [] for arm in range(3)}
    for _ in range(200):
        numbers = dice.random(4)
        arm = bandit.choose(numbers)
        reward = float(dice.random())
        bandit.learn(reward)
        seen[arm].append([*numbers, 1.0])
        paid[arm].append(reward)
    for arm in range(3):
        rows = np.array(seen[arm]).reshape(-1, 5)
        direct = np.linalg.inv(np.eye(5) + rows.T @ rows)
        assert np.allclose(bandit._inverse[arm], direct, atol=1e-10)
        assert np.allclose(bandit._sums[arm], rows.T @ np.array(paid[arm]))


def test_linucb_learns_what_depends_on_what_it_sees():
    """Where the right arm depends on what is seen, it learns to tell."""
    dice = np.random.default_rng(1)
    bandit = LinUCB(2, 1, 0)
    right = []
    for _ in range(1_000):
        side = int(dice.integers(2))
        right.append(bandit.choose(np.array([float(side)])) == side)
        bandit.learn(float(right[-1]))
    assert np.mean(right[-500:]) > 0.95


def test_exp3_follows_the_paper():
    """Shares are (1 − γ) w / Σw + γ / K, and w grows by exp(γ r / (K p)) (Auer et al. 2002)."""
    bandit = Exp3(3, 0, 7)
    weights = np.ones(3)
    for reward in (1.0, 0.2, 0.0, 0.9, 1.0):
        arm = bandit.choose(NOTHING_SEEN)
        shares = 0.9 * weights / weights.sum() + 0.1 / 3
        assert bandit._shares == pytest.approx(shares)
        bandit.learn(reward)
        weights[arm] *= np.exp(0.1 * reward / (3 * shares[arm]))


def test_exp3_changes_its_mind():
    """When another arm becomes the best, it comes to pull that one."""
    dice = np.random.default_rng(2)
    bandit = Exp3(2, 0, 0)
    late = []
    for time in range(4_000):
        arm = bandit.choose(NOTHING_SEEN)
        good = 0 if time < 1_000 else 1
        bandit.learn(float(dice.random() < (0.9 if arm == good else 0.1)))
        late.append(arm)
    assert np.mean(np.array(late[700:1_000]) == 0) > 0.8
    assert np.mean(np.array(late[-500:]) == 1) > 0.8


def test_an_unknown_bandit_gets_a_hint():
    """A misspelt name is answered with the nearest one."""
    with pytest.raises(UnknownNameError, match="Did you mean 'linucb'"):
        BANDITS["linucbb"]
