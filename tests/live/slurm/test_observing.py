"""The recorded queue as a state: who may be ordered, who holds what, what is out of reach."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.live.decision import Decider
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.commands import SlurmError
from yardmaster.live.slurm.factors import Scale
from yardmaster.live.slurm.observing import (
    ELSEWHERE,
    Allowed,
    Observation,
    observation,
    why_not,
)
from yardmaster.live.slurm.planning import plan_changes
from yardmaster.live.slurm.reading import NodeRow, PriorityRow, QueueRow

LINES = [("PENDING", "RUNNING"), ("Priority", "Resources"), ("main", "other"), ("1", "2")]
"""How a line of squeue may change from one look to the next."""
SAMPLES = Path(__file__).parent / "samples"
NOW_S = 1_794_937_400.0


def recorded(allowed: Allowed | None = None, nodes: list[NodeRow] | None = None) -> Observation:
    texts = [
        (SAMPLES / name).read_text("utf-8") for name in ("squeue.txt", "sinfo.txt", "sprio.txt")
    ]
    return observation(
        list(reading.queue_rows(texts[0])),
        reading.node_rows(texts[1]) if nodes is None else nodes,
        reading.priority_rows(texts[2]),
        now_s=NOW_S,
        allowed=allowed or Allowed(),
        is_ours=lambda _job, points: points in {0, 100},
    )


def test_only_jobs_that_wait_for_their_turn_may_be_ordered():
    """Not those held, dependent, dated, or with a priority somebody wrote; each with its reason."""
    seen = recorded()
    names = seen.state.jobs.id.tolist()
    ordered = {names[row] for row in seen.state.orderable}
    assert ordered == {"5", "6", "7", "10", "13", "14"}
    why = dict(zip(names, seen.why_held, strict=True))
    assert "JobHeldUser" in why["8"]
    assert "Dependency" in why["9"]
    assert "BeginTime" in why["12"]
    assert "by hand" in why["15"]
    assert seen.without_gpus == 1


def test_a_job_of_parts_asks_for_all_of_them():
    """1 and 2 GPUs in two parts are one job of 3."""
    seen = recorded()
    assert seen.state.jobs.gpus[seen.row_of["10"]] == 3


def test_running_jobs_hold_their_gpus():
    """Four jobs hold the four nodes; nothing is free, and nothing is blocked besides."""
    state = recorded().state
    assert state.free_gpus.tolist() == [0, 0, 0, 0]
    assert state.blocked.tolist() == [0, 0, 0, 0]
    assert len(state.running) == 4


def test_nodes_that_are_away_are_blocked():
    """A drained node's free GPUs are out of reach; a GPU held by who knows whom is, too."""
    nodes = [
        NodeRow("n1", "mix", 8, "a100", 8, ("main",)),
        NodeRow("n9", "drain", 8, "a100", 0, ("main",)),
        NodeRow("n10", "mix", 8, "odd-card", 3, ("main",)),
    ]
    state = recorded(nodes=nodes).state
    assert state.free_gpus.tolist() == [0, 0, 5]
    assert state.blocked.tolist() == [0, 8, 3]


def test_lists_of_who_may_be_ordered_are_kept():
    """A job of two partitions is ours only if both are; strangers are left alone."""
    seen = recorded(Allowed(partitions=("main",)))
    names = seen.state.jobs.id
    assert "13" not in {names[row] for row in seen.state.orderable}
    assert not len(recorded(Allowed(users=("nobody",))).state.orderable)
    with pytest.raises(SlurmError, match="has GPUs"):
        recorded(Allowed(partitions=("nowhere",)))


def test_a_gpu_type_of_other_nodes_stops_nothing():
    """A job that waits, or runs, for GPUs nobody knows here is left out of the order, no more."""
    here, there = "a100", "secret-card-9"
    rows = [
        QueueRow(
            str(job), str(job), "ann", "a", "main", state, float(job), None, 60.0, 1, 1, types, 9,
            "Priority", "elsewhere", 0.0,
        )
        for job, state, types in (
            (1, "PENDING", here), (2, "PENDING", there), (3, "RUNNING", there),
            (4, "PENDING", f"{there}|{here}"),
        )
    ]  # fmt: skip
    weights = {str(job): PriorityRow(9, 0, 9, 0) for job in (1, 2, 4)}
    nodes = [NodeRow("n1", "idle", 8, here, 0, ("main",))]
    seen = observation(rows, nodes, weights, now_s=10.0, allowed=Allowed())
    order = Decider("fifo+easy").decide(seen.state).order
    assert [str(seen.state.jobs.id[row]) for row in order] == ["1", "4"]
    assert seen.why_held == ("", ELSEWHERE, "", "")


def test_a_decision_on_the_recorded_queue_becomes_factors():
    """Shortest first: the planned changes, sorted by Slurm's rule, give the scheduler's order."""
    seen = recorded()
    decision = Decider("sjf+easy").decide(seen.state)
    scale = Scale(1_000_000, 86_400.0, 86_400.0)
    plan = plan_changes(seen, decision, scale)
    assert plan.moved == 0
    points = {change.job: change.points for change in plan.changes}
    age = np.floor(scale.points_per_s * (NOW_S - seen.accrue_s))
    total = {
        str(seen.state.jobs.id[row]): points.get(str(seen.state.jobs.id[row]), seen.site[row])
        + age[row] + seen.others[row]
        for row in decision.order
    }  # fmt: skip
    assert sorted(total, key=lambda job: -total[job]) == [
        str(seen.state.jobs.id[row]) for row in decision.order
    ]


