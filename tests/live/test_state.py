"""States: what an adapter sees at one moment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.state import State, believed_rest
from yardmaster.model.cluster import Cluster

CLUSTER = Cluster.of("2x A100:4")


def a_state(**changes) -> State:
    settings = {
        "time_s": 100.0,
        "columns": {
            "id": np.array(["late", "early", "runs"]),
            "submit_s": [50.0, 10.0, 5.0],
            "duration_s": [30.0, 40.0, 60.0],
            "gpus": [1, 2, 3],
        },
        "since_s": [np.nan, np.nan, 80.0],
        "cluster": CLUSTER,
        "holdings": np.array([[2, 1, 3]]),
    }
    return State.of(**(settings | changes))


def test_rows_are_sorted_by_submission_with_all_that_belongs_to_them():
    """Rows given in any order come out by submit time, and holdings follow their job."""
    state = a_state(is_held=[True, False, False])
    assert state.jobs.id.tolist() == ["runs", "early", "late"]
    assert state.waiting.tolist() == [1, 2]
    assert state.orderable.tolist() == [1]
    assert state.running.tolist() == [0]
    assert state.holdings.tolist() == [[0, 1, 3]]
    assert state.free_gpus.tolist() == [4, 1]


def test_gpus_out_of_reach_are_not_free():
    """Blocked GPUs count as held, and never more than the node has."""
    state = a_state(blocked=np.array([4, 4]))
    assert state.free_gpus.tolist() == [0, 0]


def test_the_digest_is_that_of_the_situation_and_not_of_the_time():
    """Equal situations have equal digests a second later; any change gives another."""
    state = a_state()
    assert replace(state, time_s=101.0).digest() == state.digest()
    others = [
        a_state(is_held=[True, False, False]),
        a_state(blocked=np.array([1, 0])),
        a_state(since_s=[np.nan, np.nan, 81.0]),
        a_state(holdings=np.array([[2, 0, 3]])),
    ]
    assert len({state.digest(), *(other.digest() for other in others)}) == 5


def test_overdue_jobs_are_believed_to_run_on():
    """Who has run longer than believed is given a tenth of that time, and a second at least."""
    rest = believed_rest(np.array([60.0, 60.0, 1.0]), np.array([20.0, 100.0, 2.0]))
    assert rest.tolist() == [40.0, 10.0, 1.0]


def test_nobody_is_a_state_too():
    """A system without jobs has a state in which nobody waits."""
    empty = {"submit_s": [], "duration_s": []}
    state = State.of(time_s=0.0, columns=empty, since_s=[], cluster=CLUSTER)
    assert len(state.jobs) == len(state.waiting) == len(state.running) == 0
    assert state.free_gpus.tolist() == [4, 4]


@pytest.mark.parametrize(
    "changes",
    [{"since_s": [np.nan, np.nan, 101.0]}, {"holdings": np.array([[2, 7, 1]])}],
    ids=["starts in the future", "unknown node"],
)
def test_what_cannot_be_is_refused(changes):
    """A start after now and a node that does not exist are mistakes."""
    with pytest.raises(YardmasterError):
        a_state(**changes)
