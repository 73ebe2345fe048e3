"""Backfilling worked out by hand, on both engines.

A picture stands for time from left to right; letters are jobs in order of submission.
"""

import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.schedulers.simulation import simulate

ENGINES = ("core", "simpy")


def starts(discipline, jobs, cluster, engine, *, suffix="", **columns):
    """Return the starts of jobs given as (submit, duration, GPUs), first come first served."""
    submit_s, duration_s, gpus = zip(*jobs, strict=True)
    workload = Workload.of(submit_s=submit_s, duration_s=duration_s, gpus=gpus, **columns)
    schedule = simulate(workload, cluster, f"fifo+{discipline}{suffix}", engine=engine)
    return schedule.start_s.tolist()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("discipline", "expected"),
    [
        ("strict", [0, 10, 15, 15]),
        ("skip", [0, 102, 2, 10]),
        ("easy", [0, 10, 15, 3]),
        ("conservative", [0, 10, 15, 3]),
    ],
)
def test_shadow_time(engine, discipline, expected):
    """B waits for A until 10; C would still run then and may not pass, D ends exactly then."""
    # a a a a a a a a a a b b b b b
    # a a a a a a a a a a b b b b b
    # . . . d d d d d d d b b b b b c c c …
    jobs = [(0, 10, 2), (1, 5, 3), (2, 100, 1), (3, 7, 1)]
    assert starts(discipline, jobs, Cluster.pool(3), engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_extra_gpus(engine):
    """One GPU is over when B starts at 10: C may keep it for as long as it likes, D may not.

    A rule of shadow time alone would let neither C nor D pass.
    """
    # a a a a a a a a a a b b b b b
    # a a a a a a a a a a b b b b b
    # . . c c c c c c c c c c c c c c c …
    # . . . . . . . . . . b b b b b d d d …
    jobs = [(0, 10, 2), (1, 5, 3), (2, 100, 1), (3, 100, 1)]
    assert starts("easy", jobs, Cluster.pool(4), engine) == [0, 10, 2, 15]


@pytest.mark.parametrize("engine", ENGINES)
def test_extra_gpus_are_used_up_once(engine):
    """Two GPUs are over: a job of two takes both, and a job of one that comes later none."""
    jobs = [(0, 10, 4), (1, 5, 6), (2, 100, 2), (3, 100, 1)]
    assert starts("easy", jobs, Cluster.pool(8), engine) == [0, 10, 2, 15]


@pytest.mark.parametrize("engine", ENGINES)
def test_short_jobs_leave_the_extra_gpus_alone(engine):
    """A job that ends by the shadow time does not count against what is over then."""
    # Free now: 3. Over at 10: 2. C (1 GPU, ends at 10) and D (2 GPUs, long) both pass.
    jobs = [(0, 10, 5), (1, 5, 6), (2, 8, 1), (2, 100, 2)]
    assert starts("easy", jobs, Cluster.pool(8), engine) == [0, 10, 2, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_everything_that_ends_at_the_shadow_time_is_over(engine):
    """Two jobs end together at 10 and free more than the head needs: the rest is lent out."""
    # Four of eight GPUs are over at 10, although one of the two endings would have been enough.
    jobs = [(0, 10, 3), (0, 10, 3), (1, 5, 4), (2, 100, 2)]
    assert starts("easy", jobs, Cluster.pool(8), engine) == [0, 0, 10, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_only_the_head_is_protected(engine):
    """EASY lets D delay C, the second in the queue; conservative does not."""
    jobs = [(0, 10, 3), (1, 10, 3), (2, 5, 4), (3, 30, 1)]
    pool = Cluster.pool(4)
    assert starts("easy", jobs, pool, engine) == [0, 10, 33, 3]
    assert starts("conservative", jobs, pool, engine) == [0, 10, 20, 25]


@pytest.mark.parametrize("engine", ENGINES)
def test_extra_gpus_are_counted_per_node(engine):
    """Two GPUs are over at the shadow time: two long jobs pass, a third does not.

    Node 0 is full until 10, node 1 is half full until 30. B needs a whole node: node 0 at 10.
    """
    jobs = [(0, 10, 4), (0, 30, 2), (1, 5, 4), (2, 100, 1), (3, 100, 1), (4, 100, 1)]
    nodes = Cluster.of("2x V100:4")
    assert starts("easy", jobs, nodes, engine) == [0, 0, 10, 2, 3, 15]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_free_gpu_on_the_reserved_node_is_not_extra(engine):
    """The GPU free now belongs to the node the head waits for: only a short job may use it."""
    # Node 0: three GPUs until 40 and one until 9. Node 1: three until 10, the fourth is free. The
    # head takes node 1 at 10. Counted over the cluster one GPU is over then, but it is on node 0:
    # the long job must wait until it can have that one, at 9; the short one may pass at 3.
    jobs = [(0, 40, 3), (0, 9, 1), (0, 10, 3), (1, 5, 4), (2, 100, 1), (3, 7, 1)]
    nodes = Cluster.of("2x V100:4")
    assert starts("easy", jobs, nodes, engine) == [0, 0, 0, 10, 9, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_gangs_across_nodes(engine):
    """The head of six spans both nodes at 10 and leaves two GPUs over, on one of them."""
    jobs = [(0, 10, 4), (0, 10, 2), (1, 5, 6), (2, 100, 2)]
    nodes = Cluster.of("2x V100:4")
    assert starts("easy", jobs, nodes, engine) == [0, 0, 10, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_conservative_by_hand(engine):
    """Each promise is the earliest hole that disturbs no earlier promise."""
    # a a a a b b b b b b d d
    # a a a a b b b b b b d d
    # . c c c b b b b b b d d
    # . e e f f f f f f f d d g …     F just fits before D, G is a second too long
    jobs = [(0, 4, 2), (1, 6, 3), (1, 3, 1), (1, 2, 4), (1, 2, 1), (1, 7, 1), (1, 8, 1)]
    assert starts("conservative", jobs, Cluster.pool(4), engine) == [0, 4, 1, 10, 1, 3, 12]


@pytest.mark.parametrize("engine", ENGINES)
def test_estimates_that_are_too_long_hold_others_back(engine):
    """With estimates C seems to run past the shadow time and waits; in truth it would have fit."""
    jobs = [(0, 10, 3), (1, 5, 4), (2, 8, 1)]
    told = {"estimate_s": [10, 5, 9]}
    pool = Cluster.pool(4)
    assert starts("easy", jobs, pool, engine, **told) == [0, 10, 2]
    assert starts("easy", jobs, pool, engine, suffix="~estimate", **told) == [0, 10, 15]


@pytest.mark.parametrize("engine", ENGINES)
def test_early_endings_move_the_head_forward(engine):
    """A was expected until 10 and ends at 4: the head starts then, under both disciplines."""
    jobs = [(0, 4, 4), (1, 5, 4), (2, 1, 4)]
    for discipline in ("easy", "conservative"):
        told = {"estimate_s": [10, 5, 1]}
        begun = starts(discipline, jobs, Cluster.pool(4), engine, suffix="~estimate", **told)
        assert begun == [0, 4, 9]
