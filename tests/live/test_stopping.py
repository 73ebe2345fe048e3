"""Whom a scheduler would stop for a waiting job, asked by simulating the present."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster

NOW_S = 1000.0
GPUS = 4
RUNNING = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 3), st.integers(1, 9), st.booleans()), max_size=6
)
"""Node, GPUs, hundreds of seconds left, and whether it may be stopped."""


def moment(running: list[tuple[int, int, int, bool]], gpus: int, run_s: float) -> State:
    """Two nodes with running jobs, as many as fit, and one job that waits."""
    free, held = [GPUS, GPUS], []
    for node, wanted, left, may in running:
        if wanted <= free[node]:
            free[node] -= wanted
            held.append((node, wanted, 100.0 * left, may))
    count = len(held)
    believed = [500.0 + left for _, _, left, _ in held] + [run_s]
    return State.of(
        time_s=NOW_S,
        columns={
            "submit_s": np.arange(count + 1.0),
            "duration_s": believed,
            "estimate_s": believed,
            "gpus": [wanted for _, wanted, _, _ in held] + [gpus],
        },
        since_s=[NOW_S - 500.0] * count + [np.nan],
        cluster=Cluster.of(f"2x A100:{GPUS}"),
        holdings=np.array([(row, one[0], one[1]) for row, one in enumerate(held)]).reshape(-1, 3),
    )


def may_stop(running: list[tuple[int, int, int, bool]]) -> list[bool]:
    free, found = [GPUS, GPUS], []
    for node, wanted, _, may in running:
        if wanted <= free[node]:
            free[node] -= wanted
            found.append(may)
    return found


@settings(max_examples=60, deadline=None)
@given(RUNNING, st.integers(1, GPUS), st.integers(0, 9))
def test_only_longer_jobs_that_may_be_stopped_make_room(running, gpus: int, hundreds: int):
    """Under srpt, room is made exactly where enough GPUs are with stoppable jobs of more work."""
    run_s = 100.0 * hundreds + 50.0
    state, may = moment(running, gpus, run_s), may_stop(running)
    decider = Decider("srpt+preemptive", may_stop=True)
    decision = decider.decide(state)
    waiting = len(state.jobs) - 1
    stoppable = np.array([*may, False])
    victims = decider.stops_for(state, decision, waiting, stoppable)
    left_s = state.left_s()
    yields = [row for row in range(waiting) if may[row] and left_s[row] > run_s]
    free = state.free_gpus
    if free.max() >= gpus:
        assert [start.row for start in decision.starts] == [waiting]
        return
    room = free + np.bincount(
        state.holdings[yields, 1], state.holdings[yields, 2], minlength=2
    ).astype(int)
    assert bool(victims) == bool(room.max() >= gpus)
    assert set(victims) <= set(yields)
    nodes = {int(state.holdings[row, 1]) for row in victims}
    assert len(nodes) <= 1
    for node in nodes:
        assert free[node] + sum(state.holdings[row, 2] for row in victims) >= gpus


@settings(max_examples=60, deadline=None)
@given(
    running=RUNNING,
    gpus=st.integers(1, GPUS),
    hundreds=st.integers(0, 9),
    scheduler=st.sampled_from(["srpt+preemptive@spread", "sjf+preemptive@random"]),
)
@example([(0, 1, 1, True), (0, 2, 1, False), (1, 1, 3, False)], 3, 2, "srpt+preemptive@spread")
def test_placements_that_move_jobs_stop_nobody_else(running, gpus, hundreds, scheduler):
    """Jobs put back elsewhere than they run: who must not be stopped is not, nor in vain."""
    state, may = moment(running, gpus, 100.0 * hundreds + 50.0), may_stop(running)
    decider = Decider(scheduler, may_stop=True)
    decision = decider.decide(state)
    waiting = len(state.jobs) - 1
    if decision.starts:
        return
    victims = decider.stops_for(state, decision, waiting, np.array([*may, False]))
    assert all(may[row] for row in victims)
    held = state.holdings[list(victims)]
    room = state.free_gpus + np.bincount(held[:, 1], held[:, 2], minlength=2).astype(int)
    assert not victims or room.max() >= gpus


@pytest.mark.parametrize(
    ("scheduler", "stopped"),
    [("srpt+preemptive", {1}), ("sjf+preemptive", {1}), ("fifo+preemptive", set())],
)
def test_orders_say_who_stands_behind(scheduler: str, stopped: set[int]):
    """By work left, by run time, by submission: each order's own key decides, as in simulation."""
    state = moment([(0, 4, 1, True), (1, 4, 9, True)], 4, 650.0)
    decider = Decider(scheduler, may_stop=True)
    found = decider.stops_for(state, decider.decide(state), 2, np.array([True, True, False]))
    assert set(found) == stopped


def test_room_that_is_promised_is_not_given_twice():
    """What starts now without stopping anybody has its GPUs; others must be stopped besides."""
    state = moment([(0, 2, 9, True), (1, 4, 9, False)], 2, 50.0)
    decider = Decider("srpt+preemptive", may_stop=True)
    decision = decider.decide(state)
    assert [start.nodes for start in decision.starts] == [((0, 2),)]
    assert decider.stops_for(state, decision, 2, np.array([True, True, False])) == (0,)


@pytest.mark.parametrize(
    ("scheduler", "why"),
    [
        ("las+preemptive", "a past that nobody has seen"),
        ("fifo+timeslice", "timeslice is for simulation"),
        ("sjf+elastic", "elastic is for simulation"),
    ],
)
def test_schedulers_that_need_more_are_refused(scheduler: str, why: str):
    """Keys by what was done before, turns and resizing cannot be asked about one moment."""
    with pytest.raises(YardmasterError, match=why):
        Decider(scheduler, may_stop=True)


def test_without_being_asked_no_scheduler_stops_jobs():
    """The default refuses, and others are not changed by being allowed to."""
    with pytest.raises(YardmasterError, match="never stop"):
        Decider("srpt+preemptive")
    assert not Decider("sjf+easy", may_stop=True).stops_jobs
