"""What goes wrong changes what it says, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import yardmaster as ym
from yardmaster.errors import InvalidClusterError, InvalidWorkloadError, UnknownNameError
from yardmaster.metrics.outages import availability
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import COLUMN_NAMES, Labels, Workload
from yardmaster.workloads.regimes import (
    PERTURBATIONS,
    Perturbation,
    find_regime,
    perturbed,
    severities,
)

EVERY = [each for kind in PERTURBATIONS for each in severities(kind)]
SEEDS = st.integers(0, 10**6)
MOVED = {"submit_s", "deadline_s", "recorded_wait_s"}
TOUCHED = {
    "arrival-noise": MOVED,
    "duration-distortion": {"duration_s"},
    "phase-shift": MOVED,
    "burst-amplification": MOVED,
    "capacity-dip": set(),
}


def disturbed(jobs: Workload, kind: str, severity: float, seed: int = 0) -> Workload:
    return perturbed(jobs, Cluster.pool(8), Perturbation(kind, severity), seed)[0]


def by_id(jobs: Workload, column: str):
    value = getattr(jobs, column)
    if isinstance(value, Labels):
        value = np.array([*value.names, ""])[value.codes]
    return value[np.argsort(jobs.id, kind="stable")]


def test_there_are_five_kinds_of_four_severities():
    """Twenty perturbations, mildest first, each written as kind and severity."""
    assert len(EVERY) == 20
    for kind in PERTURBATIONS.values():
        assert list(kind.severities) == sorted(set(kind.severities))
    assert str(Perturbation("arrival-noise", 0.15)) == "arrival-noise:0.15"


@pytest.mark.parametrize("perturbation", EVERY, ids=str)
def test_only_what_is_named_changes(random_jobs, perturbation):
    """Same jobs, same columns but those the kind touches; equal seeds, equal results."""
    jobs, cluster = random_jobs(3, jobs=80), Cluster.of("4x V100:8")
    changed, machines = perturbed(jobs, cluster, perturbation, 1)
    for column in set(COLUMN_NAMES) - TOUCHED[perturbation.kind]:
        np.testing.assert_array_equal(by_id(changed, column), by_id(jobs, column), err_msg=column)
    again, again_machines = perturbed(jobs, cluster, perturbation, 1)
    assert again.fingerprint() == changed.fingerprint()
    assert again_machines.site == machines.site
    assert (machines is cluster) == (perturbation.kind != "capacity-dip")
    assert str(perturbation) in changed.notes[-1]


@pytest.mark.parametrize("kind", [kind for kind, touched in TOUCHED.items() if touched == MOVED])
@given(seed=SEEDS)
def test_deadlines_move_with_submissions(random_jobs, kind, seed):
    """Each job has as long to its deadline as before, and whole seconds stay whole."""
    jobs = random_jobs(seed, jobs=40)
    for perturbation in severities(kind):
        changed, _ = perturbed(jobs, Cluster.pool(8), perturbation, seed)
        slack_s = by_id(changed, "deadline_s") - by_id(changed, "submit_s")
        np.testing.assert_allclose(slack_s, by_id(jobs, "deadline_s") - by_id(jobs, "submit_s"))
        assert (changed.submit_s == np.round(changed.submit_s)).all()
        assert changed.submit_s.min() >= jobs.submit_s[0]


def test_arrival_noise_keeps_span_and_order():
    """Gaps vary by the severity around what they were; the load and the order stay."""
    submit_s = np.cumsum(np.full(20_000, 10.5))
    jobs = Workload.of(submit_s=submit_s, duration_s=np.full(20_000, 5.0))
    for severity in (0.05, 0.2):
        changed = disturbed(jobs, "arrival-noise", severity)
        gaps_s = np.diff(changed.submit_s)
        assert gaps_s.mean() == pytest.approx(10.5)
        assert gaps_s.std() / gaps_s.mean() == pytest.approx(severity, rel=0.03)
        assert changed.load(8) == pytest.approx(jobs.load(8))
        np.testing.assert_array_equal(changed.id, jobs.id)


def test_distorted_durations_have_the_same_mean():
    """Run times vary by the severity; the same seed gives the same noise, only stronger."""
    jobs = Workload.of(submit_s=np.arange(40_000.0), duration_s=np.full(40_000, 1000.5))
    mild = disturbed(jobs, "duration-distortion", 0.25).duration_s
    strong = disturbed(jobs, "duration-distortion", 1.0).duration_s
    for changed, severity in ((mild, 0.25), (strong, 1.0)):
        assert changed.mean() == pytest.approx(1000.5, rel=0.02)
        assert changed.std() / changed.mean() == pytest.approx(severity, rel=0.05)
    assert np.corrcoef(np.log(mild), np.log(strong))[0, 1] == pytest.approx(1.0)


@given(SEEDS, st.sampled_from([0.125, 0.25, 0.375, 0.5]))
def test_a_phase_shift_is_a_rotation(random_jobs, seed, severity):
    """Two shifts by a and 1 − a of the cycle bring every job back; the order is only turned."""
    base = random_jobs(seed, jobs=30)
    submit_s = base.submit_s + np.random.default_rng(seed).random(30) / 3  # no whole seconds
    jobs = base.with_columns(submit_s=np.sort(submit_s))
    first_s, last_s = jobs.submit_s[0], jobs.submit_s[-1]
    cycle_s = (last_s - first_s) * 30 / 29
    changed = disturbed(jobs, "phase-shift", severity)
    moved_s = by_id(changed, "submit_s") - by_id(jobs, "submit_s")
    turns = (moved_s - severity * cycle_s) / cycle_s
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-6)
    assert ((changed.submit_s >= first_s) & (changed.submit_s <= first_s + cycle_s)).all()


def test_a_diurnal_shift_is_that_of_the_shape():
    """The sine of `diurnal`, turned by three quarters of its hour, is `shifted` on average."""
    hour = np.linspace(0, 3600, 7)
    turned, shifted = np.zeros(6), np.zeros(6)
    for seed in range(30):
        jobs = disturbed(find_regime("diurnal-high-8").jobs(seed), "phase-shift", 0.75)
        turned += np.histogram(jobs.submit_s, hour)[0]
        shifted += np.histogram(find_regime("shifted-high-8").jobs(seed).submit_s, hour)[0]
    np.testing.assert_allclose(turned, shifted, rtol=0.12)


@given(SEEDS, st.sampled_from([1.5, 2.0, 2.5, 3.0]))
def test_bursts_come_faster(seed, factor):
    """Gaps within a burst shrink by the factor, other gaps grow alike, and the span stays."""
    dice = np.random.default_rng(seed)
    submit_s = np.sort(np.concatenate(([0.0, 2400.0], dice.random(200) * 2400.0)))
    jobs = Workload.of(submit_s=submit_s, duration_s=np.ones(202))
    changed = disturbed(jobs, "burst-amplification", factor)
    window = np.minimum(submit_s // 100, 23).astype(int)
    counts = np.bincount(window, minlength=24)
    same = window[1:] == window[:-1]
    ratio = (np.diff(changed.submit_s) / np.diff(submit_s))[same]
    in_burst = (counts > 202 / 24)[window[1:]][same]
    np.testing.assert_allclose(ratio[in_burst], 1 / factor, rtol=1e-5)
    np.testing.assert_allclose(ratio[~in_burst], ratio[~in_burst][0], rtol=1e-5)
    assert ratio[~in_burst][0] > 1
    assert changed.submit_s[-1] == pytest.approx(2400.0)


@pytest.mark.parametrize(
    "cluster", ["pool:2", "pool:16", "1x V100:8", "3x V100:4", "1x A100:8, 4x V100:8, 4x T4:4"]
)
@given(seed=SEEDS)
def test_dips_lose_the_share_of_gpu_time(random_jobs, cluster, seed):
    """Exactly the severity of all GPU time between first and last submission is away."""
    jobs, machines = random_jobs(seed), ym.load_cluster(cluster)
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    for perturbation in severities("capacity-dip"):
        _, dipped = perturbed(jobs, machines, perturbation, seed)
        assert dipped.gpus == machines.gpus
        outages = dipped.site.failures.outages
        lost = sum(dipped.node_gpus[each.node] * (each.up_s - each.down_s) for each in outages)
        assert lost / (machines.gpus * span_s) == pytest.approx(perturbation.severity)
        assert all(each.down_s >= jobs.submit_s[0] for each in outages)
        assert all(each.up_s <= jobs.submit_s[-1] + 1e-6 for each in outages)
        assert len({each.down_s for each in outages}) == 3


@pytest.mark.parametrize("name", ["bursty-high-2", "gangs-busy", "types-three-busy"])
def test_dips_are_simulated(name):
    """Jobs on lost nodes start again, all finish, and the schedule knows what was away."""
    regime = find_regime(name)
    jobs, machines = perturbed(
        regime.jobs(0), regime.machines(), Perturbation("capacity-dip", 0.2), 0
    )
    schedule = ym.simulate(jobs, machines, "srpt+skip")
    first_s, last_s = schedule.horizon_s
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    assert availability(schedule) == pytest.approx(1 - 0.2 * span_s / (last_s - first_s))
    metrics = ym.summarise(schedule)
    assert metrics["restarts"] > 0
    assert metrics["finished"] == len(jobs)


def test_a_pool_in_parts_is_the_same_pool():
    """Without an outage in the way, 1-GPU jobs on nodes of one GPU run as on the pool."""
    regime = find_regime("diurnal-high-8")
    jobs, machines = regime.jobs(4), regime.machines()
    _, dipped = perturbed(jobs, machines, Perturbation("capacity-dip", 0.05), 0)
    for rule in ("srpt+skip", "edf+easy"):
        pooled = ym.simulate(jobs, machines, rule)
        parted = ym.simulate(jobs, dipped.under(Site()), rule)
        np.testing.assert_array_equal(parted.start_s, pooled.start_s)


def test_nothing_wrong_changes_nothing():
    """None is the clean regime; jobs of one instant, or one job, have nothing to move."""
    regime = find_regime("base-low-4")
    jobs, machines = regime.jobs(0), regime.machines()
    assert perturbed(jobs, machines, None, 0) == (jobs, machines)
    for at_once in (Workload.of(submit_s=[5, 5], duration_s=[9, 9]), jobs.select(np.arange(1))):
        for perturbation in EVERY:
            changed, dipped = perturbed(at_once, machines, perturbation, 0)
            np.testing.assert_array_equal(changed.submit_s, at_once.submit_s)
            assert dipped.site.failures.outages == ()


def test_mistakes_are_named():
    """Unknown kinds, severities out of bounds, seeds and clusters that fail already."""
    with pytest.raises(UnknownNameError, match="Did you mean 'arrival-noise'"):
        Perturbation("arival-noise", 0.1)
    for kind, severity in (("capacity-dip", 0.6), ("burst-amplification", 1.0)):
        with pytest.raises(InvalidWorkloadError, match=f"severity of {kind} must be"):
            Perturbation(kind, severity)
    jobs = find_regime("base-low-4").jobs(0)
    with pytest.raises(InvalidWorkloadError, match="seed must be"):
        perturbed(jobs, Cluster.pool(4), Perturbation("arrival-noise", 0.1), -1)
    for failures in (Failures(mtbf_h=100.0), Failures(outages=(Outage(0, 1.0, 2.0),))):
        failing = Cluster.of("2x V100:4").under(Site(failures=failures))
        with pytest.raises(InvalidClusterError, match="has failures of its own"):
            perturbed(jobs, failing, Perturbation("capacity-dip", 0.1), 0)
