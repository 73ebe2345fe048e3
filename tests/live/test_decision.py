"""Decisions: the scheduler of the simulation, asked about the present."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.synthetic import simple

CLUSTERS = (Cluster.of("4x A100:8"), Cluster.of("3x A100:8", "2x A100:4"))
EXACT = (
    "fifo+strict",
    "sjf+easy",
    "wfp3+easy",
    "saf+skip@first",
    "slurm-multifactor+easy",
    "sjf+conservative",
    "policy:slowdown-clairvoyant",
)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
def test_it_starts_what_the_simulation_starts(name, cluster, moment):
    """At any instant of a simulation, asked about it, it starts the same jobs on the same nodes."""
    jobs = simple(jobs=120, seed=11, gpus=cluster.gpus, load=1.2)
    schedule = simulate(jobs, cluster, name)
    decider = Decider(name, picks=0)
    instants = np.unique(np.concatenate([schedule.start_s, jobs.submit_s, schedule.end_s]))
    for now_s in instants[3:-1:9]:
        state, rows = moment(schedule, now_s)
        found = {int(rows[start.row]): start.nodes for start in decider.decide(state).starts}
        started = np.flatnonzero(schedule.start_s == now_s)
        assert set(found) == set(started.tolist())
        for job, nodes in found.items():
            segment = int(np.flatnonzero(schedule.segment_job == job)[0])
            first, last = schedule.segment_gpu_offset[segment : segment + 2]
            held = np.unique(cluster.gpu_node[schedule.gpu_ids[first:last]], return_counts=True)
            assert nodes == tuple(zip(held[0].tolist(), held[1].tolist(), strict=True))


def crowd(waiting: int = 30, **changes) -> State:
    """Return a node of 8 GPUs, 6 of them held for another 100 s, and jobs that wait."""
    rng = np.random.default_rng(3)
    count = waiting + 1
    gpus = rng.choice([1, 2, 4, 8], count)
    gpus[0] = 6
    since_s = np.full(count, np.nan)
    since_s[0] = 0.0
    run_s = rng.uniform(10, 1000, count)
    run_s[0] = 1100.0
    settings = {
        "time_s": 1000.0,
        "columns": {
            "id": np.array([f"job-{row}" for row in range(count)]),
            "submit_s": np.arange(count, dtype=float),
            "duration_s": run_s,
            "estimate_s": run_s,
            "gpus": gpus,
        },
        "since_s": since_s,
        "cluster": Cluster.of("A100:8"),
        "holdings": np.array([[0, 0, 6]]),
    }
    return State.of(**(settings | changes))


@pytest.mark.parametrize(
    "name", ["sjf+easy", "fifo+strict", "random-feasible", "policy:slowdown-clairvoyant",
             "meta:mixed", "bandit:random"]
)  # fmt: skip
def test_the_order_holds_every_job_that_may_start_once(name):
    """The order is a permutation of the waiting jobs that are not held, starts come first."""
    held = np.zeros(31, dtype=bool)
    held[[4, 9]] = True
    state = crowd(is_held=held)
    decision = Decider(name).decide(state)
    assert sorted(decision.order.tolist()) == state.orderable.tolist()
    assert len(decision.scores) == len(decision.prefer) == len(decision.order)
    started = {start.row for start in decision.starts}
    assert started == set(decision.order[decision.prefer >= 0].tolist())
    assert sum(gpus for start in decision.starts for _, gpus in start.nodes) <= 2


def test_orders_rank_by_their_keys():
    """Shortest job first ranks by believed run time, whoever starts; scores fall."""
    state = crowd()
    decision = Decider("sjf+easy").decide(state)
    run_s = state.jobs.duration_s[decision.order]
    assert (np.diff(run_s) >= 0).all()
    assert (np.diff(decision.scores) <= 0).all()


def test_policies_give_a_score_to_what_they_looked_at():
    """The first of a policy's order has a score; the picks that follow are those of the future."""
    decision = Decider("policy:slowdown-clairvoyant").decide(crowd())
    assert np.isfinite(decision.scores[0])
    alone = Decider("policy:slowdown-clairvoyant", picks=0).decide(crowd())
    assert [start.row for start in alone.starts] == [start.row for start in decision.starts]


def test_a_choosers_pick_is_named():
    """A chooser's decision says which scheduler of its menu is at work, and ranks by that one."""
    decision = Decider("meta:mixed").decide(crowd())
    assert decision.scheduler == "meta:mixed"
    assert decision.chosen != "meta:mixed"
    fixed = Decider(decision.chosen).decide(crowd())
    assert decision.order.tolist() == fixed.order.tolist()


def test_nothing_starts_on_gpus_out_of_reach():
    """With the free GPUs blocked nobody starts, and the reason says that none is free."""
    decision = Decider("sjf+easy").decide(crowd(blocked=np.array([2])))
    assert decision.starts == ()
    assert "0 free" in decision.why(int(decision.order[0]))


def test_trained_schedulers_are_told_apart_by_their_weights():
    """A policy and a chooser have fingerprints of their own, which stay; an order has none."""
    names = ("policy:slowdown-clairvoyant", "meta:mixed", "meta:jct")
    prints = [Decider(name).fingerprint for name in names]
    assert len({*prints, ""}) == 4
    assert prints == [Decider(name).fingerprint for name in names]
    assert Decider("sjf+easy").fingerprint == ""


def test_deciding_twice_is_deciding_once():
    """The same state gives the same decision, dice and all."""
    first, second = (Decider("random-feasible").decide(crowd()) for _ in range(2))
    assert first.order.tolist() == second.order.tolist()
    assert first.starts == second.starts


@pytest.mark.parametrize("name", ["srpt+preemptive", "fifo+timeslice", "fifo+elastic"])
def test_schedulers_that_stop_jobs_are_refused(name):
    """Nobody stops a real job to start another."""
    with pytest.raises(YardmasterError, match="never stop"):
        Decider(name)


def test_a_record_names_jobs_and_says_why():
    """What goes to the audit log holds ids, scores and a sentence for each of the first jobs."""
    state = crowd()
    record = Decider("sjf+easy").decide(state).record(state, first=5)
    assert len(record["order"]) == len(record["scores"]) == len(record["why"]) == 5
    assert record["waiting"] == 30
    assert set(record["order"]) <= set(map(str, state.jobs.id))
