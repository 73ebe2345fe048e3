"""Rewards add up to what they are named after."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from yardmaster.engine.picking.places import Term
from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.experts import expert
from yardmaster.envs.playing import play
from yardmaster.envs.rewards import REWARDS, TERM_MEANING, Reward, reward_of
from yardmaster.envs.task import Task
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.metrics import per_job
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.environments import (
    GivenEpisodes,
    episode_workloads,
    same_speed_clusters,
)

UNIT_S = 7.0
WIDE = Sight(window=40, gpu_slots=0, time_unit_s=UNIT_S, reservation=False)


def returns_of(task, workload, scheduler):
    """Play one episode with a heuristic; return the sum of its rewards."""
    episodes = GivenEpisodes(task, [workload])
    played = play(
        task,
        expert(scheduler, task),
        split="train",
        episodes=1,
        compiled=False,
        prepared=episodes,
    )
    return float(played.returns[0])


@pytest.mark.parametrize("scheduler", ["fifo", "sjf", "largest-first"])
def test_rewards_add_up_to_the_metric(scheduler):
    """Without discounting they sum to minus mean JCT, wait and slowdown of the same schedule."""

    @settings(max_examples=15, deadline=None)
    @given(same_speed_clusters(), episode_workloads())
    def adds_up(cluster, workload):
        jobs = workload.starting_at(float(workload.submit_s[0]))
        schedule = simulate(jobs, cluster, f"{scheduler}+skip")
        expected = {
            "jct": np.nanmean(per_job.jct_s(schedule)) / UNIT_S,
            "wait": np.nanmean(per_job.wait_s(schedule)) / UNIT_S,
            "bounded_slowdown": np.nanmean(per_job.bounded_slowdown(schedule)) - 1.0,
        }
        for reward, value in expected.items():
            task = Task(cluster=cluster, reward=reward, sight=WIDE, measured_unit=False)
            got = returns_of(task, workload, scheduler)
            assert got == pytest.approx(-value, rel=1e-6, abs=1e-6)

    adds_up()


# Served first come first, the second job waits 10 s; the other way round, the first waits 2 s.
TWO = Workload.of(submit_s=[0, 0], duration_s=[10, 2], gpus=[1, 1])


@pytest.mark.parametrize(
    ("score", "base", "ours"),
    [
        ("wait", 10 / 2, 2 / 2),
        ("turnaround", (10 + 12) / 2, (2 + 12) / 2),
        ("slowdown", (1 + 6) / 2, (1 + 1.2) / 2),
        ("bounded_slowdown", (1 + 1.2) / 2, (1.2 + 1) / 2),
    ],
)
def test_relative_rewards_by_hand(score, base, ours):
    """At the end: what is gained on the baseline, by the larger of the two, and at least 1."""
    task = Task(
        cluster=Cluster.pool(1),
        reward=f"relative_{score}",
        baseline="fifo+skip",
        sight=WIDE,
        measured_unit=False,
    )
    assert returns_of(task, TWO, "sjf") == pytest.approx((base - ours) / max(base, ours, 1.0))
    assert returns_of(task, TWO, "fifo") == 0.0


def test_relative_utilisation_by_hand():
    """More utilisation is better: the sign is turned around."""
    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[10, 20, 10], gpus=[1, 1, 1])
    task = Task(
        cluster=Cluster.pool(2),
        reward="relative_utilisation",
        baseline="sjf+skip",
        sight=WIDE,
        measured_unit=False,
    )
    # Shortest first ends at 30; longest first fills both GPUs until 20.
    assert returns_of(task, jobs, "ljf") == pytest.approx((40 / 40 - 40 / 60) / 1.0)
    assert returns_of(task, jobs, "sjf") == 0.0


def test_a_score_counts_finished_jobs_only():
    """In a cut episode the wait of a job that still runs is not a mean over finished jobs."""
    jobs = Workload.of(submit_s=[0, 0], duration_s=[4, 20], gpus=[1, 1])
    task = Task(
        cluster=Cluster.pool(1),
        reward="relative_wait",
        baseline="fifo+skip",
        sight=WIDE,
        measured_unit=False,
        time_limit_s=6.0,
    )
    # The baseline ran to its end and waited 4 s in the mean of two; the only finished job none.
    assert returns_of(task, jobs, "fifo") == pytest.approx((2.0 - 0.0) / 2.0)


def test_a_weighted_sum_is_the_sum_of_its_parts():
    """`balanced` earns what its terms earn one by one."""
    jobs = Workload.of(
        submit_s=[0, 0, 3],
        duration_s=[10, 20, 10],
        gpus=[1, 2, 1],
        deadline_s=[5.0, math.nan, 90.0],
        tenant=["a", "b", "a"],
    )
    base = Task(cluster=Cluster.pool(2), sight=WIDE, measured_unit=False)
    weights = REWARDS["balanced"].weights
    parts = [
        returns_of(replace(base, reward={name: weight}), jobs, "fifo")
        for name, weight in weights.items()
    ]
    assert len(parts) == 6
    assert all(part != 0.0 for part in parts)
    total = returns_of(replace(base, reward="balanced"), jobs, "fifo")
    assert total == pytest.approx(sum(parts))


def test_terms_in_time_count_in_units():
    """Seconds are divided by the unit, seconds squared by its square, shares by nothing."""
    reward = Reward("test", {"waiting": -2.0, "queue_wait": 3.0, "finished": 5.0})
    row = reward.row(10.0)
    assert row[Term.WAITING] == pytest.approx(-0.2)
    assert row[Term.QUEUE_WAIT] == pytest.approx(0.03)
    assert row[Term.FINISHED] == 5.0
    assert row.sum() == pytest.approx(4.83)
    assert replace(reward, unit_s=1.0).row(10.0)[Term.WAITING] == -2.0


def test_every_term_is_explained():
    """Whoever composes a reward finds all terms in the documentation."""
    assert set(TERM_MEANING) == set(Term)


def test_only_relative_rewards_need_a_baseline():
    """A baseline is simulated for each episode only where it is compared with."""
    needy = {name for name in REWARDS if REWARDS[name].needs_baseline}
    assert needy == {name for name in REWARDS if name.startswith("relative_")}
    assert len(needy) == 5


def test_bad_rewards_are_refused():
    """Unknown rewards, terms and scores are named; weights must be numbers."""
    with pytest.raises(UnknownNameError, match="jct"):
        reward_of("jtc")
    with pytest.raises(UnknownNameError, match="waiting"):
        reward_of({"wating": 1.0})
    with pytest.raises(UnknownNameError, match="turnaround"):
        Reward("test", {}, score="turnarund")
    with pytest.raises(YardmasterError, match="energy"):
        reward_of({"energy": math.nan})
