"""What a real cluster does to jobs, in numbers."""

import math
from itertools import pairwise

import numpy as np
import pytest

from yardmaster.engine.conditions import conditions_of, reference_gpu
from yardmaster.engine.requests import UNLIMITED, shapes_of
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import gpu_type
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Sharing, Site
from yardmaster.model.speeds import locality, scaling, speed
from yardmaster.model.workload import Workload


def jobs(**columns):
    """Return jobs of 100 s submitted together, as many as the columns have rows."""
    rows = len(next(iter(columns.values())))
    return Workload.of(submit_s=[0.0] * rows, duration_s=[100.0] * rows, **columns)


def conditions(workload, cluster, **options):
    """Return the conditions of these jobs on this cluster, needed or not."""
    options = {"is_needed": True} | options
    return conditions_of(workload, cluster, shapes_of(workload, cluster), **options)


def of_job(workload, cluster, column, row):
    """Return the entry of a table over shapes that belongs to a job."""
    return column[shapes_of(workload, cluster).of_job[row]]


def test_plain_clusters_have_no_conditions():
    """Equal GPUs under no rules change nothing, whatever the jobs say of themselves."""
    cluster = Cluster.of("4x V100:8")
    workload = jobs(
        gpus=[1, 8, 16], kind=["A3C", None, "LM"], tenant=["a", "b", None], cpus=[4] * 3
    )
    assert conditions(workload, cluster, is_needed=False) is None


@pytest.mark.parametrize(
    "site",
    [
        Site(quotas=(Quota("a", 4),)),
        Site(checkpoints=Checkpoints(every_s=60.0, save_s=1.0)),
        Site(failures=Failures(outages=(Outage(0, 1.0, 2.0),))),
        Site(power=Power(cap_w=5000.0)),
    ],
)
def test_every_rule_makes_a_difference(site):
    """Quotas, checkpoints, failures and power caps each make conditions necessary."""
    cluster = Cluster.of("4x V100:8").under(site)
    assert conditions(jobs(gpus=[1]), cluster, is_needed=False) is not None


def test_speeds_refer_to_where_durations_were_measured():
    """A job's speed is 1 on the first type it names, else on the cluster's most numerous type."""
    cluster = Cluster.of("2x A100:8", "1x V100:8")
    workload = jobs(gpus=[1, 1], gpu_types=["V100|A100", None], kind=["A3C", "A3C"])
    found = conditions(workload, cluster)
    named = of_job(workload, cluster, found.speed, 0)
    unnamed = of_job(workload, cluster, found.speed, 1)
    assert named[1] == 1.0
    assert unnamed[0] == 1.0
    assert named[0] == speed("A3C", gpu_type("A100"), gpu_type("V100"))
    assert unnamed[1] == speed("A3C", gpu_type("V100"), gpu_type("A100"))


def test_reference_type_may_have_left():
    """The site may name a reference type of which the cluster no longer has any."""
    cluster = Cluster.of("1x A100:8").under(Site(reference_gpu="V100"))
    assert reference_gpu(cluster).name == "V100"


def test_equal_speeds_switch_types_and_distance_off():
    """With `equal_speeds` nothing about types, racks or kinds is left."""
    cluster = Cluster.of("2x A100:8", "1x V100:8").under(Site(equal_speeds=True))
    workload = jobs(gpus=[1, 8], kind=["A3C", "LM"])
    assert conditions(workload, cluster, is_needed=False) is None


def test_only_distance_that_could_be_avoided_costs():
    """Gangs larger than a node pay nothing for spanning nodes, and jobs without a kind nothing."""
    group = NodeGroup(count=4, gpu_type=gpu_type("V100"), gpus=8, nodes_per_rack=2)
    cluster = from_groups([group], name="racks", site=Site(splits_gangs=True))
    workload = jobs(gpus=[4, 16, 32, 4], kind=["LM", "LM", "LM", None])
    found = conditions(workload, cluster)
    costs = locality("LM")
    nodes = [of_job(workload, cluster, found.node_factor, row) for row in range(4)]
    racks = [of_job(workload, cluster, found.rack_factor, row) for row in range(4)]
    assert nodes == [costs.node, 1.0, 1.0, 1.0]
    assert racks == [costs.rack, costs.rack, 1.0, 1.0]