def test_an_empty_cluster_is_a_state_too():
    """Nobody waits, nobody runs: nothing to decide, and no error."""
    nodes = [NodeRow("n1", "idle", 8, "a100", 0, ("main",))]
    seen = observation([], nodes, {}, now_s=NOW_S, allowed=Allowed())
    assert not len(seen.state.orderable)
    assert seen.state.free_gpus.tolist() == [8]


def test_a_task_that_waits_again_is_not_taken_for_one_that_runs():
    """The last task of an array has the array's number; another one was requeued and waits."""
    waits = QueueRow(
        "20_0", "22", "ann", "a", "main", "PENDING", NOW_S - 9.0, None, 60.0, 1, 1, "", 5,
        "BeginTime", "", None,
    )  # fmt: skip
    runs = waits._replace(label="20_1", job="20", state="RUNNING", start_s=NOW_S, node_list="n1")
    nodes = [NodeRow("n1", "mix", 8, "a100", 1, ("main",))]
    seen = observation([waits, runs], nodes, {}, now_s=NOW_S, allowed=Allowed())
    assert seen.row_of == {"20": 0, "20_1": 1}
    assert (seen.state.waiting.tolist(), seen.state.running.tolist()) == ([0], [1])


CELLS = st.tuples(
    st.sampled_from(["PENDING", "PENDING", "RUNNING", "COMPLETING"]),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["main", "other", "main,other"]),
    st.sampled_from(["Priority", "Resources", "None", "Dependency", "Nodes required for job are"]),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 9),
    st.sampled_from(["", "a100", "secret-card-9"]),
    st.none() | st.integers(1, 9).map(float),
    st.none() | st.tuples(*[st.integers(0, 12)] * 4).map(lambda parts: PriorityRow(*parts)),
)
"""State, user, partition, reason, GPUs, nodes, priority, GPU types, start, and what sprio says."""
ALLOWED = st.sampled_from([Allowed(), Allowed(users=("ann",)), Allowed(partitions=("main",))])


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, max_size=12), ALLOWED, st.booleans())
def test_what_is_put_together_by_columns_is_what_each_line_says(cells, allowed, asks):
    """Every column of the state and every reason is the one that the job's own line gives."""
    rows, weights = [], {}
    for number, (state, user, partition, reason, gpus, nodes, priority, types, start, weight) in (
        enumerate(cells, start=1)
    ):  # fmt: skip
        job = str(number)
        rows.append(
            QueueRow(
                job, job, user, "a", partition, state, float(20 - number), start, None, nodes,
                gpus, types, priority, reason, "n1", start,
            )
        )  # fmt: skip
        if weight is not None:
            weights[job] = weight
    is_ours = (lambda _job, points: points < 6) if asks else None
    nodes = [NodeRow("n1", "idle", 8, "a100", 0, ("main", "other"))]
    seen = observation(rows, nodes, weights, now_s=15.0, allowed=allowed, is_ours=is_ours)
    jobs = seen.state.jobs
    by_time = sorted((row for row in rows if row.gpus), key=lambda row: row.submit_s)
    assert jobs.id.tolist() == [row.job for row in by_time] or not by_time
    for place, row in enumerate(by_time):
        weight = weights.get(row.job) if row.waits else None
        why = why_not(row, weight, allowed, is_ours) if row.waits else ""
        if row.waits and row.gpu_types == "secret-card-9":
            why = why or ELSEWHERE
        assert seen.why_held[place] == why
        assert bool(seen.state.is_held[place]) == bool(why)
        assert seen.is_weighed[place] == (weight is not None)
        assert (seen.site[place], seen.others[place]) == (
            (weight.site, weight.others) if weight else (0, 0)
        )
        assert seen.priority[place] == (row.priority if row.waits else 0)
        assert seen.reason[place] == (row.reason if row.waits else "")
        assert jobs.submit_s[place] == min(row.submit_s, 15.0)
        assert (jobs.gpus[place], jobs.user.values()[place]) == (row.gpus, row.user)
        most = -(-row.gpus // row.nodes) if row.nodes > 1 else 0
        assert jobs.max_gpus_per_node[place] == most
        since_s = math.nan if row.waits else min(row.start_s or 15.0, 15.0)
        assert seen.state.since_s[place] == pytest.approx(since_s, nan_ok=True)
        assert seen.row_of[row.job] == place


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 19), st.sampled_from(LINES)), max_size=6))
def test_a_second_look_sees_what_a_first_one_would(changed):
    """Lines that were read before are not read again: the state is as if all had been."""
    before = (SAMPLES / "squeue.txt").read_text("utf-8").splitlines()
    seen = recorded()
    after = list(before)
    for place, (old, new) in changed:
        after[place % len(after)] = after[place % len(after)].replace(old, new)
    text = "\n".join(after)
    again = list(reading.queue_rows(text))
    reading.forget()
    fresh = list(reading.queue_rows(text))
    assert again == fresh
    assert recorded().state.digest() == seen.state.digest()
