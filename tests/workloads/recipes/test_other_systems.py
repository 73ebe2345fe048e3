"""The synthetic workloads of other systems, derived once more from their definitions.

Every check starts from the published definition (rates, laws and formulas written out below), not
from the recipes.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import UnknownNameError
from yardmaster.workloads.recipes.presets import PRESETS
from yardmaster.workloads.sources import load_workload
from yardmaster.workloads.synthetic import generate

JOBS = 30_000
KS_LIMIT = 1.95 / np.sqrt(JOBS)
SEEDS = 40
INTENSITIES = {"low": 1, "medium": 2, "high": 4, "super-high": 6}
SHAPES = ("base", "bursty", "diurnal", "shifted")


def independent(one, other):
    """Rank correlation is that of chance."""
    return abs(stats.spearmanr(one, other).statistic) < 4 / np.sqrt(len(one))


def is_continuous(seconds):
    return np.mean(seconds == np.round(seconds)) < 0.01


def test_drl_scheduler():
    """Poisson, 2.5 jobs/s; max(1, N(3000, 2500)) s; U{1…8} GPUs; 4 priorities; 3 users."""
    jobs = generate("drl-scheduler", jobs=JOBS, seed=1)
    gaps = np.diff(jobs.submit_s, prepend=0)
    assert stats.kstest(gaps, stats.expon(scale=1 / 2.5).cdf).statistic < KS_LIMIT
    at_one = np.mean(jobs.duration_s == 1)
    assert at_one == pytest.approx(stats.norm.cdf((1 - 3000) / 2500), abs=0.01)
    inner = jobs.duration_s[jobs.duration_s > 1]
    law = stats.truncnorm(-2999 / 2500, np.inf, loc=3000, scale=2500)
    assert stats.kstest(inner, law.cdf).statistic < 1.95 / np.sqrt(len(inner))
    for column, values in (
        (jobs.gpus, range(1, 9)),
        (jobs.priority, (0.5, 1, 2.5, 5)),
        (np.array(jobs.user.values()), ("101", "102", "103")),
    ):
        found, counts = np.unique(column, return_counts=True)
        assert found.tolist() == list(values)
        assert stats.chisquare(counts).pvalue > 1e-3
    assert is_continuous(jobs.submit_s)
    assert (jobs.estimate_s == jobs.duration_s).all()
    assert np.isnan(jobs.deadline_s).all()
    for one, other in itertools.combinations((jobs.duration_s, jobs.gpus, jobs.priority, gaps), 2):
        assert independent(one, other)


def heavy_tailed_cdf(x):
    short = np.clip((x / 10_000 - 0.01) / 0.07, 0, 1)
    long = np.clip(np.log(np.maximum(x, 1) / 800) / np.log(12.5), 0, 1)
    return 0.85 * short + 0.15 * long


@pytest.mark.parametrize("priority", ["negative", "positive", "none"])
@pytest.mark.parametrize("mode", ["heavy", "uniform"])
def test_gpu_optimizer_jobs(mode, priority):
    """Durations, sizes and priorities follow the formulas of the original."""
    jobs = generate(f"gpu-optimizer:mode={mode},priority={priority}", jobs=JOBS, seed=2)
    cdf = heavy_tailed_cdf if mode == "heavy" else stats.uniform(500, 1500).cdf
    assert stats.kstest(jobs.duration_s, cdf).statistic < KS_LIMIT
    d = jobs.duration_s / 10_000
    g = 1 + np.floor(d**0.6 * 7)
    sizes = np.array([np.rint(0.7 * g + 0.3 * throw) for throw in range(1, 9)])
    assert (sizes == jobs.gpus).any(axis=0).all()
    # Every throw of U{1…8} is equally likely: the mean size is the mean over the throws.
    assert jobs.gpus.mean() == pytest.approx(sizes.mean(), abs=4 * 0.75 / np.sqrt(JOBS))
    if priority == "none":
        found, counts = np.unique(jobs.priority, return_counts=True)
        assert found.tolist() == list(range(1, 11))
        assert stats.chisquare(counts).pvalue > 1e-3
        assert independent(jobs.priority, d)
    else:
        p = 1 + np.floor((d if priority == "positive" else 1 - d) ** 0.8 * 9)
        urgency = np.array([np.rint(0.6 * p + 0.4 * throw) for throw in range(1, 11)])
        assert (urgency == jobs.priority).any(axis=0).all()
        assert jobs.priority.mean() == pytest.approx(urgency.mean(), abs=4 * 1.2 / np.sqrt(JOBS))
        sign = 1 if priority == "positive" else -1
        assert sign * stats.spearmanr(d, jobs.priority).statistic > 0.1
    assert (jobs.estimate_s == jobs.duration_s).all()
    assert is_continuous(jobs.submit_s)


def test_gpu_optimizer_bursts():
    """400 jobs by default over 10,000 s; six normal bursts on a uniform background, clipped."""
    first = generate("gpu-optimizer", seed=0)
    assert len(first) == 400
    pooled = np.concatenate([generate("gpu-optimizer", seed=s).submit_s for s in range(300)])
    assert pooled.min() == 0.0
    assert pooled.max() == 10_000.0
    # P(a job is clipped to 0) = 0.8 · E max(0, noise) / span with noise N(0, 300²)
    clipped = 0.8 * 0.03 / math.sqrt(2 * math.pi)
    assert np.mean(pooled == 0) == pytest.approx(clipped, abs=0.003)
    # Bursts of one workload: jobs are far nearer to each other than uniform ones would be.
    gaps = np.concatenate([np.diff(generate("gpu-optimizer", seed=s).submit_s) for s in range(50)])
    assert gaps.std() / gaps.mean() > 1.5
    assert independent(pooled[:400], first.duration_s)


def test_gpu_optimizer_at_once_and_scaled():
    """All jobs at second 0; or all times and durations in proportion to the longest."""
    assert set(generate("gpu-optimizer:arrivals=at-once", seed=1).submit_s) == {0.0}
    small = generate("gpu-optimizer:max_duration_s=100", seed=1)
    large = generate("gpu-optimizer", seed=1)
    assert small.duration_s * 100 == pytest.approx(large.duration_s)
    assert small.submit_s * 100 == pytest.approx(large.submit_s)
    assert (small.gpus == large.gpus).all()


def test_gpu_optimizer_on_fewer_gpus():
    """The largest job is as large as the cluster, and the formula knows it."""
    jobs = generate("gpu-optimizer", seed=1, gpus=4)
    g = 1 + np.floor((jobs.duration_s / 10_000) ** 0.6 * 3)
    sizes = np.array([np.rint(0.7 * g + 0.3 * throw) for throw in range(1, 5)])
    assert (sizes == jobs.gpus).any(axis=0).all()


@pytest.mark.parametrize("workload", SHAPES)
@pytest.mark.parametrize("intensity", INTENSITIES)
def test_rlmetadqn_rates(workload, intensity):
    """λ(t) integrates to the right number of jobs in the hour, for every regime."""
    rate = INTENSITIES[intensity] / 60
    mean = rate * 3600 * (1.65 if workload == "bursty" else 1.0)
    source = f"rlmetadqn:workload={workload},intensity={intensity}"
    counts = [len(generate(source, seed=seed)) for seed in range(SEEDS)]
    assert np.mean(counts) == pytest.approx(mean, abs=4 * np.sqrt(mean / SEEDS))


def rlmetadqn_cdf(workload):
    """The integral of λ(t)/∫λ over one hour, from the definition of λ, on a grid."""
    second = np.linspace(0, 3600, 36_001)[:-1] + 0.05
    rate = {
        "base": np.ones_like(second),
        "bursty": np.where((second // 300) % 2 == 0, 3.0, 0.3),
        "diurnal": 0.5 + 0.5 * (1 + np.sin(2 * np.pi * second / 3600)),
        "shifted": 0.5 + 0.5 * (1 + np.sin(2 * np.pi * (second + 900) / 3600)),
    }[workload]
    total = np.concatenate(([0.0], np.cumsum(rate)))
    return lambda at: np.interp(at, np.linspace(0, 3600, 36_001), total / total[-1])


@pytest.mark.parametrize("workload", SHAPES)
def test_rlmetadqn_shapes(workload):
    """Submissions within the hour have the density of λ(t)."""
    source = f"rlmetadqn:workload={workload},intensity=super-high"
    times = np.concatenate([generate(source, seed=seed).submit_s for seed in range(SEEDS)])
    assert times.max() < 3600
    assert stats.kstest(times, rlmetadqn_cdf(workload)).statistic < 1.95 / np.sqrt(len(times))


def test_rlmetadqn_jobs():
    """U(30, 900) s on one GPU; deadline after U(1.2, 2.0) run times; priority U{0…3}."""
    jobs = generate("rlmetadqn:workload=bursty", jobs=JOBS, seed=3)
    assert set(jobs.gpus.tolist()) == {1}
    assert stats.kstest(jobs.duration_s, stats.uniform(30, 870).cdf).statistic < KS_LIMIT
    slack = (jobs.deadline_s - jobs.submit_s) / jobs.duration_s
    assert stats.kstest(slack, stats.uniform(1.2, 0.8).cdf).statistic < KS_LIMIT
    found, counts = np.unique(jobs.priority, return_counts=True)
    assert found.tolist() == [0, 1, 2, 3]
    assert stats.chisquare(counts).pvalue > 1e-3
    assert is_continuous(jobs.submit_s)
    assert (jobs.estimate_s == jobs.duration_s).all()
    for one, other in itertools.combinations((jobs.duration_s, jobs.priority, slack), 2):
        assert independent(one, other)


def test_rlmetadqn_number_of_jobs():
    """An hour by default; a number goes on with the same rate beyond it; a load only spreads."""
    source = "rlmetadqn:workload=bursty,intensity=low"
    hour = generate(source, seed=5)
    more = generate(source, seed=5, jobs=len(hour) + 500)
    assert (more.submit_s[: len(hour)] == hour.submit_s).all()
    assert more.submit_s[len(hour)] >= 3600
    loaded = generate(source, seed=5, gpus=4, load=0.7)
    assert loaded.load(4) == pytest.approx(0.7)
    assert (loaded.duration_s == hour.duration_s).all()


def test_rlmetadqn_gaps_as_the_original_draws_them():
    """Held gaps bring clearly fewer jobs where the rate changes abruptly."""
    exact, held = (
        [len(generate(f"rlmetadqn:workload=bursty,gaps={gaps}", seed=seed)) for seed in range(60)]
        for gaps in ("exact", "held")
    )
    assert np.mean(held) < 0.95 * np.mean(exact)


def test_all_regimes_can_be_named():
    """Twelve names and four sizes of cluster are the 48 regimes; each name is another workload."""
    names = [
        f"rlmetadqn:workload={workload},intensity={intensity}"
        for workload, intensity in itertools.product(SHAPES, ("low", "medium", "high"))
    ]
    prints = {load_workload(name, gpus=4, seed=1).fingerprint() for name in names}
    assert len(prints) == 12
    assert load_workload(names[4], gpus=4).name == names[4]
    with pytest.raises(UnknownNameError, match="Did you mean 'bursty'"):
        load_workload("rlmetadqn:workload=burst", gpus=4)
    with pytest.raises(UnknownNameError, match="Did you mean 'intensity'"):
        load_workload("rlmetadqn:intensty=low", gpus=4)


def test_without_a_load_such_presets_keep_their_own_rate():
    """`load_workload` stretches them only when asked to."""
    own = load_workload("drl-scheduler", gpus=56)
    assert len(own) == 2000
    assert len(own) / own.submit_s[-1] == pytest.approx(2.5, rel=0.1)
    assert load_workload("drl-scheduler", gpus=56, load=0.9).load(56) == pytest.approx(0.9)


@pytest.mark.parametrize("name", ["drl-scheduler", "gpu-optimizer", "rlmetadqn"])
def test_sources_are_stated(name):
    """The description names the repository the definition comes from."""
    assert "/" in PRESETS[name].description.partition(":")[0]
