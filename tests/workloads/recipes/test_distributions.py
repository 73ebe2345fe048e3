"""Laws of sizes and durations against their closed forms and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.recipes.distributions import (
    DISTRIBUTIONS,
    BoundedPareto,
    Choice,
    Exponential,
    Fixed,
    HeavyTailed,
    LogNormal,
    LogUniform,
    Normal,
    Quantiles,
    Uniform,
)

JOBS = 40_000
KS_LIMIT = 1.95 / np.sqrt(JOBS)
"""Kolmogorov-Smirnov distance that one sample in a thousand of the true law exceeds."""


def drawn(law, seed=1):
    return law.draw(np.random.default_rng(seed), JOBS).values


def heavy_tailed_cdf(x):
    """85 % U[1 %, 8 %] of 10,000 s and 15 % log-uniform [8 %, 100 %], from the definition."""
    short = stats.uniform(100, 700).cdf(x)
    long = np.clip(np.log(np.maximum(x, 1) / 800) / np.log(10_000 / 800), 0, 1)
    return 0.85 * short + 0.15 * long


CONTINUOUS = [
    (Uniform(low=30, high=900), stats.uniform(30, 870).cdf, 465.0),
    (LogUniform(low=2, high=800), stats.loguniform(2, 800).cdf, 798 / np.log(400)),
    (LogNormal(median=600, sigma=0.8), stats.lognorm(0.8, scale=600).cdf, 600 * np.exp(0.32)),
    (Exponential(mean=3600), stats.expon(scale=3600).cdf, 3600.0),
    (
        BoundedPareto(alpha=1.5, low=10, high=1000),
        stats.truncpareto(1.5, 100, scale=10).cdf,
        # α/(α−1) · (low − high·(low/high)^α) / (1 − (low/high)^α)
        3 * (10 - 1000 * 0.01**1.5) / (1 - 0.01**1.5),
    ),
    (
        HeavyTailed(longest=10_000),
        heavy_tailed_cdf,
        0.85 * 450 + 0.15 * (10_000 - 800) / np.log(12.5),
    ),
]


@pytest.mark.parametrize(
    ("law", "cdf", "mean"), CONTINUOUS, ids=[type(law).__name__ for law, _, _ in CONTINUOUS]
)
def test_laws_are_what_they_are_called(law, cdf, mean):
    """Distribution function and mean are those of the textbook."""
    values = drawn(law)
    assert stats.kstest(values, cdf).statistic < KS_LIMIT
    assert values.mean() == pytest.approx(mean, abs=4 * values.std() / np.sqrt(JOBS))


def test_normal_values_beyond_the_limits_are_set_to_the_limits():
    """max(1, N(3000, 2500)): the part below 1 is at 1, the rest is normal."""
    values = drawn(Normal(mean=3000, std=2500, low=1))
    law = stats.norm(3000, 2500)
    at_limit = np.mean(values == 1)
    assert at_limit == pytest.approx(law.cdf(1), abs=4 * 0.5 / np.sqrt(JOBS))
    inner = values[values > 1]
    truncated = stats.truncnorm((1 - 3000) / 2500, np.inf, loc=3000, scale=2500)
    assert stats.kstest(inner, truncated.cdf).statistic < 1.95 / np.sqrt(len(inner))
    # E max(1, X) = 1·Φ(a) + μ·(1 − Φ(a)) + σ·φ(a) with a = (1 − μ)/σ
    a = (1 - 3000) / 2500
    mean = stats.norm.cdf(a) + 3000 * stats.norm.sf(a) + 2500 * stats.norm.pdf(a)
    assert values.mean() == pytest.approx(mean, abs=4 * values.std() / np.sqrt(JOBS))


def test_lognormal_values_are_clipped():
    """Limits take the tails: their shares are those of the normal law."""
    values = drawn(LogNormal(median=600, sigma=1.7, low=30, high=172_800))
    assert (values.min(), values.max()) == (30, 172_800)
    below = stats.norm.cdf(np.log(30 / 600) / 1.7)
    assert np.mean(values == 30) == pytest.approx(below, abs=4 * np.sqrt(below / JOBS))


def test_choices_have_their_weights():
    """Shares follow the weights, equal ones without (chi-square)."""
    weighted = drawn(Choice(values=(1, 2, 8), weights=(6, 3, 1)))
    counts = [np.sum(weighted == value) for value in (1, 2, 8)]
    assert stats.chisquare(counts, np.array([0.6, 0.3, 0.1]) * JOBS).pvalue > 1e-3
    plain = drawn(Choice(values=(0.5, 1, 2.5, 5)))
    assert stats.chisquare(np.unique(plain, return_counts=True)[1]).pvalue > 1e-3
    assert set(drawn(Fixed(value=7))) == {7}


def test_quantiles_are_met_and_logarithms_linear_between():
    """The law passes through the given points; between them it is log-linear."""
    law = Quantiles(probabilities=(0.25, 0.5, 0.75), values=(10, 100, 10_000))
    values = drawn(law)
    for probability, value in ((0.25, 10), (0.5, 100), (0.75, 10_000), (0.625, 1000)):
        assert np.mean(values < value) == pytest.approx(probability, abs=2 / np.sqrt(JOBS))
    middle = np.log(values[(values > 100) & (values < 10_000)])
    uniform = stats.uniform(np.log(100), np.log(100))
    assert stats.kstest(middle, uniform.cdf).statistic < 1.95 / np.sqrt(len(middle))


@pytest.mark.parametrize("law", [law for law, _, _ in CONTINUOUS])
def test_ranks_order_the_values(law):
    """What counts as long among its like is what runs long."""
    values, rank = law.draw(np.random.default_rng(3), 1000)
    assert stats.spearmanr(values, rank).statistic == pytest.approx(1.0)


@pytest.mark.parametrize("law", [law for law, _, _ in CONTINUOUS])
def test_more_jobs_do_not_change_the_first(law):
    """The first jobs of a longer workload are those of the shorter one."""
    few, many = (law.draw(np.random.default_rng(3), jobs).values for jobs in (100, 300))
    assert (few == many[:100]).all()


@pytest.mark.parametrize(
    ("law", "values", "message"),
    [
        (Uniform, {"low": 5, "high": 2}, "low is 5, above high, 2"),
        (LogUniform, {"low": 0, "high": 2}, "low must be a number above 0"),
        (LogNormal, {"median": 5, "sigma": 21}, "sigma must be at most 20"),
        (LogNormal, {"median": float("nan"), "sigma": 1}, "median must be a number, got nan"),
        (Normal, {"mean": 5, "std": -1}, "std must be a number of at least 0"),
        (Normal, {"mean": float("inf"), "std": 1}, "mean must be a number, got inf"),
        (Choice, {"values": ()}, "values must be a list of numbers"),
        (Choice, {"values": (1, 2), "weights": (1,)}, "2 values but 1 weights"),
        (Choice, {"values": (1, 2), "weights": (0, 0)}, "weights must not all be 0"),
        (Choice, {"values": (1, -2)}, r"values\[1\] must be a number above 0"),
        (Quantiles, {"probabilities": (0.5, 0.2), "values": (1, 2)}, "ascending and below 1"),
        (Quantiles, {"probabilities": (0.2, 0.5), "values": (2, 1)}, "values must be ascending"),
        (Quantiles, {"probabilities": (0.5,), "values": (2,)}, "at least 2"),
        (HeavyTailed, {"longest": 9, "short_low": 0.5}, "short_low is 0.5, above short_high"),
        (HeavyTailed, {"longest": 9, "short_share": 1.5}, "short_share must be from 0 to 1"),
        (Fixed, {"value": "many"}, "value must be a number, got 'many'"),
        (Fixed, {"value": True}, "value must be a number, got True"),
    ],
)
def test_parameters_that_make_no_sense_are_named(law, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        law(**values)


def test_every_law_has_a_name_and_says_what_it_is():
    """Catalogues and documents rely on it."""
    assert len({law.process for law in DISTRIBUTIONS}) == len(DISTRIBUTIONS)
    assert all(law.__doc__ for law in DISTRIBUTIONS)
