"""The present as a simulation: everything where it is, and everybody asked at once."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.live.decision import Decider
from yardmaster.live.present import present_of
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster
from yardmaster.schedulers.language import parse_scheduler
from yardmaster.schedulers.simulation import simulate


def a_state(seed: int, time_s: float) -> State:
    """Return random running jobs on random nodes, some nodes away, and a queue."""
    rng = np.random.default_rng(seed)
    cluster = Cluster.of("3x A100:8", "2x A100:4")
    free, holdings, gpus = cluster.node_gpus.copy(), [], []
    for row in range(12):
        node = int(rng.integers(cluster.nodes))
        held = int(rng.integers(0, free[node] + 1))
        if held:
            free[node] -= held
            holdings.append((len(gpus), node, held))
            gpus.append(held)
        del row
    running = len(gpus)
    gpus += rng.choice([1, 2, 4, 8], 20).tolist()
    ages = np.sort(rng.uniform(0.0, min(time_s, 5000.0), len(gpus)))[::-1]
    since_s = np.full(len(gpus), np.nan)
    since_s[:running] = time_s - ages[:running]
    return State.of(
        time_s=time_s,
        columns={
            "submit_s": time_s - ages,
            "duration_s": rng.uniform(1.0, 9000.0, len(gpus)),
            "gpus": gpus,
        },
        since_s=since_s,
        cluster=cluster,
        holdings=np.array(holdings, dtype=np.int64).reshape(-1, 3),
        blocked=np.minimum(free, rng.integers(0, 3, cluster.nodes)),
    )


@pytest.mark.parametrize("time_s", [0.3, 4321.123, 1.79e9 + 0.7])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_everything_is_put_back_and_nobody_starts_early(seed, at_once, time_s):
    """Just before now, running jobs and blocks fill the cluster; at now the free GPUs are free."""
    state = a_state(seed, time_s)
    scheduler = parse_scheduler("fifo+skip")
    present = present_of(state, scheduler, at_once=at_once)
    schedule = simulate(present.jobs, state.cluster, scheduler, until_s=present.now_s)
    assert present.is_exact
    assert present.is_there(schedule)
    waiting = schedule.start_s[present.first :]
    assert (np.isnan(waiting) | (waiting == present.now_s)).all()
    begun = present.begun(schedule)
    used = np.zeros(state.cluster.nodes, dtype=np.int64)
    for _, nodes in begun:
        for node, gpus in nodes:
            used[node] += gpus
    assert (used <= state.free_gpus).all()
    if state.free_gpus.max() >= 1 and 1 in state.jobs.gpus[state.orderable]:
        assert begun


@pytest.mark.parametrize("name", ["fifo+skip", "policy:slowdown-clairvoyant", "meta:mixed"])
@pytest.mark.parametrize("rest_s", [1e-9, 1e-4, 4e-4, 1e-3])
def test_who_is_about_to_end_still_holds_its_gpus(name, rest_s):
    """A running job believed to end within the next millisecond leaves no room now."""
    state = State.of(
        time_s=50.0003,
        columns={
            "submit_s": [0.0, 1.0],
            "duration_s": [50.0003 + rest_s, 99.0],
            "estimate_s": [50.0003 + rest_s, 99.0],
            "gpus": [8, 1],
        },
        since_s=[0.0, np.nan],
        cluster=Cluster.of("A100:8"),
        holdings=np.array([[0, 0, 8]]),
    )
    assert Decider(name).decide(state).starts == ()


def test_where_nobody_knows_who_runs_where_a_place_is_found():
    """Running jobs without holdings are put somewhere, whole where they fit, and that is said."""
    state = State.of(
        time_s=50.0,
        columns={"submit_s": [0.0, 1.0, 2.0], "duration_s": [99.0] * 3, "gpus": [8, 4, 4]},
        since_s=[5.0, 6.0, np.nan],
        cluster=Cluster.of("2x A100:8"),
    )
    scheduler = parse_scheduler("fifo+skip")
    present = present_of(state, scheduler, at_once=True)
    assert not present.is_exact
    schedule = simulate(present.jobs, state.cluster, scheduler, until_s=present.now_s)
    assert [nodes for _, nodes in present.begun(schedule)] == [((1, 4),)]
