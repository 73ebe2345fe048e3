"""The tables of real clusters."""

from itertools import combinations

import numpy as np
import pytest

from yardmaster.engine import state as at
from yardmaster.engine.conditions import conditions_of
from yardmaster.engine.real_setup import _binding_types, _outage_tables, least_nodes
from yardmaster.engine.requests import shapes_of
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import Workload


@pytest.mark.parametrize("seed", range(30))
def test_least_nodes_by_brute_force(seed):
    """The fewest nodes that could hold a gang are found as trying every set of nodes finds them."""
    dice = np.random.default_rng(seed)
    sizes = dice.integers(1, 6, 4).tolist()
    cluster = Cluster.of(*[f"V100:{size}" for size in sizes])
    cap = int(dice.choice([0, 2]))
    rooms = [min(size, cap or size) for size in sizes]
    gpus = int(dice.integers(1, sum(rooms) + 1))
    workload = Workload.of(submit_s=[0], duration_s=[1], gpus=[gpus], max_gpus_per_node=[cap])
    shapes = shapes_of(workload, cluster)
    fewest = next(
        count
        for count in range(1, 5)
        if any(sum(some) >= gpus for some in combinations(rooms, count))
    )
    assert least_nodes(cluster, shapes).tolist() == [fewest]


def test_events_of_one_instant_are_repairs_first():
    """At one instant repairs come before failures, each by node."""
    outages = (Outage(0, 5.0, 10.0), Outage(2, 5.0, 10.0), Outage(1, 10.0, 12.0))
    cluster = Cluster.of("3x V100:1").under(Site(failures=Failures(outages=outages)))
    workload = Workload.of(submit_s=[0], duration_s=[1])
    conditions = conditions_of(workload, cluster, shapes_of(workload, cluster))
    tables = _outage_tables(conditions)
    events = zip(
        tables[at.OUTAGE_TIME], tables[at.OUTAGE_IS_FAILURE], tables[at.OUTAGE_NODE], strict=True
    )
    assert [tuple(map(int, event)) for event in events] == [
        (5, 1, 0), (5, 1, 2), (10, 0, 0), (10, 0, 2), (10, 1, 1), (12, 0, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("cpus", "binds"), [(1.0, 0), (2.0, 0), (2.5, 1)])
def test_cores_bind_only_if_they_can_run_out_first(cpus, binds):
    """With no more than a GPU's share of cores per GPU, GPUs always run out first."""
    group = NodeGroup(count=1, gpu_type=gpu_type("V100"), gpus=4, cpus=8.0)
    cluster = from_groups([group], name="cores")
    workload = Workload.of(submit_s=[0, 0], duration_s=[1, 1], gpus=[1, 2], cpus=[cpus, 2.0])
    shapes = shapes_of(workload, cluster)
    conditions = conditions_of(workload, cluster, shapes, is_needed=True)
    assert _binding_types(cluster, shapes, conditions).tolist() == [binds]
