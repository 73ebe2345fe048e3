"""A regime: plain values that determine its jobs and its machines."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import yardmaster as ym
from yardmaster.errors import InvalidConfigError, InvalidWorkloadError, UnknownNameError
from yardmaster.workloads.regimes.regime import Phase, Regime

STEADY = {"rate_per_h": 120.0, "until_s": 7200.0, "durations": "uniform:low=100,high=200"}


def two_phases(**changes) -> Regime:
    short = STEADY | {"until_s": 3600.0}
    long = STEADY | {"durations": "uniform:low=1000,high=2000"}
    phases = (Phase((short,), 0.0, 3600.0), Phase((long, short | {"until_s": 7200.0}), 3600.0))
    return Regime("two", "tests", phases, "2x V100:8", {"gpus": 16}, **changes)


def test_the_table_determines_everything():
    """Written as JSON and read again, a regime is equal and draws the same jobs."""
    for regime in (two_phases(), Regime("own", "tests", (Phase((STEADY,)),), own_cluster())):
        again = Regime.from_table(json.loads(json.dumps(regime.table())))
        assert again == regime
        assert again.table() == regime.table()
        assert again.jobs(3).fingerprint() == regime.jobs(3).fingerprint()
        assert again.machines().describe() == regime.machines().describe()
        assert pickle.loads(pickle.dumps(regime)) == regime  # noqa: S301  (our own)


def own_cluster() -> dict[str, object]:
    tenants = [{"name": "team-0", "guaranteed_gpus": 4}]
    return {"nodes": [{"count": 2, "gpu_type": "T4", "gpus": 4}], "tenants": tenants}


def test_a_table_is_a_copy():
    """Changing a table changes no regime."""
    regime = Regime("own", "tests", (Phase((dict(STEADY),)),), own_cluster(), {"gpus": 8})
    before = json.dumps(regime.table())
    table = regime.table()
    table["labels"]["gpus"] = 0
    table["cluster"]["nodes"][0]["count"] = 9
    table["phases"][0]["streams"][0]["rate_per_h"] = 1.0
    assert json.dumps(regime.table()) == before


def test_one_stream_is_what_is_generated():
    """The jobs of a single stream are those that `generate` gives for the same seed."""
    regime = Regime("one", "tests", (Phase(({"preset": "rlmetadqn:intensity=high"},)),), "pool:4")
    for seed in (0, 7):
        expected = ym.generate("rlmetadqn:intensity=high", seed=seed)
        assert regime.jobs(seed).fingerprint() == expected.fingerprint()


def test_jobs_follow_the_phases():
    """Before the change all jobs are short, after it both streams are there, numbered through."""
    regime = two_phases()
    assert regime.changes_s == (3600.0,)
    jobs = regime.jobs(0)
    is_long = jobs.duration_s >= 1000
    assert not is_long[jobs.submit_s < 3600].any()
    after = is_long[jobs.submit_s >= 3600]
    assert 0.3 < after.mean() < 0.7
    assert jobs.submit_s.max() < 7200
    assert sorted(jobs.id.tolist()) == list(range(len(jobs)))


def test_streams_have_seeds_of_their_own():
    """Equal streams at once do not give the same jobs twice, and another seed gives others."""
    regime = Regime("twice", "tests", (Phase((STEADY, STEADY)),), "pool:8")
    jobs = regime.jobs(5)
    assert len(np.unique(jobs.submit_s)) > 0.8 * len(jobs)
    assert jobs.fingerprint() == regime.jobs(5).fingerprint()
    assert jobs.fingerprint() != regime.jobs(6).fingerprint()


@pytest.mark.parametrize("load", [0.8, 1.5])
def test_the_load_is_exact(load):
    """Submissions are stretched until they offer the load to the GPUs of the cluster."""
    regime = Regime("full", "tests", (Phase((STEADY, STEADY)),), "2x V100:4", load=load)
    assert regime.jobs(1).load(8) == pytest.approx(load, rel=1e-3)


def test_mistakes_are_named():
    """Phases cannot be stretched; misspelt parts, clusters and bad seeds are refused by name."""
    with pytest.raises(InvalidWorkloadError, match=r"two: .*cannot be stretched"):
        two_phases(load=1.0)
    wrong = Regime("wrong", "tests", (Phase((STEADY | {"size": "fixed:value=1"},)),), "pool:4")
    with pytest.raises(InvalidConfigError, match=r"regime 'wrong'[\s\S]*Did you mean 'sizes'"):
        wrong.jobs(0)
    with pytest.raises(UnknownNameError, match="clusterr"):
        Regime("wrong", "tests", (Phase((STEADY,)),), "clusterr").machines()
    for seed in (-1, 1.5):
        with pytest.raises(InvalidWorkloadError, match="seed must be"):
            two_phases().jobs(seed)
    late = Regime("late", "tests", (Phase((STEADY,), 9000.0),), "pool:4")
    with pytest.raises(InvalidWorkloadError, match="late: no job is submitted"):
        late.jobs(0)
