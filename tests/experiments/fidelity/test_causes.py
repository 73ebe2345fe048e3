"""Every cause is found in a record that has it, and in no record that has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.experiments.fidelity.assumptions import CANDIDATES, FOR_PRIORITIES
from yardmaster.experiments.fidelity.causes import find_causes
from yardmaster.experiments.fidelity.evidence import Cause, Evidence
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Quota, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

EASY = "fifo+easy~estimate"
DAY_S = 86_400.0


def causes(jobs: Workload, cluster: Cluster, scheduler: str = EASY, warm_up_s: float = DAY_S):
    """Return every cause by name, for a record held against a scheduler."""
    ends_s = float(jobs.submit_s[0]) + warm_up_s
    found = find_causes(Evidence.of(simulate(jobs, cluster, scheduler), ends_s))
    return {cause.name: cause for cause in found}


def found_in(looked: dict[str, Cause]) -> set[str]:
    return {name for name, cause in looked.items() if cause.is_found}


@pytest.mark.parametrize("scheduler", [*CANDIDATES, *FOR_PRIORITIES])
def test_a_clean_record_has_no_cause(jobs, pool, record, scheduler):
    """Held against the scheduler that made it, a record shows nothing of any kind."""
    looked = causes(record(jobs, pool, scheduler), pool, scheduler)
    assert found_in(looked) == set()
    assert all(cause.share == 0 for cause in looked.values() if not np.isnan(cause.share))


def test_a_clean_record_of_nodes_has_no_cause(jobs, record):
    """Jobs that wait for whole nodes wait with GPUs free, and the simulation knows."""
    nodes = Cluster.of("8x V100:8")
    looked = causes(record(jobs, nodes), nodes)
    assert found_in(looked) == set()
    assert looked["room"].numbers["waited_share"] > 0.05


def test_node_borders_show_as_waiting_with_room(jobs, pool, record):
    """The same record held against a pool: GPUs were free, but not on one node."""
    looked = causes(record(jobs, Cluster.of("8x V100:8")), pool)
    assert "room" in found_in(looked)
    numbers = looked["room"].numbers
    assert numbers["room_for_all_share"] > 0 == numbers["simulated_room_for_all_share"]


def test_a_stricter_queue_is_not_called_a_limit(jobs, pool, record):
    """Strict order leaves jobs waiting with room, but never all of them."""
    looked = causes(record(jobs, pool, "fifo+strict"), pool)
    assert found_in(looked) == {"room", "order"}
    assert looked["room"].numbers["room_for_all_share"] == 0
    order = looked["order"].numbers
    assert order["passing_share"] == 0 < order["simulated_passing_share"]


@pytest.mark.parametrize(("recorded_gpus", "sign"), [(52, "is_too_large"), (80, "is_too_small")])
def test_another_size_is_found(jobs, pool, record, recorded_gpus, sign):
    """A record of a smaller machine, and one of a larger."""
    looked = causes(record(jobs, Cluster.pool(recorded_gpus)), pool)
    assert "size" in found_in(looked)
    numbers = looked["size"].numbers
    assert numbers[sign] == 1
    assert numbers["is_too_large"] + numbers["is_too_small"] == 1
    assert numbers["highest_while_waiting_gpus"] == recorded_gpus


def test_jobs_beyond_the_cluster_are_counted(jobs, record):
    """Requests that the cluster could never hold are a sign of a wrong cluster too."""
    small = Cluster.pool(24)
    looked = causes(record(jobs, Cluster.pool(64)), small, "fifo+skip")
    too_large = np.count_nonzero(jobs.gpus > 24)
    assert looked["size"].numbers["too_large_jobs"] == too_large > 0


def test_latency_is_found_and_explains_itself(jobs, pool, record):
    """Twenty seconds at every start are all of the difference, and nothing else is found."""
    clean = record(jobs, pool)
    late = replace(clean, recorded_wait_s=clean.recorded_wait_s + 20.0)
    looked = causes(late, pool)
    assert found_in(looked) == {"latency"}
    assert looked["latency"].numbers["median_s"] == 20
    assert looked["latency"].share == pytest.approx(1.0)


def test_uneven_latency_is_found_alone(jobs, pool, record):
    """Neither jobs that overlap by seconds nor starts in another second mean anything else."""
    clean = record(jobs, pool)
    delay_s = np.random.default_rng(0).integers(5, 60, len(jobs))
    looked = causes(replace(clean, recorded_wait_s=clean.recorded_wait_s + delay_s), pool)
    assert found_in(looked) == {"latency"}


def test_latency_of_an_idle_machine_is_nothing_else(pool):
    """Where latency is all the waiting there is, jobs submitted together overtake each other."""
    rng = np.random.default_rng(0)
    bursts = np.repeat(np.arange(150) * 7200.0, 4) + rng.integers(0, 5, 600)
    late = Workload.of(
        submit_s=bursts,
        duration_s=np.full(600, 1800.0),
        gpus=rng.choice([1, 2, 4], 600),
        recorded_wait_s=rng.integers(5, 60, 600),
        user=["one"] * 600,
    )
    assert found_in(causes(late, pool, "fifo+easy")) == {"latency"}


def test_an_outage_is_found_where_it_was(jobs, pool):
    """A day without the machine: one drain, of that day, that explains part of the difference."""
    down_s = float(np.quantile(jobs.submit_s, 0.6))
    everything = {"submit_s": down_s, "duration_s": DAY_S, "estimate_s": DAY_S, "gpus": 64}
    columns = {name: np.append(getattr(jobs, name), value) for name, value in everything.items()}
    first = np.append(np.zeros(len(jobs)), 1.0)  # the outage goes before all others
    with_outage = Workload.of(**columns, priority=first)
    schedule = simulate(with_outage, pool, "static-priority+easy~estimate")
    is_job = with_outage.priority == 0
    wait_s = (schedule.start_s - with_outage.submit_s)[is_job]
    looked = causes(replace(jobs, recorded_wait_s=wait_s), pool)
    assert "drains" in found_in(looked)
    ((begin_s, end_s),) = looked["drains"].periods_s
    (start_s,) = schedule.start_s[~is_job]
    assert start_s <= begin_s < end_s == start_s + DAY_S
    assert end_s - begin_s > 0.9 * DAY_S
    assert 0.05 < looked["drains"].share <= looked["room"].share
    assert looked["drains"].numbers["drained_s"] == pytest.approx(end_s - begin_s)


def test_priorities_are_found(jobs, pool, record):
    """Starts that pass jobs asking for no more, which backfilling never does."""
    looked = causes(record(jobs, pool, "static-priority+easy~estimate"), pool)
    assert "order" in found_in(looked)
    numbers = looked["order"].numbers
    assert numbers["simulated_jumping_share"] == 0 < numbers["jumping_share"]


def test_shortest_first_is_found(jobs, pool, record):
    """An order by run time passes more jobs than first come, first served."""
    looked = causes(record(jobs, pool, "sjf+easy~estimate"), pool)
    assert "order" in found_in(looked)


def test_held_jobs_are_found(jobs, pool, record):
    """Jobs held back for days are passed by their own users' later ones."""
    clean = record(jobs, pool)
    wait_s = clean.recorded_wait_s.copy()
    wait_s[np.random.default_rng(1).choice(len(jobs), 60, replace=False)] += 3 * DAY_S
    looked = causes(replace(clean, recorded_wait_s=wait_s), pool)
    assert {"held", "order", "room"} <= found_in(looked)
    assert looked["held"].numbers["own_jumping_share"] > 0.02


