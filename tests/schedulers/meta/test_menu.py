"""A menu of schedulers in one simulation: each, kept all the time, is what it is alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.meta.menu import members_of, prepare_choice
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.choosing import (
    REAL_PLACEMENTS,
    choice_sights,
    choosing_clusters,
    choosing_workloads,
    failing_clusters,
    menus,
    replay_as_told,
)
from yardmaster.testing.environments import mixed_speed_clusters, same_speed_clusters

MEMBERS = st.integers(0, 4)


def check_constant_choice(workload, cluster, sight, place, seed, *, until_s=float("inf")):
    """Compare a chooser that never changes its mind with the scheduler it keeps to."""
    member = sight.menu[place % len(sight.menu)]
    kept = replay_as_told(
        workload,
        cluster,
        sight,
        [sight.menu.index(member)],
        seed=seed,
        until_s=until_s,
        called=member,
    )
    alone = simulate(workload, cluster, member, seed=seed, until_s=until_s, compile_core="never")
    assert kept.fingerprint() == alone.fingerprint()


@settings(max_examples=150, deadline=None)
@given(choosing_workloads(), same_speed_clusters(), choice_sights(), MEMBERS, st.integers(0, 3))
def test_a_constant_choice_is_the_scheduler_itself(workload, cluster, sight, place, seed):
    """Whatever else is on the menu and in whatever order: the same schedule, bit by bit."""
    check_constant_choice(workload, cluster, sight, place, seed)


@settings(max_examples=150, deadline=None)
@given(
    choosing_workloads(),
    st.one_of(mixed_speed_clusters(), failing_clusters()),
    choice_sights(),
    MEMBERS,
    st.integers(0, 3),
)
def test_a_constant_choice_on_real_clusters(workload, cluster, sight, place, seed):
    """The same where types run at different speeds and nodes fail."""
    check_constant_choice(workload, cluster, sight, place, seed)


@settings(max_examples=100, deadline=None)
@given(
    choosing_workloads(),
    choosing_clusters(),
    choice_sights(menus(REAL_PLACEMENTS)),
    MEMBERS,
    st.integers(0, 3),
)
def test_a_constant_choice_with_any_placement(workload, cluster, sight, place, seed):
    """The same beside placements that need the core for real clusters."""
    check_constant_choice(workload, cluster, sight, place, seed)


@settings(max_examples=60, deadline=None)
@given(
    choosing_workloads(),
    choosing_clusters(),
    choice_sights(),
    MEMBERS,
    st.sampled_from((0.0, 1.0, 2.5, 6.0)),
)
def test_a_constant_choice_that_is_cut(workload, cluster, sight, place, until_s):
    """The same when the replay is cut, be it at the very second of an event."""
    check_constant_choice(workload, cluster, sight, place, 0, until_s=until_s)


def sampled_situations(*, is_real: bool):
    """Return a few dozen situations, the same every time, for what takes long to set up."""
    dice = np.random.default_rng(5)
    rules = ["sjf", "fifo", "srpt", "wfp3", "qssf", "random-feasible", "dynamic-heuristic"]
    for seed in range(36):
        jobs = 40
        submit = np.sort(dice.integers(0, 300, jobs)) / 10
        duration = dice.integers(1, 200, jobs) / 10
        workload = Workload.of(
            submit_s=submit,
            duration_s=duration,
            estimate_s=duration * dice.uniform(0.3, 3.0, jobs),
            gpus=dice.choice([1, 1, 2, 3, 8, 12], jobs),
            user=dice.integers(0, 5, jobs),
            deadline_s=submit + 50,
            priority=dice.integers(0, 3, jobs).astype(float),
        )
        cluster = Cluster.of("2x V100:8", "2x T4:4")
        outages = (Outage(0, 5.0, 9.0), Outage(2, 6.0, 20.0))
        site = Site(failures=Failures(outages=outages)) if is_real else Site(equal_speeds=True)
        source = ("", "~estimate")[seed % 2]
        menu = {
            f"{rule}+{dice.choice(['strict', 'skip', 'commit', 'easy'])}"
            f"@{dice.choice(['pack', 'first', 'spread', 'random'])}{source}"
            for rule in dice.choice(rules, 4)
        }
        information = "estimate" if source else "clairvoyant"
        yield (
            seed,
            workload,
            cluster.under(site),
            ChoiceSight(menu=tuple(sorted(menu)), information=information),
        )


@pytest.mark.parametrize("is_real", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_compiled_choices_are_the_plain_ones(is_real):
    """Machine code, too, keeps to a scheduler exactly, and switches as plain Python does."""
    for seed, workload, cluster, sight in sampled_situations(is_real=is_real):
        for place, member in enumerate(sight.menu):
            kept = replay_as_told(
                workload, cluster, sight, [place], seed=seed, compiled=True, called=member
            )
            alone = simulate(workload, cluster, member, seed=seed, compile_core="always")
            assert kept.fingerprint() == alone.fingerprint()
        arms = list(range(len(sight.menu)))
        plain, compiled = (
            replay_as_told(workload, cluster, sight, arms, seed=seed, compiled=choice)
            for choice in (False, True)
        )
        assert plain.fingerprint() == compiled.fingerprint()
        assert (plain.choices, plain.switches) == (compiled.choices, compiled.switches)


def test_members_that_go_by_history_share_it():
    """Two members with the same history both keep it up to date, whoever is at work."""
    dice = np.random.default_rng(0)
    workload = Workload.of(
        submit_s=np.sort(dice.uniform(0, 60, 40)),
        duration_s=dice.uniform(1, 30, 40),
        gpus=dice.choice([1, 2, 4], 40),
        user=dice.integers(0, 4, 40),
    )
    sight = ChoiceSight(menu=("qssf+strict", "qssf+easy", "qssf+skip"), past=0)
    for place in range(3):
        check_constant_choice(workload, Cluster.pool(6), sight, place, 0)


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("las", None),
        ("srpt", None),
        ("fair-share", "change with tenants"),
        ("off-peak", "cannot stand on a menu"),
        ("sjf+timeslice", "only strict, skip, commit, easy"),
    ],
)
def test_who_may_stand_on_a_menu(member, message):
    """Keys must be known from the start, age, be drawn, or come from history."""
    workload = Workload.of(submit_s=[0, 1], duration_s=[5, 5], tenant=["a", "b"])
    cluster = Cluster.pool(1).under(Site(power=Power(price_per_kwh=(0.1, 0.2))))
    sight = ChoiceSight(menu=("fifo", member))
    if message is None:
        prepare_choice(workload, cluster, sight)
        return
    with pytest.raises(YardmasterError, match=message):
        prepare_choice(workload, cluster, sight)


def test_a_menu_agrees_on_run_times():
    """Members that read none go with any; estimates that are missing are named."""
    assert len(members_of(["fifo", "sjf~estimate", "edf+easy~estimate"])) == 3
    with pytest.raises(YardmasterError, match="agree on run times"):
        members_of(["sjf", "saf~estimate"])
    workload = Workload.of(submit_s=[0, 1], duration_s=[5, 5])
    sight = ChoiceSight(menu=("sjf~estimate",), information="estimate")
    with pytest.raises(InvalidWorkloadError, match="2 of 2 jobs"):
        prepare_choice(workload, Cluster.pool(1), sight)


@pytest.mark.parametrize(
    ("member", "every_s", "is_fit"),
    [("las", np.inf, False), ("srpt", np.inf, True), ("srpt", 2.0, False), ("sjf", 2.0, True)],
)
def test_keys_that_count_progress_do_not_go_with_failures(member, every_s, is_fit):
    """Where failed jobs come back with something done, orders that ask for it are refused."""
    failures = Failures(outages=(Outage(0, 3.0, 5.0),))
    cluster = Cluster.of("V100:2").under(
        Site(failures=failures, checkpoints=Checkpoints(every_s=every_s))
    )
    workload = Workload.of(submit_s=[0, 0, 1, 1], duration_s=[8, 4, 6, 1], gpus=[1, 1, 1, 2])
    sight = ChoiceSight(menu=("fifo+skip", f"{member}+skip"))
    if is_fit:
        check_constant_choice(workload, cluster, sight, 1, 0)
    else:
        with pytest.raises(YardmasterError, match="change with what a job has done"):
            prepare_choice(workload, cluster, sight)
