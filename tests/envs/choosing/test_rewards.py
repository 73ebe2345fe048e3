"""Rewards of choosing add up to what they are named after, relative to the menu's best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.choosing.places import Term
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.envs.choosing.rewards import CHOOSING_REWARDS, TERM_MEANING, choosing_reward_of
from yardmaster.envs.choosing.standards import standards
from yardmaster.envs.choosing.task import ChoosingTask
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.metrics.summary import summarise
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.choosing import (
    choice_sights,
    choosing_clusters,
    choosing_workloads,
    given_choices,
    replay_as_told,
)

TERM_NAMES = [term.name.lower() for term in Term]
WEIGHTS = st.dictionaries(
    st.sampled_from(TERM_NAMES), st.sampled_from((-1.0, -0.3, 0.5)), min_size=1, max_size=5
)
REWARDS = st.one_of(st.sampled_from(sorted(CHOOSING_REWARDS)), WEIGHTS)
NEARLY = {"rel": 1e-7, "abs": 1e-7}


def amounts(schedule, tail_s):
    """Return what a schedule amounts to of every term but switches, from its jobs one by one."""
    jobs, cluster = schedule.workload, schedule.cluster
    found = dict.fromkeys(Term, 0.0)
    done = np.flatnonzero(np.isfinite(schedule.end_s)).tolist()
    for row in done:
        jct = schedule.end_s[row] - jobs.submit_s[row]
        run = jobs.duration_s[row]
        found[Term.WAITING] += _waited_s(schedule, row)
        found[Term.IN_SYSTEM] += jct
        found[Term.TAIL] += min(max(jct - tail_s[0], 0.0), tail_s[1] - tail_s[0])
        found[Term.BOUNDED_SLOWDOWN] += max(jct / max(run, 10.0), 1.0)
        found[Term.SLOWDOWN] += jct / max(run, 1.0)
        found[Term.LATE] += schedule.end_s[row] > jobs.deadline_s[row]
    found = {term: float(value) / len(done) for term, value in found.items()}
    makespan_s = float(np.nanmax(schedule.end_s))
    joules = sum(cluster.gpu_types[kind].idle_w for kind in _types(cluster)) * makespan_s
    busy_s = 0.0
    for place in range(len(schedule.segment_start_s)):
        held_s = schedule.segment_end_s[place] - schedule.segment_start_s[place]
        first, last = schedule.segment_gpu_offset[place : place + 2]
        for gpu in schedule.gpu_ids[first:last].tolist():
            kind = cluster.gpu_types[_types(cluster)[gpu]]
            joules += held_s * (kind.busy_w - kind.idle_w)
            busy_s += held_s
    found[Term.ENERGY] = float(joules) / 3.6e6
    found[Term.IDLE] = makespan_s - float(busy_s) / cluster.gpus
    return found


def _waited_s(schedule, row):
    """Return for how long a job was in the system without running."""
    mine = schedule.segment_job == row
    ran_s = (schedule.segment_end_s[mine] - schedule.segment_start_s[mine]).sum()
    return schedule.end_s[row] - schedule.workload.submit_s[row] - ran_s


def _types(cluster):
    return cluster.node_type[cluster.gpu_node].tolist()


def played(batch, arms):
    """Return the sum of rewards, the sums of all terms, and the scores of an episode."""
    total, terms, steps = 0.0, np.zeros(len(Term)), 0
    while not batch._ends.any():
        batch.step(np.array([arms[steps % len(arms)]]))
        total += batch.rewards[0]
        terms += batch.terms[0]
        steps += 1
    assert batch.episode_returns[0] == pytest.approx(total, **NEARLY)
    return total, terms, {name: value[0] for name, value in batch.scores.items()}


@settings(max_examples=80, deadline=None)
@given(choosing_workloads(max_jobs=12), choosing_clusters(), choice_sights(), REWARDS)
def test_returns_of_constant_choices(workload, cluster, sight, reward):
    """Each member's return is what its schedule amounts to, less the best's; the best has 0."""
    task = ChoosingTask(sight=sight, reward=reward)
    returns = []
    expected = []
    for place, member in enumerate(sight.menu):
        batch = given_choices(task, (workload, cluster))
        found = batch.episodes.standards(0)
        returns.append(played(batch, [place])[0])
        jobs, _ = batch.episodes.situation(0)
        alone = simulate(jobs, cluster, member, compile_core="never")
        amount = amounts(alone, found.tail_s)
        expected.append(sum(found.weights[term] * amount[term] for term in Term))
    assert np.array(returns) == pytest.approx(np.array(expected) - max(expected), **NEARLY)
    assert max(returns) == pytest.approx(0.0, abs=1e-7)


@settings(max_examples=80, deadline=None)
@given(
    choosing_workloads(max_jobs=12),
    choosing_clusters(),
    choice_sights(),
    st.lists(st.integers(0, 4), min_size=2, max_size=9),
)
def test_terms_of_any_choices(workload, cluster, sight, arms):
    """Whatever is chosen when, terms add up to what the schedule that comes of it amounts to."""
    arms = [arm % len(sight.menu) for arm in arms]
    every = dict.fromkeys(TERM_NAMES, -1.0)
    batch = given_choices(ChoosingTask(sight=sight, reward=every), (workload, cluster))
    jobs, _ = batch.episodes.situation(0)
    tail_s = batch.episodes.standards(0).tail_s
    _, terms, scores = played(batch, arms)
    schedule = replay_as_told(jobs, cluster, sight, arms)
    amount = amounts(schedule, tail_s)
    for term in Term:
        if term is not Term.SWITCH:
            assert terms[term] == pytest.approx(amount[term], **NEARLY), term.name
    done = int(np.isfinite(schedule.end_s).sum())
    assert terms[Term.SWITCH] * done == pytest.approx(scores["switches"])
    assert scores["unfinished"] == 0
    jct_s = schedule.end_s - jobs.submit_s
    assert scores["jct_s"] == pytest.approx(np.nanmean(jct_s))
    assert scores["p95_jct_s"] == pytest.approx(np.nanpercentile(jct_s, 95))


def test_the_best_sets_the_unit():
    """Of every metric the best of the menu's schedulers is the unit in which a term counts."""
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.workload import Workload

    jobs = Workload.of(submit_s=[0, 0, 0], duration_s=[100, 1, 1], deadline_s=[500, 2, 2])
    schedules = [
        simulate(jobs, Cluster.pool(1), member, compile_core="never") for member in ("fifo", "sjf")
    ]
    found = standards(schedules, choosing_reward_of({"in_system": -1.0, "late": -2.0}), (0.5, 1.0))
    assert found.best.mean_jct_s == pytest.approx((1 + 2 + 102) / 3)
    assert found.best.deadline_miss_rate == 0.0
    assert found.weights[Term.IN_SYSTEM] == pytest.approx(-1.0 / found.best.mean_jct_s)
    assert found.weights[Term.LATE] == -2.0
    assert found.compared[-1] == pytest.approx(-1.0)
    assert found.span_s == 102.0