def test_a_trace_that_begins_in_the_middle_needs_a_warm_up(jobs, pool, record):
    """Cut the first part away: the differences sit in the first days, and are found there."""
    whole = record(jobs, pool)
    rest = whole.select(whole.submit_s > np.quantile(whole.submit_s, 0.3))
    looked = causes(rest, pool, warm_up_s=2 * DAY_S)
    assert "warm-up" in found_in(looked)
    warm_up = looked["warm-up"]
    assert warm_up.share > 2 * warm_up.numbers["jobs_share"]
    assert warm_up.numbers["mean_difference_s"] < warm_up.numbers["later_mean_difference_s"]


@pytest.mark.parametrize("kind", ["user", "tenant"])
def test_limits_are_found_with_their_size_and_owners(jobs, pool, kind):
    """Three owners limited to 16 GPUs are named with that limit, and nobody else is."""
    limited = {"u0", "u1", "u2"}
    fits = np.array([
        gpus <= 16 or owner not in limited
        for gpus, owner in zip(jobs.gpus, jobs.user.values(), strict=True)
    ])  # fmt: skip
    owned = jobs.with_columns(tenant=jobs.user).select(fits)
    quotas = tuple(Quota(name, guaranteed_gpus=0, limit_gpus=16) for name in sorted(limited))
    schedule = simulate(owned, pool.under(Site(quotas=quotas)), EASY)
    users = (
        owned.user.values() if kind == "user" else [f"p{row % 300}" for row in range(len(owned))]
    )
    tenants = owned.tenant.values() if kind == "tenant" else None
    recorded = owned.with_columns(
        recorded_wait_s=schedule.start_s - owned.submit_s, user=users, tenant=tenants
    )
    looked = causes(recorded, pool)
    owners = looked["caps"].owners
    assert {owner.name for owner in owners} == limited
    assert {(owner.kind, owner.unit, owner.limit) for owner in owners} == {(kind, "GPUs", 16.0)}
    assert 0 < looked["caps"].share <= looked["room"].share


def test_shares_are_shares(jobs, pool, record):
    """No cause explains more than all of the difference, and none less than nothing."""
    for scheduler in ("fifo+strict", "sjf+skip", "largest-first+skip"):
        looked = causes(record(jobs, Cluster.pool(56), scheduler), pool)
        for cause in looked.values():
            assert np.isnan(cause.share) or 0 <= cause.share <= 1 + 1e-12
