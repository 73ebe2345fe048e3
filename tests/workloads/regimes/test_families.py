"""The families: complete, distinct, and as hard as they claim to be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.errors import UnknownNameError
from yardmaster.metrics.per_job import jct_s
from yardmaster.workloads.regimes import FAMILIES, Regime, find_regime, regimes

RULES = ("srpt+skip~estimate", "edf+skip", "static-priority+skip", "static-equal+skip")


def test_names_are_unique_and_found():
    """Every regime has a name of its own, by which it is found, and knows its family and GPUs."""
    every = [regime for family in FAMILIES for regime in regimes(family)]
    assert len({regime.name for regime in every}) == len(every)
    for regime in every:
        assert find_regime(regime.name) is regime
        assert regime in regimes(regime.family)
        assert regime.labels["gpus"] == regime.machines().gpus
        assert regime.description
        assert regime.labels.keys() == {"shape", "intensity", "gpus"}


def test_misspelt_names_are_explained():
    """Families and regimes that do not exist come with what was perhaps meant."""
    with pytest.raises(UnknownNameError, match="Did you mean 'hard'"):
        regimes("hrd")
    with pytest.raises(UnknownNameError, match="Did you mean 'bursty-high-8'"):
        find_regime("bursty-hgh-8")


def test_rlmetadqn_is_the_product_of_its_factors():
    """4 shapes × 3 intensities × 4 pools, and 4 shapes of super-high on two; jobs as generated."""
    shapes, intensities = ("base", "bursty", "diurnal", "shifted"), ("low", "medium", "high")
    found = {tuple(regime.labels.values()) for regime in regimes("rlmetadqn")}
    assert found == set(itertools.product(shapes, intensities, (2, 4, 8, 16)))
    assert len(regimes("rlmetadqn")) == 48
    super_high = {tuple(regime.labels.values()) for regime in regimes("rlmetadqn-super-high")}
    assert super_high == set(itertools.product(shapes, ("super-high",), (4, 16)))
    for shape, intensity, gpus in (("bursty", "high", 16), ("shifted", "super-high", 4)):
        regime = find_regime(f"{shape}-{intensity}-{gpus}")
        preset = f"rlmetadqn:workload={shape},intensity={intensity}"
        assert regime.jobs(2).fingerprint() == ym.generate(preset, seed=2).fingerprint()
        assert regime.machines().is_pool


@pytest.mark.parametrize("regime", regimes("hard"), ids=lambda regime: regime.name)
def test_hard_regimes_keep_their_promises(regime: Regime):
    """The load is exact; jobs are few, fit, and have estimates, deadlines and tenants."""
    jobs, machines = regime.jobs(0), regime.machines()
    load = {"busy": 0.9, "overloaded": 1.4}[str(regime.labels["intensity"])]
    assert jobs.load(machines.gpus) == pytest.approx(load, rel=2e-3)
    assert 150 <= len(jobs) <= 600
    assert 8 <= machines.gpus <= 64
    assert 1 <= machines.node_gpus.min() <= machines.node_gpus.max() <= 8
    assert jobs.gpus.max() <= machines.gpus
    assert jobs.has_estimates
    assert not np.allclose(jobs.estimate_s, jobs.duration_s, rtol=0.1)
    assert not np.isnan(jobs.deadline_s).any()
    assert len(jobs.tenant.names) > 1
    assert regime.changes_s == ()


def test_the_hard_family_has_everything():
    """Gangs over nodes, two and three GPU types with kinds, and quotas are among them."""
    every = regimes("hard")
    types = {len(regime.machines().gpu_types) for regime in every}
    assert types == {1, 2, 3}
    assert any(regime.machines().site.quotas for regime in every)
    spanning = [regime for regime in every if regime.jobs(0).gpus.max() > 8]
    assert len(spanning) >= 4
    for regime in every:
        assert bool(regime.jobs(0).kind.names) == (len(regime.machines().gpu_types) > 1)


def test_every_rule_is_best_somewhere():
    """Where only one thing tells short jobs from long ones, the rule that reads it wins."""
    best = {}
    for name in ("estimates", "deadlines", "priorities", "nothing"):
        verb = "tells" if name == "nothing" else "tell"
        regime = find_regime(f"{name}-{verb}-overloaded")
        means = {rule: _mean_jct_s(regime, rule, seeds=2) for rule in RULES}
        best[name] = min(means, key=means.__getitem__)
    assert best == dict(
        zip(("estimates", "deadlines", "priorities", "nothing"), RULES, strict=True)
    )


def _mean_jct_s(regime: Regime, rule: str, *, seeds: int) -> float:
    runs = [ym.simulate(regime.jobs(seed), regime.machines(), rule) for seed in range(seeds)]
    return float(np.mean([jct_s(schedule).mean() for schedule in runs]))


@pytest.mark.parametrize("regime", regimes("drift"), ids=lambda regime: regime.name)
def test_drifting_regimes_change(regime: Regime):
    """Phases follow each other without a gap, jobs come in each, and none after the last."""
    borders = [(phase.begin_s, phase.end_s) for phase in regime.phases]
    assert borders[0][0] == 0
    assert all(one[1] == next_[0] for one, next_ in itertools.pairwise(borders))
    assert regime.changes_s == tuple(begin for begin, _ in borders[1:])
    jobs = regime.jobs(1)
    counts, _ = np.histogram(jobs.submit_s, [0.0, *regime.changes_s, borders[-1][1]])
    assert counts.min() >= 10
    assert counts.sum() == len(jobs)


def test_short_drifts_are_those_of_rlmetadqn():
    """Three scenarios of an hour, with the original's borders, on all of its GPU counts."""
    borders = {
        "base-bursty-diurnal": (1200.0, 2400.0),
        "diurnal-shifted-bursty": (1200.0, 2400.0),
        "base-surge-diurnal": (1200.0, 1800.0),
    }
    for (name, changes_s), gpus in itertools.product(borders.items(), (2, 4, 8, 16)):
        regime = find_regime(f"drift-{name}-{gpus}")
        assert regime.changes_s == changes_s
        assert regime.phases[-1].end_s == 3600
        assert (regime.jobs(0).gpus == 1).all()


