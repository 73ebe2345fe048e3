"""Deciding in Python: what a pass shows, and that both engines carry decisions out alike."""

import numpy as np
import pytest

from yardmaster.engine.conditions import conditions_of
from yardmaster.engine.options import Options
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.reference import simulate_reference
from yardmaster.engine.replay import replay
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.state import Discipline, Placement
from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Quota, Site
from yardmaster.model.workload import Workload

RIDGE = Cluster.of("3x V100:4")


def run(engine, decide, workload, cluster=RIDGE, keys=None):
    """Simulate with a decider on one of the engines."""
    shapes = shapes_of(workload, cluster)
    options = Options(
        Discipline.SKIP,
        Placement.PACK,
        None,
        conditions=conditions_of(workload, cluster, shapes, is_needed=True),
        decide=decide,
    )
    keys = keys or OrderKeys.fixed(workload.submit_s)
    more = {"compile_core": "never"} if engine is replay else {}
    return engine(workload, cluster, keys, options, scheduler="decided", **more)


def emptiest_first(situation):
    """Start, in order, every single-node job on the emptiest node that holds it."""
    free, chosen = situation.free.copy(), []
    for row in situation.rows:
        gpus = int(situation.shapes.gpus[situation.shapes.of_job[row]])
        node = int(np.argmax(free))
        if free[node] >= gpus:
            free[node] -= gpus
            chosen.append((int(row), {node: gpus}))
    return chosen


@pytest.mark.parametrize("seed", range(10))
def test_engines_carry_out_the_same_decisions(seed):
    """A decision function gives the same schedule in the core and in the reference."""
    dice = np.random.default_rng(seed)
    workload = Workload.of(
        submit_s=np.sort(dice.integers(0, 20, 30)).astype(float),
        duration_s=dice.integers(0, 10, 30).astype(float),
        gpus=dice.integers(1, 5, 30),
    )
    core = run(replay, emptiest_first, workload)
    reference = run(simulate_reference, emptiest_first, workload)
    assert core.event_log() == reference.event_log()
    assert (core.outcome == 0).all()


def test_situation_shows_the_pass():
    """Rows come in the order of the keys; free and usable GPUs are those of now."""
    seen = []

    def look(situation):
        room = [situation.usable(shape).tolist() for shape in range(len(situation.shapes.gpus))]
        seen.append((situation.now_s, situation.rows.tolist(), situation.free.tolist(), room))
        return [(int(row), {0: 1}) for row in situation.rows[:1]]

    workload = Workload.of(submit_s=[0.0, 0.0], duration_s=[5.0, 7.0], gpus=[1, 1])
    run(replay, look, workload, keys=OrderKeys.fixed(np.array([2.0, 1.0])))
    assert seen[0] == (0.0, [1, 0], [4, 4, 4], [[4, 4, 4]])
    assert seen[1] == (7.0, [0], [4, 4, 4], [[4, 4, 4]])


def test_jobs_beyond_their_limit_are_not_shown():
    """A job whose tenant is at its limit is not among the rows until there is room for it."""
    shown = []

    def look(situation):
        shown.append(situation.rows.tolist())
        return [(int(row), {0: 2}) for row in situation.rows[:1]]

    cluster = RIDGE.under(Site(quotas=(Quota("a", 0, 2),)))
    workload = Workload.of(
        submit_s=[0.0, 1.0], duration_s=[5.0, 5.0], gpus=[2, 2], tenant=["a", "a"]
    )
    run(replay, look, workload, cluster)
    assert shown == [[0], [1]]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({0: 1}, "needs 2 GPUs"),
        ({0: 3}, "needs 2 GPUs"),
        ({0: 2, 1: 0}, "needs 2 GPUs"),
        ({}, "needs 2 GPUs"),
    ],
)
def test_impossible_plans_are_refused(plan, message):
    """A plan with the wrong number of GPUs is an error that names the job, not a crash."""
    workload = Workload.of(submit_s=[0.0], duration_s=[5.0], gpus=[2])
    with pytest.raises(YardmasterError, match=message):
        run(replay, lambda _: [(0, plan)], workload)


def test_full_nodes_are_refused():
    """A plan on a node without so many free GPUs is refused, and so is a job that does not wait."""
    workload = Workload.of(submit_s=[0.0, 0.0], duration_s=[5.0, 5.0], gpus=[3, 3])
    with pytest.raises(YardmasterError, match="node 0"):
        run(replay, lambda _: [(0, {0: 3}), (1, {0: 3})], workload)
    with pytest.raises(YardmasterError, match="not waiting"):
        run(replay, lambda _: [(0, {0: 3}), (0, {1: 3})], workload)
