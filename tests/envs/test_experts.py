"""Heuristics as players: they pick what they pick in a simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.experts import expert
from yardmaster.envs.task import Task
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.environments import (
    episode_workloads,
    given_batch,
    same_speed_clusters,
)

some = settings(max_examples=15, deadline=None)


def starts_of(task, workload, name):
    """Play an episode with a heuristic; return when each job started."""
    batch = given_batch(task, workload)
    choose = expert(name, task)
    starts_s = np.full(len(workload), np.nan)
    while not (batch.terminated[0] or batch.truncated[0]):
        second, waiting = float(batch.now_s[0]), batch.window_jobs[0]
        action = int(choose(batch)[0])
        assert batch.masks[0, action]
        batch.step(np.array([action]))
        if action < batch.layout.window:
            is_commit = task.sight.pace == "commit"
            # A committed job starts when it fits, somewhere within the step.
            starts_s[waiting[action]] = np.nan if is_commit else second
    return starts_s


def wide(**choices):
    return Sight(**({"window": 40, "gpu_slots": 0, "time_unit_s": 10.0} | choices))


@pytest.mark.parametrize("order", ["fifo", "sjf", "largest-first", "wfp3", "edf"])
def test_skip_picks_as_simulated(order):
    """With all jobs in sight, skipping heuristics start every job when the simulation does."""

    @some
    @given(same_speed_clusters(), episode_workloads())
    def same_starts(cluster, workload):
        jobs = workload.starting_at(float(workload.submit_s[0]))
        task = Task(cluster=cluster, sight=wide(reservation=False), measured_unit=False)
        schedule = simulate(jobs, cluster, f"{order}+skip")
        np.testing.assert_array_equal(starts_of(task, workload, order), schedule.start_s)

    same_starts()


@pytest.mark.parametrize("name", ["fifo+strict", "sjf+strict"])
def test_strict_waits_as_simulated(name):
    """A strict heuristic waits for its first job if the no-op is always legal."""

    @some
    @given(same_speed_clusters(), episode_workloads())
    def same_starts(cluster, workload):
        jobs = workload.starting_at(float(workload.submit_s[0]))
        sight = wide(noop="always", reservation=False)
        task = Task(cluster=cluster, sight=sight, measured_unit=False)
        schedule = simulate(jobs, cluster, name)
        np.testing.assert_array_equal(starts_of(task, workload, name), schedule.start_s)

    same_starts()


@pytest.mark.parametrize("order", ["fifo", "sjf", "saf"])
@pytest.mark.parametrize("information", ["clairvoyant", "estimate"])
def test_easy_backfills_as_simulated(order, information):
    """On a pool, easy players start every job when the simulation does."""
    suffix = "~estimate" if information == "estimate" else ""

    @some
    @given(st.integers(1, 12).map(Cluster.pool), episode_workloads())
    def same_starts(cluster, workload):
        jobs = workload.starting_at(float(workload.submit_s[0]))
        sight = wide(window_order=order, information=information)
        task = Task(cluster=cluster, sight=sight, measured_unit=False)
        schedule = simulate(jobs, cluster, f"{order}+easy{suffix}")
        starts_s = starts_of(task, workload, f"{order}+easy{suffix}")
        np.testing.assert_array_equal(starts_s, schedule.start_s)

    same_starts()


def test_commit_takes_the_first_and_holds_all():
    """Under the pace `commit` the mean completion time is that of the simulation."""
    jobs = Workload.of(
        submit_s=[0, 0, 0, 3], duration_s=[10, 4, 6, 1], gpus=[2, 3, 1, 1], priority=[1, 2, 3, 4]
    )
    task = Task(
        cluster=Cluster.pool(4),
        sight=wide(pace="commit"),
        reward="jct",
        measured_unit=False,
    )
    batch = given_batch(task, jobs)
    choose = expert("sjf+commit", task)
    while not batch.terminated[0]:
        batch.step(choose(batch))
    schedule = simulate(jobs, Cluster.pool(4), "sjf+commit")
    assert batch.episode_returns[0] == pytest.approx(-schedule.end_s.mean() / 10.0 + 3 / 4 / 10.0)


def test_random_feasible_is_random_and_seeded():
    """It picks among the jobs that fit, differently by seed, equally by the same seed."""
    jobs = Workload.of(submit_s=[0] * 20, duration_s=[5] * 20, gpus=[1] * 20)
    task = Task(cluster=Cluster.pool(20), sight=wide(), measured_unit=False)
    batch = given_batch(task, jobs)
    firsts = [int(expert("random-feasible", task, seed=seed)(batch)[0]) for seed in range(30)]
    assert len(set(firsts)) > 5
    assert firsts == [
        int(expert("random-feasible", task, seed=seed)(batch)[0]) for seed in range(30)
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("srpt+preemptive", "more than pick"),
        ("sjf+conservative", "more than pick"),
        ("sjf+easy", "window"),
        ("drf", "drf"),
        ("qssf", "qssf"),
    ],
)
def test_who_cannot_play_is_refused(name, message):
    """Schedulers that stop jobs, need another window, or go by the past are refused at once."""
    task = Task(cluster=Cluster.pool(4), sight=wide(), measured_unit=False)
    with pytest.raises(YardmasterError, match=message):
        expert(name, task)


def test_easy_needs_reservations():
    """A blind window has none to go by."""
    task = Task(sight=wide(window_order="fifo", information="blind"))
    with pytest.raises(YardmasterError, match="reservations"):
        expert("fifo+easy", task)


def test_unknown_players_are_refused():
    """A misspelt order is named, with what was meant."""
    with pytest.raises(UnknownNameError, match="sjf"):
        expert("sfj", Task())
