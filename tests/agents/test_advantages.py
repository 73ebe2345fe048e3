"""Discounts, advantages and returns against their definitions, episode by episode."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.agents.advantages import (
    ReturnScale,
    advantages,
    returns_to_go,
    step_discounts,
)

SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 3))
SHARES = st.floats(0.0, 1.0)


def episodes(shape: tuple[int, int], seed: int, *, per_s: bool):
    """Random steps of episodes that end now and then, half of the ends being cut-offs."""
    dice = np.random.default_rng(seed)
    rewards = dice.normal(size=shape)
    values = dice.normal(size=(shape[0] + 1, shape[1]))
    ended = dice.random(shape) < 0.3
    terminated = ended & (dice.random(shape) < 0.5)
    following = np.where(ended, dice.normal(size=shape), values[1:])  # of last observations
    following[terminated] = 0.0
    elapsed_s = dice.exponential(50.0, shape) * (dice.random(shape) < 0.7)
    discounts = step_discounts(elapsed_s, 0.9, 100.0 if per_s else None)
    return rewards, values[:-1], following, discounts, ended


def mixture_of_n_step_returns(rewards, following, discounts, ended, trace):
    """The λ-return by its forward view: returns of 1, 2, … steps, weighed (1 − λₙ) λ₁ … λₙ₋₁."""
    steps, environments = rewards.shape
    mixed = np.zeros(rewards.shape)
    for row in range(environments):
        for first in range(steps):
            lengths = []
            for last in range(first, steps):
                worth, total = 1.0, 0.0
                for step in range(first, last + 1):
                    total += worth * rewards[step, row]
                    worth *= discounts[step, row]
                lengths.append(total + worth * following[last, row])
                if ended[last, row]:
                    break
            traces = trace[first : first + len(lengths), row]
            carried = np.cumprod(np.concatenate([[1.0], traces[:-1]]))
            weights = (1.0 - traces) * carried
            weights[-1] = carried[-1]
            mixed[first, row] = np.dot(weights, lengths)
    return mixed


@given(SHAPES, st.integers(0, 10**6), SHARES, st.booleans())
def test_advantages_are_the_mixture_of_n_step_returns(shape, seed, trace, per_s):
    """However episodes end and time passes, the recursion equals the definition."""
    rewards, values, following, discounts, ended = episodes(shape, seed, per_s=per_s)
    found = advantages(rewards, values, following, discounts, ended, trace=trace)
    traces = np.full(shape, trace)
    expected = mixture_of_n_step_returns(rewards, following, discounts, ended, traces) - values
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(SHAPES, st.integers(0, 10**6))
def test_every_step_may_have_a_trace_of_its_own(shape, seed):
    """With λ counted by time, steps that took longer carry less back, as the definition says."""
    rewards, values, following, discounts, ended = episodes(shape, seed, per_s=True)
    traces = step_discounts(np.random.default_rng(seed + 1).exponential(50.0, shape), 0.9, 100.0)
    found = advantages(rewards, values, following, discounts, ended, trace=traces)
    expected = mixture_of_n_step_returns(rewards, following, discounts, ended, traces) - values
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(SHAPES, st.integers(0, 10**6), SHARES)
def test_nothing_leaks_into_the_episode_before(shape, seed, trace):
    """What happens after an episode's end changes no advantage before it."""
    rewards, values, following, discounts, ended = episodes(shape, seed, per_s=True)
    last = shape[0] // 2
    ended[last] = True
    before = advantages(rewards, values, following, discounts, ended, trace=trace)
    rewards[last + 1 :] += 100.0
    following[last + 1 :] -= 100.0
    values[last + 1 :] -= 100.0
    after = advantages(rewards, values, following, discounts, ended, trace=trace)
    np.testing.assert_array_equal(before[: last + 1], after[: last + 1])


@given(SHAPES, st.integers(0, 10**6), st.booleans())
def test_returns_to_go_are_sums_of_discounted_rewards(shape, seed, per_s):
    """The rewards to the end of the episode or of the recording, and the tail beyond it."""
    rewards, _, following, discounts, ended = episodes(shape, seed, per_s=per_s)
    is_last = ended.copy()
    is_last[-1] = True
    tails = np.where(is_last, following, 0.0)
    expected = np.zeros(shape)
    for first, row in np.ndindex(shape):
        worth = 1.0
        for step in range(first, shape[0]):
            expected[first, row] += worth * rewards[step, row]
            worth *= discounts[step, row]
            if is_last[step, row]:
                expected[first, row] += worth * following[step, row]
                break
    np.testing.assert_allclose(returns_to_go(rewards, tails, discounts, ended), expected, atol=1e-9)


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=8), st.floats(0.5, 1.0))
def test_discounting_in_time_does_not_care_how_time_is_cut(pieces_s, gamma):
    """Many short steps discount as one long one does; a step without time does not discount."""
    elapsed_s = np.array(pieces_s)
    product = step_discounts(elapsed_s, gamma, 1e5).prod()
    assert product == pytest.approx(gamma ** (elapsed_s.sum() / 1e5))
    assert step_discounts(np.zeros(1), gamma, 60.0).tolist() == [1.0]
    assert step_discounts(elapsed_s, gamma, None).tolist() == [gamma] * len(pieces_s)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 10**6))
def test_reward_scale_is_the_spread_of_all_returns_so_far(lengths, seed):
    """Over several rollouts, with a save in between, it is the deviation of all of them."""
    dice = np.random.default_rng(seed)
    scale = ReturnScale(2)
    seen: list[float] = []
    running = np.zeros(2)
    for length in lengths:
        rewards = dice.normal(3.0, 50.0, (length, 2))
        ended = dice.random((length, 2)) < 0.3
        discounts = np.full((length, 2), 0.9)
        resumed = ReturnScale(2)
        resumed.load(scale.state())
        scale = resumed
        scale.see(rewards, discounts, ended)
        for step in range(length):
            running = running + rewards[step]
            seen += running.tolist()
            running = np.where(ended[step], 0.0, 0.9 * running)
    assert scale.scale == pytest.approx(np.std(seen))


def test_without_a_spread_rewards_stay_as_they_are():
    """Rewards that are all zero, or not yet seen, are divided by 1."""
    scale = ReturnScale(3)
    assert scale.scale == 1.0
    scale.see(np.zeros((4, 3)), np.ones((4, 3)), np.zeros((4, 3), dtype=np.bool_))
    assert scale.scale == 1.0


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(0, 10**6), st.booleans())
def test_every_kind_of_episode_has_a_spread_of_its_own(length, seed, as_tensors):
    """Each is the deviation of the returns seen in that kind, in arrays as in tensors."""
    dice = np.random.default_rng(seed)
    scale = ReturnScale(4, groups=3)
    seen: list[list[float]] = [[], [], []]
    running = np.zeros(4)
    for _ in range(2):
        groups = dice.integers(0, 2, (length, 4))  # nobody is ever of the third kind
        rewards = dice.normal(1.0, 10.0**groups)
        ended = dice.random((length, 4)) < 0.3
        discounts = dice.uniform(0.5, 1.0, (length, 4))
        given_ = (rewards, discounts, ended, groups)
        scale.see(*(map(torch.from_numpy, given_) if as_tensors else given_))
        for step in range(length):
            running = running + rewards[step]
            for kind, value in zip(groups[step], running, strict=True):
                seen[kind].append(value)
            running = np.where(ended[step], 0.0, discounts[step] * running)
    expected = [np.std(values) if len(values) > 1 else 1.0 for values in seen]
    assert scale.scales.tolist() == pytest.approx(expected)
