"""How users err, against the documented models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.recipes.estimates import (
    ROUND_LIMITS_S,
    WEEK_S,
    ExactEstimates,
    NoEstimates,
    NoisyEstimates,
    RoundLimits,
    ScaledEstimates,
    rounded_up_limit,
)

JOBS = 50_000
DURATION_S = np.random.default_rng(0).uniform(1, 10_000, JOBS)


def rng(seed=1):
    return np.random.default_rng(seed)


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
def test_users_with_round_limits_never_ask_for_too_little(seed, sigma):
    """Every estimate is at least the true run time."""
    duration_s = np.round(np.exp(rng(seed).normal(6, 3, 200))) + 1
    assert (RoundLimits(sigma=sigma).draw(rng(seed), duration_s) >= duration_s).all()


def test_noisy_estimates_are_log_normal_to_both_sides():
    """Estimate / duration is log-normal with the stated median and spread."""
    factor = NoisyEstimates(sigma=0.5, bias=2).draw(rng(), DURATION_S) / DURATION_S
    law = stats.lognorm(0.5, scale=2)
    assert stats.kstest(factor, law.cdf).statistic < 1.95 / np.sqrt(JOBS)
    assert np.mean(factor < 1) == pytest.approx(law.cdf(1), abs=0.01)


def test_simple_estimates():
    """Exact, scaled, or none."""
    assert (ExactEstimates().draw(rng(), DURATION_S) == DURATION_S).all()
    assert ScaledEstimates(factor=3).draw(rng(), DURATION_S) == pytest.approx(3 * DURATION_S)
    assert np.isnan(NoEstimates().draw(rng(), DURATION_S)).all()


@pytest.mark.parametrize(
    ("process", "values", "message"),
    [
        (NoisyEstimates, {"sigma": -1}, "sigma must be a number of at least 0"),
        (ScaledEstimates, {"factor": 0}, "factor must be a number above 0"),
    ],
)
def test_parameters_that_make_no_sense_are_named(process, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        process(**values)