def test_mistakes_in_rewards_are_named():
    """Unknown rewards and terms get a hint; weights must be numbers."""
    with pytest.raises(UnknownNameError, match="Did you mean 'bounded_slowdown'"):
        choosing_reward_of("bounded_slowdwn")
    with pytest.raises(UnknownNameError, match="Did you mean 'in_system'"):
        choosing_reward_of({"in_sytem": -1.0})
    with pytest.raises(YardmasterError, match="weight of late must be a number"):
        choosing_reward_of({"late": float("nan")})
    assert set(TERM_MEANING) == set(Term)


def test_waiting_again_after_a_failure_counts():
    """A job whose node fails waits twice; the menu's only scheduler still has return 0."""
    cluster = Cluster.of("1x V100:1", "1x A100:1").under(
        Site(failures=Failures(outages=(Outage(0, 0.5, 0.75),)))
    )
    jobs = Workload.of(
        submit_s=np.zeros(6), duration_s=np.array([0.0, 0, 0, 0, 1, 1]), gpus=np.ones(6, int)
    )
    sight = ChoiceSight(menu=("fifo+strict@pack",), past=0)
    batch = given_choices(ChoosingTask(sight=sight, reward={"waiting": -1.0}), (jobs, cluster))
    assert played(batch, [0])[0] == pytest.approx(0.0, **NEARLY)


def test_jobs_given_up_cease_to_count():
    """A job given up has left: no term grows with it any more, and its deadline is missed."""
    down = tuple(Outage(node, 10.0, 1_000.0) for node in (0, 1))
    cluster = Cluster.of("3x V100:1").under(Site(failures=Failures(outages=down, retries=0)))
    jobs = Workload.of(
        submit_s=np.zeros(5),
        duration_s=np.array([50.0, 50, 50, 20, 20]),
        deadline_s=np.array([2_000.0, np.nan, 2_000, 2_000, 85]),
        gpus=np.ones(5, int),
    )
    sight = ChoiceSight(menu=("fifo+strict@pack",), past=0)
    every = dict.fromkeys(TERM_NAMES, -1.0)
    task = ChoosingTask(sight=sight, reward=every, tail=(0.05, 2.0))
    batch = given_choices(task, (jobs, cluster))
    low, high = batch.episodes.standards(0).tail_s
    assert low < 10 < high  # the two that are given up are old by then
    total, terms, scores = played(batch, [0])
    left_s = np.array([10.0, 10, 50, 70, 90])
    assert terms[Term.IN_SYSTEM] == pytest.approx(left_s.sum() / 5)
    assert terms[Term.TAIL] == pytest.approx((np.clip(left_s, low, high) - low).sum() / 5)
    assert terms[Term.LATE] == pytest.approx(2 / 5)  # the first is lost, the last late
    assert total == pytest.approx(0.0, **NEARLY)
    assert (scores["late"], scores["unfinished"]) == (pytest.approx(2 / 5), 2)
    alone = simulate(jobs, cluster, sight.menu[0], compile_core="never")
    measured = summarise(alone)
    assert measured["deadline_miss_rate"] == pytest.approx(2 / 4)  # of those that have one
    assert scores["p95_jct_s"] == pytest.approx(measured["p95_jct_s"])
