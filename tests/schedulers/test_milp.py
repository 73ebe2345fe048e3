"""Placing many waiting jobs at once: what the decider does around its integer program."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.engine.decisions import Situation
from yardmaster.engine.requests import Shapes, shapes_of
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers import milp, milp_model
from yardmaster.schedulers.milp import MilpDecider, packed
from yardmaster.schedulers.milp_model import Weights
from yardmaster.schedulers.milp_program import Status
from yardmaster.schedulers.milp_room import Room
from yardmaster.schedulers.simulation import simulate

PATIENT_S = 60.0


def situation_of(jobs, free, *, node_gpus=None, cap=8, usable=None):
    """Return a pass in which jobs of so many GPUs wait, in the order given."""
    sizes, example, of_job = np.unique(np.asarray(jobs), return_index=True, return_inverse=True)
    free = np.asarray(free)
    node_gpus = np.full(len(free), 8) if node_gpus is None else np.asarray(node_gpus)
    caps = np.full(len(sizes), min(cap, int(node_gpus.max())))
    single = (sizes <= caps).astype(np.int64)
    shapes = Shapes(of_job.astype(np.int64), sizes, caps, np.ones_like(sizes), single, example)
    rows = np.arange(len(of_job))
    return Situation(0.0, rows, shapes, node_gpus, free, usable or (lambda _: free.copy()))


def left_after(situation, chosen):
    """Return the free GPUs of each node once the plans are carried out."""
    left = situation.free.copy()
    for _, plan in chosen:
        for node, gpus in plan.items():
            left[node] -= gpus
    return left.tolist()


def test_fragmentation_binds():
    """Two half-used nodes take the 2-GPU jobs that balance alone would give to the empty ones."""
    situation = situation_of([2, 2], [2, 2, 8, 8])
    whole = MilpDecider(time_limit_s=PATIENT_S, weights=Weights(room=0.0))(situation)
    blind = MilpDecider(time_limit_s=PATIENT_S, weights=Weights(fragmentation=0.0, room=0.0))(
        situation
    )
    assert left_after(situation, whole) == [0, 0, 8, 8]
    assert left_after(situation, blind) == [2, 2, 6, 6]


def test_room_for_the_next_binds():
    """With its weight alone both nodes stay open for another such job; without, one is filled."""
    situation = situation_of([1], [1, 4])
    keeps = MilpDecider(time_limit_s=PATIENT_S, weights=Weights(fragmentation=0.0, balance=0.0))(
        situation
    )
    fills = MilpDecider(time_limit_s=PATIENT_S, weights=Weights(balance=0.0, room=0.0))(situation)
    assert left_after(situation, keeps) == [1, 3]
    assert left_after(situation, fills) == [0, 4]


def test_scatter_binds():
    """A gang takes two whole nodes rather than the rests of four, which would tidy up more."""
    situation = situation_of([16], [4, 4, 4, 4, 8, 8])
    gathered = MilpDecider(time_limit_s=PATIENT_S, weights=Weights(scatter=3.0))(situation)
    scattered = MilpDecider(time_limit_s=PATIENT_S, weights=Weights(scatter=0.0))(situation)
    assert left_after(situation, gathered) == [4, 4, 4, 4, 0, 0]
    assert left_after(situation, scattered) == [0, 0, 0, 0, 8, 8]


def test_the_order_is_never_overruled():
    """The first job starts although those behind it could use more GPUs without it."""
    situation = situation_of([5, 8, 4, 4], [8])
    assert MilpDecider(time_limit_s=PATIENT_S)(situation) == [(0, {0: 5})]


def test_jobs_start_that_pack_would_turn_away():
    """Packing in order blocks the last job; some placement holds all three, and it is found."""
    situation = situation_of([2, 3, 3], [5, 3])
    room = Room(situation)
    assert sorted(packed(room, [0, 1, 2])) == [0, 1]
    chosen = MilpDecider(time_limit_s=PATIENT_S)(situation)
    assert [row for row, _ in chosen] == [0, 1, 2]


def test_lowest_numbers_first_among_equal_nodes():
    """Of nodes that look the same, the lowest-numbered are used."""
    situation = situation_of([8, 8, 2], [8, 3, 8, 8, 3, 8])
    chosen = MilpDecider(time_limit_s=PATIENT_S)(situation)
    assert left_after(situation, chosen) == [0, 1, 0, 8, 3, 8]


def test_nothing_is_asked_when_nobody_fits(monkeypatch):
    """A pass in which nobody fits costs no program and is not counted."""
    monkeypatch.setattr(milp, "place", None)
    decider = MilpDecider()
    assert decider(situation_of([8, 4], [3, 2])) == []
    assert decider.counts.passes == 0


def test_one_node_leaves_nothing_to_ask(monkeypatch):
    """On a pool every placement is the same, so no program is written, however large the pool."""
    monkeypatch.setattr(milp, "place", None)
    decider = MilpDecider()
    situation = situation_of([600, 500, 300, 200], [1000], node_gpus=[4000], cap=4000)
    assert [row for row, _ in decider(situation)] == [0, 2]
    assert decider.counts.optimal == 1
    assert decider.notes() == ()


def test_nodes_that_are_away_do_not_count():
    """A node without GPUs is neither used nor seen by the objective."""
    weights = Weights(fragmentation=0.0, balance=1.0, room=0.0)
    here = situation_of([4, 4], [8, 8])
    away = situation_of([4, 4], [8, 8, 0], node_gpus=[8, 8, 0])
    plans = [MilpDecider(time_limit_s=PATIENT_S, weights=weights)(case) for case in (here, away)]
    assert plans[0] == plans[1]
    assert left_after(here, plans[0]) == [4, 4]


JOBS = st.lists(st.sampled_from([1, 1, 2, 3, 4, 8, 12, 20]), min_size=1, max_size=20)
FREE = st.lists(st.integers(0, 8), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(jobs=JOBS, free=FREE, batch=st.sampled_from([1, 3, 64]), cap=st.sampled_from([3, 8]))
def test_nobody_is_left_who_still_fits(jobs, free, batch, cap):
    """Whatever the batch, plans are whole and within the free GPUs, and then nobody else fits."""
    situation = situation_of(jobs, free, cap=cap)
    chosen = MilpDecider(batch=batch, time_limit_s=PATIENT_S)(situation)
    rows = [row for row, _ in chosen]
    assert rows == sorted(set(rows))
    room = Room(situation)
    for row, plan in chosen:
        assert sum(plan.values()) == jobs[row]
        assert max(plan.values()) <= cap
        room.take(int(situation.shapes.of_job[row]), plan)
    assert room.left.tolist() == left_after(situation, chosen)
    assert room.left.min() >= 0
    waiting = np.array([row for row in range(len(jobs)) if row not in rows], dtype=np.int64)
    assert len(room.fitting(waiting)) == 0


@settings(max_examples=60, deadline=None)
@given(data=st.data(), jobs=JOBS, free=FREE)
def test_cores_and_memory_always_suffice(data, jobs, free):
    """Plans made from usable GPUs alone never need more cores than a node has."""
    cores = np.array(
        data.draw(st.lists(st.integers(0, 40), min_size=len(free), max_size=len(free)))
    )
    per_gpu = {size: data.draw(st.integers(1, 9)) for size in sorted(set(jobs))}
    sizes = sorted(set(jobs))
    situation = situation_of(
        jobs, free, usable=lambda shape: np.minimum(free, cores // per_gpu[sizes[shape]])
    )
    needed = np.zeros_like(cores)
    for row, plan in MilpDecider(time_limit_s=PATIENT_S)(situation):
        for node, gpus in plan.items():
            needed[node] += gpus * per_gpu[jobs[row]]
    assert np.all(needed <= cores)


def test_equal_situations_give_equal_plans():
    """Nothing depends on what was decided before, or on chance."""
    dice = np.random.default_rng(3)
    situation = situation_of(dice.choice([1, 2, 3, 4, 8, 16], 40), dice.integers(0, 9, 24))
    decider = MilpDecider(time_limit_s=PATIENT_S)
    first = decider(situation)
    assert decider(situation) == first
    assert MilpDecider(time_limit_s=PATIENT_S)(situation) == first
    assert decider.counts.optimal == decider.counts.passes == 2
    assert decider.counts.total_s >= 2 * min(decider.counts.seconds) > 0
    assert decider.counts.median_s == pytest.approx(decider.counts.total_s / 2)


def test_equal_nodes_and_jobs_share_columns(monkeypatch):
    """64 jobs of four sizes on 64 nodes make a program of a few hundred columns."""
    columns = []
    solve = milp_model.solve

    def recorded(program, limit_s):
        columns.append(len(program.cost))
        return solve(program, limit_s)

    monkeypatch.setattr(milp_model, "solve", recorded)
    dice = np.random.default_rng(0)
    MilpDecider()(situation_of(dice.choice([1, 2, 4, 8], 64), dice.integers(0, 9, 64)))
    assert 0 < max(columns) < 400


@pytest.mark.parametrize("seed", range(10))
def test_the_pack_rule_is_the_placements(seed):
    """What decisions fall back to is what `fifo+skip@pack` does, node for node."""
    dice = np.random.default_rng(seed)
    cluster = Cluster.of("3x V100:8", "4x V100:4", "2x V100:2")
    jobs = Workload.of(
        submit_s=np.zeros(30),
        duration_s=np.full(30, 1e6),
        gpus=dice.choice([1, 2, 3, 4, 6, 8, 10, 12], 30),
        max_gpus_per_node=dice.choice([0, 0, 0, 3], 30),
    )
    schedule = simulate(jobs, cluster, "fifo+skip@pack", until_s=1.0)
    expected = {
        int(row): dict(Counter(cluster.gpu_node[schedule.gpus_of(segment)].tolist()))
        for segment, row in enumerate(schedule.segment_job)
    }
    free = cluster.node_gpus
    situation = Situation(
        0.0, np.arange(30), shapes_of(jobs, cluster), free, free, lambda _: free.copy()
    )
    assert packed(Room(situation), range(30)) == expected


def test_out_of_time_falls_back_to_pack():
    """Without a moment to think the plans are those of pack, and the notes say so."""
    situation = situation_of([2, 4, 1], [4, 8, 6])
    decider = MilpDecider(time_limit_s=1e-9)
    expected = packed(Room(situation), [0, 1, 2])
    assert decider(situation) == list(expected.items())
    assert (decider.counts.fallbacks, decider.counts.optimal) == (1, 0)
    assert decider.notes() == ("milp: 1 of 1 passes hit the 1e-06 ms limit; 1 fell back to pack",)


def test_unfinished_searches_are_counted(monkeypatch):
    """An answer that need not be the best is used, and counted as such."""
    place = milp_model.place

    def unfinished(room, shapes, weights, deadline_s):
        _, plans = place(room, shapes, weights, deadline_s)
        return Status.LIMITED, plans

    situation = situation_of([2, 4], [4, 8, 6])
    expected = MilpDecider(time_limit_s=PATIENT_S)(situation)
    monkeypatch.setattr(milp, "place", unfinished)
    decider = MilpDecider()
    assert decider(situation) == expected
    assert decider.counts.limited == 1
    assert decider.notes() == ("milp: 1 of 1 passes hit the 50 ms limit; 0 fell back to pack",)


def test_a_question_without_answer_is_counted(monkeypatch):
    """Not knowing whether one more job could have started makes the pass a limited one."""
    situation = situation_of([4, 3, 3, 2, 2, 2], [8, 8])  # held by 4 + 2 + 2 and 3 + 3 + 2 alone
    patient = MilpDecider(time_limit_s=PATIENT_S)
    assert len(patient(situation)) == 6
    assert patient.counts.optimal == 1
    place = milp_model.place

    def slow_to_repack(room, shapes, weights, deadline_s):
        return place(room, shapes, weights, deadline_s) if weights else (Status.NONE, [])

    monkeypatch.setattr(milp, "place", slow_to_repack)
    decider = MilpDecider(time_limit_s=PATIENT_S)
    assert len(decider(situation)) >= 5
    assert (decider.counts.limited, decider.counts.optimal) == (1, 0)


def test_too_large_programs_are_not_written(monkeypatch):
    """Beyond the most columns the pack rule decides, and the notes say so."""
    monkeypatch.setattr(milp_model, "MOST_COLUMNS", 3)
    situation = situation_of([2, 4, 1], [4, 8, 6])
    decider = MilpDecider(time_limit_s=PATIENT_S)
    assert decider(situation) == list(packed(Room(situation), [0, 1, 2]).items())
    assert decider.counts.too_large == 1
    (note,) = decider.notes()
    assert note.startswith("milp: 1 of 1 passes were too large")


@pytest.mark.parametrize("bad", [{"batch": 0}, {"time_limit_s": 0.0}, {"time_limit_s": np.nan}])
def test_senseless_settings_are_refused(bad):
    """A batch of nobody and no time at all are errors that say so."""
    with pytest.raises(YardmasterError, match="milp: "):
        MilpDecider(**bad)


def test_the_solver_is_loaded_when_needed():
    """Importing the placement does not import HiGHS."""
    code = "import sys, yardmaster.schedulers.milp; sys.exit('highspy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
