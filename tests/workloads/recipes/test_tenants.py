"""Who submits the jobs: shares, habits and names."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.recipes.tenants import NamedUsers, NoTenants, Teams

JOBS = 50_000
DURATION_S = np.random.default_rng(0).uniform(1, 10_000, JOBS)


def rng(seed=1):
    return np.random.default_rng(seed)


def test_shares_of_tenants_follow_zipf():
    """The k-th largest of four teams has a share proportional to 1/k, and so have its people."""
    gpus = rng(5).choice([1, 2, 4, 8], JOBS)
    tenant, user = Teams(tenants=4, users_per_tenant=3).draw(rng(6), gpus, rng(7).random(JOBS))
    shares = np.sort(np.bincount(tenant.codes) / JOBS)[::-1]
    assert shares == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=1e-4)
    largest = tenant.codes == np.bincount(tenant.codes).argmax()
    people = np.sort(np.bincount(user.codes[largest]))[::-1][:3] / largest.sum()
    assert people == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.03)
    assert len(user.names) == 12


def test_every_user_belongs_to_one_team():
    """A user's jobs are all paid by the same team."""
    tenant, user = Teams().draw(rng(6), rng(7).choice([1, 8], 5000), rng(8).random(5000))
    assert len(set(zip(tenant.codes.tolist(), user.codes.tolist(), strict=True))) == len(user.names)


def test_owners_have_typical_sizes_and_lengths():
    """Jobs of one team are of more similar size, of one person of more similar length."""
    gpus, length = rng(7).choice([1, 2, 4, 8, 16], 20_000), rng(8).random(20_000)
    tenant, user = Teams().draw(rng(9), gpus, length)

    def explained(values, codes):
        means = np.bincount(codes, weights=values) / np.bincount(codes)
        return np.var(means[codes]) / np.var(values)

    assert explained(np.log2(gpus), tenant.codes) > 0.2
    assert explained(length, user.codes) > 0.2


def test_named_users_submit_by_chance():
    """Names with their weights, no teams; or nobody at all."""
    gpus = np.ones(JOBS, dtype=np.int64)
    tenant, user = NamedUsers(names=("101", "102", "103")).draw(rng(), gpus, DURATION_S)
    assert set(tenant.values()) == {None}
    assert sorted(user.names) == ["101", "102", "103"]
    assert stats.chisquare(np.bincount(user.codes)).pvalue > 1e-3
    _, user = NamedUsers(names=("ann", "bob"), weights=(1, 3)).draw(rng(), gpus, DURATION_S)
    assert np.mean(np.array(user.values()) == "bob") == pytest.approx(0.75, abs=0.01)
    assert set(NoTenants().draw(rng(), gpus, DURATION_S)[1].values()) == {None}


@pytest.mark.parametrize(
    ("process", "values", "message"),
    [
        (Teams, {"tenants": 0}, "tenants must be at least 1"),
        (NamedUsers, {"names": "ann"}, "names must be a list of texts"),
        (NamedUsers, {"names": ("ann",), "weights": (1, 1)}, "1 values but 2 weights"),
    ],
)
def test_parameters_that_make_no_sense_are_named(process, values, message):
    """Every bad parameter is refused by name."""
    with pytest.raises(InvalidWorkloadError, match=message):
        process(**values)