def test_the_surge_is_a_surge():
    """Averaged over seeds, jobs per second of each phase are those of its shape at its hour."""
    regime = find_regime("drift-base-surge-diurnal-4")
    edges = [0.0, *regime.changes_s, 3600.0]
    counts = [np.histogram(regime.jobs(seed).submit_s, edges)[0] for seed in range(40)]
    per_minute = np.mean(counts, axis=0) / np.diff(edges) * 60
    # Medium is 2 a minute. The second phase is one busy and one quiet stretch of 300 s at 4 a
    # minute × (3 or 0.3). Of the sine's hour, its second half has 1 − 0.5 · 2/π of the mean.
    expected = [2.0, 4 * 1.65, 2 * (1 - 1 / np.pi)]
    np.testing.assert_allclose(per_minute, expected, rtol=0.08)


def test_what_tells_lengths_drifts():
    """In each phase of `who-tells` exactly one of the things people say orders jobs by length."""
    regime = find_regime("drift-who-tells-16")
    jobs = regime.jobs(0)
    phase = np.searchsorted(regime.changes_s, jobs.submit_s, side="right")
    is_long = jobs.duration_s > 1200
    said = {
        "estimates": jobs.estimate_s,
        "priorities": -jobs.priority,
        "deadlines": jobs.deadline_s - jobs.submit_s,
    }
    for number, informant in enumerate(("estimates", "priorities", "deadlines", "nothing")):
        now = phase == number
        for name, value in said.items():
            tells = np.median(value[now & is_long]) > np.median(value[now & ~is_long])
            assert tells == (name == informant), (informant, name)
