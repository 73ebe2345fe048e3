"""Replaying with a chooser: the same decisions as in the environment it was trained in."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.choosing import compilation
from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.envs.choosing.batch import ChoosingBatch
from yardmaster.envs.choosing.episodes import ChoosingEpisodes
from yardmaster.envs.choosing.task import CHOOSING_TASKS
from yardmaster.errors import YardmasterError
from yardmaster.metrics import per_job
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.meta.chooser_file import packed, write_chooser
from yardmaster.schedulers.meta.choosers import TrainedChooser
from yardmaster.schedulers.meta.driving import drive_chooser
from yardmaster.schedulers.simulation import simulate
from yardmaster.testing.choosing import (
    choice_sights,
    choosing_clusters,
    choosing_workloads,
    random_chooser,
    replay_as_told,
)

TASK = CHOOSING_TASKS["regimes"].changed(
    regimes=["base-low-2", "bursty-medium-4"], past=2, episodes=4
)


@pytest.fixture
def made(tmp_path):
    """Return a set of episodes, and the name of a chooser for them that nobody trained."""
    episodes = ChoosingEpisodes(TASK, "val")
    write_chooser(tmp_path / "chooser.npz", random_chooser(episodes.task.sight, seed=2))
    return episodes, f"meta:{tmp_path}/chooser.npz"


def preferred(chooser, seen):
    """Return the place on the menu that a packed network likes best."""
    net = packed(chooser)
    scores = np.zeros(len(chooser.sight.menu), dtype=np.float32)
    scratch = np.zeros(net.scratch, dtype=np.float32)
    compilation.plain().score_one(net.net, net.weights, seen, scores, scratch)
    return int(scores.argmax())


def test_replays_are_the_environments_episodes(made):
    """The same jobs wait for as long, and as many decisions and switches are made."""
    episodes, text = made
    chooser = random_chooser(episodes.task.sight, seed=2)
    batch = ChoosingBatch(episodes, 1, compiled=False, autoreset=False, draw=lambda rows: rows)
    batch.begin(np.zeros(1, dtype=np.int64))
    while not batch._ends.any():
        batch.step(np.array([preferred(chooser, batch.observations[0])]))
    jobs, machines = episodes.situation(0)
    schedule = simulate(jobs, machines, text)
    assert np.nanmean(per_job.wait_s(schedule)) == pytest.approx(batch.scores["wait_s"][0])
    assert sum(schedule.choices.values()) == batch.episode_steps[0]
    assert schedule.switches == batch.scores["switches"][0] > 0
    assert len([count for count in schedule.choices.values() if count]) > 1


@settings(max_examples=40, deadline=None)
@given(choosing_workloads(), choosing_clusters(), choice_sights(), st.integers(0, 9))
def test_asked_or_not_decisions_are_the_same(workload, cluster, sight, seed):
    """Who is asked why takes one decision at a time, and ends with the same schedule."""
    file = random_chooser(sight, seed)
    chooser = TrainedChooser("a file", sight, packed(file))
    told = []
    schedules = [
        drive_chooser(workload, cluster, chooser, called="c", compiled=False, why=why)[0]
        for why in (None, told.append)
    ]
    assert schedules[0].fingerprint() == schedules[1].fingerprint()
    assert schedules[0].choices == schedules[1].choices
    again = replay_as_told(workload, cluster, sight, [why.chosen for why in told], called="c")
    assert again.fingerprint() == schedules[0].fingerprint()


def test_why_is_told(made):
    """Every decision names the schedulers and how much each is liked; the best was taken."""
    episodes, text = made
    jobs, machines = episodes.situation(1)
    told = []
    schedule = simulate(jobs, machines, text, why=told.append)
    records = [json.loads(json.dumps(why.record(jobs))) for why in told]
    assert records[0]["second"] == 0.0
    assert records[0]["waiting"] >= 1
    for record in records:
        assert list(record["scores"]) == list(TASK.sight.menu)
        assert record["scores"][record["chosen"]] == max(record["scores"].values())
    counts = {name: sum(one["chosen"] == name for one in records) for name in TASK.sight.menu}
    assert counts == schedule.choices


def test_bandits_say_what_they_chose():
    """A bandit has no scores to show, but its choices and when it made them, 30 s apart."""
    jobs = Workload.of(submit_s=np.arange(200.0), duration_s=np.full(200, 10.0))
    told = []
    simulate(jobs, Cluster.pool(4), "bandit:exp3", why=told.append, compile_core="never")
    records = [why.record(jobs) for why in told]
    assert all(record["scores"] == {} for record in records)
    assert (np.diff([record["second"] for record in records]) >= 30.0).all()


@pytest.mark.parametrize("name", ["bandit:linucb", "bandit:exp3", "bandit:epsilon-greedy", "meta"])
def test_compiled_or_not_the_schedule_is_the_same(made, name):
    """Plain Python and machine code make the same choices, and the seed alone decides them."""
    episodes, text = made
    jobs, machines = episodes.situation(0)
    name = text if name == "meta" else name
    plain, compiled, again = (
        simulate(jobs, machines, name, seed=5, compile_core=choice)
        for choice in ("never", "always", "always")
    )
    assert plain.fingerprint() == compiled.fingerprint() == again.fingerprint()
    assert plain.choices == compiled.choices == again.choices


def test_bandits_begin_anew_with_every_simulation():
    """Nothing is carried from one simulation to the next, and other seeds choose otherwise."""
    dice = np.random.default_rng(0)
    jobs = Workload.of(
        submit_s=np.sort(dice.uniform(0, 2_000, 150)), duration_s=dice.exponential(60.0, 150)
    )
    run = {
        seed: [
            simulate(jobs, Cluster.pool(4), "bandit:random", seed=seed, compile_core="never")
            for _ in range(2)
        ]
        for seed in (0, 1)
    }
    assert run[0][0].fingerprint() == run[0][1].fingerprint()
    assert run[0][0].choices != run[1][0].choices


def test_a_bandit_is_rewarded_for_short_queues():
    """What it hears after a span is 1 / (1 + mean queue by GPUs)."""
    from yardmaster.schedulers.meta.choosers import BanditChooser

    class Listening:
        def __init__(self):
            self.heard = []

        def choose(self, seen):
            del seen
            return 0

        def learn(self, reward):
            self.heard.append(reward)

    bandit = Listening()
    sight = ChoiceSight(menu=("fifo+skip",), past=0)
    # One GPU of two is busy until 10; the gangs of two wait, both from 2 on.
    jobs = Workload.of(submit_s=[0, 1, 2], duration_s=[10, 5, 5], gpus=[1, 2, 2])
    chooser = BanditChooser("listening", sight, lambda *_: bandit)
    drive_chooser(jobs, Cluster.pool(2), chooser, called="l", compiled=False)
    # 0 … 2 s: one waits for one second; 2 … 10 s: two wait; 10 … 20 s: one waits for 5 s.
    queues = [1 / 2, 2.0, 5 / 10]
    assert bandit.heard == pytest.approx([1 / (1 + queue / 2) for queue in queues])


def test_what_a_chooser_cannot_do_is_said(made):
    """The SimPy engine, compatibility modes and estimates that are not there are refused."""
    episodes, text = made
    jobs, machines = episodes.situation(0)
    for choice in ({"engine": "simpy"}, {"compatibility": "rlscheduler"}):
        with pytest.raises(YardmasterError, match="runs on the core alone"):
            simulate(jobs, machines, text, **choice)
    bare = Workload.of(submit_s=[0, 1], duration_s=[5, 5])
    with pytest.raises(YardmasterError, match=r"2 of 2 jobs .* have none"):
        simulate(bare, Cluster.pool(1), "bandit:exp3=sjf~estimate/fifo", compile_core="never")