def test_elastic_sizes_follow_the_curve():
    """The speed on g GPUs is (g/gpus)^a, exactly 1 on the GPUs asked for; sizes fit the node."""
    cluster = Cluster.of("2x V100:4")
    workload = jobs(gpus=[2, 2], min_gpus=[1, 0], max_gpus=[8, 0], kind=["LM", None])
    found = conditions(workload, cluster)
    scale = of_job(workload, cluster, found.scale, 0)
    assert of_job(workload, cluster, found.least_gpus, 0) == 1
    assert of_job(workload, cluster, found.most_gpus, 0) == 4
    assert scale[2] == 1.0
    assert scale[1] == pytest.approx(0.5 ** scaling("LM"), abs=1e-8)
    assert np.all(np.diff(scale) > 0)
    assert np.all(np.diff(scale, 2) <= 1e-9)  # concave
    rigid = of_job(workload, cluster, found.least_gpus, 1)
    assert rigid == of_job(workload, cluster, found.most_gpus, 1) == 2


def test_drawn_failures_have_the_right_means():
    """Times up and down average to MTBF and MTTR, never overlap, and depend on the seed alone."""
    site = Site(failures=Failures(mtbf_h=10.0, mttr_h=2.0))
    cluster = Cluster.of("50x V100:8").under(site)
    workload = Workload.of(submit_s=[0.0], duration_s=[3600.0 * 500], gpus=[1])
    outages = conditions(workload, cluster, seed=1).outages
    down_h = [(outage.up_s - outage.down_s) / 3600 for outage in outages]
    up_h = []
    for node in range(cluster.nodes):
        own = [outage for outage in outages if outage.node == node]
        up_h += [(later.down_s - earlier.up_s) / 3600 for earlier, later in pairwise(own)]
    assert min(up_h) > 0
    for values, mean in ((down_h, 2.0), (up_h, 10.0)):
        assert abs(np.mean(values) - mean) < 4 * mean / math.sqrt(len(values))
    assert conditions(workload, cluster, seed=1).outages == outages
    assert conditions(workload, cluster, seed=2).outages != outages
    assert [o.down_s for o in outages] == sorted(o.down_s for o in outages)


def test_tenants_without_a_quota_are_guaranteed_nothing():
    """Tenants of the jobs that the site does not name may borrow without limit."""
    cluster = Cluster.of("1x V100:8").under(Site(quotas=(Quota("a", 4, 6),)))
    workload = jobs(gpus=[1, 1, 1], tenant=["a", "b", None])
    found = conditions(workload, cluster)
    by_row = [of_job(workload, cluster, found.tenant, row) for row in range(3)]
    assert len(set(by_row)) == 3
    assert found.guaranteed_gpus[by_row].tolist() == [4, 0, 0]
    assert found.limit_gpus[by_row].tolist() == [6, UNLIMITED, UNLIMITED]


def test_tenants_are_left_out_where_nobody_asks():
    """Without quotas and without an order by tenant, tenants do not multiply the shapes."""
    cluster = Cluster.of("1x V100:8", "1x A100:8")
    workload = jobs(gpus=[1, 1], tenant=["a", "b"])
    assert len(shapes_of(workload, cluster).gpus) == 1
    assert len(conditions(workload, cluster).guaranteed_gpus) == 0
    assert len(shapes_of(workload, cluster, by_tenant=True).gpus) == 2


def test_neighbours_of_unknown_kind_do_not_slow_down():
    """Jobs without a kind get the share they ask for; known kinds slow each other down."""
    group = NodeGroup(count=1, gpu_type=gpu_type("V100"), gpus=1, sharing=Sharing.MPS)
    cluster = from_groups([group], name="shared")
    workload = jobs(gpus=[1, 1], milli_gpu=[500, 500], kind=["LM", None])
    found = conditions(workload, cluster)
    known, unknown = (of_job(workload, cluster, found.kind, row) for row in (0, 1))
    assert found.pair[known, unknown] == found.pair[unknown, known] == 1.0
    assert found.pair[known, known] < 1.0


def test_waking_counts_only_where_nodes_sleep():
    """Waking a node costs its idle draw and overhead, on sites whose nodes go to sleep."""
    group = NodeGroup(count=1, gpu_type=gpu_type("V100"), gpus=8, overhead_w=300.0)
    awake = from_groups([group], name="awake")
    asleep = awake.under(Site(power=Power(sleep_after_s=60.0)))
    idle_w = 8 * gpu_type("V100").idle_w
    assert conditions(jobs(gpus=[1]), awake).node_wake_w.tolist() == [0.0]
    assert conditions(jobs(gpus=[1]), asleep).node_wake_w.tolist() == [300.0 + idle_w]
