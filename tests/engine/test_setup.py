"""The arrays of one simulation."""

import math

import numpy as np
import pytest

from yardmaster.engine import state as at
from yardmaster.engine.orders import OrderKeys
from yardmaster.engine.requests import shapes_of
from yardmaster.engine.setup import Options, lay_out, rank_of
from yardmaster.engine.state import Discipline, Placement
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload

NODES = Cluster.of("2x V100:4", "1x T4:40")


def laid_out(discipline=Discipline.STRICT, *, jobs=10, expected_s=None):
    """Return the first state of a small simulation."""
    workload = Workload.of(submit_s=range(jobs), duration_s=[5] * jobs)
    keys = OrderKeys.fixed(np.arange(jobs))
    options = Options(discipline, Placement.PACK, expected_s, seed=-1)
    return lay_out(workload, NODES, shapes_of(workload, NODES), keys, options)


@pytest.mark.parametrize(
    "keys",
    [
        [3.0, 1.0, 2.0],
        [1.0, 1.0, 1.0],
        [2.0, 1.0, 2.0, 1.0],
        [math.inf, -math.inf, math.inf, 0.0],
        [0.0, -0.0, 0.0],
        [],
    ],
)
def test_ranks(keys):
    """Ranks are places in a stable sort: equal keys keep the order of submission."""
    rank = rank_of(np.array(keys)).tolist()
    in_order = sorted(range(len(keys)), key=lambda row: (keys[row], row))
    assert [rank[row] for row in in_order] == list(range(len(keys)))


def test_everything_is_free_at_first():
    """All GPUs are free, nobody waits, nobody runs, nothing is chosen."""
    simulation = laid_out()
    assert simulation.ints[at.FREE_GPUS] == 48
    assert simulation.int_table(at.NODE_FREE, 3).tolist() == [4, 4, 40]
    assert (
        simulation.ints[[at.QUEUED, at.RUNNING, at.SEGMENTS, at.NEXT_ARRIVAL]].tolist() == [0] * 4
    )
    assert simulation.ints[at.COMMITTED] == at.NOTHING
    assert simulation.int_table(at.SUBMIT, 1).size == 1
    # 4 + 4 + 40 GPUs in words of 32 bits: one word, one word, two words.
    assert simulation.int_table(at.GPU_BITS, 4).tolist() == [15, 15, 2**32 - 1, 255]


def test_tables_do_not_overlap():
    """Writing every table of a simulation leaves all others as they were."""
    simulation = laid_out(Discipline.CONSERVATIVE, expected_s=np.full(10, 7.0))
    assert simulation.real_table(at.SUBMIT, 10).tolist() == list(range(10))
    assert simulation.real_table(at.DURATION, 10).tolist() == [5] * 10
    assert simulation.real_table(at.EXPECTED, 10).tolist() == [7] * 10
    begins = sorted(
        int(simulation.ints[place]) for place in (at.SUBMIT, at.DURATION, at.EXPECTED, at.END)
    )
    assert np.diff(begins).min() >= 10


def test_seeds_of_any_size_are_accepted():
    """A seed is reduced to 32 bits."""
    assert laid_out().ints[at.SEED] == 2**32 - 1


def test_one_heap_serves_where_the_truth_is_expected():
    """With true run times both completion heaps are the same table, otherwise they are not."""
    same = laid_out(Discipline.EASY)
    assert same.ints[at.TRUE_ENDS] == 1
    assert same.ints[at.HEAP] == same.ints[at.EXPECTED_HEAP]
    apart = laid_out(Discipline.EASY, expected_s=np.full(10, 7.0))
    assert apart.ints[at.TRUE_ENDS] == 0
    assert apart.ints[at.HEAP] != apart.ints[at.EXPECTED_HEAP]


def test_making_room_keeps_what_is_there():
    """Profile and promises are twice as long afterwards and begin with what they held."""
    simulation = laid_out(Discipline.CONSERVATIVE)
    steps = int(simulation.ints[at.PROFILE_ROOM])
    entries = int(simulation.ints[at.PROMISE_ROOM])
    tables = {at.PROFILE_FREE: steps * 3, at.PROMISE_NODE: entries, at.PROMISE_GPUS: entries}
    for number, (name, length) in enumerate(tables.items()):
        simulation.int_table(name, length)[:] = np.arange(length) + number
    simulation.real_table(at.PROFILE_TIME, steps)[:] = np.arange(steps)
    before = simulation.int_table(at.NODE_FREE, 3).copy()
    for _ in range(2):
        simulation.make_room()
    assert simulation.ints[at.PROFILE_ROOM] == 4 * steps
    assert simulation.ints[at.PROMISE_ROOM] == 4 * entries
    for number, (name, length) in enumerate(tables.items()):
        kept = simulation.int_table(name, 4 * length)
        assert kept[:length].tolist() == (np.arange(length) + number).tolist()
        assert len(kept) == 4 * length
    assert simulation.real_table(at.PROFILE_TIME, steps).tolist() == list(range(steps))
    assert simulation.int_table(at.NODE_FREE, 3).tolist() == before.tolist()
